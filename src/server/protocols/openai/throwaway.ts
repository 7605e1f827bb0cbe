/** The sessions of requests without one: created, used once, and deleted. */

import { setTimeout as sleep } from 'node:timers/promises'
import { AgentError, messageOf } from '../../../errors.js'
import type { Message, SessionKey } from '../../../session/message.js'
import { appendAll } from '../../../session/session-pages.js'
import type { ServerContext } from '../../server-context.js'
import { forgetRun } from '../repeated-request.js'

/** How long the answer to a request with a key is kept, and a run that waits for its client. */
export const KEYED_MS = 24 * 60 * 60 * 1000

const PREFIX = 'throwaway-'
const KEPT_PREFIX = 'response-'
const TITLE = 'A request without a session'
/** The title tells every process that a caller came back for the answer. */
const REPEATED_TITLE = 'A request without a session, repeated'
/** Far longer than a request takes, and no shorter than an answer is kept. */
const OLD_MS = KEYED_MS

/** The session of a request without one: that of its run alone. Answers of the Responses API are kept. */
export function loneSessionId(runId: string, isKept: boolean): string {
  return `${isKept ? KEPT_PREFIX : PREFIX}${runId}`
}

export function isThrowaway({ sessionId }: SessionKey): boolean {
  return sessionId.startsWith(PREFIX)
}

/** Whether a session was made for one request of the Responses API. */
export function isKept({ sessionId }: SessionKey): boolean {
  return sessionId.startsWith(KEPT_PREFIX)
}

/** Creates a session with these messages; `false` when it exists. */
export async function fillSession(
  { runtime: { store } }: ServerContext,
  key: SessionKey,
  messages: readonly Message[],
  title = TITLE,
): Promise<boolean> {
  try {
    await store.createSession(key, {}, { title })
  } catch (error) {
    if (error instanceof AgentError && error.code === 'session-exists') return false
    throw error
  }
  await appendAll(store, key, messages)
  return true
}

/** As `fillSession`, with the history of another session up to a message. */
export async function forkSession(
  { runtime: { store } }: ServerContext,
  { sessionId }: SessionKey,
  { key, throughSeq }: { key: SessionKey; throughSeq: number },
  messages: readonly Message[],
): Promise<boolean> {
  try {
    await store.forkSession(key, sessionId, { throughSeq })
  } catch (error) {
    if (error instanceof AgentError && error.code === 'session-exists') return false
    throw error
  }
  await appendAll(store, { ...key, sessionId }, messages)
  return true
}

/** Notes that the request of a session was repeated; `false` when the session is deleted already. */
export async function noteRepeat({ runtime: { store } }: ServerContext, key: SessionKey): Promise<boolean> {
  try {
    if (isThrowaway(key)) await store.renameSession(key, REPEATED_TITLE)
    return !isKept(key) || (await store.describeSession(key)) !== undefined
  } catch (error) {
    if (error instanceof AgentError && error.code === 'session-not-found') return false
    throw error
  }
}

export async function wasRepeated({ runtime: { store } }: ServerContext, key: SessionKey): Promise<boolean> {
  return (await store.describeSession(key))?.title === REPEATED_TITLE
}

/**
 * Waits for the run of a session that another request has created and is filling. A session that stays without a run
 * is that of a crashed process: it is deleted.
 */
export async function awaitFilling(context: ServerContext, key: SessionKey, runId: string): Promise<void> {
  for (let attempt = 0; attempt < FILLING_MS / FILLING_PAUSE_MS; attempt++) {
    if (await context.hub.find(runId)) return
    await sleep(FILLING_PAUSE_MS)
  }
  await throwAway(context, key)
}

const FILLING_MS = 5000
const FILLING_PAUSE_MS = 50

/** Deletes a session after its only run. Never fails: `sweepThrowaways` deletes what remains. */
export async function throwAway(context: ServerContext, key: SessionKey, laterMs = 0): Promise<void> {
  const { runtime, logger } = context
  if (laterMs > 0) {
    setTimeout(() => void (context.isClosing() || throwAway(context, key)), laterMs).unref()
    return
  }
  forgetRun(key.sessionId.slice((isKept(key) ? KEPT_PREFIX : PREFIX).length))
  try {
    await runtime.store.deleteSession(key)
  } catch (error) {
    logger.warn('A throwaway session could not be deleted', { ...key, error: messageOf(error) })
  }
}

/** Deletes the throwaway sessions of crashed processes. Those that are in use are younger than the limit. */
export async function sweepThrowaways({ runtime: { store }, info, logger }: ServerContext): Promise<void> {
  try {
    const { sessions } = await store.listSessions({ appName: info.app, search: PREFIX, limit: 1000 })
    const before = Date.now() - OLD_MS
    for (const { key, title, updatedAt } of sessions) {
      // A session that a user has renamed is kept.
      const isOurs = key.sessionId.startsWith(PREFIX) && (title === TITLE || title === REPEATED_TITLE)
      if (isOurs && updatedAt < before) await store.deleteSession(key)
    }
  } catch (error) {
    logger.warn('Old throwaway sessions could not be deleted', { error: messageOf(error) })
  }
}
