#!/usr/bin/env node
/**
 * The command line. Modules are loaded on demand: `--version` and `--help` need only the command table, and each
 * command imports its own code.
 */
import { AgentError, messageOf } from '../errors.js'
import { findCommand } from './command.js'
import { guardPipes, lineWidth } from './output.js'

/** Runs one command line and returns the exit code. */
export async function main(args: readonly string[]): Promise<number> {
  const end = args.indexOf('--')
  const words = end === -1 ? args : args.slice(0, end)
  try {
    if (words[0] === '--version' || words[0] === '-v') {
      const { version } = await import('./version.js')
      process.stdout.write(`${version()}\n`)
      return 0
    }
    if (words[0] === 'help' || words.some(word => word === '--help' || word === '-h'))
      return await help(words)
    return await run(args)
  } catch (error) {
    await report(error, args)
    const isMissing = error instanceof AgentError && error.details.add !== undefined
    return isMissing && !args.includes('--json') ? (await import('./add.js')).offer(error, args) : 1
  }
}

async function help(words: readonly string[]): Promise<number> {
  const [{ LANGO }, { helpText }] = await Promise.all([import('./commands.js'), import('./command-line.js')])
  const asked = (words[0] === 'help' ? words.slice(1) : words).filter(word => !word.startsWith('-'))
  const { command, path } = findCommand(LANGO, asked)
  const stray = asked[path.split(' ').length - 1]
  if (command.commands && stray !== undefined && !words[0]?.startsWith('-')) {
    const { unknownCommand } = await import('./command-line.js')
    throw unknownCommand({ command, path }, stray)
  }
  process.stdout.write(helpText(command, path, lineWidth()))
  return 0
}

async function run(args: readonly string[]): Promise<number> {
  const [{ LANGO }, { parseCommandLine }] = await Promise.all([
    import('./commands.js'),
    import('./command-line.js'),
  ])
  const { command, words, flags } = parseCommandLine(LANGO, args)
  if (flags.color === false) (await import('./output.js')).forbidColor()
  return (await command.run?.(words, flags)) ?? 0
}

/** Prints an error: one sentence, or JSON with `--json`; the stack trace only with `--debug`. */
async function report(error: unknown, args: readonly string[]): Promise<void> {
  const known =
    error instanceof AgentError ? error : new AgentError('internal', messageOf(error), { cause: error })
  // For `init`, --json selects the file format.
  const asData = args.includes('--json') && args[0] !== 'init'
  const stack = args.includes('--debug') && error instanceof Error ? `\n${error.stack}` : ''
  const words = known.details.add === undefined ? known.message : await installWords(known)
  const text = asData ? JSON.stringify({ error: known }) : `lango: ${words}`
  // A message may quote a file or a server, with control characters in it.
  const { plainText } = await import('./plain-text.js')
  process.stderr.write(`${plainText(`${text}${stack}`)}\n`)
}

async function installWords(error: AgentError): Promise<string> {
  return (await import('./installed-packages.js')).withCommand(error)
}

guardPipes()
process.exitCode = await main(process.argv.slice(2))
