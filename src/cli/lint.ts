/** `lango lint`: reports which providers would reject a history, and why. Nothing is changed or sent. */
import { AgentError } from '../errors.js'
import {
  type FileHistory,
  FORMAT_NAMES,
  type HistoryFile,
  orList,
  readHistoryFile,
} from '../formats/history-files.js'
import type { WireMessage } from '../formats/wire-parts.js'
import { lintHistory } from '../provider/repair/lint-history.js'
import { PROFILES, type Profile, resolveProfile } from '../provider/repair/profile.js'
import type { ProfileLint, SessionFinding } from '../runtime/info.js'
import { lintMessages, lintSession, summarize } from '../runtime/lint.js'
import type { Flags } from './command.js'
import { mappedLine, problemLines, problemsOf, refusalWords, verdictLines } from './lint-report.js'
import { findSession, withStore } from './open-command-store.js'
import { lineWidth, print, printJson, stylesOf } from './output.js'
import { count } from './wording.js'

const CLEAN = 0
const FINDINGS = 3

/** Lints a file or a stored session. The exit code is 3 when a provider would reject it. */
export async function lint(file: string | undefined, flags: Flags): Promise<number> {
  if ((file === undefined) === (flags.session === undefined)) {
    throw new AgentError(
      'invalid-argument',
      "Pass either a file ('-' for standard input) or --session. See 'lango lint --help'.",
    )
  }
  return file === undefined ? lintStored(flags.session ?? '', flags) : lintFile(file, flags)
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

async function lintFile(file: string, flags: Flags): Promise<number> {
  const chosen = chosenProfiles(flags.profile)
  const read = await readHistoryFile(file, flags.format)
  const judged = read.histories.map(history => judge(history, chosen ?? read.profiles, read.profiles))
  if (flags.json) {
    const histories = judged.map(({ name, messages, profiles, notes }) => ({
      ...(name ? { name } : {}),
      messages,
      ...(notes.length > 0 ? { notes } : {}),
      profiles,
    }))
    const format = read.format ?? 'not sure'
    const candidates = read.format === undefined ? { candidates: read.candidates } : {}
    await printJson({ file, format, ...candidates, histories })
  } else {
    const reports = judged.map((each, index) => report(headingOf(file, read, index), each))
    await print(reports.join('\n'))
  }
  return exitCode(judged)
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
      if (kind === 'transcript') return summarize(resolved.name, lintHistory(messages, resolved))
      return judgeRequest(messages, resolved, own.includes(resolved.name))
    }),
    whereOf: ({ at }) => messages[at]?.place ?? `message ${at + 1}`,
  }
}

/**
 * A request body contains as written what Lango rewrites on every send. On the vendor's own wire it counts as a
 * rejection where the vendor is known to reject it.
 */
const REFUSED_ON_THE_WIRE = new Set([
  'missing-signature',
  'missing-reasoning',
  'id-form',
  'name-form',
  'missing-id',
  'lost-result-id',
  'duplicate-id',
])

/** A request body is checked as it is: nothing follows it. */
function judgeRequest(messages: readonly WireMessage[], profile: Profile, isOwnWire: boolean): ProfileLint {
  const found = lintHistory(messages, profile, { next: 'none' }).map(finding =>
    isOwnWire && REFUSED_ON_THE_WIRE.has(finding.code) && refusalWords(profile.name, finding.code)
      ? { ...finding, severity: 'breaks' as const }
      : finding,
  )
  const wrongRoles = messages.flatMap(({ wrongRole }, at): SessionFinding[] => {
    if (!wrongRole) return []
    const words = refusalWords(profile.name, 'unknown-role')
    const answer = words === undefined ? '' : ` ${profile.name} answers ${words}`
    return [
      {
        code: 'unknown-role',
        severity: 'breaks',
        at,
        message: `The role "${wrongRole.role}" is not valid in this wire format.${answer}`,
        repair: `The role is sent as ${wrongRole.right}.`,
      },
    ]
  })
  return summarize(profile.name, [...wrongRoles, ...found])
}

function inSession({ seq, at }: SessionFinding): string {
  return `Message ${seq ?? at + 1}`
}

function headingOf(file: string, { format, candidates, histories }: HistoryFile, index: number): string {
  const history = histories[index]
  const source = file === '-' ? 'Standard input' : file
  const which = histories.length > 1 ? `, session ${history?.name}` : ''
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
