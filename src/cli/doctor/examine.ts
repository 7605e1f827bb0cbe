/** What is wrong with one stored session, and what a healed copy of it would be. Nothing is changed. */
import { AgentError } from '../../errors.js'
import { PROFILES } from '../../provider/repair/profile.js'
import type { ProfileLint } from '../../runtime/info.js'
import { lintMessages, lintSession } from '../../runtime/lint.js'
import type { Message, SessionKey, StoredMessage } from '../../session/message.js'
import type { SessionStore } from '../../session/session-store.js'
import { addRefusal, type Problem, problemsOf, refusalWords } from '../lint-report.js'
import { heal } from './heal.js'
import type { Change } from './oddities.js'

/** A problem of a stored session, and what the copy has instead. */
export interface SessionProblem extends Problem {
  /** True when Lango sends it right as it is: only a client that sends the rows unchanged would be refused. */
  harmless: boolean
  /** What the healed copy has instead; absent when only the repair on every send can help. */
  remedy?: string
}

export interface Examination {
  key: SessionKey
  messages: number
  profiles: ProfileLint[]
  problems: SessionProblem[]
  /** The healed history, when healing changes anything. */
  healed?: readonly Message[]
  /** Set when the session is too long to be healed: only its newest messages were looked at. */
  truncated?: { skipped: number }
}

/** Looks at a session. Nothing is changed. */
export async function examine(store: SessionStore, key: SessionKey): Promise<Examination> {
  const messages = await readAll(store, key)
  if (!messages) return examineNewest(store, key)
  const profiles = lintMessages(messages)
  const { messages: healed, changes } = heal(messages)
  const problems = withChanges(problemsOf(profiles, whereOf), changes, messages)
  return {
    key,
    messages: messages.length,
    profiles,
    problems,
    ...(changes.length > 0 ? { healed: healed.map(withoutPlace) } : {}),
  }
}

async function examineNewest(store: SessionStore, key: SessionKey): Promise<Examination> {
  const { messages, profiles, truncated } = await lintSession(store, key)
  const problems = problemsOf(profiles, whereOf).map(problem => ({ ...problem, harmless: false }))
  return { key, messages, profiles, problems, truncated: truncated ?? { skipped: 0 } }
}

/** A history is healed as a whole, so it must fit into memory. */
const MOST_MESSAGES = 100_000

const MOST_TOKENS = 25_000_000

const PAGE = 500

/** All messages, or `undefined` when they are too many. */
async function readAll(store: SessionStore, key: SessionKey): Promise<StoredMessage[] | undefined> {
  const session = await store.loadSession(key, { budgetTokens: 'off', maxMessages: 1 })
  if (!session) throw new AgentError('session-not-found', `No session "${key.sessionId}".`)
  if (session.totalMessages > MOST_MESSAGES) return undefined
  const messages: StoredMessage[] = []
  let tokens = 0
  for (;;) {
    const page = await store.readMessages(key, { afterSeq: messages.at(-1)?.seq ?? 0, limit: PAGE })
    messages.push(...page)
    for (const message of page) tokens += message.tokens
    if (tokens > MOST_TOKENS) return undefined
    if (page.length < PAGE) return messages
  }
}

function whereOf({ seq, at }: { seq?: number; at: number }): string {
  return `Message ${seq ?? at + 1}`
}

/** Adds what healing does about each problem, and what it changes that no provider gets to see. */
function withChanges(
  problems: readonly Problem[],
  changes: readonly Change[],
  messages: readonly StoredMessage[],
): SessionProblem[] {
  const remedies = new Map(
    changes.map(change => [
      `Message ${messages[change.index]?.seq ?? change.index + 1} ${change.code}`,
      change,
    ]),
  )
  const known = problems.map((problem): SessionProblem => {
    const change = remedies.get(`${problem.where} ${problem.code}`)
    remedies.delete(`${problem.where} ${problem.code}`)
    return { ...problem, harmless: false, ...(change ? { remedy: change.remedy } : {}) }
  })
  const others = [...remedies].map(([key, change]) => {
    const where = key.slice(0, key.lastIndexOf(' '))
    const { code, problem, remedy, nativeTo } = change
    const added: SessionProblem = { where, code, problem, refusals: [], repairs: [], harmless: true, remedy }
    for (const { name, vendor } of Object.values(PROFILES)) {
      if (vendor !== nativeTo && refusalWords(name, code) !== undefined) addRefusal(added, name)
    }
    return added
  })
  const place = ({ where }: SessionProblem) => Number(where.replace(/\D/g, ''))
  return [...known, ...others].sort((left, right) => place(left) - place(right))
}

function withoutPlace(message: Message): Message {
  const { seq: _seq, tokens: _tokens, ...rest } = message as StoredMessage
  return rest
}
