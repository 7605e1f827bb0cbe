/** Parses a command line by the command table, with Node's parser, and renders the help of each command. */

import { parseArgs } from 'node:util'
import { defined } from '../base/defined.js'
import { suggest } from '../base/suggest.js'
import { AgentError } from '../errors.js'
import {
  COMMON_OPTIONS,
  type CommandSpec,
  type Flags,
  findCommand,
  longName,
  type NamedCommand,
  type OptionSpec,
  optionsOf,
  shortName,
  takesValue,
} from './command.js'
import { wrapped } from './plain-text.js'

/** A parsed command line. */
export interface Invocation extends NamedCommand {
  words: string[]
  flags: Flags
}

/** Finds the command and reads its options. Throws `invalid-argument` with one sentence. */
export function parseCommandLine(root: CommandSpec, args: readonly string[]): Invocation {
  const tokens = tokensOf(root, args)
  const words = tokens.flatMap(token => (token.kind === 'positional' ? [token.value] : []))
  const named = findCommand(root, words)
  const place = withFallback(named, words)
  const flags: Record<string, string | boolean | string[]> = {}
  for (const token of tokens) {
    // Errors name the command as it was typed, without the fallback.
    if (token.kind === 'option') setFlag(flags, token, { ...place, path: named.path })
  }
  const own = words.slice(named.path.split(' ').length - 1)
  checkWords(place, own)
  return { ...place, words: own, flags: flags as Flags }
}

/** The error for an unknown command. */
export function unknownCommand({ command, path }: NamedCommand, word: string): AgentError {
  const known = (command.commands ?? []).map(({ name }) => name)
  const called = `${path} ${word}`.replace(/^lango /, '')
  const help = `'${path} --help' lists the commands.`
  return invalid(`Unknown command "${called}". ${meant(word, known) ?? help}`)
}

/** The help of a command. `path` is its full name, as in `lango sessions list`. */
export function helpText(command: CommandSpec, path: string, columns = MOST_COLUMNS): string {
  const width = Math.min(columns, MOST_COLUMNS)
  const { description, arguments: words = [], commands = [], examples, exitCodes = [] } = command
  const isRoot = path === command.name
  const options = [
    ...optionsOf(command).map(({ flags, description: text }) => [flags, text] as const),
    ...COMMON_OPTIONS.map(({ flags, description: text }) => [flags, text] as const),
    ...(isRoot ? [['-v, --version', 'print the version'] as const] : []),
  ]
  const sections = [
    wrapped(description.replaceAll('\n', ' '), '', width).join('\n'),
    `Usage: ${usage(command, path)}`,
    section(
      'Commands',
      listed(
        commands.map(({ name, summary }) => [name, summary] as const),
        width,
      ),
    ),
    section(
      'Arguments',
      listed(
        words.map(({ name, description: text }) => [name, text] as const),
        width,
      ),
    ),
    section('Options', listed(options, width)),
    section(
      'Exit codes',
      listed(
        exitCodes.map(([code, meaning]) => [String(code), meaning] as const),
        width,
      ),
    ),
    section('Examples', exampleLines(examples, width)),
    commands.length > 0 ? `Run "${path} <command> --help" for the help of a command.` : '',
  ]
  return `${sections.filter(text => text !== '').join('\n\n')}\n`
}

interface OptionToken {
  kind: 'option'
  name: string
  /** As it was written. */
  rawName: string
  value?: string | undefined
  inlineValue?: boolean | undefined
}

type Token = OptionToken | { kind: 'positional'; value: string } | { kind: 'option-terminator' }

/** Tokenized with the options of all commands together, because options may precede the command. */
function tokensOf(root: CommandSpec, args: readonly string[]): readonly Token[] {
  const options: Record<string, { type: 'string' | 'boolean'; multiple: true; short?: string }> = {}
  for (const option of [...everyOption(root), ...COMMON_OPTIONS]) {
    const short = shortName(option)
    const type = takesValue(option) ? 'string' : 'boolean'
    options[longName(option).slice(2)] = { type, multiple: true, ...defined({ short }) }
  }
  return parseArgs({ args: [...args], options, strict: false, allowPositionals: true, tokens: true }).tokens
}

function everyOption(command: CommandSpec): OptionSpec[] {
  return [...optionsOf(command), ...(command.commands ?? []).flatMap(everyOption)]
}

/** A group without a command runs its fallback; any other word is an unknown command. */
function withFallback(named: NamedCommand, words: readonly string[]): NamedCommand {
  const { command, path } = named
  if (!command.commands) return named
  const stray = words[path.split(' ').length - 1]
  const fallback = command.commands.find(({ name }) => name === command.fallback)
  if (stray !== undefined || !fallback) throw unknownCommand(named, stray ?? '')
  return { command: fallback, path: `${path} ${fallback.name}` }
}

function setFlag(
  flags: Record<string, string | boolean | string[]>,
  { name, rawName, value, inlineValue }: OptionToken,
  { command, path }: NamedCommand,
): void {
  const known = [...optionsOf(command), ...COMMON_OPTIONS]
  const option = known.find(each => longName(each) === `--${name}`)
  const more = `See '${path} --help'.`
  if (!option)
    throw invalid(`Unknown option ${rawName} of '${path}'. ${meant(rawName, known.map(longName)) ?? more}`)
  if (!takesValue(option)) {
    if (value !== undefined) throw invalid(`${rawName} takes no value. ${more}`)
    flags[name.replace(/^no-/, '')] = !name.startsWith('no-')
    return
  }
  // A value that looks like an option means that the value was forgotten, unless it was given with "=".
  if (value === undefined || value.trim() === '' || (!inlineValue && /^-./.test(value)))
    throw invalid(`${rawName} needs a value. ${more}`)
  if (!option.repeats) flags[name] = value
  else flags[name] = [...((flags[name] as string[] | undefined) ?? []), value]
}

function checkWords({ command, path }: NamedCommand, words: readonly string[]): void {
  const takes = command.arguments ?? []
  const more = `See '${path} --help'.`
  const missing = takes.filter(({ name }) => name.startsWith('<'))[words.length]
  if (missing)
    throw invalid(`'${path}' needs ${missing.name.replace('...', '')}: ${missing.description}. ${more}`)
  if (takes.some(({ name }) => name.includes('...')) || words.length <= takes.length) return
  const allowed =
    takes.length === 0 ? 'no arguments' : `at most ${takes.length} argument${takes.length === 1 ? '' : 's'}`
  throw invalid(`'${path}' takes ${allowed}, but got "${words[takes.length]}". ${more}`)
}

function meant(word: string, known: readonly string[]): string | undefined {
  const near = suggest(word, known)
  return near === undefined ? undefined : `Did you mean ${near}?`
}

function invalid(message: string): AgentError {
  return new AgentError('invalid-argument', message)
}

/** The widest help, on any terminal: longer lines are hard to read. */
const MOST_COLUMNS = 100

function usage({ commands, arguments: words = [] }: CommandSpec, path: string): string {
  if (commands) return `${path} <command> [options]`
  return [path, ...words.map(({ name }) => name), '[options]'].join(' ')
}

function section(title: string, lines: readonly string[]): string {
  return lines.length === 0 ? '' : [`${title}:`, ...lines.map(line => `  ${line}`)].join('\n')
}

/** Two columns; the second is wrapped. */
function listed(rows: readonly (readonly [name: string, text: string])[], columns: number): string[] {
  const width = Math.max(0, ...rows.map(([name]) => name.length)) + 2
  return rows.flatMap(([name, text]) =>
    wrapped(text, '', columns - width - 2).map(
      (line, index) => (index === 0 ? name : '').padEnd(width) + line,
    ),
  )
}

/** Each example with its comment after it, or above it when the line would be too long. */
function exampleLines(examples: CommandSpec['examples'], columns: number): string[] {
  const width = Math.max(0, ...examples.map(([line]) => line.length)) + 2
  const longest = Math.max(0, ...examples.map(([, meaning]) => meaning.length))
  if (width + longest + 4 <= columns)
    return examples.map(([line, meaning]) => `${line.padEnd(width)}# ${meaning}`)
  return examples.flatMap(([line, meaning]) => [`# ${meaning}`, line])
}
