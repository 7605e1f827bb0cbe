/**
 * What each provider would say to a stored session. Reads from the end, page by page, and stops at a bound, so
 * that a session of any length can be asked about.
 */

import { messagesToProvider } from '../adk/messages-to-provider.js'
import { isRequestTool } from '../base/names.js'
import { atOnce, inSlices, type Steps } from '../base/pause.js'
import { AgentError } from '../errors.js'
import type { Finding } from '../provider/repair/finding.js'
import { lintHistory } from '../provider/repair/lint-history.js'
import { PROFILES, resolveProfile } from '../provider/repair/profile.js'
import { type Message, normalizeRole, type SessionKey, type StoredMessage } from '../session/message.js'
import { newestMessagePages } from '../session/session-pages.js'
import type { SessionStore } from '../session/session-store.js'
import type { ProfileLint, SessionFinding, SessionLint } from './info.js'

export interface LintSessionOptions {
  /** Names of profiles. Default: all. */
  profiles?: readonly string[]
  /** Look at no more than the newest messages. Default 20,000. */
  maxMessages?: number
}

/** No more than this many tokens (about 32 MB of text) are looked at, however many messages they are. */
const MAX_TOKENS = 8_000_000
const MAX_MESSAGES = 20_000
const MAX_FINDINGS = 200
const PAGE = 500

/** Says what providers would refuse in a stored session. Nothing is changed or sent. */
export async function lintSession(
  store: SessionStore,
  key: SessionKey,
  { profiles = Object.keys(PROFILES), maxMessages = MAX_MESSAGES }: LintSessionOptions = {},
): Promise<SessionLint> {
  for (const name of profiles) resolveProfile(name)
  const session = await store.loadSession(key, { budgetTokens: 'off', maxMessages: 1 })
  if (!session) {
    const message = `There is no session "${key.sessionId}" of user "${key.userId}" in app "${key.appName}".`
    throw new AgentError('session-not-found', message, { details: { ...key } })
  }
  const newest = await readNewest(store, key, session.totalMessages, maxMessages)
  const looked = newest.length < session.totalMessages ? fromTurn(newest) : newest
  const skipped = session.totalMessages - looked.length
  return {
    key,
    messages: session.totalMessages,
    ...(skipped > 0 ? { truncated: { skipped } } : {}),
    profiles: await inSlices(linting(looked, profiles)),
  }
}

/** As `lintSession`, for messages at hand. A message without a `seq` counts by its place, from 1. */
export function lintMessages(
  messages: readonly Message[],
  profiles: readonly string[] = Object.keys(PROFILES),
): ProfileLint[] {
  return atOnce(linting(messages, profiles))
}

/** The work of `lintMessages` in steps. */
export function* linting(messages: readonly Message[], profiles: readonly string[]): Steps<ProfileLint[]> {
  const numbered = messages.map((message, index) => ({ message, seq: seqOf(message, index) }))
  const sent = numbered.filter(({ message }) => !isRequestToPerson(message))
  const history = messagesToProvider(sent.map(({ message }) => message))
  const seqs: number[] = []
  for (const { message, seq } of sent) {
    yield
    for (const _part of messagesToProvider([message])) seqs.push(seq)
  }
  // One message alone becomes as many neutral messages as it does among others; should that ever be untrue,
  // no place is better than a wrong one.
  const places = seqs.length === history.length ? seqs : []
  const verdicts: ProfileLint[] = []
  for (const profile of profiles) {
    yield
    const findings = lintHistory(history, profile).map(finding => placed(finding, places))
    verdicts.push(summarize(profile, findings))
  }
  return verdicts
}

/** ADK leaves messages with these calls out of every request: they are questions to a person. */
export function isRequestToPerson(message: Message): boolean {
  return (message.toolCalls ?? []).some(call => isRequestTool(call.name))
}

/** The verdict of one profile over its findings. */
export function summarize(profile: string, findings: readonly SessionFinding[]): ProfileLint {
  const breaking = findings.filter(finding => finding.severity === 'breaks')
  const mapped = findings.filter(finding => finding.severity === 'mapped')
  return {
    profile,
    refused: breaking.length > 0,
    breaks: breaking.length,
    mapped: mapped.length,
    findings: [...breaking, ...mapped].slice(0, MAX_FINDINGS),
  }
}

async function readNewest(
  store: SessionStore,
  key: SessionKey,
  total: number,
  maxMessages: number,
): Promise<StoredMessage[]> {
  const pages: (readonly StoredMessage[])[] = []
  const range = { beforeSeq: total + 1, limit: maxMessages, pageSize: PAGE }
  let tokens = 0
  for await (const page of newestMessagePages(store, key, range)) {
    pages.push(page)
    for (const message of page) tokens += message.tokens
    if (tokens >= MAX_TOKENS) break
  }
  return pages.reverse().flat()
}

/** A window onto a history begins where a person spoke, so that its edge itself breaks nothing. */
function fromTurn(messages: StoredMessage[]): StoredMessage[] {
  const start = messages.findIndex(
    ({ role, toolCalls, content }) => normalizeRole(role) === 'user' && !toolCalls?.length && content !== '',
  )
  return start > 0 ? messages.slice(start) : messages
}

function seqOf(message: Message, index: number): number {
  return 'seq' in message && typeof message.seq === 'number' ? message.seq : index + 1
}

function placed(finding: Finding, places: readonly number[]): SessionFinding {
  const seq = places[finding.at]
  return seq === undefined ? finding : { ...finding, seq }
}
