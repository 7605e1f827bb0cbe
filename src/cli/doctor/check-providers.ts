/** Keys that are there, never what they are, and whether somebody answers at the address of a provider. */
import { own } from '../../base/own.js'
import type { LoadedConfig } from '../../config/load-config.js'
import { messageOf } from '../../errors.js'
import { COMPATIBLE_SERVERS } from '../../provider/openai/compatible-servers.js'
import { type ProvidersConfig, parseModelReference } from '../../provider/provider-registry.js'
import { listProviders } from '../../runtime/models.js'
import { keyHint } from '../key-hint.js'
import type { Check } from './check.js'

/** Which keys there are, and whether the agent's model has one. */
export function checkKeys(loaded: LoadedConfig): Check {
  const name = 'keys'
  const providers = providersOf(loaded)
  const present = providers.filter(({ keyPresent, keyVariable }) => keyPresent && keyVariable !== undefined)
  const names = present.map(({ provider }) => provider).join(', ')
  const chosen = chosenProvider(loaded)
  if (chosen === 'demo' && present.length === 0) {
    return { name, status: 'warn', message: 'No key is set: the offline demo model answers.', fix: keyHint() }
  }
  const own = providers.find(({ provider }) => provider === chosen)
  if (own && !own.keyPresent) {
    const fix = `export ${own.keyVariable ?? 'its key'}=…, or choose another model with --model.`
    return { name, status: 'fail', message: `The model ${loaded.model} has no key.`, fix }
  }
  const model = loaded.model === undefined ? '' : `; the model is ${loaded.model}`
  const message = names === '' ? `None is needed${model}` : `Set for ${names}${model}`
  return { name, status: 'ok', message }
}

function providersOf({ config, env }: LoadedConfig): ReturnType<typeof listProviders> {
  // What the schema let through is what the registry takes: options, or a provider made in code.
  return listProviders({ providers: config.providers as ProvidersConfig, env })
}

function chosenProvider({ model }: LoadedConfig): string | undefined {
  if (model === undefined) return undefined
  const { provider, model: bare } = parseModelReference(model)
  return provider ?? (bare.startsWith('gemini-') ? 'gemini' : bare)
}

/** Asks the address of each provider that is in use, without a key: any answer will do. */
export async function checkProviders(
  loaded: LoadedConfig,
  { offline }: { offline: boolean },
): Promise<Check[]> {
  const name = 'provider'
  if (offline) return [{ name, status: 'ok', message: 'Not asked, because of --offline' }]
  const usable = new Set(
    providersOf(loaded).flatMap(({ provider, keyPresent }) => (keyPresent ? provider : [])),
  )
  const chosen = chosenProvider(loaded)
  const wanted = new Set([...Object.keys(loaded.config.providers), ...(chosen === undefined ? [] : [chosen])])
  const targets = [...wanted].flatMap(provider => {
    const address = addressOf(provider, loaded)
    return usable.has(provider) && address !== undefined ? [{ provider, address }] : []
  })
  if (targets.length === 0) {
    const isDemo = chosen === undefined || chosen === 'demo'
    const message = isDemo
      ? 'None to be reached: the demo model is built in'
      : `${chosen} is not asked without a key`
    return [{ name, status: 'ok', message }]
  }
  return Promise.all(targets.map(({ provider, address }) => reach(provider, address)))
}

const ADDRESSES: Readonly<Record<string, string>> = {
  gemini: 'https://generativelanguage.googleapis.com',
  openai: 'https://api.openai.com/v1',
  anthropic: 'https://api.anthropic.com',
}

function addressOf(provider: string, { config, env }: LoadedConfig): string | undefined {
  const given = own<unknown>(config.providers, provider) as
    | { type?: string; preset?: string; baseUrl?: string }
    | undefined
  if (given?.baseUrl !== undefined) return given.baseUrl
  const vendor = given?.preset ?? given?.type ?? provider
  const server = own(COMPATIBLE_SERVERS, vendor)
  const host = server?.hostVariable === undefined ? undefined : env[server.hostVariable]?.trim()
  if (host) return /^https?:/.test(host) ? host : `http://${host}`
  return server?.baseUrl ?? own(ADDRESSES, vendor)
}

const PATIENCE_MS = 4000

async function reach(provider: string, address: string): Promise<Check> {
  const name = 'provider'
  const shown = shownAddress(address)
  try {
    const response = await fetch(address, {
      method: 'GET',
      redirect: 'manual',
      signal: AbortSignal.timeout(PATIENCE_MS),
    })
    await response.body?.cancel()
    if (response.status < 500) return { name, status: 'ok', message: `${provider} answers at ${shown}` }
    const fix = 'Its side is in trouble: try again later.'
    return { name, status: 'warn', message: `${provider} at ${shown} answers ${response.status}.`, fix }
  } catch (error) {
    const why = messageOf((error as { cause?: unknown }).cause ?? error)
    const fix = 'Start the server, or check the network and its proxy; --offline leaves this out.'
    return { name, status: 'fail', message: `${provider} cannot be reached at ${shown}: ${why}`, fix }
  }
}

/** Where it is, without what may be secret in an address. */
function shownAddress(address: string): string {
  try {
    const { origin, pathname } = new URL(address)
    return `${origin}${pathname === '/' ? '' : pathname}`
  } catch {
    return 'an address that cannot be read'
  }
}
