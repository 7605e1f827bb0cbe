/**
 * The command line. Modules are loaded on demand: `--version` and `--help` need only the command table, and each
 * command imports its own code.
 */
import { AgentError, messageOf } from '../errors.js'
import { findCommand } from './command.js'
import type { Io } from './io.js'
import { lineWidth } from './output.js'

/** Runs one command line and returns the exit code. */
export async function runCommandLine(io: Io, args: readonly string[]): Promise<number> {
  const end = args.indexOf('--')
  const words = end === -1 ? args : args.slice(0, end)
  try {
    if (words[0] === '--version' || words[0] === '-v') {
      const { version } = await import('./version.js')
      io.stdout.write(`${version()}\n`)
      return 0
    }
    if (words[0] === 'help' || words.some(word => word === '--help' || word === '-h'))
      return await help(io, words)
    return await run(io, args)
  } catch (error) {
    await report(io, error, args)
    const isMissing = error instanceof AgentError && error.details.add !== undefined
    return isMissing && !args.includes('--json') ? (await import('./add.js')).offer(io, error, args) : 1
  }
}

async function help(io: Io, words: readonly string[]): Promise<number> {
  const [{ LANGO }, { helpText }] = await Promise.all([import('./commands.js'), import('./command-line.js')])
  const asked = (words[0] === 'help' ? words.slice(1) : words).filter(word => !word.startsWith('-'))
  const { command, path } = findCommand(LANGO, asked)
  const stray = asked[path.split(' ').length - 1]
  if (command.commands && stray !== undefined && !words[0]?.startsWith('-')) {
    const { unknownCommand } = await import('./command-line.js')
    throw unknownCommand({ command, path }, stray)
  }
  io.stdout.write(helpText(command, path, lineWidth(io)))
  return 0
}

async function run(io: Io, args: readonly string[]): Promise<number> {
  const [{ LANGO }, { parseCommandLine }] = await Promise.all([
    import('./commands.js'),
    import('./command-line.js'),
  ])
  const { command, words, flags } = parseCommandLine(LANGO, args)
  if (flags.color === false) io.color = false
  return (await command.run?.(io, words, flags)) ?? 0
}

/** Prints an error: one sentence, or JSON with `--json`; the stack trace only with `--debug`. */
async function report(io: Io, error: unknown, args: readonly string[]): Promise<void> {
  const known =
    error instanceof AgentError ? error : new AgentError('internal', messageOf(error), { cause: error })
  // For `init`, --json selects the file format.
  const asData = args.includes('--json') && args[0] !== 'init'
  const stack = args.includes('--debug') && error instanceof Error ? `\n${error.stack}` : ''
  const words = known.details.add === undefined ? known.message : await installWords(io, known)
  const text = asData ? JSON.stringify({ error: known }) : `lango: ${words}`
  // A message may quote a file or a server, with control characters in it.
  const { plainText } = await import('./plain-text.js')
  io.stderr.write(`${plainText(`${text}${stack}`)}\n`)
}

async function installWords(io: Io, error: AgentError): Promise<string> {
  return (await import('./installed-packages.js')).withCommand(io, error)
}
