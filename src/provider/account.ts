/**
 * Sealed data (signatures, encrypted reasoning) is accepted only by the account that it was made for. The tag of an
 * account is stored with the answer: it is the same for the same account and says nothing about its key.
 */
import { createHash, createHmac } from 'node:crypto'
import type { ProviderSettings } from './provider-settings.js'
import { neededValue, usesVertex, type VendorRow, vendorAddress } from './vendor-row.js'

export interface AccountFacts {
  readonly settings: ProviderSettings
  readonly row: VendorRow | undefined
  readonly key: string | undefined
  /** A secret of the store. Without it only an account that the settings name has a tag. */
  readonly secret: string | undefined
}

/** Platforms bind what they seal to a resource, a region or a project; their keys and tokens come and go. */
const PLATFORMS: ReadonlySet<string> = new Set(['azure', 'bedrock', 'vertex'])

/** The tag of the account that a provider's requests are made with; `undefined` when it cannot be known. */
export function accountTag({ settings, row, key, secret }: AccountFacts): string | undefined {
  const { id, account, env } = settings
  const platform = platformOf(settings)
  if (account !== undefined)
    return shortened(createHash('sha256').update(JSON.stringify(['account', platform, account])))
  if (secret === undefined) return undefined
  const address = settings.baseUrl ?? (row && vendorAddress(row, env, settings))
  const place = [neededValue(row, 'region', env, settings), neededValue(row, 'project', env, settings)]
  const facts = [id, platform, address, ...place, settings.location, PLATFORMS.has(platform) ? null : key]
  return shortened(createHmac('sha256', secret).update(JSON.stringify(facts)))
}

function platformOf({ type, preset, vertexai, env }: ProviderSettings): string {
  if (type === 'gemini' && usesVertex({ vertexai }, env)) return 'vertex'
  return preset ?? type
}

function shortened(hash: { digest(encoding: 'base64url'): string }): string {
  return hash.digest('base64url').slice(0, 16)
}
