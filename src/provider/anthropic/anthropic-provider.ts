/** Claude through Anthropic's own SDK, loaded at the first request. */
import type Anthropic from '@anthropic-ai/sdk'
import { defined } from '../../base/defined.js'
import type { ModelInfo } from '../provider.js'
import { providerFetch } from '../provider-fetch.js'
import type { ProviderSettings } from '../provider-settings.js'
import { loadSdk, SdkProvider } from '../sdk-provider.js'
import type { Wire } from '../stream-answer.js'
import { readVariable } from '../vendors.js'
import { continuePaused } from './continue-paused.js'
import { type AnthropicEventWire, fromAnthropicStream } from './from-anthropic-stream.js'
import { type AnthropicRequestWire, abilities, toAnthropicRequest } from './to-anthropic-request.js'

/** Sends requests to Anthropic's Messages API. */
export class AnthropicProvider extends SdkProvider<Anthropic> {
  constructor(settings: ProviderSettings) {
    super(settings, 'anthropic')
  }

  protected wire(model: string): Wire<AnthropicRequestWire, AnthropicEventWire> {
    const info = this.describeModel(model)
    return {
      vendor: 'anthropic',
      profile: this.profileOf(info),
      info,
      abilities,
      toBody: toAnthropicRequest,
      open: (body, signal) => this.#open(body, signal),
      read: fromAnthropicStream,
    }
  }

  async #open(body: AnthropicRequestWire, signal: AbortSignal): Promise<AsyncIterable<AnthropicEventWire>> {
    const sdk = await this.connect(body.model)
    const headers = this.#headersFor(body)
    const send = async (content: AnthropicRequestWire) => {
      // Not `messages.create`, which also prints warnings about old models to the console.
      const stream = await sdk.post('/v1/messages', { body: content, stream: true, signal, headers })
      return stream as AsyncIterable<AnthropicEventWire>
    }
    // The first request is sent here, so that its refusal is one of the request and not of a stream.
    const first = await send(body)
    return continuePaused(body, content => (content === body ? Promise.resolve(first) : send(content)))
  }

  protected async *servedModels(sdk: Anthropic, signal: AbortSignal | undefined): AsyncGenerator<ModelInfo> {
    for await (const model of sdk.models.list({ limit: 100 }, { signal })) {
      yield {
        ...this.describeModel(model.id),
        name: model.display_name,
        ...(model.max_input_tokens ? { contextWindow: model.max_input_tokens, known: true } : {}),
        ...(model.max_tokens ? { outputLimit: model.max_tokens } : {}),
      }
    }
  }

  protected async newClient(apiKey: string | undefined): Promise<Anthropic> {
    const { default: Client } = await loadSdk('@anthropic-ai/sdk', () => import('@anthropic-ai/sdk'))
    const { settings } = this
    const baseURL = settings.baseUrl ?? readVariable(settings.env, [this.row?.baseUrlVariable])
    return new Client({
      ...defined({ apiKey }),
      // A request with two credentials is refused, so only the key is sent.
      authToken: null,
      ...defined({ baseURL }),
      maxRetries: 0,
      timeout: settings.idleTimeoutMs,
      defaultHeaders: { ...settings.headers },
      logLevel: 'off',
      fetch: providerFetch,
    })
  }

  /**
   * The API's version of October 2026 refuses sampling settings; a request that has them names the version before.
   * What a request says about bound thinking is a beta; betas of the configuration stay beside it.
   */
  #headersFor(body: AnthropicRequestWire): Record<string, string> {
    const samples = body.temperature !== undefined || body.top_p !== undefined || body.top_k !== undefined
    const configured = Object.entries(this.settings.headers).find(
      ([name]) => name.toLowerCase() === BETA_HEADER,
    )
    const betas = [
      ...(configured?.[1].split(/\s*,\s*/) ?? []),
      ...(body.thinking?.block_binding ? [BINDING_BETA] : []),
    ]
    return {
      ...(samples ? { 'anthropic-version': '2023-06-01' } : {}),
      ...(betas.length > 0 ? { [BETA_HEADER]: [...new Set(betas)].join(',') } : {}),
    }
  }
}

const BETA_HEADER = 'anthropic-beta'
const BINDING_BETA = 'thinking-binding-controls-2026-08-01'
