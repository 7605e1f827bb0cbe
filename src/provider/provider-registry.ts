/** Model references (`provider/model`) and the providers that they name. */
import { own } from '../base/own.js'
import { AgentError, checkArgument } from '../errors.js'
import { AnthropicProvider } from './anthropic/anthropic-provider.js'
import { ConverseProvider } from './converse/converse-provider.js'
import { DemoProvider } from './demo/demo-provider.js'
import { GeminiProvider } from './gemini/gemini-provider.js'
import { OpenAiProvider } from './openai/openai-provider.js'
import type { GenerateRequest, ModelInfo, Provider } from './provider.js'
import { type ProviderOptions, type ProviderSettings, readSettings } from './provider-settings.js'
import type { StreamEvent } from './stream-event.js'
import { type ProviderType, vendorNames, vendorRow } from './vendors.js'

export interface ModelReference {
  /** Absent when the reference is a bare model name. */
  provider?: string
  model: string
}

export interface ResolvedModel {
  provider: Provider
  model: string
}

export interface ProviderRegistry {
  /** `openai/gpt-5.2` → its provider and `gpt-5.2`. Throws `invalid-config` and lists what is known. */
  resolve(reference: string): ResolvedModel
  get(id: string): Provider | undefined
  /** Names that a reference may begin with. */
  ids(): string[]
}

/** Providers by the name that references use: options, or a provider made by the caller. */
export type ProvidersConfig = Readonly<Record<string, NamedProviderOptions | Provider | undefined>>

/** The options of a provider that is configured under a name. A type that equals the name may be omitted. */
export type NamedProviderOptions = Omit<ProviderOptions, 'id' | 'type'> & { type?: ProviderType | undefined }

/**
 * Splits a reference at its first slash: what follows may hold more of them.
 *
 * ```ts
 * import { parseModelReference } from 'lango/provider'
 *
 * const { provider, model } = parseModelReference('openai/gpt-5.2')
 * ```
 */
export function parseModelReference(reference: string): ModelReference {
  checkArgument(typeof reference === 'string', 'parseModelReference', 'needs a text such as "openai/gpt-5.2"')
  const text = reference.trim()
  const slash = text.indexOf('/')
  if (slash < 0) return { model: text }
  return { provider: text.slice(0, slash), model: text.slice(slash + 1) }
}

/**
 * Makes providers on demand: those that are configured, and those that need no configuration.
 *
 * ```ts
 * import { createRegistry } from 'lango/provider'
 *
 * const registry = createRegistry({ local: { type: 'demo' } })
 * const { provider, model } = registry.resolve('local/demo')
 * ```
 */
export function createRegistry(config: ProvidersConfig = {}): ProviderRegistry {
  const made = new Map<string, Provider>()
  const get = (id: string): Provider | undefined => {
    const known = made.get(id) ?? makeProvider(id, config)
    if (known) made.set(id, known)
    return known
  }
  return {
    get,
    ids: () => knownIds(config),
    resolve(reference) {
      const { id, model } = readReference(reference)
      const provider = id === undefined || model === '' ? undefined : get(id)
      if (!provider) throw unknownModel(reference, config)
      return { provider, model }
    },
  }
}

function makeProvider(id: string, config: ProvidersConfig): Provider | undefined {
  const given = own(config, id)
  if (given) {
    // `createProvider` refuses a name that is no type.
    return 'generate' in given
      ? given
      : createProvider({ ...given, type: given.type ?? (id as ProviderType), id })
  }
  const type = vendorRow(id)?.type
  return type && createProvider(type === 'openai-compatible' ? { type, preset: id } : { type, id })
}

function readReference(reference: string): { id?: string; model: string } {
  const { provider, model } = parseModelReference(reference)
  if (provider !== undefined && provider !== 'models') return { id: provider, model }
  const [id] = vendorNames(({ bareNames }) => bareNames?.test(model) === true)
  return id === undefined ? { model } : { id, model }
}

function knownIds(config: ProvidersConfig): string[] {
  const configured = Object.keys(config).filter(id => config[id] !== undefined)
  return [...new Set([...configured, ...vendorNames()])]
}

function unknownModel(reference: string, config: ProvidersConfig): AgentError {
  const guess = guessProvider(reference)
  const hint = guess === undefined ? '' : ` Did you mean "${guess}/${reference}"?`
  return new AgentError(
    'invalid-config',
    `Cannot find the model "${reference}".${hint} A model is named provider/model; known providers: ` +
      `${knownIds(config).join(', ')}.`,
    { details: { reference, providers: knownIds(config) } },
  )
}

function guessProvider(reference: string): string | undefined {
  if (reference.includes('/')) return undefined
  return vendorNames(({ names }) => names?.test(reference) === true)[0]
}

/**
 * Makes a provider. Nothing is loaded or requested until the first call, and a missing key is reported then.
 *
 * ```ts
 * import { createProvider } from 'lango/provider'
 *
 * const provider = createProvider({ type: 'demo' })
 * const messages = [{ role: 'user', parts: [{ type: 'text', text: 'Hello' }] }] as const
 * for await (const event of provider.generate({ model: 'demo', messages })) {
 *   if (event.type === 'text-delta') process.stdout.write(event.text)
 * }
 * ```
 */
export function createProvider(options: ProviderOptions): Provider {
  const settings = readSettings(options)
  return new PROVIDERS[settings.type](settings)
}

type ProviderClass = new (settings: ProviderSettings) => Provider

/** A platform that serves Claude by its maker's API, and other models by one of its own. */
function platform(Others: ProviderClass): ProviderClass {
  return class PlatformProvider implements Provider {
    readonly id: string
    readonly #settings: ProviderSettings
    readonly #claude: Provider
    readonly #others: Provider

    constructor(settings: ProviderSettings) {
      this.id = settings.id
      this.#settings = settings
      this.#claude = new AnthropicProvider(settings)
      this.#others = new Others(settings)
    }

    generate(request: GenerateRequest, signal?: AbortSignal): AsyncIterable<StreamEvent> {
      return this.#of(request.model).generate(request, signal)
    }

    describeModel(model: string): ModelInfo {
      return this.#of(model).describeModel(model)
    }

    check(request: CheckedRequest, agent?: string): void {
      this.#of(request.model).check?.(request, agent)
    }

    async load(model = ''): Promise<void> {
      await this.#of(model).load?.(model)
    }

    /** A name that does not say what it stands for, such as that of an inference profile, is recognised by its profile. */
    #of(model: string): Provider {
      const { models, profile } = this.#settings
      const chosen = own(models, model)?.profile ?? profile?.name
      const isClaude = chosen === undefined ? /claude/i.test(model) : chosen.startsWith('anthropic-')
      return isClaude ? this.#claude : this.#others
    }
  }
}

type CheckedRequest = Parameters<NonNullable<Provider['check']>>[0]

const PROVIDERS: Readonly<Record<ProviderType, ProviderClass>> = {
  gemini: GeminiProvider,
  openai: OpenAiProvider,
  anthropic: AnthropicProvider,
  'openai-compatible': OpenAiProvider,
  azure: OpenAiProvider,
  bedrock: platform(ConverseProvider),
  vertex: platform(GeminiProvider),
  demo: DemoProvider,
}
