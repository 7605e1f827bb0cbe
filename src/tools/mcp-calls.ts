/**
 * The calls that a server executes at the moment, and what it may ask while it does: a person (elicitation), the model
 * of the run (sampling), and the folders that it may use (roots). The protocol does not say which call a request belongs
 * to. Over HTTP it arrives on the stream of its call; a process has one stream for all, so that a request is answered
 * there only when all calls are of one session.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { pathToFileURL } from 'node:url'
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import type {
  ClientCapabilities,
  CreateMessageRequest,
  ElicitRequest,
} from '@modelcontextprotocol/sdk/types.js'
import { isRecord } from '../base/is-record.js'
import type { mcpResult } from '../base/mcp-result.js'
import { timerMs } from '../base/timer-ms.js'
import { AgentError, messageOf } from '../errors.js'
import type { Logger } from '../logger.js'
import type { ToolContext } from '../tool.js'
import { loginCommand } from './mcp-login.js'

/** What a server asks a person. `schema` is the form; without one there is an address to open, or nothing to fill in. */
export interface McpQuestion {
  readonly server: string
  readonly tool: string
  readonly message: string
  readonly schema?: Readonly<Record<string, unknown>>
  readonly url?: string
}

export interface McpAnswer {
  readonly action: 'accept' | 'decline' | 'cancel'
  readonly content?: Record<string, string | number | boolean | string[]>
}

/** What a server asks the model of the run. */
export type McpPrompt = CreateMessageRequest['params']

export interface McpCompletion {
  readonly text: string
  readonly model: string
  readonly stopReason: string
}

/** Answers what servers ask during a call. What is absent is not offered to them. */
export interface McpHost {
  ask?: ((question: McpQuestion, context: ToolContext) => Promise<McpAnswer>) | undefined
  complete?: ((prompt: McpPrompt, context: ToolContext) => Promise<McpCompletion>) | undefined
}

export interface CallLimits {
  /** Without progress. */
  readonly timeoutMs: number
  /** In all. */
  readonly maxTimeoutMs: number
}

export interface McpCallsOptions extends McpHost {
  readonly server: string
  readonly logger: Logger
  readonly roots?: readonly string[] | undefined
}

export class McpCalls {
  readonly #options: McpCallsOptions
  readonly #active = new Set<ActiveCall>()
  readonly #current = new AsyncLocalStorage<ActiveCall>()

  constructor(options: McpCallsOptions) {
    this.#options = options
  }

  get capabilities(): ClientCapabilities {
    const { ask, complete, roots } = this.#options
    return {
      ...(ask ? { elicitation: { form: {}, url: {} } } : {}),
      ...(complete ? { sampling: {} } : {}),
      ...(roots ? { roots: {} } : {}),
    }
  }

  /** Answers the requests of a connection. Before it is made: a server may ask at once. */
  async serve(client: Client): Promise<void> {
    const types = await import('@modelcontextprotocol/sdk/types.js')
    const { ask, complete, roots } = this.#options
    if (ask)
      client.setRequestHandler(types.ElicitRequestSchema, async ({ params }) => ({
        ...(await this.#elicited(params, ask)),
      }))
    if (complete)
      client.setRequestHandler(types.CreateMessageRequestSchema, async ({ params }) => {
        const call = this.#callOf('sampling')
        if (!call) throw new AgentError('invalid-argument', 'No call of one session is being executed.')
        const { text, ...rest } = await call.waiting(() => complete(params, call.waitingContext))
        return { role: 'assistant' as const, content: { type: 'text' as const, text }, ...rest }
      })
    if (roots)
      client.setRequestHandler(types.ListRootsRequestSchema, () => ({
        roots: roots.map(root => ({ uri: pathToFileURL(root).href, name: root })),
      }))
  }

  /** Executes a call under its limits. */
  async run<Answer>(
    tool: string,
    context: ToolContext,
    limits: CallLimits,
    work: (call: ActiveCall) => Promise<Answer>,
  ): Promise<Answer> {
    const call = new ActiveCall(tool, context, limits)
    this.#active.add(call)
    try {
      return await this.#current.run(call, () => work(call))
    } finally {
      this.#active.delete(call)
      call.end()
    }
  }

  /**
   * The pages that a server wants to be opened before it executes a call (error -32042): whether somebody has opened all of
   * them. The call was not executed.
   */
  async pagesOpened(call: ActiveCall, error: unknown): Promise<boolean> {
    const { ask, server } = this.#options
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    const data = error instanceof Error && 'data' in error ? error.data : undefined
    const pages = isRecord(data) && Array.isArray(data.elicitations) ? (data.elicitations as unknown[]) : []
    if (code !== PAGE_REQUIRED || !ask || pages.length === 0 || pages.length > MOST_PAGES) return false
    for (const page of pages) {
      if (!isRecord(page) || typeof page.url !== 'string') return false
      const message = typeof page.message === 'string' ? page.message : 'Open this page.'
      const question = { server, tool: call.tool, message, url: page.url }
      const { action } = await call.waiting(() => ask(question, call.waitingContext))
      if (action !== 'accept') return false
    }
    return true
  }

  async #elicited(params: ElicitRequest['params'], ask: NonNullable<McpHost['ask']>): Promise<McpAnswer> {
    const { server, logger } = this.#options
    const call = this.#callOf('elicitation')
    if (!call) return { action: 'cancel' }
    const { message } = params
    const form = 'requestedSchema' in params ? { schema: { ...params.requestedSchema } } : {}
    const page = 'url' in params ? { url: params.url } : {}
    try {
      const question = { server, tool: call.tool, message, ...form, ...page }
      return await call.waiting(() => ask(question, call.waitingContext))
    } catch (error) {
      logger.warn('A question of an MCP server was not answered', { server, error: messageOf(error) })
      return { action: 'cancel' }
    }
  }

  /** The call that a request belongs to; `undefined` when that is not certain. */
  #callOf(request: string): ActiveCall | undefined {
    const own = this.#current.getStore()
    if (own && this.#active.has(own)) return own
    const active = [...this.#active]
    const owners = new Set(active.map(({ context }) => JSON.stringify([context.userId, context.sessionId])))
    if (owners.size === 1) return active.at(-1)
    const { server, logger } = this.#options
    logger.warn('A request of an MCP server belongs to no call, and was refused', {
      server,
      request,
      sessions: owners.size,
    })
    return undefined
  }
}

const PAGE_REQUIRED = -32042
const MOST_PAGES = 5

/**
 * Sends a call. A tool that is a task (the protocol's experimental long-running form) is followed to its result: each of its
 * reports counts as progress, and it is cancelled with the call.
 */
export async function sendCall(
  client: Client,
  call: ActiveCall,
  args: Record<string, unknown>,
  isTask: boolean,
): Promise<Parameters<typeof mcpResult>[0]> {
  const { tool, signal } = call
  const params = { name: tool, arguments: args }
  // The call has its own clock, which stands still while the server asks somebody.
  const limits = { signal, timeout: LONGEST_MS, onprogress: () => call.progressed() }
  if (!isTask) return client.callTool(params, undefined, limits)
  const { tasks } = client.experimental
  let taskId: string | undefined
  try {
    for await (const message of tasks.callToolStream(params, undefined, { ...limits, task: {} })) {
      call.progressed()
      if (message.type === 'taskCreated') taskId = message.task.taskId
      if (message.type === 'error') throw message.error
      if (message.type !== 'result') continue
      taskId = undefined
      return message.result
    }
  } finally {
    if (taskId !== undefined) void tasks.cancelTask(taskId, { timeout: CANCEL_MS }).catch(() => {})
  }
  throw new AgentError('internal', `The task of "${tool}" has ended without a result.`)
}

const LONGEST_MS = 2 ** 31 - 1
const CANCEL_MS = 5_000

/** A call that is being executed. Progress extends its time; while it waits for others, its time stands still. */
export class ActiveCall {
  readonly tool: string
  readonly context: ToolContext
  readonly #limits: CallLimits
  readonly #over = new AbortController()
  readonly #inContext = AsyncLocalStorage.snapshot()
  readonly #whole: NodeJS.Timeout
  #timer: NodeJS.Timeout | undefined
  #waits = 0
  #timedOut: string | undefined

  constructor(tool: string, context: ToolContext, limits: CallLimits) {
    this.tool = tool
    this.context = context
    this.#limits = limits
    const { maxTimeoutMs } = limits
    this.#whole = setTimeout(() => this.#stop(`timed out after ${maxTimeoutMs} ms`), timerMs(maxTimeoutMs))
    this.progressed()
  }

  /** Aborted when the run is stopped or the time is up. */
  get signal(): AbortSignal {
    return AbortSignal.any([this.context.signal, this.#over.signal])
  }

  /** For what the call waits for: it ends with the call. */
  get waitingContext(): ToolContext {
    return { ...this.context, signal: this.signal }
  }

  /** Why the call was ended, if its time was up. */
  get timedOut(): string | undefined {
    return this.#timedOut
  }

  progressed(): void {
    clearTimeout(this.#timer)
    if (this.#waits > 0 || this.#over.signal.aborted) return
    const { timeoutMs } = this.#limits
    this.#timer = setTimeout(
      () => this.#stop(`timed out after ${timeoutMs} ms without an answer or progress`),
      timerMs(timeoutMs),
    )
  }

  /** Does work that the call waits for, in the run that made the call. */
  async waiting<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#waits += 1
    clearTimeout(this.#timer)
    const { signal } = this
    const stopped = new Promise<never>((_, reject) => {
      const stop = () => reject(new AgentError('aborted', 'The call has ended.'))
      if (signal.aborted) stop()
      else signal.addEventListener('abort', stop, { once: true })
    })
    try {
      return await Promise.race([this.#inContext(work), stopped])
    } finally {
      this.#waits -= 1
      this.progressed()
    }
  }

  end(): void {
    clearTimeout(this.#timer)
    clearTimeout(this.#whole)
    this.#over.abort()
  }

  #stop(why: string): void {
    this.#timedOut = why
    this.end()
  }
}

/** Why there is no connection, in words that say what to do where that is known. */
export function problemOf(error: unknown, server: string): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  const words = messageOf(error)
  if (code === 401 || code === 403)
    return `It refuses the credentials (HTTP ${code}). Run ${loginCommand(server)}, or set \`headers\` of the server. ${words}`
  const cause = error instanceof Error && error.cause !== undefined ? ` (${messageOf(error.cause)})` : ''
  // Errors that the server itself returned have negative codes.
  const status = typeof code === 'number' && code >= 400 ? ` (HTTP ${code})` : ''
  return `${words}${status}${cause}`
}
