/**
 * What every provider with an SDK does alike: find the key, load the SDK at the first request, make one client per
 * key, describe models, and stream an answer. A vendor's folder adds its client, its wire and its list of models.
 */
import { own } from '../base/own.js'
import { AgentError, messageOf } from '../errors.js'
import { type DescribeOptions, describeModel } from './model-catalog.js'
import type { GenerateRequest, ModelInfo, Provider } from './provider.js'
import { missingKeyError, toProviderError } from './provider-error.js'
import type { ProviderSettings } from './provider-settings.js'
import { PROFILES, type Profile, resolveProfile } from './repair/profile.js'
import { reviewRequest } from './request-options.js'
import { DEFAULT_RETRY, limiterFor } from './retry.js'
import { streamAnswer, type Wire } from './stream-answer.js'
import type { StreamEvent } from './stream-event.js'
import { readVariable, type VendorRow, vendorRow } from './vendors.js'

const MOST_MODELS = 1000

type CheckedRequest = Parameters<NonNullable<Provider['check']>>[0]

export abstract class SdkProvider<Client> implements Provider {
  readonly id: string
  protected readonly settings: ProviderSettings
  /** Absent for a compatible server that is known by its address alone. */
  protected readonly row: VendorRow | undefined
  readonly #vendor: string
  #client: { key: string | undefined; sdk: Promise<Client> } | undefined

  /** `vendor` is the name of the vendor's row. */
  constructor(settings: ProviderSettings, vendor: string) {
    this.id = settings.id
    this.settings = settings
    this.row = vendorRow(vendor)
    this.#vendor = vendor
  }

  generate(request: GenerateRequest, signal?: AbortSignal): AsyncIterable<StreamEvent> {
    const { id: providerId, retry, idleTimeoutMs } = this.settings
    // A replaced clock of retries has no timers for turns.
    const key = this.#apiKey()
    const account = [providerId, this.settings.baseUrl, key, request.model]
    // A server without keys is one's own.
    const isLimited = key !== undefined || this.row?.keyVariables !== undefined
    const limiter = retry.sleep === DEFAULT_RETRY.sleep ? limiterFor(account, isLimited) : undefined
    const answer = { providerId, retry, idleTimeoutMs, secrets: this.#secrets(), limiter }
    return streamAnswer(answer, request, signal, () => this.wire(request.model))
  }

  describeModel(model: string): ModelInfo {
    const { models, profile } = this.settings
    const info = describeModel(this.#vendor, model, {
      models,
      ...this.describeOptions(model),
      ...(profile ? { profile: profile.name } : {}),
    })
    // A configured name that no profile has is refused when a request is made.
    const { system, reasoning } = profile ?? own(PROFILES, info.profile) ?? {}
    return {
      ...info,
      ...(system === 'anywhere' || system === 'after-user' ? { takesLaterSystem: true } : {}),
      ...(reasoning?.bound ? { bindsReasoning: true } : {}),
    }
  }

  check({ model, options = {}, serverTools = [], repairMode }: CheckedRequest, agent?: string): void {
    const { abilities, profile, info } = this.wire(model)
    const nothing = { messages: [], tools: [], report: () => {} }
    const prepared = { model, ...nothing, serverTools, options, profile, info }
    const to = { model: `${this.id}/${model}`, agent }
    reviewRequest(prepared, abilities(prepared), to, repairMode ?? 'repair')
  }

  /** Without a key no request can be sent, so there is nothing to load. */
  async load(): Promise<void> {
    if (this.#apiKey() !== undefined || !this.needsKey()) await this.connect('models')
  }

  async listModels(signal?: AbortSignal): Promise<ModelInfo[]> {
    try {
      const found: ModelInfo[] = []
      for await (const model of this.servedModels(await this.connect('models'), signal)) {
        found.push(model)
        if (found.length >= MOST_MODELS) break
      }
      return found
    } catch (error) {
      throw toProviderError(error, { provider: this.id, model: 'models', secrets: this.#secrets(), signal })
    }
  }

  /** How to write, send and read a request to this model. One wire's body and chunks match each other. */
  protected abstract wire(model: string): Wire<unknown, unknown>

  /** Loads the SDK and makes a client. */
  protected abstract newClient(apiKey: string | undefined): Promise<Client>

  /** The models that the server lists. */
  protected abstract servedModels(client: Client, signal: AbortSignal | undefined): AsyncIterable<ModelInfo>

  /** What the vendor adds to a model's description. */
  protected describeOptions(_model: string): DescribeOptions {
    return {}
  }

  protected needsKey(): boolean {
    return this.row?.keyVariables !== undefined
  }

  protected profileOf(info: ModelInfo): Profile {
    return this.settings.profile ?? resolveProfile(info.profile)
  }

  /** The client for the current key. `model` is named in the error of a missing key. */
  protected connect(model: string): Promise<Client> {
    const key = this.#apiKey()
    const [variable] = this.row?.keyVariables ?? []
    if (key === undefined && variable !== undefined && this.needsKey()) {
      throw missingKeyError({ provider: this.id, model }, variable)
    }
    if (this.#client === undefined || this.#client.key !== key) {
      this.#client = { key, sdk: this.newClient(key) }
    }
    return this.#client.sdk
  }

  #apiKey(): string | undefined {
    return this.settings.apiKey ?? readVariable(this.settings.env, this.row?.keyVariables ?? [])
  }

  /** What no error may contain: the key, and every header's value. */
  #secrets(): (string | undefined)[] {
    return [this.#apiKey(), ...Object.values(this.settings.headers)]
  }
}

/** Loads a vendor's SDK at first use, and names the package that is missing when that fails. */
export async function loadSdk<Module>(packageName: string, load: () => Promise<Module>): Promise<Module> {
  try {
    return await load()
  } catch (error) {
    throw new AgentError(
      'invalid-config',
      `Cannot load ${packageName}: ${messageOf(error)}. Is it installed?`,
      {
        cause: error,
      },
    )
  }
}
