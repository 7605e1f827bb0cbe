import type { Turns } from '../base/pause.js'
import type { AgentError } from '../errors.js'
import type { Message } from '../session/message.js'
import type { Lease } from '../session/session-store.js'
import { AppendGate } from './append-gate.js'
import { isLastEvent } from './last-answer.js'
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
  const gate = new AppendGate({ store, recorder, ledger, onStored: stored, onLost: lost })
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
