import { type ChildProcess, spawn } from 'node:child_process'
import { runCommandLine } from '../../src/cli/run-command-line.js'
import { BUILT_LANGO } from '../support/built-lango.js'
import { TRUST_FILE } from '../support/trust-file.js'
import { memoryIo } from './memory-io.js'

export interface Outcome {
  code: number | null
  stdout: string
  stderr: string
}

interface CommandOptions {
  cwd: string
  /** Standard input; absent: empty. */
  input?: string
  env?: Record<string, string>
}

export interface StartOptions extends Omit<CommandOptions, 'input'> {
  /** As above. `null`: the pipe stays open for the test to write to. */
  input?: string | null
  /** Modules that are loaded first. */
  imports?: readonly string[]
  /** The program, instead of the built command line. */
  file?: string
}

/**
 * Runs a command line in this process. Use `langoProcess` for what only a process has: signals, its own environment (keys
 * of providers), `console.log` of an agent, loaders, a closed pipe.
 */
export async function lango(
  args: readonly string[],
  { cwd, input = '', env }: CommandOptions,
): Promise<Outcome> {
  const io = memoryIo({ cwd, input, env: commandEnvironment(cwd, env) })
  const code = await runCommandLine(io, args)
  return { code, ...io.written }
}

/** Runs the built command line in a process of its own and waits for its end. */
export async function langoProcess(args: readonly string[], options: StartOptions): Promise<Outcome> {
  return outcomeOf(startLango(args, options))
}

/** Starts the built command line in a process of its own. */
export function startLango(
  args: readonly string[],
  { cwd, input, env, imports = [], file = BUILT_LANGO }: StartOptions,
): ChildProcess {
  const loaders = imports.flatMap(module => ['--import', module])
  const child = spawn(process.execPath, [...loaders, file, ...args], {
    cwd,
    env: commandEnvironment(cwd, env),
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  })
  child.stdin?.on('error', () => {})
  if (input !== null) child.stdin?.end(input)
  return child
}

/**
 * No key, no setting and no colour of the outer environment reaches a command. Folders of tests are trusted, unless `env`
 * says otherwise.
 */
export function commandEnvironment(cwd: string, env: Record<string, string> = {}): Record<string, string> {
  const outer = { PATH: process.env.PATH ?? '', HOME: cwd }
  return { ...outer, LANGO_TRUST: '1', LANGO_TRUST_FILE: TRUST_FILE, ...env }
}

/** All that a process printed, and how it ended. */
export async function outcomeOf(child: ChildProcess): Promise<Outcome> {
  let [stdout, stderr] = ['', '']
  child.stdout?.setEncoding('utf8').on('data', chunk => {
    stdout += chunk
  })
  child.stderr?.setEncoding('utf8').on('data', chunk => {
    stderr += chunk
  })
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', resolve)
  })
  return { code, stdout, stderr }
}
