import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js'
import { defined } from '../base/defined.js'
import { AgentError, messageOf } from '../errors.js'
import { type ProcessTree, spawnTree } from './process-tree.js'

export interface McpProcess {
  /** The program that speaks MCP over its standard input and output. */
  command: string
  args?: readonly string[] | undefined
  /** Added to the reduced environment that it gets. */
  env?: Readonly<Record<string, string>> | undefined
  cwd?: string | undefined
}

/**
 * The transport to a server in a child process. The SDK's own ends only the process that it started: a server
 * started by a launcher (`npx`, a shell) would keep running.
 */
export async function processTransport(
  server: McpProcess,
  onLine: (line: string) => void,
): Promise<Transport> {
  const { ReadBuffer, serializeMessage } = await import('@modelcontextprotocol/sdk/shared/stdio.js')
  return new ProcessTransport(server, onLine, new ReadBuffer(), serializeMessage)
}

/** The SDK's parser of messages on a stream. */
interface MessageBuffer {
  append(chunk: Buffer): void
  readMessage(): JSONRPCMessage | null
}

class ProcessTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void
  #tree: ProcessTree | undefined
  #ended: Promise<void> = Promise.resolve()

  readonly #server: McpProcess
  readonly #onLine: (line: string) => void
  readonly #buffer: MessageBuffer
  readonly #serialize: (message: JSONRPCMessage) => string

  constructor(
    server: McpProcess,
    onLine: (line: string) => void,
    buffer: MessageBuffer,
    serialize: (message: JSONRPCMessage) => string,
  ) {
    this.#server = server
    this.#onLine = onLine
    this.#buffer = buffer
    this.#serialize = serialize
  }

  async start(): Promise<void> {
    const { command, args = [], env = {}, cwd } = this.#server
    const tree = spawnTree(command, args, {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: safeEnvironment(env),
      windowsHide: true,
      ...defined({ cwd }),
    })
    this.#tree = tree
    const { child } = tree
    child.stdin?.on('error', error => this.onerror?.(error))
    child.stdout?.on('data', chunk => this.#read(chunk))
    if (child.stderr)
      createInterface({ input: child.stderr as Readable }).on('line', line => this.#onLine(line))
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve)
      child.once('error', error => reject(notStarted(command, error)))
    })
    this.#ended = new Promise(resolve => {
      child.once('exit', () => this.#exited(tree).then(resolve, resolve))
    })
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#tree?.child.stdin
    if (!stdin?.writable) throw hasEnded()
    await new Promise<void>((resolve, reject) => {
      stdin.write(this.#serialize(message), error => (error ? reject(hasEnded(error)) : resolve()))
    })
  }

  /** Closes stdin, which asks a server to exit; then sends SIGTERM; then kills it with all its processes. */
  async close(): Promise<void> {
    const tree = this.#tree
    if (!tree) return
    tree.child.stdin?.end()
    if (await this.#endsWithin(GRACE_MS)) return
    tree.signal('SIGTERM')
    if (await this.#endsWithin(GRACE_MS)) return
    tree.kill()
    await this.#endsWithin(GRACE_MS)
  }

  async #exited(tree: ProcessTree): Promise<void> {
    // The last output of the server may still be in the pipe.
    await new Promise(resolve => setTimeout(resolve, DRAIN_MS))
    tree.kill()
    for (const stream of [tree.child.stdout, tree.child.stderr]) stream?.destroy()
    this.onclose?.()
  }

  async #endsWithin(timeoutMs: number): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<boolean>(resolve => {
      timer = setTimeout(() => resolve(false), timeoutMs)
    })
    const result = await Promise.race([this.#ended.then(() => true), late])
    clearTimeout(timer)
    return result
  }

  /** A line that is not a message (some servers print other text) is reported and skipped. */
  #read(chunk: Buffer): void {
    try {
      this.#buffer.append(chunk)
    } catch (error) {
      this.onerror?.(asError(error))
      this.#tree?.kill()
      return
    }
    for (;;) {
      try {
        const message = this.#buffer.readMessage()
        if (message === null) return
        this.onmessage?.(message)
      } catch (error) {
        this.onerror?.(asError(error))
      }
    }
  }
}

const GRACE_MS = 2_000
const DRAIN_MS = 50

function asError(error: unknown): Error {
  return error instanceof Error ? error : new AgentError('internal', messageOf(error))
}

function hasEnded(cause?: unknown): AgentError {
  return new AgentError('internal', 'The server has exited.', { cause })
}

function notStarted(command: string, cause: unknown): AgentError {
  return new AgentError('invalid-config', `Cannot start "${command}": ${messageOf(cause)}.`, {
    cause,
  })
}

/** Variables that programs need and that contain no secrets. */
const ALLOWED =
  /^(PATH|HOME|USER|USERNAME|LOGNAME|SHELL|LANG|LANGUAGE|LC_[A-Z]+|TERM|COLORTERM|TZ|TMPDIR|TEMP|TMP|EDITOR|PAGER|CI|NO_COLOR|FORCE_COLOR|XDG_[A-Z_]+|JAVA_HOME|GOPATH|GOROOT|CARGO_HOME|RUSTUP_HOME|NVM_DIR|NVM_BIN|VIRTUAL_ENV|PYTHONPATH|NODE_PATH|SYSTEMROOT|SYSTEMDRIVE|WINDIR|COMSPEC|PATHEXT|APPDATA|LOCALAPPDATA|PROGRAMFILES|USERPROFILE)$/i

/** Names that look like secrets are excluded even where the list above would allow them. */
const SECRET = /KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH|COOKIE|PRIVATE|SESSION_ID|DSN/i

/**
 * The environment for a program that a model may control: what programs need, and what the configuration adds.
 * API keys of this process are not included.
 */
export function safeEnvironment(
  added: Readonly<Record<string, string>> = {},
  from: NodeJS.ProcessEnv = process.env,
): Record<string, string> {
  const kept = Object.entries(from).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined &&
      ALLOWED.test(entry[0]) &&
      !SECRET.test(entry[0]) &&
      !entry[1].startsWith('()'),
  )
  return { ...Object.fromEntries(kept), ...added }
}
