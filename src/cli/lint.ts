/** `lango lint`: reports which providers would reject a history, and why; writes it repaired when asked to. Nothing is sent. */

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
  HEALED_NAMES,
  inSession,
} from '../runtime/check/check-histories.js'
import { problemsOf } from '../runtime/check/problems.js'
import { lintSession } from '../runtime/lint.js'
import type { Flags } from './command.js'
import { asTyped, type Io, sourceOf } from './io.js'
import type { WrittenHistory } from './lint-heal.js'
import { mappedLine, problemLines, verdictLines } from './lint-report.js'
import { called, quoted } from './next-command.js'
import { findSession, withStore } from './open-command-store.js'
import { lineWidth, print, printJson, stylesOf } from './output.js'
import { count } from './wording.js'

const CLEAN = 0
const FINDINGS = 3

/** Lints files or a stored session. The exit code is 3 when a provider would reject one. */
export async function lint(
  io: Io,
  given: string | readonly string[] | undefined,
  flags: Flags,
): Promise<number> {
  const files = typeof given === 'string' ? [given] : (given ?? [])
  if ((files.length === 0) === (flags.session === undefined)) {
    throw new AgentError(
      'invalid-argument',
      "Pass either a file ('-' for standard input) or --session. See 'lango lint --help'.",
    )
  }
  // Loaded on use: a check alone starts faster without the providers that write requests.
  if (isHealing(flags)) (await import('./lint-heal.js')).checkHealFlags(io, files, flags)
  return files.length === 0 ? lintStored(io, flags.session ?? '', flags) : lintFiles(io, files, flags)
}

async function lintStored(io: Io, session: string, flags: Flags): Promise<number> {
  const profiles = chosenProfiles(flags.profile) ?? Object.keys(PROFILES)
  const result = await withStore(io, flags, async opened => {
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
  if (flags.json) await printJson(io, result)
  else
    await print(
      io,
      report(io, `Session ${session}: ${count(result.messages, 'message')}.`, judged, [ON_SEND]),
    )
  return exitCode([judged])
}

interface NamedFile extends CheckedFile {
  file: string
}

async function lintFiles(io: Io, files: readonly string[], flags: Flags): Promise<number> {
  const chosen = chosenProfiles(flags.profile)
  const all: NamedFile[] = []
  for (const file of files) {
    const read = await asTyped(io, file, readHistoryFile(sourceOf(io, file), flags.format))
    refuseEmpty(read, file === '-' ? 'Standard input' : file)
    all.push({ file, ...checkHistories(read, chosen) })
  }
  compareRequests(all)
  const [first] = all
  const written =
    isHealing(flags) && first
      ? await (await import('./lint-heal.js')).writeHealed(io, first.file, first, flags)
      : undefined
  if (flags.json) {
    const results = all.map(each => ({ ...asJson(each), ...(written ? { healed: written } : {}) }))
    await printJson(io, results.length === 1 ? results[0] : results)
  } else {
    const advice = isHealing(flags) ? [] : [ON_SEND, ...outputAdvice(io, all)]
    const reports = all.flatMap(({ file, read, checked }) =>
      checked.map((each, index) => report(io, headingOf(file, read, index), each, advice)),
    )
    await print(io, reports.join('\n'))
    if (isHealing(flags)) await print(io, writtenLines(io, written, flags.output ?? files[0] ?? ''))
  }
  if (written) return written.left.length > 0 ? FINDINGS : CLEAN
  return exitCode(all.flatMap(({ checked }) => checked))
}

const ON_SEND = 'Lango repairs this when it sends the history; what is stored does not change.'

function isHealing({ fix, output }: Flags): boolean {
  return fix === true || output !== undefined
}

function outputAdvice(io: Io, files: readonly NamedFile[]): string[] {
  const [history, ...others] = files.flatMap(({ read }) => read.histories)
  const file = files[0]?.file ?? '-'
  if (history === undefined || others.length > 0 || file === '-') return []
  const healed = HEALED_NAMES[history.kind === 'request' ? 'request' : 'export']
  return [`To write the repaired history: ${called(io, 'lint')} ${quoted(file)} --output ${healed}`]
}

function writtenLines(io: Io, written: WrittenHistory | undefined, file: string): string {
  if (written === undefined) return `\nNothing to repair: ${file} was not written.\n`
  const styles = stylesOf(io, io.stdout)
  const left = problemLines(written.left, lineWidth(io), styles)
  const lines = [
    '',
    `Wrote ${written.file}. ${written.note}`,
    ...(left.length > 0 ? ['', 'Still rejected, because it is not in the messages:', ...left] : []),
  ]
  return `${lines.join('\n')}\n`
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

function report(
  io: Io,
  heading: string,
  { profiles, skipped = 0, notes, whereOf }: CheckedHistory,
  advice: readonly string[],
): string {
  const styles = stylesOf(io, io.stdout)
  const problems = problemsOf(profiles, whereOf)
  const mapped = mappedLine(profiles)
  const lines = [
    heading,
    ...notes,
    ...(skipped > 0 ? [`Not checked: the ${count(skipped, 'oldest message')}.`] : []),
    '',
    ...verdictLines(profiles, styles),
    ...problemLines(problems.slice(0, MOST_SHOWN), lineWidth(io), styles),
    ...(problems.length > MOST_SHOWN
      ? ['', `… and ${problems.length - MOST_SHOWN} more; --json lists them.`]
      : []),
    ...(mapped === undefined ? [] : ['', ...[styles.dim(mapped)]]),
    ...(problems.length > 0 && advice.length > 0 ? ['', ...advice.map(styles.dim)] : []),
  ]
  return `${lines.join('\n')}\n`
}

const MOST_SHOWN = 30

/** Only what breaks counts: what is mapped is rewritten on every send. */
function exitCode(checked: readonly CheckedHistory[]): number {
  return checked.some(({ profiles }) => profiles.some(({ refused }) => refused)) ? FINDINGS : CLEAN
}
