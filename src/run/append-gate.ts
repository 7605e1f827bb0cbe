import { AgentError } from '../errors.js'
import type { Message } from '../session/message.js'
import type { JournalEntry, RunStep, SavedStep, ToolCallChange, ToolCallPlace } from '../session/run-store.js'
import type { SessionAccess, SessionStore } from '../session/session-store.js'
import type { RunRecorder } from './run-recorder.js'

export interface GateParts {
  store: SessionStore
  recorder: RunRecorder
  ledger: CallRecords
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

/**
 * The way of ADK's events into the store: messages of the run's session are stored through the recorder, in one write with
 * the run events that report them and the tool calls that they hold. When a run is stopped, a tool that ignores its signal
 * may still finish, and ADK would store its late result: once the gate is sealed no write begins any more.
 */
export class AppendGate {
  readonly #parts: GateParts
  readonly #underWay = new Set<Promise<void>>()
  #isSealed = false
  #haveFailed = false
  /** The sessions of the run, as ADK may use them. */
  readonly store: SessionAccess

  constructor(parts: GateParts) {
    this.#parts = parts
    const { store } = parts
    this.store = {
      createSession: (key, state, options) => this.#pass(() => store.createSession(key, state, options)),
      loadSession: (key, options) => this.#afterHeld(() => store.loadSession(key, options)),
      readMessages: (key, options) => this.#afterHeld(() => store.readMessages(key, options)),
      appendMessage: (key, message, options) => this.#pass(() => store.appendMessage(key, message, options)),
      updateState: (key, delta, options) => this.#pass(() => store.updateState(key, delta, options)),
      listSessions: query => this.#afterHeld(() => store.listSessions(query)),
      deleteSession: key => store.deleteSession(key),
      acquireLease: (key, options) => store.acquireLease(key, options),
    }
  }

  /** Whether a write failed. The store may have it all the same: an acknowledgement can be lost. */
  get haveWritesFailed(): boolean {
    return this.#haveFailed
  }

  /** Stores an event of ADK's that is recorded. One that ends the run is stored with that end, which is not waited for. */
  append(step: RecordedStep, endsRun: boolean): Promise<unknown> | undefined {
    if (!endsRun) return this.#pass(() => this.#append(step, this.#callsOf(step)))
    const calls = this.#callsOf(step)
    const isAlone = !this.#isSealed && calls.length === 0 && !this.#parts.recorder.isUnstored
    if (!isAlone) return this.#pass(() => this.#append(step, calls))
    this.#hold(step)
    return undefined
  }

  /** No write begins any more. Resolves when those that have begun are stored or refused. */
  seal(): Promise<unknown> | undefined {
    this.#isSealed = true
    return this.#underWay.size > 0 ? Promise.all(this.#underWay) : undefined
  }

  async #pass<T>(write: () => Promise<T>): Promise<T> {
    if (this.#isSealed) throw runHasEnded()
    // Noted before it begins: the end of the run may come while it does, and waits for it.
    let ended = () => {}
    const writing = new Promise<void>(resolve => {
      ended = resolve
    })
    this.#underWay.add(writing)
    try {
      return await write()
    } catch (error) {
      this.#haveFailed = true
      throw error
    } finally {
      this.#underWay.delete(writing)
      ended()
    }
  }

  /** A held message is stored first, so that the run reads all that it wrote. */
  #afterHeld<T>(read: () => Promise<T>): Promise<T> {
    return this.#parts.recorder.letGo()?.then(read) ?? read()
  }

  async #append(step: RecordedStep, calls: readonly ToolCallChange[]): Promise<SavedStep> {
    return this.#stored(step, calls, await this.#parts.recorder.append({ ...step, calls }))
  }

  /** Stores a message with the end of the run. A failure is reported when that comes. */
  #hold(step: RecordedStep): void {
    const lost = (error: unknown) => {
      this.#haveFailed = true
      this.#parts.onLost(error)
    }
    this.#parts.recorder.hold(step).then(saved => this.#stored(step, [], saved), lost)
  }

  #stored(step: RecordedStep, calls: readonly ToolCallChange[], saved: SavedStep): SavedStep {
    const { ledger, onStored } = this.#parts
    ledger.stored(calls, saved.calls ?? [])
    const message = ownMessage(step)
    if (message) onStored(message)
    return saved
  }

  #callsOf(step: RecordedStep): readonly ToolCallChange[] {
    return this.#parts.ledger.changesFor(ownMessage(step), step.journal)
  }
}

/** The message of a step, if it is one of the run's own session. */
function ownMessage({ message, at }: RecordedStep): Message | undefined {
  return at === undefined ? message : undefined
}

function runHasEnded(): AgentError {
  return new AgentError('aborted', 'The run has ended: it cannot write to the store any more.')
}
