/** `lango acp`: the Agent Client Protocol on standard input and output, for editors. */

import { randomUUID } from 'node:crypto'
import { Readable, Writable } from 'node:stream'
import type {
  AgentApp,
  AgentContext,
  ClientCapabilities,
  InitializeResponse,
  ListSessionsResponse,
  McpServer,
  SessionConfigOption,
  SessionModeState,
} from '@agentclientprotocol/sdk'
import { THINKING_LEVELS } from '../../base/names.js'
import { AgentError, messageOf } from '../../errors.js'
import { loadOptional } from '../../packages.js'
import type { Flags } from '../command.js'
import { type Io, pathOf } from '../io.js'
import { takeOutput, untilClosed } from '../protocol-stdio.js'
import { version } from '../version.js'
import { AcpFolders } from './acp-folders.js'
import { AcpSession } from './acp-session.js'

type Sdk = typeof import('@agentclientprotocol/sdk')

/** Serves one editor until it closes standard input, or until a signal. Unfinished runs are handed over. */
export async function acp(io: Io, flags: Flags): Promise<number> {
  const output = takeOutput(io)
  const sdk = await loadOptional('acp', () => import('@agentclientprotocol/sdk'))
  const agent = new AcpAgent(io, sdk, flags)
  const stream = sdk.ndJsonStream(
    Writable.toWeb(output),
    // Node's type and that of the SDK describe the same stream.
    Readable.toWeb(io.stdin) as ReadableStream<Uint8Array>,
  )
  const connection = agent.app().connect(stream)
  try {
    await Promise.race([connection.closed, untilClosed(io)])
    return 0
  } finally {
    connection.close()
    await agent.close()
    io.stdin.destroy()
  }
}

interface OpenRequest {
  cwd: string
  mcpServers?: McpServer[] | undefined
  additionalDirectories?: string[] | undefined
}

/** The value of an option that leaves the choice to the agent. */
const DEFAULT = 'default'

const MODES = [
  { id: 'ask', name: 'Ask', description: 'Asks before calls that need approval' },
  { id: 'allow', name: 'Allow all', description: 'Allows every call without asking' },
]

class AcpAgent {
  readonly #io: Io
  readonly #sdk: Sdk
  readonly #userId: string
  readonly #folders: AcpFolders
  readonly #sessions = new Map<string, AcpSession>()
  readonly #ended = new AbortController()
  #capabilities: ClientCapabilities = {}

  constructor(io: Io, sdk: Sdk, flags: Flags) {
    this.#io = io
    this.#sdk = sdk
    this.#userId = flags.user ?? 'user'
    const { config, agent } = flags
    const here = {
      ...flags,
      ...(config === undefined ? {} : { config: pathOf(io, config) }),
      ...(agent === undefined ? {} : { agent: pathOf(io, agent) }),
    }
    this.#folders = new AcpFolders(io, here, {
      read: async (path, { sessionId }) => this.#sessions.get(sessionId)?.readFile(path),
      write: async (path, text, { sessionId }) =>
        (await this.#sessions.get(sessionId)?.writeFile(path, text)) ?? false,
    })
  }

  app(): AgentApp {
    const of = <Params, Result>(work: (params: Params, client: AgentContext) => Promise<Result>) => {
      return async ({ params, client }: { params: Params; client: AgentContext }): Promise<Result> => {
        try {
          return await work(params, client)
        } catch (error) {
          throw this.#asProtocolError(error)
        }
      }
    }
    return this.#sdk
      .agent({ name: 'lango' })
      .onRequest(
        'initialize',
        of(async ({ clientCapabilities }) => this.#initialize(clientCapabilities)),
      )
      .onRequest(
        'session/new',
        of((params, client) => this.#newSession(params, client)),
      )
      .onRequest(
        'session/load',
        of((params, client) => this.#load(params, client, true)),
      )
      .onRequest(
        'session/resume',
        of((params, client) => this.#load(params, client, false)),
      )
      .onRequest(
        'session/list',
        of(params => this.#list(params)),
      )
      .onRequest(
        'session/prompt',
        of(({ sessionId, prompt }) => this.#find(sessionId).prompt(prompt)),
      )
      .onRequest(
        'session/close',
        of(async ({ sessionId }) => this.#close(sessionId)),
      )
      .onRequest(
        'session/delete',
        of(async ({ sessionId }) => this.#delete(sessionId)),
      )
      .onRequest(
        'session/set_mode',
        of(async ({ sessionId, modeId }) => this.#setMode(sessionId, modeId)),
      )
      .onRequest(
        'session/set_config_option',
        of(({ sessionId, configId, value }) => this.#setOption(sessionId, configId, value)),
      )
      .onNotification('session/cancel', async ({ params }) => this.#sessions.get(params.sessionId)?.cancel())
  }

  async close(): Promise<void> {
    this.#ended.abort()
    await this.#folders.close()
  }

  #initialize(capabilities: ClientCapabilities = {}): InitializeResponse {
    this.#capabilities = capabilities
    return {
      protocolVersion: this.#sdk.PROTOCOL_VERSION,
      agentInfo: { name: 'lango', title: 'Lango', version: version() },
      agentCapabilities: {
        loadSession: true,
        promptCapabilities: { image: true, audio: true, embeddedContext: true },
        mcpCapabilities: { http: true, sse: false },
        sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {} },
      },
      authMethods: [],
    }
  }

  async #newSession(request: OpenRequest, client: AgentContext) {
    const session = await this.#open(randomUUID(), request, client)
    // The first prompt finds ADK loaded; what fails is said then.
    session.folder.runtime.ready().catch(() => {})
    return { sessionId: session.key.sessionId, ...(await this.#choices(session)) }
  }

  async #load(request: OpenRequest & { sessionId: string }, client: AgentContext, withHistory: boolean) {
    const { sessionId } = request
    const session = await this.#open(sessionId, request, client)
    const { store } = session.folder.runtime
    if (!(await store.describeSession(session.key))) {
      this.#sessions.delete(sessionId)
      throw this.#sdk.RequestError.sessionNotFound(sessionId)
    }
    await session.load({ withHistory })
    return this.#choices(session)
  }

  async #open(sessionId: string, request: OpenRequest, client: AgentContext): Promise<AcpSession> {
    const { cwd, mcpServers = [], additionalDirectories = [] } = request
    if (additionalDirectories.length > 0)
      throw new AgentError(
        'invalid-argument',
        'additionalDirectories are not supported: tools work in one folder. Open a session for each folder.',
      )
    const folder = await this.#folders.open(cwd, mcpServers)
    this.#sessions.get(sessionId)?.close()
    const session = new AcpSession({
      folder,
      key: { appName: folder.config.app, userId: this.#userId, sessionId },
      client,
      capabilities: this.#capabilities,
      signal: this.#ended.signal,
    })
    this.#sessions.set(sessionId, session)
    return session
  }

  async #list({
    cwd,
    cursor,
  }: {
    cwd?: string | null
    cursor?: string | null
  }): Promise<ListSessionsResponse> {
    const place = cwd ?? this.#io.cwd
    const { runtime, config } = await this.#folders.open(place, [])
    const query = { appName: config.app, userId: this.#userId, limit: 50, ...(cursor ? { cursor } : {}) }
    const { sessions, nextCursor } = await runtime.store.listSessions(query)
    const found = sessions.map(({ key, title, preview, updatedAt }) => ({
      sessionId: key.sessionId,
      cwd: place,
      title: title ?? preview ?? null,
      updatedAt: new Date(updatedAt).toISOString(),
    }))
    return { sessions: found, ...(nextCursor === undefined ? {} : { nextCursor }) }
  }

  async #close(sessionId: string): Promise<void> {
    const session = this.#find(sessionId)
    await session.cancel()
    session.close()
    this.#sessions.delete(sessionId)
  }

  /** Of an open session, or of one of this folder. */
  async #delete(sessionId: string): Promise<void> {
    const open = this.#sessions.get(sessionId)
    await open?.cancel()
    open?.close()
    this.#sessions.delete(sessionId)
    const { runtime, config } = open?.folder ?? (await this.#folders.open(this.#io.cwd, []))
    const key = { appName: config.app, userId: this.#userId, sessionId }
    if (!(await runtime.store.deleteSession(key)) && !open)
      throw this.#sdk.RequestError.sessionNotFound(sessionId)
  }

  #setMode(sessionId: string, modeId: string): void {
    const session = this.#find(sessionId)
    if (modeId !== 'ask' && modeId !== 'allow')
      throw unknownValue(
        'mode',
        modeId,
        MODES.map(({ id }) => id),
      )
    session.choices = { ...session.choices, mode: modeId }
  }

  async #setOption(sessionId: string, configId: string, value: string | boolean) {
    const session = this.#find(sessionId)
    const { configOptions } = await this.#choices(session)
    const option = configOptions.find(({ id }) => id === configId)
    if (option?.type !== 'select')
      throw unknownValue(
        'option',
        configId,
        configOptions.map(({ id }) => id),
      )
    const values = option.options.flatMap(choice => ('value' in choice ? [choice.value] : []))
    if (typeof value !== 'string' || !values.includes(value))
      throw unknownValue(configId, String(value), values)
    const chosen = value === DEFAULT ? undefined : value
    if (configId === 'mode') this.#setMode(sessionId, value)
    else if (configId === 'model') session.choices = { ...session.choices, model: chosen }
    else {
      const thinking = THINKING_LEVELS.find(level => level === chosen)
      session.choices = { ...session.choices, thinking }
    }
    return { configOptions: (await this.#choices(session)).configOptions }
  }

  /** What can be chosen for a session, and what is. Clients know modes as an option, or by themselves. */
  async #choices({ folder, choices }: AcpSession): Promise<{
    modes: SessionModeState
    configOptions: SessionConfigOption[]
  }> {
    const { runtime } = folder
    const [{ model }, models] = await Promise.all([runtime.info(), runtime.models()])
    const own = model === '' ? 'the model of the agent' : model
    const usable = models.filter(({ keyPresent }) => keyPresent).map(({ reference }) => reference)
    const named = (values: readonly string[]) => values.map(value => ({ value, name: value }))
    return {
      modes: { currentModeId: choices.mode, availableModes: MODES },
      configOptions: [
        {
          ...select('mode', 'Mode', choices.mode),
          options: MODES.map(({ id, ...mode }) => ({ value: id, ...mode })),
        },
        {
          ...select('model', 'Model', choices.model ?? DEFAULT),
          options: [{ value: DEFAULT, name: `Default (${own})` }, ...named(usable)],
        },
        {
          ...select('thinking', 'Thinking', choices.thinking ?? DEFAULT),
          category: 'thought_level',
          options: [{ value: DEFAULT, name: 'Default' }, ...named(THINKING_LEVELS)],
        },
      ],
    }
  }

  #find(sessionId: string): AcpSession {
    const session = this.#sessions.get(sessionId)
    if (!session) throw this.#sdk.RequestError.sessionNotFound(sessionId)
    return session
  }

  #asProtocolError(error: unknown): Error {
    const { RequestError } = this.#sdk
    if (error instanceof RequestError) return error
    const { code, retryable = false } = (error ?? {}) as Partial<AgentError>
    const isInput = code === 'invalid-argument' || code === 'invalid-config'
    return new RequestError(isInput ? -32602 : -32603, messageOf(error), {
      code: code ?? 'internal',
      retryable,
    })
  }
}

function select(id: string, name: string, currentValue: string) {
  return { type: 'select' as const, id, name, category: id, currentValue }
}

function unknownValue(what: string, value: string, known: readonly string[]): AgentError {
  return new AgentError(
    'invalid-argument',
    `There is no ${what} "${value}". Use one of: ${known.join(', ')}.`,
  )
}
