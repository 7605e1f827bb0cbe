import { type ChildProcess, spawn } from 'node:child_process'
import { BUILT_LANGO } from '../support/built-lango.js'
import { TRUST_FILE } from '../support/trust-file.js'

export interface Outcome {
  code: number | null
  stdout: string
  stderr: string
}

export interface StartOptions {
  cwd: string
  /** What is piped in; absent: nothing. `null`: the pipe stays open for the test to write to. */
  input?: string | null
  env?: Record<string, string>
  /** Modules that are loaded first. */
  imports?: readonly string[]
  /** The program, instead of the built command line. */
  file?: string
}

/** Runs the real command line in a process of its own and waits for its end. */
export async function lango(args: readonly string[], options: StartOptions): Promise<Outcome> {
  return outcomeOf(startLango(args, options))
}

/**
 * Starts the command line. No key, no setting and no colour of the outer environment reaches it. Folders of tests
 * are trusted, unless `env` says otherwise.
 */
export function startLango(
  args: readonly string[],
  { cwd, input, env, imports = [], file = BUILT_LANGO }: StartOptions,
): ChildProcess {
  const loaders = imports.flatMap(module => ['--import', module])
  const child = spawn(process.execPath, [...loaders, file, ...args], {
    cwd,
    env: { PATH: process.env.PATH ?? '', HOME: cwd, LANGO_TRUST: '1', LANGO_TRUST_FILE: TRUST_FILE, ...env },
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  })
  child.stdin?.on('error', () => {})
  if (input !== null) child.stdin?.end(input)
  return child
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
