/** Gemini through Google's own SDK, loaded at the first request. */
import type { GoogleGenAI } from '@google/genai'
import { defined } from '../../base/defined.js'
import { loadOptional } from '../../packages.js'
import { googleAccount, tokenClient } from '../google-account.js'
import type { ModelInfo } from '../provider.js'
import { providerFetch } from '../provider-fetch.js'
import type { ProviderSettings } from '../provider-settings.js'
import { SdkProvider } from '../sdk-provider.js'
import type { Wire } from '../stream-answer.js'
import { readVariable, usesVertex } from '../vendor-row.js'
import { fromGeminiStream, type GeminiChunkWire } from './from-gemini-stream.js'
import { clientOptions, geminiAbilities, sdkNames } from './gemini-options.js'
import { type GeminiRequestWire, toGeminiRequest } from './to-gemini-request.js'

/** Sends requests to the Gemini API, or to Vertex AI. */
export class GeminiProvider extends SdkProvider<GoogleGenAI> {
  constructor(settings: ProviderSettings) {
    super(settings, settings.type)
  }

  protected wire(model: string): Wire<GeminiRequestWire, GeminiChunkWire> {
    const info = this.describeModel(model)
    const isVertex = this.#isVertex()
    let client: Record<string, unknown> = {}
    return {
      vendor: 'gemini',
      profile: this.profileOf(info),
      info,
      abilities: () => geminiAbilities(isVertex),
      toBody: prepared => {
        client = clientOptions(prepared.options)
        return toGeminiRequest(prepared, isVertex)
      },
      open: (body, signal) => this.#open(model, body, { ...client, abortSignal: signal }),
      read: fromGeminiStream,
    }
  }

  /** The SDK takes a configuration and writes the body from it; taken apart here, it is the same body again. */
  async #open(
    model: string,
    body: GeminiRequestWire,
    client: Record<string, unknown>,
  ): Promise<AsyncIterable<GeminiChunkWire>> {
    const sdk = await this.connect(model)
    const { contents, generationConfig, ...rest } = body
    // The SDK writes into the tools that it gets.
    const config = { ...sdkNames({ ...generationConfig, ...structuredClone(rest) }), ...client }
    const parameters = { model, contents, config } as Parameters<typeof sdk.models.generateContentStream>[0]
    return (await sdk.models.generateContentStream(parameters)) as AsyncIterable<GeminiChunkWire>
  }

  protected async *servedModels(
    sdk: GoogleGenAI,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<ModelInfo> {
    for await (const model of await sdk.models.list(signal ? { config: { abortSignal: signal } } : {})) {
      const name = (model.name ?? '').replace(/^.*models\//, '')
      yield {
        ...this.describeModel(name),
        ...(model.displayName ? { name: model.displayName } : {}),
        ...(model.inputTokenLimit ? { contextWindow: model.inputTokenLimit, known: true } : {}),
        ...(model.outputTokenLimit ? { outputLimit: model.outputTokenLimit } : {}),
      }
    }
  }

  protected override needsKey(): boolean {
    return !this.#isVertex()
  }

  #isVertex(): boolean {
    return this.settings.type === 'vertex' || usesVertex(this.settings, this.settings.env)
  }

  protected async newClient(apiKey: string | undefined): Promise<GoogleGenAI> {
    const { GoogleGenAI } = await loadOptional('gemini', () => import('@google/genai'))
    const { env, headers, ...settings } = this.settings
    const vertexai = this.#isVertex()
    // The key of the platform is a token of an account; a key of Gemini's is one of a project.
    const token = settings.type === 'vertex' ? apiKey : undefined
    const key = settings.type === 'vertex' ? undefined : apiKey
    const baseUrl = settings.baseUrl ?? readVariable(env, [this.row?.baseUrlVariable])
    return new GoogleGenAI({
      vertexai,
      ...defined({ apiKey: key }),
      ...(vertexai && key === undefined ? defined(googleAccount(this.settings, this.row)) : {}),
      ...(token === undefined ? {} : { googleAuthOptions: { authClient: tokenClient(token) } }),
      httpOptions: { ...defined({ baseUrl }), headers: { ...headers }, fetch: providerFetch },
    })
  }
}
