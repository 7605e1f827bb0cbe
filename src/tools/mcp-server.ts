import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { defined } from '../base/defined.js'
import { mcpResult } from '../base/mcp-result.js'
import { AgentError } from '../errors.js'
import type { Logger } from '../logger.js'
import type { JsonSchema, ToolContext } from '../tool.js'
import { type ActiveCall, type CallLimits, McpCalls, type McpHost, problemOf, sendCall } from './mcp-calls.js'
import { httpTransport, type McpLogins, type McpUrl } from './mcp-login.js'
import { type McpProcess, processTransport } from './mcp-process.js'

/** A tool as its server describes it. */
export interface McpToolFacts {
  readonly name: string
  readonly description: string
  readonly inputSchema: JsonSchema
  readonly readOnly: boolean
  readonly idempotent: boolean
  /** It is executed only as a task. */
  readonly isTask: boolean
}

export interface McpServerStatus {
  readonly name: string
  readonly state: 'starting' | 'ready' | 'restarting' | 'failed' | 'closed'
  readonly tools: number
  /** Why it is not ready, with the last lines of its stderr: for people, not for programs. */
  readonly problem?: string
}

export interface McpServerOptions extends McpHost {
  readonly logger: Logger
  /** Logins to servers with an address. */
  readonly logins?: McpLogins | undefined
  /** Folders that the server may use. */
  readonly roots?: readonly string[] | undefined
  readonly startTimeoutMs: number
  /** Doubles with every attempt. */
  readonly restartDelayMs: number
  /** Between the attempts after that. */
  readonly retryDelayMs: number
}

const MAX_RESTARTS = 5

/**
 * One server. After a crash it is restarted with a growing delay, five times in a row; a successful call resets the
 * count. After that it is failed and tried again every half minute, and when somebody needs it. A call never throws: a
 * failure is a result.
 */
export class McpServer {
  #client: Client | undefined
  #tools: readonly McpToolFacts[] = []
  #state: McpServerStatus['state'] = 'starting'
  #problem: string | undefined
  #restarts = 0
  #isChecking = false
  #hasListed = false
  /** Counts the requests for the tools: an answer that a later one has overtaken does not count. */
  #listings = 0
  #listed = 0
  #triedAt = 0
  #later: NodeJS.Timeout | undefined
  #coming: Promise<void> | undefined
  #lastLines: string[] = []
  readonly #closing = new AbortController()

  readonly #source: McpProcess | McpUrl
  readonly #options: McpServerOptions
  readonly #calls: McpCalls
  readonly name: string

  constructor(name: string, source: McpProcess | McpUrl, options: McpServerOptions) {
    this.name = name
    this.#source = source
    this.#options = options
    this.#calls = new McpCalls({ server: name, ...options })
  }

  get tools(): readonly McpToolFacts[] {
    return this.#tools
  }

  /** Whether the server was ever available: its tools are known then, even while it is restarted. */
  get hasListed(): boolean {
    return this.#hasListed
  }

  /** Tries a server that was never available once more, and waits a moment for it; not with every model call. */
  async refresh(signal: AbortSignal): Promise<void> {
    if (this.#hasListed || Date.now() - this.#triedAt < REFRESH_MS) return
    this.#triedAt = Date.now()
    await Promise.race([this.#ready(signal), pause(REFRESH_WAIT_MS, signal)])
  }

  get status(): McpServerStatus {
    const problem = this.#problem && this.#problem + this.#lastOutput()
    return { name: this.name, state: this.#state, tools: this.#tools.length, ...defined({ problem }) }
  }

  /** Connects for the first time. A failure is reported and retried like a crash. */
  async start(): Promise<void> {
    try {
      await this.#connect()
    } catch (error) {
      this.#failed(error)
    }
  }

  call(
    tool: string,
    args: Record<string, unknown>,
    context: ToolContext,
    limits: CallLimits,
  ): Promise<unknown> {
    return this.#calls.run(tool, context, limits, call => this.#execute(call, args))
  }

  async #execute(call: ActiveCall, args: Record<string, unknown>): Promise<unknown> {
    const { tool, signal } = call
    for (let attempt = 1; ; attempt++) {
      const client = await this.#ready(signal)
      if (!client) return { error: this.#unavailable(tool) }
      const facts = this.#tools.find(({ name }) => name === tool)
      if (!facts) return { error: this.#removed(tool) }
      try {
        const answer = await sendCall(client, call, args, facts.isTask)
        this.#restarts = 0
        return mcpResult(answer)
      } catch (error) {
        if (attempt === 1 && (await this.#calls.pagesOpened(call, error).catch(() => false))) continue
        if (call.timedOut) return { error: `MCP server "${this.name}": "${tool}" ${call.timedOut}.` }
        if (signal.aborted) return { error: `The call of "${tool}" was stopped.` }
        const fate = await this.#fateOf(client, error)
        // The server does not know the session and did not run the call: it is safe to repeat it.
        if (fate === 'forgotten' && attempt === 1) continue
        return {
          error:
            fate === 'lost'
              ? this.#exitedDuring(tool)
              : `MCP server "${this.name}": ${problemOf(error, this.name)}`,
        }
      }
    }
  }

  async close(): Promise<void> {
    this.#state = 'closed'
    this.#closing.abort()
    clearTimeout(this.#later)
    const client = this.#client
    this.#client = undefined
    await this.#coming?.catch(() => {})
    if (client) await endClient(client)
  }

  async #connect(): Promise<void> {
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js')
    const { ToolListChangedNotificationSchema } = await import('@modelcontextprotocol/sdk/types.js')
    const { capabilities } = this.#calls
    const client = new Client({ name: 'lango', version: '0.1.0' }, { capabilities })
    await this.#calls.serve(client)
    let isOver = false
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => this.#list(client))
    client.onerror = error => this.#noticed(client, error)
    client.onclose = () => {
      isOver = true
      this.#lost(client)
    }
    try {
      await client.connect(await this.#transport(), this.#limits())
      await this.#list(client)
    } catch (error) {
      await endClient(client)
      throw error
    }
    if (this.#closing.signal.aborted) return endClient(client)
    if (isOver) throw new AgentError('internal', 'The server exited immediately.')
    this.#client = client
    this.#state = 'ready'
    this.#problem = undefined
  }

  /** Lists the tools, when the server is connected and whenever it says that they have changed. */
  async #list(client: Client): Promise<void> {
    this.#listings += 1
    const listing = this.#listings
    const tools = await listTools(client, () => this.#limits())
    if (listing < this.#listed) return
    this.#listed = listing
    this.#tools = tools
    this.#hasListed = true
  }

  /** A separate signal for each request: the SDK never removes its listeners. */
  #limits(): RequestLimits {
    return { timeout: this.#options.startTimeoutMs, signal: AbortSignal.any([this.#closing.signal]) }
  }

  async #transport(): Promise<Transport> {
    if (!('url' in this.#source)) return processTransport(this.#source, line => this.#onLine(line))
    return httpTransport(this.name, this.#source, this.#options.logins)
  }

  /** The connection, awaited while the server is being restarted; `undefined` when there is none. */
  async #ready(signal: AbortSignal): Promise<Client | undefined> {
    if (this.#state === 'failed' && !this.#coming) this.#await(this.#tryAgain())
    if (!this.#client && this.#coming) await Promise.race([this.#coming, aborted(signal)])
    return this.#client
  }

  async #tryAgain(): Promise<void> {
    try {
      await this.#connect()
      this.#options.logger.info('MCP server is available', { server: this.name })
    } catch (error) {
      this.#problem = problemOf(error, this.name)
    }
  }

  /** A server that is down or refuses its token may come at any time; nobody calls tools that are not known. */
  #tryLater(): void {
    this.#later = setTimeout(() => {
      if (this.#state !== 'failed') return
      if (!this.#coming) this.#await(this.#tryAgain())
      this.#tryLater()
    }, this.#options.retryDelayMs)
    this.#later.unref()
  }

  /** Calls wait for the pending connection until it succeeds or fails. */
  #await(coming: Promise<void>): void {
    this.#coming = coming.finally(() => {
      if (this.#coming === mine) this.#coming = undefined
    })
    const mine = this.#coming
  }

  #lost(client: Client): void {
    if (this.#client !== client) return
    this.#client = undefined
    this.#failed(new AgentError('internal', 'The server exited.'))
  }

  #failed(error: unknown): void {
    if (this.#state === 'closed') return
    this.#problem = problemOf(error, this.name)
    this.#state = 'restarting'
    this.#options.logger.warn('MCP server is not available', { server: this.name, problem: this.#problem })
    this.#await(this.#restart())
  }

  async #restart(): Promise<void> {
    while (this.#restarts < MAX_RESTARTS && !this.#closing.signal.aborted) {
      await pause(this.#options.restartDelayMs * 2 ** this.#restarts, this.#closing.signal)
      this.#restarts++
      if (this.#closing.signal.aborted) return
      try {
        await this.#connect()
        this.#options.logger.info('MCP server restarted', { server: this.name })
        return
      } catch (error) {
        this.#problem = problemOf(error, this.name)
      }
    }
    if (this.#closing.signal.aborted) return
    this.#state = 'failed'
    const facts = { server: this.name, problem: this.#problem, attempts: this.#restarts }
    this.#options.logger.error('MCP server failed, tried again later', facts)
    this.#tryLater()
  }

  /** What a failed call means for the connection. */
  async #fateOf(client: Client, error: unknown): Promise<'fine' | 'lost' | 'forgotten'> {
    if (this.#client !== client) return 'lost'
    if (!('url' in this.#source)) return 'fine'
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    const isForgotten = code === 404 || (code === 400 && client.transport?.sessionId !== undefined)
    // Errors that the server itself returned have negative codes; without a login nothing was sent.
    if (!isForgotten && (typeof code === 'number' || error instanceof AgentError)) return 'fine'
    await endClient(client)
    this.#lost(client)
    return isForgotten ? 'forgotten' : 'lost'
  }

  /** A broken stream may mean that the HTTP server is gone: pending calls would wait for their timeout. */
  #noticed(client: Client, error: Error): void {
    this.#options.logger.debug('MCP connection error', { server: this.name, problem: error.message })
    if (!('url' in this.#source) || this.#client !== client || this.#isChecking) return
    // A failing check reports an error, too, and must not start another check.
    this.#isChecking = true
    client
      .ping({ timeout: PING_TIMEOUT_MS })
      .catch(() => endClient(client).then(() => this.#lost(client)))
      .finally(() => {
        this.#isChecking = false
      })
  }

  #onLine(line: string): void {
    const text = line.slice(0, MAX_LINE_CHARACTERS)
    this.#lastLines = [...this.#lastLines, text].slice(-5)
    this.#options.logger.debug('MCP server output', { server: this.name, line: text })
  }

  #lastOutput(): string {
    return this.#lastLines.length > 0 ? ` Its last output: ${this.#lastLines.join(' | ')}` : ''
  }

  #exitedDuring(tool: string): string {
    return `MCP server "${this.name}" exited while "${tool}" was running. Whether the call had an effect is unknown.`
  }

  #removed(tool: string): string {
    const names = this.#tools.map(({ name }) => name).join(', ')
    return `"${tool}" was not run: MCP server "${this.name}" does not offer it any more. It offers: ${names || 'nothing'}.`
  }

  #unavailable(tool: string): string {
    return `"${tool}" was not run: MCP server "${this.name}" is not available (${this.#problem ?? this.#state}).`
  }
}

const MAX_LINE_CHARACTERS = 1_000
const MAX_PAGES = 50
const PING_TIMEOUT_MS = 5_000
const REFRESH_MS = 10_000
const REFRESH_WAIT_MS = 1_000
const END_TIMEOUT_MS = 10_000

interface RequestLimits {
  timeout: number
  signal: AbortSignal
}

async function listTools(client: Client, limits: () => RequestLimits): Promise<McpToolFacts[]> {
  // A server may have prompts and resources alone.
  if (!client.getServerCapabilities()?.tools) return []
  const facts: McpToolFacts[] = []
  let cursor: string | undefined
  for (let page = 0; page < MAX_PAGES; page++) {
    const { tools, nextCursor } = await client.listTools(defined({ cursor }), limits())
    for (const { name, description, title, inputSchema, annotations = {}, execution } of tools) {
      const { readOnlyHint: readOnly = false, idempotentHint: idempotent = false } = annotations
      const isTask = execution?.taskSupport === 'required'
      facts.push({
        name,
        description: description ?? title ?? name,
        inputSchema,
        readOnly,
        idempotent,
        isTask,
      })
    }
    if (nextCursor === undefined) break
    cursor = nextCursor
  }
  return facts
}

/** Terminates the session if there is one, and closes, each with a timeout. */
async function endClient(client: Client): Promise<void> {
  const { transport } = client
  if (transport && 'terminateSession' in transport) {
    const terminate = (transport as Transport & { terminateSession(): Promise<void> }).terminateSession()
    await Promise.race([terminate.catch(() => {}), pause(1_000)])
  }
  await Promise.race([client.close().catch(() => {}), pause(END_TIMEOUT_MS)])
}

function pause(timeoutMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    const timer = setTimeout(done, timeoutMs)
    timer.unref()
    function done() {
      clearTimeout(timer)
      signal?.removeEventListener('abort', done)
      resolve()
    }
    signal?.addEventListener('abort', done, { once: true })
    if (signal?.aborted) done()
  })
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
