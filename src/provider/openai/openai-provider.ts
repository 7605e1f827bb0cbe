/** OpenAI, also on Azure, and every server with an API like OpenAI's, through OpenAI's own SDK, loaded at the first request. */
import type OpenAI from 'openai'
import { defined } from '../../base/defined.js'
import { own } from '../../base/own.js'
import { AgentError } from '../../errors.js'
import { loadOptional } from '../../packages.js'
import type { DescribeOptions } from '../model-catalog.js'
import type { ModelInfo } from '../provider.js'
import { providerFetch } from '../provider-fetch.js'
import type { ProviderSettings } from '../provider-settings.js'
import { SdkProvider } from '../sdk-provider.js'
import type { PreparedRequest, Wire } from '../stream-answer.js'
import { readVariable, vendorAddress } from '../vendor-row.js'
import { COMPATIBLE_SERVERS, VENDORS } from '../vendors.js'
import { azureClient, azureTarget } from './azure.js'
import { type ChatChunkWire, fromChatStream } from './from-chat-stream.js'
import { fromResponsesStream, type ResponsesEventWire } from './from-responses-stream.js'
import { type ChatRequestWire, chatAbilities, chatQuirks, toChatRequest } from './to-chat-request.js'
import { type ResponsesRequestWire, responsesAbilities, toResponsesRequest } from './to-responses-request.js'

/** Uses the Responses API for OpenAI's own models and Chat Completions for the rest. */
export class OpenAiProvider extends SdkProvider<OpenAI> {
  constructor(settings: ProviderSettings) {
    const { id, type, preset, baseUrl } = settings
    super(settings, preset ?? type)
    if (preset !== undefined && !Object.hasOwn(COMPATIBLE_SERVERS, preset)) {
      const known = Object.keys(COMPATIBLE_SERVERS).join(', ')
      throw new AgentError('invalid-config', `There is no preset "${preset}". Use one of: ${known}.`)
    }
    if (type === 'openai-compatible' && preset === undefined && baseUrl === undefined) {
      throw new AgentError('invalid-config', `The provider "${id}" needs a baseUrl or a preset.`)
    }
  }

  protected wire(
    model: string,
  ): Wire<ChatRequestWire, ChatChunkWire> | Wire<ResponsesRequestWire, ResponsesEventWire> {
    return this.#apiFor(model) === 'responses' ? this.#responsesWire(model) : this.#chatWire(model)
  }

  #chatWire(model: string): Wire<ChatRequestWire, ChatChunkWire> {
    const info = this.describeModel(model)
    const profile = this.profileOf(info)
    const quirks = chatQuirks(profile.name, this.settings.preset)
    return {
      vendor: profile.vendor,
      profile,
      info,
      abilities: ({ options }) => chatAbilities(options, quirks, this.#modelOf(model)),
      toBody: prepared => this.#named(toChatRequest(this.#asModel(prepared), quirks), model),
      open: async (body, signal) => {
        const sdk = await this.connect(model)
        // Compatible servers take fields that the SDK's types do not know.
        const parameters = body as unknown as OpenAI.Chat.ChatCompletionCreateParamsStreaming
        return (await sdk.chat.completions.create(parameters, { signal })) as AsyncIterable<ChatChunkWire>
      },
      read: fromChatStream,
    }
  }

  #responsesWire(model: string): Wire<ResponsesRequestWire, ResponsesEventWire> {
    const info = this.describeModel(model)
    const profile = this.profileOf(info)
    return {
      vendor: profile.vendor,
      profile,
      info,
      abilities: ({ options }) => responsesAbilities(options, this.#modelOf(model)),
      toBody: prepared => this.#named(toResponsesRequest(this.#asModel(prepared)), model),
      open: async (body, signal) => {
        const sdk = await this.connect(model)
        const parameters = body as unknown as OpenAI.Responses.ResponseCreateParamsStreaming
        return (await sdk.responses.create(parameters, { signal })) as AsyncIterable<ResponsesEventWire>
      },
      read: fromResponsesStream,
    }
  }

  #apiFor(model: string): 'chat' | 'responses' {
    const { api, profile, type } = this.settings
    if (api !== undefined) return api
    if (profile !== undefined) return profile.name.endsWith('-responses') ? 'responses' : 'chat'
    const isOwn = VENDORS.openai.names.test(this.#modelOf(model))
    if (type === 'openai') return isOwn ? 'responses' : 'chat'
    if (type === 'azure') return isOwn && azureTarget(this.settings).hasResponses ? 'responses' : 'chat'
    return this.row?.api ?? 'chat'
  }

  /** The model that a name stands for: on Azure it is that of a deployment, which may be any. */
  #modelOf(name: string): string {
    return own(this.settings.deployments ?? {}, name) ?? name
  }

  /** What the body holds depends on the model; the name in it is that of the request. */
  #asModel(prepared: PreparedRequest): PreparedRequest {
    return { ...prepared, model: this.#modelOf(prepared.model) }
  }

  #named<Body extends { model: string }>(body: Body, model: string): Body {
    return { ...body, model }
  }

  override describeModel(name: string): ModelInfo {
    return { ...super.describeModel(this.#modelOf(name)), ...own(this.settings.models, name), id: name }
  }

  protected override describeOptions(model: string): DescribeOptions {
    return { api: this.#apiFor(model), ...defined({ windowLimit: this.#windowLimit() }) }
  }

  /** Ollama truncates long prompts without an error, at a length that only its own settings know. */
  #windowLimit(): number | undefined {
    const limit = this.row?.windowLimit
    if (limit === undefined) return undefined
    const tokens = Number(readVariable(this.settings.env, [limit.variable]))
    return Number.isInteger(tokens) && tokens > 0 ? tokens : limit.tokens
  }

  protected async *servedModels(sdk: OpenAI, signal: AbortSignal | undefined): AsyncGenerator<ModelInfo> {
    for await (const model of sdk.models.list({ signal })) yield this.describeModel(model.id)
  }

  protected async newClient(apiKey: string | undefined): Promise<OpenAI> {
    const { settings, row = VENDORS.openai } = this
    const sdk = await loadOptional('openai', () => import('openai'))
    const { default: Client } = sdk
    if (settings.type === 'azure') return azureClient(sdk, settings, apiKey, fetchWithNestedErrors)
    // A third party's server must not receive the account that the environment names.
    const account = settings.type === 'openai' ? {} : { organization: null, project: null }
    return new Client({
      // The SDK requires a key; for a server that needs none its header is removed again.
      apiKey: apiKey ?? 'none',
      ...account,
      ...defined({ baseURL: settings.baseUrl ?? vendorAddress(row, settings.env) }),
      maxRetries: 0,
      timeout: settings.idleTimeoutMs,
      defaultHeaders: { ...(apiKey === undefined ? { authorization: null } : {}), ...settings.headers },
      logLevel: 'off',
      fetch: fetchWithNestedErrors,
    })
  }
}

/**
 * The SDK reads an error's message from `error` in its body and reports "no body" when there is no such field.
 * Mistral, vLLM and others send it at the top level, and some wrap the body in an array. Every error body gets
 * the form that the SDK reads, so that the provider's own message reaches the user.
 */
async function fetchWithNestedErrors(input: string | URL | Request, init?: RequestInit): Promise<Response> {
  const response = await providerFetch(input, init)
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

/** The body is plain JSON again, whatever its encoding was. */
function jsonHeaders(headers: Headers): Headers {
  const copy = new Headers(headers)
  copy.set('content-type', 'application/json')
  copy.delete('content-length')
  copy.delete('content-encoding')
  return copy
}
