/**
 * What every provider with an SDK does alike: find the key, load the SDK at the first request, make one client per
 * key, describe models, and stream an answer. A vendor's folder adds its client, its wire and its list of models.
 */
import { own } from '../base/own.js'
import { accountTag } from './account.js'
import { type DescribeOptions, describeModel } from './model-catalog.js'
import type { GenerateRequest, ModelInfo, Provider } from './provider.js'
import { missingKeyError, missingSettingError, toProviderError } from './provider-error.js'
import type { ProviderSettings } from './provider-settings.js'
import { limiterFor } from './rate-limiter.js'
import { PROFILES, type Profile, resolveProfile } from './repair/profile.js'
import { reviewRequest } from './request-options.js'
import { DEFAULT_RETRY } from './retry.js'
import { streamAnswer, type Wire } from './stream-answer.js'
import type { StreamEvent } from './stream-event.js'
import { missingNeed, readVariable, type VendorRow } from './vendor-row.js'
import { vendorRow } from './vendors.js'

const MOST_MODELS = 1000

type CheckedRequest = Parameters<NonNullable<Provider['check']>>[0]

export abstract class SdkProvider<Client> implements Provider {
  readonly id: string
  protected readonly settings: ProviderSettings
  /** Absent for a compatible server that is known by its address alone. */
  protected readonly row: VendorRow | undefined
  readonly #vendor: string
  #client: { account: string; sdk: Promise<Client> } | undefined

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
    const limited = [providerId, this.settings.baseUrl, key, request.model]
    // A server without keys is one's own.
    const isLimited = key !== undefined || this.row?.keyVariables !== undefined
    const limiter = retry.sleep === DEFAULT_RETRY.sleep ? limiterFor(limited, isLimited) : undefined
    const { settings, row } = this
    const account = accountTag({ settings, row, key, secret: request.accountSecret })
    const answer = { providerId, retry, idleTimeoutMs, secrets: this.#secrets(), account, limiter }
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
  async load(model = 'models'): Promise<void> {
    if (this.#apiKey() !== undefined || !this.needsKey()) await this.connect(model)
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
    const { keyVariables, accountVariables = [], findsCredentials } = this.row ?? {}
    const hasAccount = accountVariables.some(names => names.every(name => this.#variable(name) !== undefined))
    return keyVariables !== undefined && !findsCredentials && !hasAccount
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
    const missing = this.row && missingNeed(this.row, this.settings.env, this.settings)
    if (missing) throw missingSettingError({ provider: this.id, model }, missing)
    const account = [key, ...this.#accountValues()].join('\n')
    if (this.#client === undefined || this.#client.account !== account) {
      this.#client = { account, sdk: this.newClient(key) }
    }
    return this.#client.sdk
  }

  #variable(name: string): string | undefined {
    return readVariable(this.settings.env, [name])
  }

  /** The values of the variables that stand for a key. */
  #accountValues(secretsOnly = false): (string | undefined)[] {
    const names = (this.row?.accountVariables ?? []).flat()
    return names.filter(name => !secretsOnly || /KEY|TOKEN$/.test(name)).map(name => this.#variable(name))
  }

  #apiKey(): string | undefined {
    return this.settings.apiKey ?? readVariable(this.settings.env, this.row?.keyVariables ?? [])
  }

  /** What no error may contain: the key, and every header's value. */
  #secrets(): (string | undefined)[] {
    return [this.#apiKey(), ...this.#accountValues(true), ...Object.values(this.settings.headers)]
  }
}
