/** `lango lint --fix` and `--output`: writes the repaired history of a file. */
import { readFile, realpath, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { parseJson, withoutBom } from '../base/json.js'
import { AgentError } from '../errors.js'
import type { FileHistory } from '../formats/history-files.js'
import type { CheckedFile } from '../runtime/check/check-histories.js'
import { type HealedFile, healedFile, profilesToHealFor } from '../runtime/check/healed-file.js'
import { problemsOf } from '../runtime/check/problems.js'
import type { Flags } from './command.js'
import { intoFile } from './into-file.js'
import { asTyped, type Io, pathOf } from './io.js'

/** A repaired history that was written. */
export interface WrittenHistory extends Pick<HealedFile, 'profile' | 'note' | 'left'> {
  file: string
}

/** Refuses flags and arguments with which no repaired history can be written. */
export function checkHealFlags(io: Io, files: readonly string[], { fix, output, session }: Flags): void {
  if (!fix && output === undefined) return
  const refuse = (message: string) => {
    throw new AgentError('invalid-argument', `${message} See 'lango lint --help'.`)
  }
  if (session !== undefined)
    refuse("--fix and --output are for files: 'lango doctor --session ID --fix' repairs a stored session.")
  if (fix && output !== undefined) refuse('--fix and --output cannot be combined.')
  if (output === '-') refuse('The report is written to standard output. Name a file after --output.')
  const [file = '', ...others] = files
  if (others.length > 0) refuse('--fix and --output repair one file at a time.')
  if (fix && file === '-') refuse('Standard input cannot be rewritten: use --output FILE.')
  if (output !== undefined && file !== '-' && resolve(pathOf(io, output)) === resolve(pathOf(io, file)))
    throw namesItself(file)
}

function namesItself(file: string): AgentError {
  return new AgentError(
    'invalid-argument',
    `--output names the file itself: --fix rewrites ${file}. See 'lango lint --help'.`,
  )
}

/** True if two paths lead to one file, also by a link, or where names do not differ by case. */
async function isSameFile(one: string, other: string): Promise<boolean> {
  const [first, second] = await Promise.all([one, other].map(path => stat(path).catch(() => undefined)))
  return first !== undefined && first.ino === second?.ino && first.dev === second.dev
}

/** Writes the repaired history of a checked file. `undefined` when nothing in it is rejected: nothing is written. */
export async function writeHealed(
  io: Io,
  source: string,
  { read, checked }: CheckedFile,
  { fix, output = source }: Flags,
): Promise<WrittenHistory | undefined> {
  const [verdict, ...others] = checked
  const [history] = read.histories
  if (history === undefined || verdict === undefined) return undefined
  if (others.length > 0) {
    throw new AgentError(
      'invalid-argument',
      `${source} holds ${checked.length} histories, and --fix and --output repair one. Put each into a file of its own.`,
    )
  }
  if (problemsOf(verdict.profiles, verdict.whereOf).length === 0) return undefined
  const profiles = profilesToHealFor(verdict.profiles, read)
  if (history.kind === 'request' && profiles.length === 0) {
    throw new AgentError(
      'invalid-argument',
      `${source} is not a request for ${verdict.profiles.map(({ profile }) => profile).join(', ')}, so it cannot be repaired for it. Leave out --profile.`,
    )
  }
  const [from, to] = [pathOf(io, source), pathOf(io, output)]
  const before = fix ? await readFile(from, 'utf8') : undefined
  if (before !== undefined) refuseOtherForm(source, before, history)
  const { text, profile, note, left } = await healedFile(history, profiles, output)
  if (before !== undefined) refuseOtherNumbers(source, before, text)
  if (!fix && (await isSameFile(from, to))) throw namesItself(source)
  const file = fix ? await realpath(from) : to
  const mode = fix ? (await stat(file)).mode : undefined
  await asTyped(
    io,
    output,
    intoFile(file, write => write(text), mode),
  )
  return { file: output, ...(profile === undefined ? {} : { profile }), note, left }
}

/** Only a request body keeps its form: any other history is written as a Lango export, a part of a log as a body. */
function refuseOtherForm(source: string, before: string, history: FileHistory): void {
  const isBody = history.kind === 'request' && isDeepStrictEqual(parseJson(withoutBom(before)), history.body)
  if (isBody) return
  throw new AgentError(
    'invalid-argument',
    `--fix would change the form of ${source}, which is not a request body alone. Write the repaired history to another file with --output.`,
  )
}

/** JSON is parsed to numbers of 64 bits: a longer one, also in the arguments of a call, would be rounded. */
function refuseOtherNumbers(source: string, before: string, after: string): void {
  const known = new Set(longNumbers(before))
  const rounded = longNumbers(after).find(digits => !known.has(digits))
  if (rounded === undefined) return
  throw new AgentError(
    'invalid-argument',
    `--fix would change ${source}: a number in it has more digits than JSON numbers keep, and would become …${rounded}. Write that number as a string.`,
  )
}

/** Rows of digits that are too long for an exact number. An escaped character is no part of one. */
function longNumbers(json: string): string[] {
  return json.replaceAll(/\\u[0-9a-f]{4}/gi, ' ').match(/\d{16,}/g) ?? []
}
