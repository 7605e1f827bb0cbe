/** `lango doctor --session ID` and `--all`: reports problems of stored histories and writes repaired copies. */

import { isDeepStrictEqual } from 'node:util'
import { defined } from '../../base/defined.js'
import { toJsonData } from '../../base/json.js'
import { AgentError } from '../../errors.js'
import { PROFILES } from '../../provider/repair/profile.js'
import { addRefusal, type Problem, problemsOf, refusalWords } from '../../runtime/check/problems.js'
import { heal } from '../../runtime/heal/heal.js'
import type { Change } from '../../runtime/heal/oddities.js'
import type { ProfileLint } from '../../runtime/info.js'
import { lintMessages, lintSession } from '../../runtime/lint.js'
import type { Message, SessionKey, StoredMessage } from '../../session/message.js'
import { messagePages } from '../../session/session-pages.js'
import type { SessionStore } from '../../session/session-store.js'
import type { Flags } from '../command.js'
import type { Io } from '../io.js'
import { mappedLine, problemLines } from '../lint-report.js'
import { called, givenFlags, quoted } from '../next-command.js'
import { type CommandStore, findSession, sessionKeys, withStore } from '../open-command-store.js'
import { lineWidth, Progress, print, printJson, type Styles, stylesOf } from '../output.js'
import { plainLine } from '../plain-text.js'
import { count } from '../wording.js'

/** Reports on one session; with `--fix` also writes a repaired copy. */
export async function treatSession(io: Io, sessionId: string, flags: Flags): Promise<number> {
  return withStore(io, flags, async opened => {
    const key = await findSession(opened, sessionId, flags.user)
    const treated = await treat(opened, key, flags)
    if (flags.json) await printJson(io, asJson(treated))
    else await print(io, explain(io, treated, flags))
    return exitCode(treated)
  })
}

/** One line for every session with problems. */
export async function treatAll(io: Io, flags: Flags): Promise<number> {
  return withStore(io, flags, async opened => {
    const all: Treated[] = []
    const progress = new Progress(io)
    let looked = 0
    for (const key of await listKeys(opened, flags)) {
      looked += 1
      progress.report(() => `checked ${count(looked, 'session')}`)
      const treated = await treatOneOfMany(opened, key, flags)
      if (treated.found.problems.length === 0) continue
      all.push(treated)
      progress.end()
      if (!flags.json) await print(io, `${summaryLine(treated)}\n`)
    }
    progress.end()
    if (flags.json) await printJson(io, { sessions: looked, unwell: all.map(asJson) })
    else await print(io, `${count(looked, 'session')} checked, ${all.length} with problems.\n`)
    return all.some(treated => exitCode(treated) === PROBLEMS) ? PROBLEMS : HEALTHY
  })
}

const HEALTHY = 0

const PROBLEMS = 3

/** The examination of one session, and its copy if one was requested. */
interface Treated {
  found: Examination
  copy?: WrittenCopy
  /** With `--all`: why no copy could be written. The other sessions are still processed. */
  failure?: string
}

/**
 * The sessions of the app that `--app` names, or of all apps. All keys are listed before the first copy is written:
 * copies would otherwise be examined as well.
 */
async function listKeys({ store, app }: CommandStore, flags: Flags): Promise<SessionKey[]> {
  const apps = flags.app === undefined ? await store.listApps() : [app]
  const keys: SessionKey[] = []
  for (const each of apps) {
    for await (const key of sessionKeys({ store, app: each }, { userId: flags.user })) {
      if (keys.push(key) >= MOST_SESSIONS) return keys
    }
  }
  return keys
}

const MOST_SESSIONS = 100_000

async function treatOneOfMany(opened: CommandStore, key: SessionKey, flags: Flags): Promise<Treated> {
  try {
    return await treat(opened, key, flags)
  } catch (error) {
    if (!(error instanceof AgentError) || !flags.fix) throw error
    return { found: await examine(opened.store, key), failure: error.message }
  }
}

async function treat({ store }: CommandStore, key: SessionKey, flags: Flags): Promise<Treated> {
  const found = await examine(store, key)
  if (!flags.fix) return { found }
  if (found.truncated) {
    throw new AgentError(
      'invalid-argument',
      `Session "${key.sessionId}" is too long to repair (${count(found.messages, 'message')}). It can still be used: Lango repairs it on every send.`,
    )
  }
  if (!found.healed) return { found }
  const copy = await writeCopy(store, key, found.healed, flags.as ?? `${key.sessionId}-healed`)
  return { found, copy }
}

function exitCode({ found, copy, failure }: Treated): number {
  if (failure !== undefined) return PROBLEMS
  return copy || found.problems.every(({ harmless }) => harmless) ? HEALTHY : PROBLEMS
}

function asJson({ found, copy, failure }: Treated): object {
  const { healed, ...rest } = found
  return { ...rest, healable: healed !== undefined, ...defined({ copy, failure }) }
}

function explain(io: Io, { found, copy }: Treated, flags: Flags): string {
  const styles = stylesOf(io, io.stdout)
  const { key, messages, problems, profiles, truncated } = found
  const name = plainLine(`${key.sessionId} of ${key.userId} in ${key.appName}`)
  const heading = `Session ${name}: ${count(messages, 'message')}`
  const mapped = mappedLine(profiles)
  const folded = mapped === undefined ? [] : ['', styles.dim(mapped)]
  if (problems.length === 0) {
    const lines = [`${heading}. ${styles.green('No problems: every provider accepts it.')}`, ...folded]
    return `${lines.join('\n')}\n`
  }
  if (copy?.written === 0) {
    return `${heading}. ${copyWords(copy)}\n${goOn(io, copy, key, flags)}\n`
  }
  const shown = problems.slice(0, MOST_SHOWN)
  const left = problems.length - shown.length
  const lines = [
    `${heading}, ${styles.red(count(problems.length, 'problem'))}.`,
    ...(truncated ? [`Not checked: the ${count(truncated.skipped, 'oldest message')}.`] : []),
    verdict(profiles),
    ...shown.flatMap(problem => sessionProblemLines(io, problem, styles)),
    ...(left > 0 ? ['', `… and ${count(left, 'problem')} more; --json lists all.`] : []),
    ...folded,
    '',
    ...(copy ? [copyWords(copy), goOn(io, copy, key, flags)] : advice(found, flags)),
  ]
  return `${lines.join('\n')}\n`
}

function summaryLine({ found, copy, failure }: Treated): string {
  const { sessionId, userId, appName } = found.key
  const refused = found.profiles.filter(profile => profile.refused).length
  const verdict =
    refused === 0
      ? 'accepted by every profile'
      : `rejected by ${refused} of ${found.profiles.length} profiles`
  const problems = count(found.problems.length, 'problem')
  const done = copy ? `; ${copyWords(copy)}` : failure === undefined ? '' : `; not repaired: ${failure}`
  return plainLine(`${sessionId} of ${userId} in ${appName}: ${problems}, ${verdict}${done}`)
}

function verdict(profiles: Examination['profiles']): string {
  const names = (refused: boolean) =>
    profiles.filter(profile => profile.refused === refused).map(({ profile }) => profile)
  const [refused, accepted] = [names(true), names(false)]
  if (refused.length === 0) return 'No provider rejects it, because Lango sends it in a valid form.'
  if (accepted.length === 0) return 'Sent as stored, every provider would reject it.'
  const who = accepted.length > refused.length ? refused.join(', ') : `all but ${accepted.join(', ')}`
  return `Sent as stored, it would be rejected by ${who}.`
}

const MOST_SHOWN = 30

function sessionProblemLines(io: Io, problem: SessionProblem, styles: Styles): string[] {
  const said = problem.harmless
    ? `${problem.problem} Lango sends it in a valid form; sent as stored:`
    : problem.problem
  const copy =
    problem.remedy === undefined || problem.repairs.includes(problem.remedy) ? [] : [problem.remedy]
  return [
    ...problemLines([{ ...problem, problem: said }], lineWidth(io), styles),
    ...copy.map(remedy => styles.dim(`    --fix: ${plainLine(remedy)}`)),
  ]
}

function copyWords({ sessionId, messages, written }: WrittenCopy): string {
  if (written === 0) return `Already repaired: the copy is ${sessionId}.`
  return `Repaired copy: ${sessionId} (${count(messages, 'message')}). The original is unchanged.`
}

function goOn(io: Io, { sessionId }: WrittenCopy, key: SessionKey, flags: Flags): string {
  return `Continue with: ${called(io, 'chat')} --session ${quoted(sessionId)}${whose(key, flags)}`
}

/** The flags with which another command finds the same session. */
function whose({ userId, appName }: SessionKey, { app, store, config }: Flags): string {
  const place = {
    user: userId === 'user' ? undefined : userId,
    app: app === undefined ? undefined : appName,
    store,
    config,
  }
  return givenFlags(place, ['user', 'app', 'store', 'config'])
}

function advice({ key, healed, truncated }: Examination, flags: Flags): string[] {
  const always =
    'Lango repairs this on every send and never changes what is stored, so the session can be used as it is.'
  if (truncated || (flags.fix && !healed)) return [always]
  if (!healed) return [always, 'Nothing to write: consecutive messages of different agents stay separate.']
  return [
    always,
    `To write a repaired copy, ${flags.as ?? `${key.sessionId}-healed`}: lango doctor --session ${quoted(key.sessionId)} --fix${whose(key, flags)}`,
  ]
}

/**
 * The repaired copy of a session. The original is only read. An existing copy is not written again; an incomplete
 * one, or one whose original has grown, is completed.
 */
interface WrittenCopy {
  sessionId: string
  messages: number
  /** How many messages were written now: 0 when the copy already existed. */
  written: number
}

/** Writes the repaired messages as a session of the same user. Throws `session-exists` for the id of another session. */
async function writeCopy(
  store: SessionStore,
  key: SessionKey,
  healed: readonly Message[],
  sessionId: string,
): Promise<WrittenCopy> {
  const copy = { ...key, sessionId }
  const there = await store.loadSession(copy, { budgetTokens: 'off', maxMessages: 1 })
  const same = there ? await countSame(store, copy, healed) : 0
  if (there && same < Math.min(there.totalMessages, healed.length)) {
    throw new AgentError(
      'session-exists',
      `Session "${sessionId}" already exists and is not a copy of "${key.sessionId}". Choose another id with --as.`,
    )
  }
  if (!there) await store.createSession(copy, await ownState(store, key))
  for (const message of healed.slice(same)) await store.appendMessage(copy, message)
  return { sessionId, messages: healed.length, written: healed.length - same }
}

/** How many messages, from the first on, the copy shares with the repaired history. */
async function countSame(store: SessionStore, copy: SessionKey, healed: readonly Message[]): Promise<number> {
  let same = 0
  for await (const page of messagePages(store, copy)) {
    for (const message of page) {
      const expected = healed[same]
      if (!expected || !isSame(message, expected)) return same
      same += 1
    }
  }
  return same
}

function isSame({ seq: _seq, tokens: _tokens, ...stored }: StoredMessage, expected: Message): boolean {
  return isDeepStrictEqual(toJsonData(stored), toJsonData(expected))
}

/** The state of the session alone: state of app and user is shared with the copy anyway. */
async function ownState(store: SessionStore, key: SessionKey): Promise<Record<string, unknown>> {
  const session = await store.loadSession(key, { budgetTokens: 'off', maxMessages: 1 })
  const entries = Object.entries(session?.state ?? {})
  return Object.fromEntries(entries.filter(([name]) => !/^(app|user):/.test(name)))
}

/** What is wrong with one stored session, and what a healed copy of it would be. Nothing is changed. */
/** A problem of a stored session, and what the copy has instead. */
interface SessionProblem extends Problem {
  /** True when Lango sends it right as it is: only a client that sends the rows unchanged would be refused. */
  harmless: boolean
  /** What the healed copy has instead; absent when only the repair on every send can help. */
  remedy?: string
}

interface Examination {
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
