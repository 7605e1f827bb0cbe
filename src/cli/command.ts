/** The types of the command table. Help, parsing and completion all read that table. */
import { AgentError } from '../errors.js'
import type { Io } from './io.js'

/** The values of all flags. Each command reads those that its table entry names. */
export interface Flags {
  adk?: boolean
  config?: string
  store?: string
  user?: string
  app?: string
  debug?: boolean
  color?: boolean
  json?: boolean
  session?: string
  model?: string
  thinking?: string
  temperature?: string
  'max-output-tokens'?: string
  schema?: string
  fallback?: string[]
  budget?: string
  csv?: boolean
  from?: string
  to?: string
  agent?: string
  file?: string[]
  yes?: boolean
  quiet?: boolean
  wait?: boolean
  at?: string
  stream?: boolean
  limit?: string
  page?: string
  cursor?: string
  search?: string
  before?: string
  raw?: boolean
  all?: boolean
  report?: boolean
  output?: string
  out?: string
  as?: string
  author?: string[]
  'dry-run'?: boolean
  name?: string
  ts?: boolean
  js?: boolean
  provider?: string
  platform?: string
  profile?: string
  format?: string
  port?: string
  host?: string
  engine?: string
  lenient?: boolean
  fix?: boolean
  offline?: boolean
  trust?: boolean
  list?: boolean
  forget?: boolean
  force?: boolean
  rewrite?: boolean
  browser?: boolean
  scope?: string
  print?: boolean
}

/** Runs a command and returns the exit code. */
export type CommandAction = (io: Io, words: readonly string[], flags: Flags) => Promise<number>

export interface OptionSpec {
  /** As in `-o, --output <file>`. */
  flags: string
  description: string
  /** May be given several times. */
  repeats?: boolean
  /** For completion. */
  choices?: readonly string[]
}

export interface ArgumentSpec {
  /** `<id>`, `[id]`, `<id...>` or `[id...]`. */
  name: string
  description: string
  choices?: readonly string[]
}

/** Options that several commands share. */
export type SharedOption = 'config' | 'trust' | 'store' | 'user' | 'app'

export interface CommandSpec {
  name: string
  /** One line for lists. */
  summary: string
  /** For the command's own help. */
  description: string
  arguments?: readonly ArgumentSpec[]
  options?: readonly OptionSpec[]
  shared?: readonly SharedOption[]
  /** Command lines and what they do. */
  examples: readonly (readonly [line: string, meaning: string])[]
  exitCodes?: readonly (readonly [code: number, meaning: string])[]
  commands?: readonly CommandSpec[]
  /** The command of the group that runs when none is named. */
  fallback?: string
  run?: CommandAction
}

const SHARED_OPTIONS: Readonly<Record<SharedOption, OptionSpec>> = {
  config: {
    flags: '--config <file>',
    description: 'the configuration file; default: lango.config.* in this folder',
  },
  trust: {
    flags: '--trust',
    description: 'trust the folder for this command only; "lango trust" stores the decision',
  },
  store: {
    flags: '--store <url>',
    description: 'where to store sessions: sqlite:./lango.db, postgres://…, memory:',
  },
  user: { flags: '--user <id>', description: 'the owner of the session' },
  app: { flags: '--app <name>', description: 'the app that sessions belong to' },
}

export const JSON_OPTION: OptionSpec = { flags: '--json', description: 'print JSON' }

export const MODEL_OPTION: OptionSpec = {
  flags: '-m, --model <provider/model>',
  description: 'the model, such as openai/gpt-5.2; default: the configured one, or one whose key is set',
}

export const AGENT_OPTION: OptionSpec = {
  flags: '--agent <file>',
  description: 'a file that exports an ADK agent as rootAgent',
}

/** Options that every command has. */
export const COMMON_OPTIONS: readonly OptionSpec[] = [
  { flags: '--debug', description: 'print the stack trace of an error' },
  { flags: '--no-color', description: 'print without colours, as with NO_COLOR' },
  { flags: '-h, --help', description: 'print this help' },
]

/** All options of a command, its own first. */
export function optionsOf(command: CommandSpec): OptionSpec[] {
  return [...(command.options ?? []), ...(command.shared ?? []).map(name => SHARED_OPTIONS[name])]
}

/** `--output` of `-o, --output <file>`. */
export function longName({ flags }: OptionSpec): string {
  return /--[a-z-]+/.exec(flags)?.[0] ?? flags
}

/** `o` of `-o, --output <file>`. */
export function shortName({ flags }: OptionSpec): string | undefined {
  return /^-([a-z]),/.exec(flags)?.[1]
}

export function takesValue({ flags }: OptionSpec): boolean {
  return /[<[]/.test(flags)
}

/** A command of the table and its full name, as in `lango sessions list`. */
export interface NamedCommand {
  command: CommandSpec
  path: string
}

/** Walks down the table as far as the words name commands. */
export function findCommand(root: CommandSpec, words: readonly string[]): NamedCommand {
  let place: NamedCommand = { command: root, path: root.name }
  for (const word of words) {
    const next = place.command.commands?.find(({ name }) => name === word)
    if (!next) break
    place = { command: next, path: `${place.path} ${next.name}` }
  }
  return place
}

/** The whole number that an option gives, or `undefined` when it was not given. */
export function wholeNumber(
  name: string,
  text: string | undefined,
  least: number,
  most = MOST,
): number | undefined {
  if (text === undefined) return undefined
  const number = Number(text)
  if (!/^\d{1,15}$/.test(text) || number < least || number > most) {
    const range = most === MOST ? `of at least ${least}` : `from ${least} to ${most}`
    throw new AgentError('invalid-argument', `${name} is "${text}", but must be a whole number ${range}.`)
  }
  return number
}

const MOST = Number.MAX_SAFE_INTEGER
