/** Gemini through Google's own SDK, loaded at the first request. */
import type { GoogleGenAI } from '@google/genai'
import { describeModel } from '../model-catalog.js'
import type { GenerateRequest, ModelInfo, Provider } from '../provider.js'
import { missingKeyError, toProviderError } from '../provider-error.js'
import { type ProviderSettings, readVariable, secretsOf } from '../provider-settings.js'
import { resolveProfile } from '../repair/profile.js'
import { loadSdk, streamAnswer, type Wire } from '../stream-answer.js'
import type { StreamEvent } from '../stream-event.js'
import { fromGeminiStream, type GeminiChunkWire } from './from-gemini-stream.js'
import { type GeminiRequestWire, toGeminiRequest } from './to-gemini-request.js'

/** Speaks to the Gemini API, or to Vertex AI. */
export class GeminiProvider implements Provider {
  readonly id: string
  private client: { key: string | undefined; sdk: Promise<GoogleGenAI> } | undefined

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
    return describeModel('gemini', model, { models, ...(profile ? { profile: profile.name } : {}) })
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
      const config = signal ? { config: { abortSignal: signal } } : {}
      const found: ModelInfo[] = []
      for await (const model of await sdk.models.list(config)) {
        const name = (model.name ?? '').replace(/^.*models\//, '')
        found.push({
          ...this.describeModel(name),
          ...(model.displayName ? { name: model.displayName } : {}),
          ...(model.inputTokenLimit ? { contextWindow: model.inputTokenLimit, known: true } : {}),
          ...(model.outputTokenLimit ? { outputLimit: model.outputTokenLimit } : {}),
        })
        if (found.length >= 1000) break
      }
      return found
    } catch (error) {
      throw toProviderError(error, context)
    }
  }

  private wire(model: string): Wire<GeminiRequestWire, GeminiChunkWire> {
    const info = this.describeModel(model)
    return {
      vendor: 'gemini',
      profile: this.settings.profile ?? resolveProfile(info.profile),
      info,
      toBody: toGeminiRequest,
      open: (body, signal) => this.open(model, body, signal),
      read: fromGeminiStream,
    }
  }

  /** The SDK takes a configuration and writes the body from it; taken apart here, it is the same body again. */
  private async open(
    model: string,
    body: GeminiRequestWire,
    signal: AbortSignal,
  ): Promise<AsyncIterable<GeminiChunkWire>> {
    const sdk = await this.connect(model)
    const { contents, generationConfig, ...rest } = body
    const config = { ...generationConfig, ...rest, abortSignal: signal }
    const parameters = { model, contents, config } as Parameters<typeof sdk.models.generateContentStream>[0]
    return (await sdk.models.generateContentStream(parameters)) as AsyncIterable<GeminiChunkWire>
  }

  private connect(model: string): Promise<GoogleGenAI> {
    const key = this.apiKey()
    if (key === undefined && !this.usesVertex()) {
      throw missingKeyError({ provider: this.id, model }, 'GEMINI_API_KEY')
    }
    if (this.client === undefined || this.client.key !== key) this.client = { key, sdk: this.load(key) }
    return this.client.sdk
  }

  private async load(apiKey: string | undefined): Promise<GoogleGenAI> {
    const { GoogleGenAI } = await loadSdk('@google/genai', () => import('@google/genai'))
    const { settings } = this
    const baseUrl = settings.baseUrl ?? readVariable(settings, 'GOOGLE_GEMINI_BASE_URL')
    const project = settings.project ?? readVariable(settings, 'GOOGLE_CLOUD_PROJECT')
    const location = settings.location ?? readVariable(settings, 'GOOGLE_CLOUD_LOCATION')
    const vertexai = this.usesVertex()
    return new GoogleGenAI({
      vertexai,
      ...(apiKey === undefined ? {} : { apiKey }),
      ...(vertexai && apiKey === undefined && project !== undefined ? { project } : {}),
      ...(vertexai && apiKey === undefined && location !== undefined ? { location } : {}),
      httpOptions: { ...(baseUrl === undefined ? {} : { baseUrl }), headers: { ...settings.headers } },
    })
  }

  private usesVertex(): boolean {
    const said = readVariable(this.settings, 'GOOGLE_GENAI_USE_VERTEXAI')?.toLowerCase()
    return this.settings.vertexai ?? (said === 'true' || said === '1')
  }

  private apiKey(): string | undefined {
    return this.settings.apiKey ?? readVariable(this.settings, 'GEMINI_API_KEY', 'GOOGLE_API_KEY')
  }
}
