import { defined } from '../base/defined.js'
import { AgentError, invariant } from '../errors.js'
import type { Message, SessionKey } from '../session/message.js'
import type { JournalEntry, RunStep, SavedStep, ToolCallChange, ToolCallPlace } from '../session/run-store.js'
import type { AppendOptions, Lease, SessionStore } from '../session/session-store.js'
import type { RunRecorder } from './run-recorder.js'

/**
 * The run's own view of its store: messages of its session are stored through the recorder, in one write with the
 * events that report them. When a run is stopped, a tool that ignores its signal may still finish, and ADK would
 * store its late result; after `seal` further writes fail, and writes under way have completed.
 */
export interface AppendGate {
  readonly store: SessionStore
  /** Stores an event of ADK's that is recorded. One that ends the run is stored with that end, which is not waited for. */
  append(step: RecordedStep, endsRun: boolean): Promise<unknown> | undefined
  /** Whether anything of the run has reached the store. */
  readonly hasAppended: boolean
  /** Whether a write failed. The store may have it all the same: an acknowledgement can be lost. */
  readonly writes: { readonly haveFailed: boolean }
  seal(): Promise<unknown> | undefined
}

export interface GateParts {
  store: SessionStore
  recorder: RunRecorder
  lease: Lease
  /** Whether the message of the run is stored already. */
  hasAppended: boolean
  ledger?: CallRecords | undefined
  /** Called with each message of the run's session when it is stored. */
  onStored(message: Message): void
  /** Called when a message could not be stored that was not waited for. */
  onLost(error: unknown): void
}

type RecordedStep = Pick<RunStep, 'message' | 'stateDelta' | 'at' | 'journal'>

/** Records the tool calls of messages, in one write with them. */
interface CallRecords {
  changesFor(message: Message | undefined, journal?: readonly JournalEntry[]): ToolCallChange[]
  stored(changes: readonly ToolCallChange[], places: readonly ToolCallPlace[]): void
}

/** Messages of the run's session, with the tool calls that they report. */
class OwnAppends {
  readonly #parts: GateParts
  readonly #writes: { haveFailed: boolean; hasAppended: boolean }

  constructor(parts: GateParts, writes: { haveFailed: boolean; hasAppended: boolean }) {
    this.#parts = parts
    this.#writes = writes
  }

  changesOf(step: RecordedStep): readonly ToolCallChange[] {
    return this.#parts.ledger?.changesFor(ownMessage(step), step.journal) ?? []
  }

  async append(step: RecordedStep, calls = this.changesOf(step)): Promise<SavedStep> {
    return this.#stored(step, calls, await this.#parts.recorder.append({ ...step, calls }))
  }

  /** Stores a message with the end of the run. A failure is reported when that comes. */
  hold(step: RecordedStep): void {
    const lost = (error: unknown) => {
      this.#writes.haveFailed = true
      this.#parts.onLost(error)
    }
    this.#parts.recorder.hold(step).then(saved => this.#stored(step, [], saved), lost)
  }

  #stored(step: RecordedStep, calls: readonly ToolCallChange[], saved: SavedStep): SavedStep {
    const { ledger, onStored } = this.#parts
    ledger?.stored(calls, saved.calls ?? [])
    this.#writes.hasAppended = true
    const message = ownMessage(step)
    if (message) onStored(message)
    return saved
  }
}

/** The message of a step, if it is one of the run's own session. */
function ownMessage({ message, at }: RecordedStep): Message | undefined {
  return at === undefined ? message : undefined
}

export function gateAppends(parts: GateParts): AppendGate {
  const { store, recorder, lease, hasAppended } = parts
  const underWay = new Set<Promise<unknown>>()
  let sealed = false
  const writes = { haveFailed: false, hasAppended }
  const pass = <T>(write: () => Promise<T>): Promise<T> => {
    if (sealed) return Promise.reject(runHasEnded())
    const writing = write()
    watch(writing, underWay, writes)
    return writing
  }
  const own = new OwnAppends(parts, writes)
  const hold = (step: RecordedStep): Promise<SavedStep> | undefined => {
    const calls = own.changesOf(step)
    if (sealed || calls.length > 0) return pass(() => own.append(step, calls))
    own.hold(step)
    return undefined
  }
  const append = async (
    key: SessionKey,
    message: Message,
    options: AppendOptions,
  ): Promise<{ seq: number }> => {
    const { fence, stateDelta } = options
    const { seq } =
      fence === lease.fence
        ? await own.append({ message, ...defined({ stateDelta }) })
        : await store.appendMessage(key, message, options)
    invariant(seq !== undefined, 'a stored message has a number')
    writes.hasAppended = true
    return { seq }
  }
  /** What the run reads of its sessions has all that it wrote. */
  const afterHeld = <T>(read: () => Promise<T>): Promise<T> => recorder.letGo()?.then(read) ?? read()
  const updateState: SessionStore['updateState'] = async (key, delta, options) => {
    if (options?.fence !== lease.fence) await store.updateState(key, delta, options)
    else await recorder.append({ stateDelta: delta })
  }
  return {
    store: {
      createSession: (key, state, options) => pass(() => store.createSession(key, state, options)),
      loadSession: (key, options) => afterHeld(() => store.loadSession(key, options)),
      readMessages: (key, options) => afterHeld(() => store.readMessages(key, options)),
      appendMessage: (key, message, options = {}) => pass(() => append(key, message, options)),
      updateState: (key, delta, options) => pass(() => updateState(key, delta, options)),
      forkSession: (key, newSessionId, options) =>
        afterHeld(() => store.forkSession(key, newSessionId, options)),
      describeSession: key => afterHeld(() => store.describeSession(key)),
      renameSession: (key, title) => store.renameSession(key, title),
      listSessions: query => afterHeld(() => store.listSessions(query)),
      deleteSession: key => store.deleteSession(key),
      acquireLease: (key, options) => store.acquireLease(key, options),
      runs: store.runs,
      calibration: store.calibration,
      close: () => store.close(),
    },
    append: (step, endsRun) => (endsRun ? hold(step) : pass(() => own.append(step))),
    get hasAppended() {
      return writes.hasAppended
    },
    writes,
    seal() {
      sealed = true
      return underWay.size > 0 ? Promise.allSettled(underWay) : undefined
    },
  }
}

function watch(
  writing: Promise<unknown>,
  underWay: Set<Promise<unknown>>,
  writes: { haveFailed: boolean },
): void {
  const failed = () => {
    writes.haveFailed = true
    underWay.delete(writing)
  }
  underWay.add(writing)
  writing.then(() => underWay.delete(writing), failed)
}

function runHasEnded(): AgentError {
  return new AgentError('aborted', 'The run has ended: it cannot write to the store any more.')
}
