/** From words to a command: `commander` reads them by the table, and what is wrong is said in a sentence. */
import { Command, CommanderError, Option } from 'commander'
import { suggest } from '../config/suggest.js'
import { AgentError, invariant } from '../errors.js'
import {
  type ArgumentSpec,
  COMMON_OPTIONS,
  type CommandSpec,
  type Flags,
  findCommand,
  longName,
  type NamedCommand,
  type OptionSpec,
  optionsOf,
  SHARED_OPTIONS,
  type SharedOption,
} from './command.js'

/** A command line that was understood. */
export interface Invocation {
  command: CommandSpec
  path: string
  words: string[]
  flags: Flags
}

/** Finds the command that is meant and reads its options. Throws `invalid-argument` in one sentence. */
export function parseCommandLine(root: CommandSpec, args: readonly string[]): Invocation {
  refuseUnknownCommand(root, args)
  let found: Invocation | undefined
  const program = toCommander(root, root.name, invocation => {
    found = invocation
  })
  for (const option of [...Object.values(SHARED_OPTIONS), ...COMMON_OPTIONS]) {
    if (longName(option) !== '--help') program.addOption(new Option(option.flags))
  }
  try {
    program.parse([...args], { from: 'user' })
  } catch (error) {
    if (error instanceof CommanderError) throw inWords(error, root, args)
    throw error
  }
  invariant(found, 'A command line was read, but no command was found')
  refuseForeignOptions(found)
  return found
}

/** A word where a command of a group should be. Commander would hand it to the group's fallback. */
function refuseUnknownCommand(root: CommandSpec, args: readonly string[]): void {
  const place = findCommand(root, args)
  const named = place.path.split(' ').slice(1)
  const next = args[named.length]
  const isStray =
    named.every((word, index) => args[index] === word) && next !== undefined && !next.startsWith('-')
  if (place.command.commands && isStray) throw unknownCommand(place, next)
}

function toCommander(spec: CommandSpec, path: string, onFound: (found: Invocation) => void): Command {
  const command = new Command(spec.name)
    .exitOverride()
    .configureOutput({ writeErr: () => {}, writeOut: () => {} })
    .helpOption(false)
    .helpCommand(false)
    .allowExcessArguments(true)
    .showSuggestionAfterError(false)
  for (const child of spec.commands ?? []) {
    const isDefault = child.name === spec.fallback
    command.addCommand(toCommander(child, `${path} ${child.name}`, onFound), { isDefault })
  }
  if (!spec.run) return command
  for (const option of spec.options ?? []) command.addOption(toOption(option))
  for (const { name } of spec.arguments ?? []) command.argument(name)
  return command.action(() => {
    const flags = command.optsWithGlobals() as Flags
    refuseExcess(spec, path, command.args)
    onFound({ command: spec, path, words: [...command.args], flags })
  })
}

function toOption({ flags, repeats }: OptionSpec): Option {
  const option = new Option(flags)
  if (!repeats) return option
  return option.argParser<string[] | undefined>((value, given) => [...(given ?? []), value])
}

/** Too many words are not commander's to refuse: it does not say which they are. */
function refuseExcess({ arguments: takes = [] }: CommandSpec, path: string, words: readonly string[]): void {
  if (takes.some(({ name }) => name.includes('...')) || words.length <= takes.length) return
  const allowed = takes.length === 0 ? 'no words' : `${takes.length} word${takes.length === 1 ? '' : 's'}`
  throw invalid(
    `'${path}' takes ${allowed} beside its options, but "${words[takes.length]}" was given. '${path} --help' tells more.`,
  )
}

/** Shared options are understood anywhere on the line, so a command that has no use for one must say so. */
function refuseForeignOptions({ command, path, flags }: Invocation): void {
  const own = [...(command.shared ?? []), ...(command.options ?? []).map(option => longName(option).slice(2))]
  for (const name of Object.keys(SHARED_OPTIONS) as SharedOption[]) {
    if (flags[name] !== undefined && !own.includes(name)) {
      throw invalid(`'${path}' takes no --${name}. '${path} --help' lists its options.`)
    }
  }
}

function inWords(error: CommanderError, root: CommandSpec, args: readonly string[]): AgentError {
  const { command, path } = meantCommand(findCommand(root, args))
  const named = /'([^']*)'/.exec(error.message)?.[1] ?? ''
  const more = `'${path} --help' tells more.`
  switch (error.code) {
    case 'commander.unknownOption': {
      const known = [...optionsOf(command), ...COMMON_OPTIONS].map(longName)
      return invalid(`'${path}' has no option ${named}. ${meant(named, known) ?? more}`)
    }
    case 'commander.optionMissingArgument':
      return invalid(`${/--[a-z-]+/.exec(named)?.[0] ?? named} needs a value. ${more}`)
    case 'commander.missingArgument':
      return invalid(`'${path}' needs ${whatIsMissing(command, named)}. ${more}`)
    default:
      return invalid(`${error.message.replace(/^error: /, '')}. ${more}`)
  }
}

/** The group's own fallback when nothing of the group was named. */
function meantCommand({ command, path }: NamedCommand): NamedCommand {
  const fallback = command.commands?.find(({ name }) => name === command.fallback)
  return fallback ? { command: fallback, path: `${path} ${fallback.name}` } : { command, path }
}

/** A word in the place of a command that is none. */
export function unknownCommand({ command, path }: NamedCommand, word: string): AgentError {
  const known = (command.commands ?? []).map(({ name }) => name)
  const called = `${path} ${word}`.replace(/^lango /, '')
  const help = `'${path} --help' lists the commands.`
  return invalid(`There is no command "${called}". ${meant(word, known) ?? help}`)
}

function meant(word: string, known: readonly string[]): string | undefined {
  const near = suggest(word, known)
  return near === undefined ? undefined : `Did you mean ${near}?`
}

function whatIsMissing({ arguments: words = [] }: CommandSpec, named: string): string {
  const argument = words.find(({ name }) => plainName(name) === named)
  return argument ? `<${plainName(argument.name)}>: ${argument.description}` : named
}

function plainName(name: ArgumentSpec['name']): string {
  return name.replaceAll(/[<>[\].]/g, '')
}

function invalid(message: string): AgentError {
  return new AgentError('invalid-argument', message)
}
