/** `lango lint`: reports which providers would reject a history, and why. Nothing is changed or sent. */
import { AgentError } from '../errors.js'
import {
  FORMAT_NAMES,
  type HistoryFile,
  orList,
  readHistoryFile,
  refuseEmpty,
} from '../formats/history-files.js'
import { PROFILES, resolveProfile } from '../provider/repair/profile.js'
import {
  type CheckedFile,
  type CheckedHistory,
  checkHistories,
  compareRequests,
  inSession,
} from '../runtime/check/check-histories.js'
import { problemsOf } from '../runtime/check/problems.js'
import { lintSession } from '../runtime/lint.js'
import type { Flags } from './command.js'
import { mappedLine, problemLines, verdictLines } from './lint-report.js'
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

interface NamedFile extends CheckedFile {
  file: string
}

async function lintFiles(files: readonly string[], flags: Flags): Promise<number> {
  const chosen = chosenProfiles(flags.profile)
  const all: NamedFile[] = []
  for (const file of files) {
    const read = await readHistoryFile(file, flags.format)
    refuseEmpty(read, file === '-' ? 'Standard input' : file)
    all.push({ file, ...checkHistories(read, chosen) })
  }
  compareRequests(all)
  if (flags.json) {
    const results = all.map(asJson)
    await printJson(results.length === 1 ? results[0] : results)
  } else {
    const reports = all.flatMap(({ file, read, checked }) =>
      checked.map((each, index) => report(headingOf(file, read, index), each)),
    )
    await print(reports.join('\n'))
  }
  return exitCode(all.flatMap(({ checked }) => checked))
}

function asJson({ file, read, checked }: NamedFile): object {
  const histories = checked.map(({ name, messages, profiles, notes }) => ({
    ...(name ? { name } : {}),
    messages,
    ...(notes.length > 0 ? { notes } : {}),
    profiles,
  }))
  const candidates = read.format === undefined ? { candidates: read.candidates } : {}
  return { file, format: read.format ?? 'not sure', ...candidates, histories }
}

function chosenProfiles(profile: string | undefined): string[] | undefined {
  if (profile === undefined) return undefined
  if (profile === 'all') return Object.keys(PROFILES)
  return [resolveProfile(profile).name]
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

function report(heading: string, { profiles, skipped = 0, notes, whereOf }: CheckedHistory): string {
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
function exitCode(checked: readonly CheckedHistory[]): number {
  return checked.some(({ profiles }) => profiles.some(({ refused }) => refused)) ? FINDINGS : CLEAN
}
