import { type Event, isBaseAgent, isLlmAgent, LlmAgent, type RunnableRoot } from '../adk/sdk.js'
import type { Turns } from '../base/pause.js'
import type { AgentError } from '../errors.js'
import type { Message } from '../session/message.js'
import type { Lease } from '../session/session-store.js'
import { type AppendGate, gateAppends } from './append-gate.js'
import type { ResumedRun } from './resumed-run.js'
import type { RunEventBody } from './run-event.js'
import type { RunHost, RunOpened } from './run-host.js'
import { openJournal, type RunJournal } from './run-journal.js'
import type { PreparedRun } from './run-opening.js'
import type { RunPlugin } from './run-plugin.js'
import { RunRecorder } from './run-recorder.js'
import { openLedger, type ToolLedger } from './tool-ledger.js'

export interface WriteParts extends Pick<PreparedRun, 'key' | 'input' | 'runId'> {
  host: RunHost
  lease: Lease
  /** What earlier attempts of the run have left. */
  resumed?: ResumedRun | undefined
  /** The message of the run and where it is stored; absent when the store could not open the run in one write. */
  opening?: RunOpened | undefined
  turns: Turns
}

/** What a run stores itself with. */
export interface RunWrites {
  readonly recorder: RunRecorder
  readonly ledger: ToolLedger | undefined
  readonly gate: AppendGate
  /** Where the store can resume runs. */
  readonly journal: RunJournal | undefined
}

/** What the run does about its writes. */
export interface WriteHooks {
  plugin: RunPlugin
  emit(body: RunEventBody): void
  fail(error: AgentError): void
  enterAgent(invocation: object): void
  /** A message of the run's session is stored. */
  stored(message: Message): void
  /** A message could not be stored that was to be stored with the end of the run. */
  lost(error: unknown): void
}

export function openWrites(parts: WriteParts, hooks: WriteHooks): RunWrites {
  const { host, key, lease, input, runId, resumed, opening, turns } = parts
  const { store, logger, observe } = host
  const { plugin, emit, fail, enterAgent, stored, lost } = hooks
  const { onStored } = input
  const recorder = new RunRecorder({ store, key, runId, lease, logger, turns, observe, onStored })
  const ledger = openLedger(host, {
    ...{ key, runId, recorder, emit, fail, enterAgent },
    restored: resumed?.calls,
    untilLive: what => journal?.untilLive(what),
  })
  const hasAppended = opening !== undefined || resumed !== undefined
  const gate = gateAppends({
    ...{ store, recorder, ledger, lease, hasAppended },
    ...{ onStored: stored, onLost: lost },
  })
  const journal = openJournal(store, ledger, {
    key,
    replay: resumed?.replay,
    answerUnknownTools: host.answerUnknownTools,
    failureOf: event => (event.errorCode ? plugin.modelError : undefined),
    write: (step, endsRun) => gate.append(step, endsRun),
    // What plugins and callbacks do with the answer relies on it: it is stored before them.
    isLast: event =>
      resumed === undefined && recorder.canRelease && plugin.isAlone && isLastEvent(host.rootAgent, event),
  })
  plugin.journal = journal
  return { recorder, ledger, gate, journal }
}

/**
 * Whether nothing comes after an answer of a model, as far as can be told: it is the root agent's, has no calls, and the
 * agent has no code of its own that would come after it.
 */
function isLastEvent(root: RunnableRoot, { author, branch, content, errorCode }: Event): boolean {
  if (!isBaseAgent(root) || !isLlmAgent(root) || author !== root.name || branch || errorCode) return false
  const { afterAgentCallback, codeExecutor, mode } = root
  const isPlain = OWN_METHODS.every(name => Reflect.get(root, name) === Reflect.get(LlmAgent.prototype, name))
  if (!isPlain || codeExecutor || mode === 'task' || afterAgentCallback.length > 0) return false
  return content?.parts?.every(part => !part.functionCall && !part.functionResponse) ?? false
}

const OWN_METHODS = ['runAsync', 'runAsyncImpl']
