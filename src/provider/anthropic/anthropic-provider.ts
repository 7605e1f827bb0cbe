/** Claude through Anthropic's own SDKs for its API, for Bedrock and for Vertex AI, loaded at the first request. */
import type Anthropic from '@anthropic-ai/sdk'
import type { BaseAnthropic } from '@anthropic-ai/sdk/client'
import { defined } from '../../base/defined.js'
import { own } from '../../base/own.js'
import { loadOptional } from '../../packages.js'
import type { ModelInfo } from '../provider.js'
import { providerFetch } from '../provider-fetch.js'
import type { ProviderSettings } from '../provider-settings.js'
import { CLAUDE_LIMITS, CLAUDE_PLATFORM_LIMITS } from '../repair/media-limits.js'
import type { Profile } from '../repair/profile.js'
import { SdkProvider } from '../sdk-provider.js'
import type { Wire } from '../stream-answer.js'
import { readVariable } from '../vendor-row.js'
import { continuePaused } from './continue-paused.js'
import { type AnthropicEventWire, fromAnthropicStream } from './from-anthropic-stream.js'
import { bedrockClient, type ClaudePlatform, PLATFORMS, vertexClient } from './platforms.js'
import { type AnthropicRequestWire, abilities, toAnthropicRequest } from './to-anthropic-request.js'

/** Sends requests to Anthropic's Messages API, where the type of the provider says that it is served. */
export class AnthropicProvider extends SdkProvider<BaseAnthropic> {
  constructor(settings: ProviderSettings) {
    super(settings, settings.type)
  }

  get #platform(): ClaudePlatform | undefined {
    return own(PLATFORMS, this.settings.type)
  }

  protected wire(model: string): Wire<AnthropicRequestWire, AnthropicEventWire> {
    const info = this.describeModel(model)
    return {
      vendor: 'anthropic',
      profile: this.#profileOf(info),
      info,
      abilities: prepared => this.#platform?.abilities(abilities(prepared)) ?? abilities(prepared),
      toBody: toAnthropicRequest,
      open: (body, signal) => this.#open(body, signal),
      read: fromAnthropicStream,
    }
  }

  #profileOf(info: ModelInfo): Profile {
    const profile = this.profileOf(info)
    if (!this.#platform) return profile
    // The platforms fetch nothing: files come with the request, and their limits are lower.
    const isKnown = profile.media.limits === CLAUDE_LIMITS
    const limits = isKnown ? CLAUDE_PLATFORM_LIMITS : profile.media.limits
    return { ...profile, media: { ...profile.media, remote: false, limits } }
  }

  async #open(body: AnthropicRequestWire, signal: AbortSignal): Promise<AsyncIterable<AnthropicEventWire>> {
    const sdk = await this.connect(body.model)
    const headers = this.#headersFor(body)
    const send = async (content: AnthropicRequestWire) => {
      // Not `messages.create`, which also prints warnings about old models to the console.
      const sent = this.#platform?.body(content) ?? content
      const stream = await sdk.post('/v1/messages', { body: sent, stream: true, signal, headers })
      return stream as AsyncIterable<AnthropicEventWire>
    }
    // The first request is sent here, so that its refusal is one of the request and not of a stream.
    const first = await send(body)
    return continuePaused(body, content => (content === body ? Promise.resolve(first) : send(content)))
  }

  protected async *servedModels(
    sdk: BaseAnthropic,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<ModelInfo> {
    // The platforms have no list of Anthropic's, and a provider for them is asked for none.
    if (!('models' in sdk)) return
    for await (const model of (sdk as Anthropic).models.list({ limit: 100 }, { signal })) {
      yield {
        ...this.describeModel(model.id),
        name: model.display_name,
        ...(model.max_input_tokens ? { contextWindow: model.max_input_tokens, known: true } : {}),
        ...(model.max_tokens ? { outputLimit: model.max_tokens } : {}),
      }
    }
  }

  protected async newClient(apiKey: string | undefined): Promise<BaseAnthropic> {
    const { settings } = this
    const baseURL = settings.baseUrl ?? readVariable(settings.env, [this.row?.baseUrlVariable])
    const common = {
      maxRetries: 0,
      timeout: settings.idleTimeoutMs,
      defaultHeaders: { ...settings.headers },
      logLevel: 'off' as const,
      fetch: providerFetch,
    }
    const target = { apiKey, baseURL, settings, row: this.row }
    if (settings.type === 'bedrock') return bedrockClient(target, common)
    if (settings.type === 'vertex') return vertexClient(target, common)
    const { default: Client } = await loadOptional('anthropic', () => import('@anthropic-ai/sdk'))
    // A request with two credentials is refused, so only the key is sent.
    return new Client({ ...defined({ apiKey, baseURL }), authToken: null, ...common })
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
      ...(samples && !this.#platform ? { 'anthropic-version': '2023-06-01' } : {}),
      ...(betas.length > 0 ? { [BETA_HEADER]: [...new Set(betas)].join(',') } : {}),
    }
  }
}

const BETA_HEADER = 'anthropic-beta'
const BINDING_BETA = 'thinking-binding-controls-2026-08-01'
