import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { builtFile } from './built-lango.js'

export interface Child {
  readonly process: ChildProcess
  /** The lines that it has printed so far. */
  readonly lines: readonly string[]
  readonly errors: () => string
  /** Resolves when it has printed that many lines, or has ended. */
  untilLines(count: number): Promise<void>
  /** Resolves when the process has ended and all its output was read. */
  readonly ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
}

/** Runs a TypeScript file of `test/support` in a separate process. `imports` are loaded before it. */
export function runScript(name: string, args: readonly string[], imports: readonly string[] = []): Child {
  const loaders = imports.flatMap(module => ['--import', module])
  const child = spawn(process.execPath, [...loaders, builtFile('test/support', name), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    cwd: fileURLToPath(new URL('../..', import.meta.url)),
  })
  const lines: string[] = []
  let errors = ''
  let wake: () => void = () => {}
  let isOver = false
  createInterface({ input: child.stdout }).on('line', line => {
    lines.push(line)
    wake()
  })
  child.stderr.on('data', chunk => {
    errors += chunk
  })
  const ended = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) => {
      isOver = true
      wake()
      resolve({ code, signal })
    })
  })
  const untilLines = async (count: number) => {
    while (lines.length < count && !isOver) {
      await new Promise<void>(resolve => {
        wake = resolve
      })
    }
  }
  return { process: child, lines, errors: () => errors, untilLines, ended }
}
