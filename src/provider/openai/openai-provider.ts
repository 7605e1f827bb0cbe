/** OpenAI, and every server that speaks its language, through OpenAI's own SDK, loaded at the first request. */

import type OpenAI from 'openai'
import { own } from '../../base/own.js'
import { AgentError } from '../../errors.js'
import { describeModel } from '../model-catalog.js'
import type { GenerateRequest, ModelInfo, Provider } from '../provider.js'
import { missingKeyError, toProviderError } from '../provider-error.js'
import { type ProviderSettings, readVariable, secretsOf } from '../provider-settings.js'
import { type Profile, resolveProfile } from '../repair/profile.js'
import { loadSdk, streamAnswer, type Wire } from '../stream-answer.js'
import type { StreamEvent } from '../stream-event.js'
import { COMPATIBLE_SERVERS, chatQuirks } from './compatible-servers.js'
import { type ChatChunkWire, fromChatStream } from './from-chat-stream.js'
import { fromResponsesStream, type ResponsesEventWire } from './from-responses-stream.js'
import { isOpenAiModel } from './openai-models.js'
import { type ChatRequestWire, toChatRequest } from './to-chat-request.js'
import { type ResponsesRequestWire, toResponsesRequest } from './to-responses-request.js'

/** Speaks Responses to OpenAI's own models and Chat Completions to the rest. */
export class OpenAiProvider implements Provider {
  readonly id: string
  private client: { key: string | undefined; sdk: Promise<OpenAI> } | undefined

  constructor(private readonly settings: ProviderSettings) {
    this.id = settings.id
    const { type, preset, baseUrl } = settings
    if (preset !== undefined && !Object.hasOwn(COMPATIBLE_SERVERS, preset)) {
      const known = Object.keys(COMPATIBLE_SERVERS).join(', ')
      throw new AgentError('invalid-config', `There is no preset "${preset}". Use one of: ${known}.`)
    }
    if (type === 'openai-compatible' && preset === undefined && baseUrl === undefined) {
      throw new AgentError('invalid-config', `The provider "${this.id}" needs a baseUrl or a preset.`)
    }
  }

  generate(request: GenerateRequest, signal?: AbortSignal): AsyncIterable<StreamEvent> {
    const { id, retry, idleTimeoutMs } = this.settings
    const answer = { providerId: id, retry, idleTimeoutMs, secrets: secretsOf(this.settings, this.apiKey()) }
    return this.apiFor(request.model) === 'responses'
      ? streamAnswer(answer, request, signal, () => this.responsesWire(request.model))
      : streamAnswer(answer, request, signal, () => this.chatWire(request.model))
  }

  describeModel(model: string): ModelInfo {
    const { models, profile, preset, type } = this.settings
    const ownProfile = profile?.name ?? this.server()?.profile
    const windowLimit = this.windowLimit()
    return describeModel(preset ?? type, model, {
      models,
      api: this.apiFor(model),
      ...(ownProfile === undefined ? {} : { profile: ownProfile }),
      ...(windowLimit === undefined ? {} : { windowLimit }),
    })
  }

  async listModels(signal?: AbortSignal): Promise<ModelInfo[]> {
    const context = {
      provider: this.id,
      model: 'models',
      secrets: secretsOf(this.settings, this.apiKey()),
      signal,
    }
    try {
      const sdk = await this.connect('models')
      const found: ModelInfo[] = []
      for await (const model of sdk.models.list({ signal })) {
        found.push(this.describeModel(model.id))
        if (found.length >= 1000) break
      }
      return found
    } catch (error) {
      throw toProviderError(error, context)
    }
  }

  private chatWire(model: string): Wire<ChatRequestWire, ChatChunkWire> {
    const info = this.describeModel(model)
    const profile = this.profileOf(info)
    const quirks = chatQuirks(profile.name, this.settings.preset)
    return {
      vendor: profile.vendor,
      profile,
      info,
      toBody: prepared => toChatRequest(prepared, quirks),
      open: async (body, signal) => {
        const sdk = await this.connect(model)
        // Compatible servers take fields that the SDK's types do not know.
        const parameters = body as unknown as OpenAI.Chat.ChatCompletionCreateParamsStreaming
        return (await sdk.chat.completions.create(parameters, { signal })) as AsyncIterable<ChatChunkWire>
      },
      read: fromChatStream,
    }
  }

  private responsesWire(model: string): Wire<ResponsesRequestWire, ResponsesEventWire> {
    const info = this.describeModel(model)
    const profile = this.profileOf(info)
    return {
      vendor: profile.vendor,
      profile,
      info,
      toBody: toResponsesRequest,
      open: async (body, signal) => {
        const sdk = await this.connect(model)
        const parameters = body as unknown as OpenAI.Responses.ResponseCreateParamsStreaming
        return (await sdk.responses.create(parameters, { signal })) as AsyncIterable<ResponsesEventWire>
      },
      read: fromResponsesStream,
    }
  }

  private profileOf(info: ModelInfo): Profile {
    return this.settings.profile ?? resolveProfile(info.profile)
  }

  private apiFor(model: string): 'chat' | 'responses' {
    const { api, profile, type } = this.settings
    if (api !== undefined) return api
    if (profile !== undefined) return profile.name === 'openai-responses' ? 'responses' : 'chat'
    return type === 'openai' && isOpenAiModel(model) ? 'responses' : 'chat'
  }

  private connect(model: string): Promise<OpenAI> {
    const key = this.apiKey()
    const variable = this.keyVariable()
    if (key === undefined && variable !== undefined) {
      throw missingKeyError({ provider: this.id, model }, variable)
    }
    if (this.client === undefined || this.client.key !== key) this.client = { key, sdk: this.load(key) }
    return this.client.sdk
  }

  private async load(apiKey: string | undefined): Promise<OpenAI> {
    const { default: Client } = await loadSdk('openai', () => import('openai'))
    const { settings } = this
    // A stranger's server must not learn the account that the environment names.
    const account = settings.type === 'openai' ? {} : { organization: null, project: null }
    return new Client({
      // The SDK insists on a key; for a server that needs none its header is left out again.
      apiKey: apiKey ?? 'none',
      ...account,
      baseURL: this.baseUrl(),
      maxRetries: 0,
      timeout: settings.idleTimeoutMs,
      defaultHeaders: { ...(apiKey === undefined ? { authorization: null } : {}), ...settings.headers },
      logLevel: 'off',
      fetch: fetchWithNestedErrors,
    })
  }

  private baseUrl(): string {
    const { settings } = this
    if (settings.baseUrl !== undefined) return settings.baseUrl
    const server = this.server()
    if (server === undefined) return readVariable(settings, 'OPENAI_BASE_URL') ?? 'https://api.openai.com/v1'
    const host = server.hostVariable === undefined ? undefined : readVariable(settings, server.hostVariable)
    return host === undefined ? server.baseUrl : hostToUrl(host, server.baseUrl)
  }

  /** Ollama cuts long prompts silently at a length that only its own settings know. */
  private windowLimit(): number | undefined {
    if (this.settings.preset !== 'ollama') return undefined
    const said = Number(readVariable(this.settings, 'OLLAMA_CONTEXT_LENGTH'))
    return Number.isInteger(said) && said > 0 ? said : 8192
  }

  private server() {
    const { preset } = this.settings
    return preset === undefined ? undefined : own(COMPATIBLE_SERVERS, preset)
  }

  private keyVariable(): string | undefined {
    return this.settings.type === 'openai' ? 'OPENAI_API_KEY' : this.server()?.keyVariable
  }

  private apiKey(): string | undefined {
    const variable = this.keyVariable()
    return (
      this.settings.apiKey ?? (variable === undefined ? undefined : readVariable(this.settings, variable))
    )
  }
}

/** `OLLAMA_HOST` may be a host, a host and port, or a URL; `0.0.0.0` is where it listens, not where it is. */
function hostToUrl(host: string, standard: string): string {
  const { port, pathname } = new URL(standard)
  const url = new URL(/^https?:\/\//.test(host) ? host : `http://${host}`)
  if (url.hostname === '0.0.0.0') url.hostname = '127.0.0.1'
  if (url.port === '' && url.protocol === 'http:') url.port = port
  if (url.pathname === '/') url.pathname = pathname
  return url.href.replace(/\/$/, '')
}

/**
 * The SDK reads an error's words from `error` in its body and says "no body" when there is no such field.
 * Mistral, vLLM and others answer flat, and some wrap the body in an array; here every error body gets the
 * form that the SDK reads, so that the provider's own words reach the user.
 */
async function fetchWithNestedErrors(input: string | URL | Request, init?: RequestInit): Promise<Response> {
  const response = await fetch(input, init)
  if (response.ok) return response
  const text = await response.text()
  return new Response(nestError(text), {
    status: response.status,
    statusText: response.statusText,
    headers: jsonHeaders(response.headers),
  })
}

/** The body of an error with its facts under `error`. */
function nestError(text: string): string {
  const body = parse(text)
  const inner: unknown = Array.isArray(body) ? body[0] : body
  if (inner === null || typeof inner !== 'object') {
    return JSON.stringify({ error: { message: text.trim() || 'The server gave no reason.' } })
  }
  const error = 'error' in inner ? inner.error : inner
  return JSON.stringify({ error: typeof error === 'string' ? { ...inner, message: error } : error })
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The body is plain JSON again, whatever it was encoded as on its way. */
function jsonHeaders(headers: Headers): Headers {
  const copy = new Headers(headers)
  copy.set('content-type', 'application/json')
  copy.delete('content-length')
  copy.delete('content-encoding')
  return copy
}
