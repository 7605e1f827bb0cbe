import {
  type Event,
  isBaseAgent,
  isBaseToolset,
  isLlmAgent,
  LlmAgent,
  type Part,
  type RunnableRoot,
} from '../adk/sdk.js'
import type { Turns } from '../base/pause.js'
import { AgentError } from '../errors.js'
import type { Message } from '../session/message.js'
import type { JournalEntry, RunStep, SavedStep, ToolCallChange, ToolCallPlace } from '../session/run-store.js'
import type { Lease, SessionAccess, SessionStore } from '../session/session-store.js'
import type { ResumedRun } from './resumed-run.js'
import type { RunEventBody } from './run-event.js'
import type { RunFeed } from './run-feed.js'
import type { RunHost, RunOpened } from './run-host.js'
import { RunJournal } from './run-journal.js'
import type { PreparedRun } from './run-opening.js'
import { RunPlugin } from './run-plugin.js'
import { RunRecorder } from './run-recorder.js'
import { ToolLedger } from './tool-ledger.js'

export interface WriteParts extends Pick<PreparedRun, 'key' | 'input' | 'runId'> {
  host: RunHost
  lease: Lease
  /** What earlier attempts of the run have left. */
  resumed?: ResumedRun | undefined
  /** The message of the run and where it is stored; absent in a run that is resumed between two rounds. */
  opening?: RunOpened | undefined
  turns: Turns
  /** The feed of the run's followers, if it has any. */
  feed?: RunFeed | undefined
}

/** What a run stores itself with. */
export interface RunWrites {
  readonly recorder: RunRecorder
  readonly ledger: ToolLedger
  readonly gate: AppendGate
  readonly journal: RunJournal
  /** Records model steps in the journal. */
  readonly plugin: RunPlugin
}

/** What the run does about its writes. */
export interface WriteHooks {
  emit(body: RunEventBody): void
  fail(error: AgentError): void
  enterAgent(invocation: object): void
  /** A message of the run's session is stored. */
  stored(message: Message): void
  /** Whether an answer of an agent may be the end: nobody is asked anything, and no code of the user's checks it. */
  mayEndWith(agent: string): boolean
  /** A message could not be stored that was to be stored with the end of the run. */
  lost(error: unknown): void
}

export function openWrites(parts: WriteParts, hooks: WriteHooks): RunWrites {
  const { host, key, lease, input, runId, resumed, turns, feed } = parts
  const { store, logger, observe } = host
  const { emit, fail, enterAgent, mayEndWith, stored, lost } = hooks
  const recorder = new RunRecorder({
    ...{ store, key, runId, lease, logger, turns, observe },
    onStored: events => {
      feed?.stored(events.at(-1)?.seq ?? 0)
      input.onStored?.(events)
    },
    handOut: feed && (events => feed.add(events)),
  })
  const ledger = new ToolLedger(host, {
    ...{ key, runId, recorder, emit, fail, enterAgent },
    restored: resumed?.calls,
    untilLive: what => journal.untilLive(what),
  })
  const gate = gateAppends({ store, recorder, ledger, onStored: stored, onLost: lost })
  const journal: RunJournal = new RunJournal({
    key,
    replay: resumed?.replay,
    answerUnknownTools: host.answerUnknownTools,
    failureOf: event => (event.errorCode ? plugin.modelError : undefined),
    write: (step, endsRun) => gate.append(step, endsRun),
    // What code of the user's does with the answer relies on it: it is stored before that.
    isLast: event =>
      resumed === undefined &&
      plugin.isAlone &&
      mayEndWith(event.author ?? '') &&
      isLastEvent(host.rootAgent, event),
  })
  const plugin: RunPlugin = new RunPlugin(journal)
  return { recorder, ledger, gate, journal, plugin }
}

/**
 * Whether nothing comes after an answer of a model, neither of ADK's nor of the user's: it is the answer of a root agent
 * without other agents, has no calls, and the agent has no code of its own that would come after it.
 */
function isLastEvent(root: RunnableRoot, { author, branch, content, errorCode }: Event): boolean {
  if (!isBaseAgent(root) || !isLlmAgent(root) || author !== root.name || branch || errorCode) return false
  const { afterAgentCallback, codeExecutor, mode, subAgents, tools } = root
  const isPlain = isPlainAgent(root) && subAgents.length === 0 && !codeExecutor && mode !== 'task'
  // Sets of tools are closed after the answer.
  if (!isPlain || afterAgentCallback.length > 0 || tools.some(isBaseToolset)) return false
  return content?.parts?.every(isWords) ?? false
}

/** Whether an agent does what ADK's own class does. */
function isPlainAgent(agent: LlmAgent): boolean {
  return (
    Object.getPrototypeOf(agent) === LlmAgent.prototype &&
    !AFTER_ANSWER.some(name => Object.hasOwn(agent, name))
  )
}

/** The methods that come to an end after the answer. */
const AFTER_ANSWER = [
  ...['runAsync', 'runAsyncImpl', 'runOneStepAsync', 'callLlmAsync', 'postprocess'],
  ...['runAndHandleError', 'handleAfterAgentCallback'],
]

/** ADK asks again after a part of any other kind. */
function isWords({ functionCall, functionResponse, executableCode, codeExecutionResult }: Part): boolean {
  return !functionCall && !functionResponse && !executableCode && !codeExecutionResult
}

/**
 * The run's own view of its store: messages of its session are stored through the recorder, in one write with the
 * events that report them. When a run is stopped, a tool that ignores its signal may still finish, and ADK would
 * store its late result; after `seal` further writes fail, and writes under way have completed.
 */
export interface AppendGate {
  readonly store: SessionAccess
  /** Stores an event of ADK's that is recorded. One that ends the run is stored with that end, which is not waited for. */
  append(step: RecordedStep, endsRun: boolean): Promise<unknown> | undefined
  /** Whether a write failed. The store may have it all the same: an acknowledgement can be lost. */
  readonly writes: { readonly haveFailed: boolean }
  seal(): Promise<unknown> | undefined
}

interface GateParts {
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

/** Messages of the run's session, with the tool calls that they report. */
class OwnAppends {
  readonly #parts: GateParts
  readonly #writes: { haveFailed: boolean }

  constructor(parts: GateParts, writes: { haveFailed: boolean }) {
    this.#parts = parts
    this.#writes = writes
  }

  changesOf(step: RecordedStep): readonly ToolCallChange[] {
    return this.#parts.ledger.changesFor(ownMessage(step), step.journal)
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
    ledger.stored(calls, saved.calls ?? [])
    const message = ownMessage(step)
    if (message) onStored(message)
    return saved
  }
}

/** The message of a step, if it is one of the run's own session. */
function ownMessage({ message, at }: RecordedStep): Message | undefined {
  return at === undefined ? message : undefined
}

function gateAppends(parts: GateParts): AppendGate {
  const { store, recorder } = parts
  const underWay = new Set<Promise<void>>()
  let sealed = false
  const writes = { haveFailed: false }
  const pass = async <T>(write: () => Promise<T>): Promise<T> => {
    if (sealed) throw runHasEnded()
    // Noted before it begins: the end of the run may come while it does, and waits for it.
    let ended = () => {}
    const writing = new Promise<void>(resolve => {
      ended = resolve
    })
    underWay.add(writing)
    try {
      return await write()
    } catch (error) {
      writes.haveFailed = true
      throw error
    } finally {
      underWay.delete(writing)
      ended()
    }
  }
  const own = new OwnAppends(parts, writes)
  const hold = (step: RecordedStep): Promise<SavedStep> | undefined => {
    const calls = own.changesOf(step)
    if (sealed || calls.length > 0 || recorder.isUnstored) return pass(() => own.append(step, calls))
    own.hold(step)
    return undefined
  }
  /** What the run reads of its sessions has all that it wrote. */
  const afterHeld = <T>(read: () => Promise<T>): Promise<T> => recorder.letGo()?.then(read) ?? read()
  return {
    store: {
      createSession: (key, state, options) => pass(() => store.createSession(key, state, options)),
      loadSession: (key, options) => afterHeld(() => store.loadSession(key, options)),
      readMessages: (key, options) => afterHeld(() => store.readMessages(key, options)),
      appendMessage: (key, message, options) => pass(() => store.appendMessage(key, message, options)),
      updateState: (key, delta, options) => pass(() => store.updateState(key, delta, options)),
      listSessions: query => afterHeld(() => store.listSessions(query)),
      deleteSession: key => store.deleteSession(key),
      acquireLease: (key, options) => store.acquireLease(key, options),
    },
    append: (step, endsRun) => (endsRun ? hold(step) : pass(() => own.append(step))),
    writes,
    seal() {
      sealed = true
      return underWay.size > 0 ? Promise.all(underWay) : undefined
    },
  }
}

function runHasEnded(): AgentError {
  return new AgentError('aborted', 'The run has ended: it cannot write to the store any more.')
}
