import { randomUUID } from 'node:crypto'
import type { Content, Part } from '../adk/sdk.js'
import { AgentError } from '../errors.js'
import type { SessionKey } from '../session/message.js'
import type { SessionStore } from '../session/session-store.js'
import type { RunEvent } from './run-event.js'
import type { RunHost, RunInput } from './run-host.js'
import { RunLoop } from './run-loop.js'

/** How long a message waits for a session that another process is busy with. */
const WAIT_FOR_SESSION_MS = 600_000

/**
 * Runs one message. Everything that can fail before the run exists (bad input, a busy session, an unreachable
 * store) is thrown; afterwards failures are events. Leaving the loop early is an abort.
 */
export async function* run(host: RunHost, input: RunInput): AsyncGenerator<RunEvent, void, undefined> {
  const message = userMessage(input)
  if (input.model !== undefined) host.checkModel(input.model)
  const key: SessionKey = {
    appName: host.appName,
    userId: input.userId ?? 'user',
    sessionId: input.sessionId ?? randomUUID(),
  }
  const whenBusy = input.whenBusy ?? 'queue'
  const leave = await host.queue.enter(key, whenBusy, input.signal)
  try {
    const lease = await host.store.acquireLease(key, {
      waitMs: whenBusy === 'queue' ? WAIT_FOR_SESSION_MS : 0,
      ...(input.signal ? { signal: input.signal } : {}),
    })
    try {
      await ensureSession(host.store, key)
      yield* new RunLoop(host, key, lease, input).events(message)
    } finally {
      await lease.release()
    }
  } finally {
    leave()
  }
}

function userMessage({ text, parts }: RunInput): Content {
  const all: Part[] = [...(text === undefined || text === '' ? [] : [{ text }]), ...(parts ?? [])]
  if (all.length === 0) {
    throw new AgentError('invalid-argument', 'A run needs a message: give `text`, `parts`, or both.')
  }
  return { role: 'user', parts: all }
}

async function ensureSession(store: SessionStore, key: SessionKey): Promise<void> {
  try {
    await store.createSession(key)
  } catch (error) {
    if (!(error instanceof AgentError && error.code === 'session-exists')) throw error
  }
}
