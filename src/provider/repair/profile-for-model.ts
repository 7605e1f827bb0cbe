import { checkArgument } from '../../errors.js'
import type { VendorRow } from '../vendor-row.js'
import { VENDORS, vendorNames, vendorRow } from '../vendors.js'
import type { ProfileName } from './profile.js'

/**
 * The profile that a model's name implies. `type` is the name of a vendor (`gemini`, `ollama`, …), or
 * `openai-compatible` for a server of unknown make. An unknown name gets the strictest profile of its vendor:
 * what satisfies that one satisfies the others.
 *
 * ```ts
 * import { profileForModel } from 'lango/provider'
 *
 * const profile = profileForModel('anthropic', 'claude-sonnet-4-6') // 'anthropic-4.6'
 * ```
 */
export function profileForModel(
  type: string,
  model: string,
  api: 'chat' | 'responses' = 'responses',
): ProfileName {
  checkArgument(
    typeof model === 'string',
    'profileForModel',
    'needs the name of a model as its second argument',
  )
  const name = model.toLowerCase()
  switch (type) {
    case 'gemini':
      return geminiProfile(name)
    case 'anthropic':
      return claudeProfile(name)
    case 'openai':
      return api === 'chat' ? 'openai-chat' : 'openai-responses'
    case 'deepseek':
      return deepseekProfile(name)
    case 'azure':
      return api === 'chat' ? (familyProfile(name) ?? VENDORS.azure.profile) : 'openai-responses'
    case 'bedrock':
      return name.includes('claude') ? claudeProfile(name) : VENDORS.bedrock.profile
    case 'vertex':
      return name.includes('claude') ? claudeProfile(name) : geminiProfile(name)
    default:
      return serverProfile(vendorRow(type), name, api)
  }
}

/**
 * The profile of a gateway with an API like OpenAI's that forwards to this model. `hasDetails`: it is one that sends
 * `reasoning_details`. `undefined` for models without fields of a gateway.
 */
export function gatewayProfile(model: string, hasDetails: boolean): ProfileName | undefined {
  const isSigned = VENDORS.gemini.family.test(model)
  if (hasDetails) return isSigned ? 'openrouter-gemini' : 'openrouter'
  return isSigned ? VENDORS.gemini.familyProfile : undefined
}

function serverProfile(row: VendorRow | undefined, name: string, api: 'chat' | 'responses'): ProfileName {
  // The aliases of Mistral's own API are no names of weights that somebody else could serve.
  if (row === undefined && VENDORS.mistral.names.test(name) && /-(latest|\d{4})$/.test(name)) return 'mistral'
  if (row?.signedFamilies?.test(name)) return gatewayProfile(name, true) ?? row.profile
  if (row === undefined || row.servesFamilies) return familyProfile(name) ?? row?.profile ?? 'vllm'
  return row.api === 'responses' && api === 'chat' ? 'openai-chat' : row.profile
}

/** Up to its third generation DeepSeek wants reasoning back with calls, later with every message. */
function deepseekProfile(name: string): ProfileName {
  return /deepseek-?(v[0-3]|r\d|coder|math|vl|llm)/.test(name)
    ? 'deepseek-thinking'
    : VENDORS.deepseek.profile
}

function geminiProfile(name: string): ProfileName {
  const match = /gemini-(\d+)(?:\.(\d+))?(-flash-lite)?/.exec(name)
  if (!match) return VENDORS.gemini.profile
  const major = Number(match[1])
  const minor = Number(match[2] ?? 0)
  if (major < 3) return 'gemini-2'
  if (major > 3 || minor > 5 || (minor === 5 && match[3] !== undefined)) return 'gemini-3-strict'
  return 'gemini-3'
}

function claudeProfile(name: string): ProfileName {
  const version = claudeVersion(name)
  if (version === undefined) {
    if (name.includes('claude-instant')) return 'anthropic-4.5'
    return /claude-(fable|mythos)(?!-preview)/.test(name) ? 'anthropic-5.1' : VENDORS.anthropic.profile
  }
  if (version < 406) return 'anthropic-4.5'
  return version <= 500 ? 'anthropic-4.6' : 'anthropic-5.1'
}

/** The version in a Claude model's name, as a number that can be compared: 405 for `claude-haiku-4-5`. */
export function claudeVersion(model: string): number | undefined {
  // The minor version has one or two digits; eight digits after the major one are a date.
  const match = /claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2})(?!\d))?/.exec(model)
  return match ? Number(match[1]) * 100 + Number(match[2] ?? 0) : undefined
}

/** On a server that serves many makers' models, the model's family decides: its chat template checks the history. */
function familyProfile(name: string): ProfileName | undefined {
  const [vendor] = vendorNames(({ family }) => family?.test(name) === true)
  if (vendor === 'deepseek') return deepseekProfile(name)
  const row = vendor === undefined ? undefined : vendorRow(vendor)
  return row?.familyProfile ?? row?.profile
}
