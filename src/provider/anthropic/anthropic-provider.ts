/** Claude through Anthropic's own SDK, loaded at the first request. */
import type Anthropic from '@anthropic-ai/sdk'
import { describeModel } from '../model-catalog.js'
import type { GenerateRequest, ModelInfo, Provider } from '../provider.js'
import { missingKeyError, toProviderError } from '../provider-error.js'
import { type ProviderSettings, readVariable, secretsOf } from '../provider-settings.js'
import { resolveProfile } from '../repair/profile.js'
import { loadSdk, streamAnswer, type Wire } from '../stream-answer.js'
import type { StreamEvent } from '../stream-event.js'
import { type AnthropicEventWire, fromAnthropicStream } from './from-anthropic-stream.js'
import { type AnthropicRequestWire, toAnthropicRequest } from './to-anthropic-request.js'

/** Speaks to Anthropic's Messages API. */
export class AnthropicProvider implements Provider {
  readonly id: string
  private client: { key: string; sdk: Promise<Anthropic> } | undefined

  constructor(private readonly settings: ProviderSettings) {
    this.id = settings.id
  }

  generate(request: GenerateRequest, signal?: AbortSignal): AsyncIterable<StreamEvent> {
    const { id, retry, idleTimeoutMs } = this.settings
    const answer = { providerId: id, retry, idleTimeoutMs, secrets: secretsOf(this.settings, this.apiKey()) }
    return streamAnswer(answer, request, signal, () => this.wire(request.model))
  }

  describeModel(model: string): ModelInfo {
    const { models, profile } = this.settings
    return describeModel('anthropic', model, { models, ...(profile ? { profile: profile.name } : {}) })
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
      for await (const model of sdk.models.list({ limit: 100 }, { signal })) {
        found.push({
          ...this.describeModel(model.id),
          name: model.display_name,
          ...(model.max_input_tokens ? { contextWindow: model.max_input_tokens, known: true } : {}),
          ...(model.max_tokens ? { outputLimit: model.max_tokens } : {}),
        })
        if (found.length >= 1000) break
      }
      return found
    } catch (error) {
      throw toProviderError(error, context)
    }
  }

  private wire(model: string): Wire<AnthropicRequestWire, AnthropicEventWire> {
    const info = this.describeModel(model)
    return {
      vendor: 'anthropic',
      profile: this.settings.profile ?? resolveProfile(info.profile),
      info,
      toBody: toAnthropicRequest,
      open: (body, signal) => this.open(body, signal),
      read: fromAnthropicStream,
    }
  }

  private async open(
    body: AnthropicRequestWire,
    signal: AbortSignal,
  ): Promise<AsyncIterable<AnthropicEventWire>> {
    const sdk = await this.connect(body.model)
    // `messages.create` is this and warnings about old models on the console, where a library has no business.
    const stream = await sdk.post('/v1/messages', { body, stream: true, signal, headers: versionFor(body) })
    return stream as AsyncIterable<AnthropicEventWire>
  }

  private connect(model: string): Promise<Anthropic> {
    const key = this.apiKey()
    if (key === undefined) throw missingKeyError({ provider: this.id, model }, 'ANTHROPIC_API_KEY')
    if (this.client?.key !== key) this.client = { key, sdk: this.load(key) }
    return this.client.sdk
  }

  private async load(apiKey: string): Promise<Anthropic> {
    const { default: Client } = await loadSdk('@anthropic-ai/sdk', () => import('@anthropic-ai/sdk'))
    const { settings } = this
    const baseURL = settings.baseUrl ?? readVariable(settings, 'ANTHROPIC_BASE_URL')
    return new Client({
      apiKey,
      // Two credentials in one request are refused; the key was chosen above.
      authToken: null,
      ...(baseURL === undefined ? {} : { baseURL }),
      maxRetries: 0,
      timeout: settings.idleTimeoutMs,
      defaultHeaders: { ...settings.headers },
      logLevel: 'off',
    })
  }

  private apiKey(): string | undefined {
    return this.settings.apiKey ?? readVariable(this.settings, 'ANTHROPIC_API_KEY')
  }
}

/** The API's version of October 2026 refuses sampling settings from everyone; who sets them wants the one before. */
function versionFor(body: AnthropicRequestWire): Record<string, string> {
  const samples = body.temperature !== undefined || body.top_p !== undefined || body.top_k !== undefined
  return samples ? { 'anthropic-version': '2023-06-01' } : {}
}
