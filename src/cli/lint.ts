/** `lango lint`: reports which providers would reject a history, and why. Nothing is changed or sent. */
import { AgentError } from '../errors.js'
import {
  type FileHistory,
  FORMAT_NAMES,
  type HistoryFile,
  orList,
  readHistoryFile,
} from '../formats/history-files.js'
import { lintHistory } from '../provider/repair/lint-history.js'
import { PROFILES, resolveProfile } from '../provider/repair/profile.js'
import type { ProfileLint, SessionFinding } from '../runtime/info.js'
import { lintMessages, lintSession, summarize } from '../runtime/lint.js'
import { PROFILE_FACTS, STRICT_PROFILES } from '../testing/strict/profile.js'
import type { Flags } from './command.js'
import { mappedLine, problemLines, problemsOf, verdictLines } from './lint-report.js'
import { lintRequest } from './lint-request.js'
import { lintSequence } from './lint-sequence.js'
import { findSession, withStore } from './open-command-store.js'
import { lineWidth, print, printJson, stylesOf } from './output.js'
import { count } from './wording.js'

const CLEAN = 0
const FINDINGS = 3

/** Lints files or a stored session. The exit code is 3 when a provider would reject one. */
export async function lint(given: string | readonly string[] | undefined, flags: Flags): Promise<number> {
  const files = typeof given === 'string' ? [given] : (given ?? [])
  if ((files.length === 0) === (flags.session === undefined)) {
    throw new AgentError(
      'invalid-argument',
      "Pass either a file ('-' for standard input) or --session. See 'lango lint --help'.",
    )
  }
  return files.length === 0 ? lintStored(flags.session ?? '', flags) : lintFiles(files, flags)
}

/** The verdict over one history. */
interface Judged {
  name: string
  messages: number
  profiles: ProfileLint[]
  /** What of the file is not among the messages. */
  notes: readonly string[]
  /** Older messages that were not checked. */
  skipped?: number
  whereOf: (finding: SessionFinding) => string
}

async function lintStored(session: string, flags: Flags): Promise<number> {
  const profiles = chosenProfiles(flags.profile) ?? Object.keys(PROFILES)
  const result = await withStore(flags, async opened => {
    const key = await findSession(opened, session, flags.user)
    return lintSession(opened.store, key, { profiles })
  })
  const judged = {
    name: session,
    messages: result.messages,
    profiles: result.profiles,
    notes: [],
    ...(result.truncated ? { skipped: result.truncated.skipped } : {}),
    whereOf: inSession,
  }
  if (flags.json) await printJson(result)
  else await print(report(`Session ${session}: ${count(result.messages, 'message')}.`, judged))
  return exitCode([judged])
}

/** A file, what was read from it, and the verdicts over its histories. */
interface JudgedFile {
  file: string
  read: HistoryFile
  judged: Judged[]
}

async function lintFiles(files: readonly string[], flags: Flags): Promise<number> {
  const chosen = chosenProfiles(flags.profile)
  const read: JudgedFile[] = []
  for (const file of files) {
    const history = await readHistoryFile(file, flags.format)
    const isNamed = flags.profile !== undefined && flags.profile !== 'all'
    const own = isNamed ? wireProfiles(history) : history.profiles
    const judged = history.histories.map(each => judge(each, chosen ?? history.profiles, own))
    read.push({ file, read: history, judged })
  }
  compareRequests(read)
  if (flags.json) {
    const results = read.map(asJson)
    await printJson(results.length === 1 ? results[0] : results)
  } else {
    const reports = read.flatMap(({ file, read: history, judged }) =>
      judged.map((each, index) => report(headingOf(file, history, index), each)),
    )
    await print(reports.join('\n'))
  }
  return exitCode(read.flatMap(({ judged }) => judged))
}

/** Requests that were given together are one conversation: each is compared with the one before it. */
function compareRequests(files: readonly JudgedFile[]): void {
  const requests = files.flatMap(({ read, judged }) =>
    read.histories.flatMap((history, index) => {
      const verdict = judged[index]
      return history.kind === 'request' && verdict ? [{ history, verdict }] : []
    }),
  )
  if (requests.length < 2) return
  const names = new Set(requests.flatMap(({ verdict }) => verdict.profiles.map(({ profile }) => profile)))
  for (const name of names) {
    const verdicts = lintSequence(
      requests.map(({ history }) => history),
      resolveProfile(name),
    )
    for (const [index, { verdict }] of requests.entries()) {
      const { findings = [], notes = [] } = verdicts[index] ?? {}
      verdict.notes = [...new Set([...verdict.notes, ...notes])]
      verdict.profiles = verdict.profiles.map(one =>
        one.profile === name && findings.length > 0 ? summarize(name, [...findings, ...one.findings]) : one,
      )
    }
  }
}

function asJson({ file, read, judged }: JudgedFile): object {
  const histories = judged.map(({ name, messages, profiles, notes }) => ({
    ...(name ? { name } : {}),
    messages,
    ...(notes.length > 0 ? { notes } : {}),
    profiles,
  }))
  const candidates = read.format === undefined ? { candidates: read.candidates } : {}
  return { file, format: read.format ?? 'not sure', ...candidates, histories }
}

/** The profiles of the wire that a request was written for: one that is asked for by name is meant as its server. */
function wireProfiles({ candidates }: HistoryFile): string[] {
  const families: readonly string[] = candidates
  return STRICT_PROFILES.filter(profile => families.includes(PROFILE_FACTS[profile].family))
}

function chosenProfiles(profile: string | undefined): string[] | undefined {
  if (profile === undefined) return undefined
  if (profile === 'all') return Object.keys(PROFILES)
  return [resolveProfile(profile).name]
}

function judge(history: FileHistory, profiles: readonly string[], own: readonly string[]): Judged {
  const { name } = history
  if (history.kind === 'session') {
    const { messages } = history
    const judged = lintMessages(messages, profiles)
    return { name, messages: messages.length, notes: [], profiles: judged, whereOf: inSession }
  }
  const { messages, notes, kind } = history
  return {
    name,
    messages: messages.length,
    notes,
    profiles: profiles.map(profile => {
      const resolved = resolveProfile(profile)
      if (history.kind === 'request' && own.includes(resolved.name)) return lintRequest(history, resolved)
      // A transcript is judged as if a user message followed, a request as it is.
      const next = kind === 'transcript' ? 'user' : 'none'
      return summarize(resolved.name, lintHistory(messages, resolved, { next }))
    }),
    whereOf: ({ at }) => messages[at]?.place ?? `message ${at + 1}`,
  }
}

function inSession({ seq, at }: SessionFinding): string {
  return `Message ${seq ?? at + 1}`
}

function headingOf(file: string, { format, candidates, histories }: HistoryFile, index: number): string {
  const history = histories[index]
  const source = file === '-' ? 'Standard input' : file
  const label = history?.kind === 'request' ? '' : 'session '
  const which = histories.length > 1 ? `, ${label}${history?.name}` : ''
  const what = format
    ? `is ${FORMAT_NAMES[format]}`
    : `: not sure, it could be ${orList(candidates.map(name => FORMAT_NAMES[name]))}`
  return `${source}${format ? ' ' : ''}${what}${which}: ${count(history?.messages.length ?? 0, 'message')}.`
}

function report(heading: string, { profiles, skipped = 0, notes, whereOf }: Judged): string {
  const styles = stylesOf(process.stdout)
  const problems = problemsOf(profiles, whereOf)
  const mapped = mappedLine(profiles)
  const lines = [
    heading,
    ...notes,
    ...(skipped > 0 ? [`Not checked: the ${count(skipped, 'oldest message')}.`] : []),
    '',
    ...verdictLines(profiles, styles),
    ...problemLines(problems.slice(0, MOST_SHOWN), lineWidth(), styles),
    ...(problems.length > MOST_SHOWN
      ? ['', `… and ${problems.length - MOST_SHOWN} more; --json lists them.`]
      : []),
    ...(mapped === undefined ? [] : ['', ...[styles.dim(mapped)]]),
    ...(problems.length > 0
      ? ['', styles.dim('Lango repairs this when it sends the history; what is stored does not change.')]
      : []),
  ]
  return `${lines.join('\n')}\n`
}

const MOST_SHOWN = 30

/** Only what breaks counts: what is mapped is rewritten on every send. */
function exitCode(judged: readonly Judged[]): number {
  return judged.some(({ profiles }) => profiles.some(({ refused }) => refused)) ? FINDINGS : CLEAN
}
