import { realpath } from 'node:fs/promises'
import { StringDecoder } from 'node:string_decoder'
import { z } from 'zod'
import { timerMs } from '../base/timer-ms.js'
import { AgentError } from '../errors.js'
import { defineTool, type Tool } from '../tool.js'
import { safeEnvironment } from './mcp-process.js'
import { type ProcessTree, spawnTree } from './process-tree.js'
import { bubblewrapCommand, hasBubblewrap, type SandboxMode } from './sandbox.js'

export interface RunCommandOptions {
  workspace: string
  /** Default 120,000. */
  timeoutMs?: number | undefined
  /** Added to the reduced environment of commands. */
  env?: Readonly<Record<string, string>> | undefined
  /** Default `auto`. */
  sandbox?: SandboxMode | undefined
  /** Whether approval is required. Default true. */
  needsApproval?: boolean | undefined
}

/** Runs a shell command in the workspace. */
export function runCommandTool(options: RunCommandOptions): Tool {
  const { timeoutMs = 120_000, needsApproval = true } = options
  return defineTool({
    name: 'run_command',
    description:
      'Runs a shell command in the workspace and returns its exit code and output. It gets no input, and processes that it leaves in the background are killed when it exits.',
    parameters: z.object({
      command: z.string().min(1).max(100_000),
      timeout_seconds: z
        .number()
        .positive()
        .optional()
        .describe(`At most ${timeoutMs / 1000}.`),
    }),
    effect: 'once',
    needsApproval: needsApproval && (() => approvalReason(options)),
    // Its own timeout fires first: its message says more.
    timeoutMs: timeoutMs + GRACE_MS + 15_000,
    execute: async ({ command, timeout_seconds }, { signal }) => {
      const limitMs = Math.min(timeoutMs, (timeout_seconds ?? Number.POSITIVE_INFINITY) * 1000)
      const { tree, sandbox } = await start(command, options)
      return { ...(await new CommandRun(tree, limitMs, signal).result()), sandbox }
    },
  })
}

const GRACE_MS = 1_000
const MAX_OUTPUT_BYTES = 32_000
/** A command that writes more is out of control. */
const RUNAWAY_BYTES = 64_000_000

/** With `required` a command never runs without a sandbox: it fails. */
async function approvalReason(options: RunCommandOptions): Promise<true | string> {
  return options.sandbox === 'required' || (await usesSandbox(options)) ? true : WITHOUT_SANDBOX
}

const WITHOUT_SANDBOX =
  'The command runs without a sandbox on this machine: it can reach the network and every file of its user.'

function environmentOf({ env }: RunCommandOptions): Record<string, string> {
  return { ...safeEnvironment(), TERM: 'dumb', NO_COLOR: '1', ...env }
}

async function usesSandbox(options: RunCommandOptions): Promise<boolean> {
  return options.sandbox !== 'off' && (await hasBubblewrap(environmentOf(options)))
}

async function start(command: string, options: RunCommandOptions) {
  const { workspace, sandbox } = options
  const folder = await realpath(workspace)
  const isSandboxed = await usesSandbox(options)
  if (sandbox === 'required' && !isSandboxed) {
    throw new AgentError(
      'invalid-config',
      'A sandbox is required, but bubblewrap (bwrap) is missing or does not work. Install it, or set tools.sandbox to "auto" or "off".',
    )
  }
  const shell =
    process.platform === 'win32' ? ['cmd.exe', '/d', '/s', '/c', command] : ['/bin/sh', '-c', command]
  const [file = '', ...args] = isSandboxed ? bubblewrapCommand(folder, shell) : shell
  const tree = spawnTree(file, args, {
    cwd: folder,
    env: environmentOf(options),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  return { tree, sandbox: isSandboxed ? 'bubblewrap' : 'none' }
}

/** One command, from its start until all its processes have exited. */
class CommandRun {
  readonly #output = new BoundedOutput(MAX_OUTPUT_BYTES)
  #stopReason: string | undefined

  readonly #tree: ProcessTree
  readonly #limitMs: number
  readonly #signal: AbortSignal

  constructor(tree: ProcessTree, limitMs: number, signal: AbortSignal) {
    this.#tree = tree
    this.#limitMs = limitMs
    this.#signal = signal
  }

  async result() {
    const { child } = this.#tree
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', chunk => this.#take(chunk))
    const timer = setTimeout(
      () => this.#stop(`The command did not end within ${this.#limitMs} ms`),
      timerMs(this.#limitMs),
    )
    const aborted = () => this.#stop('The run was stopped')
    this.#signal.addEventListener('abort', aborted, { once: true })
    if (this.#signal.aborted) aborted()
    try {
      const { code, signal } = await this.#ended()
      const reason = this.#stopReason
      return {
        ...(reason ? { error: `${reason}. The command was killed, with everything it had started.` } : {}),
        exitCode: code,
        ...(signal && !reason ? { signal } : {}),
        output: this.#output.text(),
      }
    } finally {
      clearTimeout(timer)
      this.#signal.removeEventListener('abort', aborted)
    }
  }

  #take(chunk: Buffer): void {
    this.#output.add(chunk)
    if (this.#output.totalBytes > RUNAWAY_BYTES && !this.#stopReason) {
      this.#stopReason = `The command wrote more than ${RUNAWAY_BYTES} bytes`
      this.#tree.kill()
    }
  }

  /** SIGTERM first, then SIGKILL. */
  #stop(reason: string): void {
    if (this.#stopReason) return
    this.#stopReason = reason
    this.#tree.signal('SIGTERM')
    setTimeout(() => this.#tree.kill(), GRACE_MS)
  }

  /** Waits for the command, kills the processes it left, then reads the rest of the output. */
  async #ended(): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
    const { child } = this.#tree
    const closed = new Promise<void>(resolve => child.once('close', () => resolve()))
    const end = await new Promise<{ code: number | null; signal: NodeJS.Signals | null }>(
      (resolve, reject) => {
        child.once('error', reject)
        child.once('exit', (code, signal) => resolve({ code, signal }))
      },
    )
    await within(closed, DRAIN_MS)
    this.#tree.kill()
    await within(closed, GRACE_MS)
    child.stdout?.destroy()
    child.stderr?.destroy()
    return end
  }
}

/** How long the output of a command may take to arrive after its exit. */
const DRAIN_MS = 100

async function within(promise: Promise<void>, timeoutMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>(resolve => {
    timer = setTimeout(resolve, timeoutMs)
  })
  await Promise.race([promise, late])
  clearTimeout(timer)
}

/** The beginning and the end of an output of any length, in bounded memory. */
export class BoundedOutput {
  readonly #halfBytes: number
  #head = Buffer.alloc(0)
  #tail = Buffer.alloc(0)
  #total = 0

  constructor(maxBytes: number) {
    this.#halfBytes = Math.floor(maxBytes / 2)
  }

  get totalBytes(): number {
    return this.#total
  }

  add(chunk: Buffer): void {
    this.#total += chunk.length
    const room = this.#halfBytes - this.#head.length
    if (room > 0) this.#head = Buffer.concat([this.#head, chunk.subarray(0, room)])
    if (chunk.length <= room) return
    const rest = chunk.subarray(Math.max(0, room))
    // A copy, so that the end of a large chunk does not keep all of it alive.
    this.#tail = Buffer.from(Buffer.concat([this.#tail, rest]).subarray(-this.#halfBytes))
  }

  text(): string {
    const left = this.#total - this.#head.length - this.#tail.length
    if (left === 0) return Buffer.concat([this.#head, this.#tail]).toString('utf8')
    // Characters that the cut splits are dropped.
    const head = new StringDecoder('utf8').write(this.#head)
    const start = this.#tail.findIndex(byte => (byte & 0xc0) !== 0x80)
    const tail = this.#tail.subarray(Math.max(0, start)).toString('utf8')
    return `${head}… [shortened by Lango: ${left} of ${this.#total} bytes left out] …${tail}`
  }
}
