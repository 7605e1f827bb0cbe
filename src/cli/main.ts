#!/usr/bin/env node
/** The command line. Each command is loaded when it is called: `--help` must not wait for anything. */
import { readFileSync } from 'node:fs'
import { AgentError, messageOf } from '../errors.js'

const HELP = `Lango: your ADK agent, on any model, with a history that cannot break.

Usage: lango <command> [options]

Commands:
  strict    start a fake provider that enforces the real rules and refuses with the real errors

Options:
  --help       this text; 'lango <command> --help' tells about a command
  --version    the version
  --debug      show the stack of an error

Examples:
  lango strict --profile gemini-3 --port 0
  lango strict --help
`

type Command = (args: readonly string[]) => Promise<void>

const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  strict: () => import('./strict.js').then(module => module.strict),
}

/** Runs one command line and returns the exit code. */
export async function main(args: readonly string[]): Promise<number> {
  const [name, ...rest] = args.filter(word => word !== '--debug')
  try {
    if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
      process.stdout.write(HELP)
      return name === undefined ? 1 : 0
    }
    if (name === '--version' || name === '-v') {
      process.stdout.write(`${version()}\n`)
      return 0
    }
    const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
    if (!load) {
      throw new AgentError(
        'invalid-argument',
        `There is no command "${name}". 'lango --help' lists the commands.`,
      )
    }
    await (await load())(rest)
    return 0
  } catch (error) {
    const stack = args.includes('--debug') && error instanceof Error ? `\n${error.stack}` : ''
    process.stderr.write(`lango: ${messageOf(error)}${stack}\n`)
    return 1
  }
}

function version(): string {
  const file = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(file) as { version: string }).version
}

process.exitCode = await main(process.argv.slice(2))
