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
  /** Stores an event of ADK's that is recorded. */
  append(step: RecordedStep): Promise<unknown>
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
  onStored?: ((message: Message) => void) | undefined
}

type RecordedStep = Pick<RunStep, 'message' | 'stateDelta' | 'at' | 'journal'>

/** Records the tool calls of messages, in one write with them. */
interface CallRecords {
  changesFor(message: Message | undefined, journal?: readonly JournalEntry[]): ToolCallChange[]
  stored(changes: readonly ToolCallChange[], places: readonly ToolCallPlace[]): void
}

export function gateAppends(parts: GateParts): AppendGate {
  const { store, recorder, lease, ledger, onStored, ...opened } = parts
  const underWay = new Set<Promise<unknown>>()
  let sealed = false
  let { hasAppended } = opened
  const writes = { haveFailed: false }
  const pass = <T>(write: () => Promise<T>): Promise<T> => {
    if (sealed) return Promise.reject(runHasEnded())
    const writing = write()
    watch(writing, underWay, writes)
    return writing
  }
  const appendOwn = async (step: RecordedStep): Promise<SavedStep> => {
    const { message, at } = step
    const isOwn = message !== undefined && at === undefined
    const calls = ledger?.changesFor(isOwn ? message : undefined, step.journal) ?? []
    const saved = await recorder.append({ ...step, calls })
    ledger?.stored(calls, saved.calls ?? [])
    if (isOwn) onStored?.(message)
    hasAppended = true
    return saved
  }
  const append = async (
    key: SessionKey,
    message: Message,
    options: AppendOptions,
  ): Promise<{ seq: number }> => {
    const { fence, stateDelta } = options
    const { seq } =
      fence === lease.fence
        ? await appendOwn({ message, ...defined({ stateDelta }) })
        : await store.appendMessage(key, message, options)
    invariant(seq !== undefined, 'a stored message has a number')
    hasAppended = true
    return { seq }
  }
  const updateState: SessionStore['updateState'] = async (key, delta, options) => {
    if (options?.fence !== lease.fence) await store.updateState(key, delta, options)
    else await recorder.append({ stateDelta: delta })
  }
  return {
    store: {
      createSession: (key, state, options) => pass(() => store.createSession(key, state, options)),
      loadSession: (key, options) => store.loadSession(key, options),
      readMessages: (key, options) => store.readMessages(key, options),
      appendMessage: (key, message, options = {}) => pass(() => append(key, message, options)),
      updateState: (key, delta, options) => pass(() => updateState(key, delta, options)),
      forkSession: (key, newSessionId, options) => store.forkSession(key, newSessionId, options),
      describeSession: key => store.describeSession(key),
      renameSession: (key, title) => store.renameSession(key, title),
      listSessions: query => store.listSessions(query),
      deleteSession: key => store.deleteSession(key),
      acquireLease: (key, options) => store.acquireLease(key, options),
      runs: store.runs,
      calibration: store.calibration,
      close: () => store.close(),
    },
    append: step => pass(() => appendOwn(step)),
    get hasAppended() {
      return hasAppended
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
