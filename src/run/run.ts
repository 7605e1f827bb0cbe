import { randomUUID } from 'node:crypto'
import type { Content, Part } from '../adk/sdk.js'
import { AgentError, messageOf } from '../errors.js'
import type { SessionKey } from '../session/message.js'
import type { Lease, SessionStore } from '../session/session-store.js'
import { emptyUsage } from '../session/usage.js'
import type { RunEvent } from './run-event.js'
import type { RunHost, RunInput } from './run-host.js'
import { RunLoop } from './run-loop.js'

/** How long a message waits for a session that another process is busy with. */
const WAIT_FOR_SESSION_MS = 600_000

const TITLE_LENGTH = 80

/** Runs are found by their ids across sessions, so a caller's own must be as unlike all others as ours. */

/**
 * Runs one message. Everything that can fail before the run exists (bad input, a busy session, an unreachable
 * store) is thrown; afterwards failures are events. Leaving the loop early is an abort. `onEnd` is called once
 * nothing of the run goes on, also when it was stopped and nobody takes its last events.
 */
export async function* run(
  host: RunHost,
  input: RunInput,
  onEnd: () => void = () => {},
): AsyncGenerator<RunEvent, void, undefined> {
  const message = userMessage(input)
  if (input.model !== undefined) host.checkModel(input.model)
  const key: SessionKey = {
    appName: host.appName,
    userId: input.userId ?? 'user',
    sessionId: input.sessionId ?? randomUUID(),
  }
  const whenBusy = input.whenBusy ?? 'queue'
  if (input.signal?.aborted) {
    yield* stoppedBeforeStart(host, key, input)
    return
  }
  const leave = await host.queue.enter(key, whenBusy, input.signal)
  let lease: Lease | undefined
  // The session is given back once, by whoever comes first: the end of the loop, or an abort while nobody listens.
  const end = async () => {
    await lease?.release().catch(error => {
      // The lease runs out by itself; the answer is stored, and the run is not to fail for this.
      host.logger.warn('A lease could not be given back', { ...key, error: messageOf(error) })
    })
    leave()
    onEnd()
  }
  try {
    lease = await host.store.acquireLease(key, {
      waitMs: whenBusy === 'queue' ? WAIT_FOR_SESSION_MS : 0,
      ...(input.signal ? { signal: input.signal } : {}),
    })
    if (input.runId !== undefined && (await host.store.runs.findRun(input.runId))) throw knownRun(input.runId)
    await ensureSession(host.store, key, input.text)
    yield* new RunLoop({ host, key, lease, input, end }).events(message)
  } finally {
    await end()
  }
}

/** A run whose signal was aborted before it began: it ends as any aborted run does, and touches nothing. */
function* stoppedBeforeStart(
  host: RunHost,
  key: SessionKey,
  input: RunInput,
): Generator<RunEvent, void, undefined> {
  const identity = { sessionId: key.sessionId, runId: input.runId ?? randomUUID() }
  const model = host.modelReference(input.model)
  yield { type: 'run-start', userId: key.userId, agent: host.rootAgent.name, model, ...identity, seq: 1 }
  const nothing = { text: '', turns: 0, delegations: 0, usage: emptyUsage() }
  yield { type: 'run-finish', finishReason: 'aborted', ...nothing, ...identity, seq: 2 }
}

function userMessage({ text, parts }: RunInput): Content {
  const all: Part[] = [...(text === undefined || text === '' ? [] : [{ text }]), ...(parts ?? [])]
  if (all.length === 0) {
    throw new AgentError('invalid-argument', 'A run needs a message: give `text`, `parts`, or both.')
  }
  return { role: 'user', parts: all }
}

function knownRun(runId: string): AgentError {
  return new AgentError(
    'invalid-argument',
    `There is a run "${runId}" already. Leave \`runId\` out, or take a new UUID.`,
  )
}

/** A session that a message opens is called by its first words. */
async function ensureSession(store: SessionStore, key: SessionKey, title = ''): Promise<void> {
  try {
    await store.createSession(key, {}, { title: title.slice(0, TITLE_LENGTH) })
  } catch (error) {
    if (!(error instanceof AgentError && error.code === 'session-exists')) throw error
  }
}
