import type { ProviderMessage, ProviderPart, ToolCallPart } from '../../src/provider/provider.js'
import { toWireName } from '../../src/provider/repair/map-names.js'
import { PROFILES } from '../../src/provider/repair/profile.js'
import { mintSignature } from '../../src/testing/strict/mint-signature.js'

/** A row of the table of malformed histories with signatures that the strict servers have really made. */
export function signRow(history: readonly ProviderMessage[]): ProviderMessage[] {
  return history.map(message => ({ ...message, parts: message.parts.map(sign) }))
}

function sign(part: ProviderPart): ProviderPart {
  if (part.type === 'vendor')
    return { ...part, value: { executableCode: { language: 'PYTHON', code: '1+1' } } }
  if (!('signature' in part) || part.signature === undefined) return part
  const vendor = part.origin?.vendor
  if (part.type === 'tool-call' && vendor === 'gemini') return signCall(part)
  if (part.type === 'text' && vendor === 'gemini') return { ...part, signature: mintSignature('gemini') }
  if (part.type !== 'reasoning') return part
  if (vendor === 'openai') return { ...part, signature: mintSignature('openai') }
  return vendor === 'anthropic'
    ? { ...part, signature: mintSignature('anthropic', { thinking: part.text }) }
    : part
}

/** A signature covers the name under which the model knew the tool, and arguments that it can have written. */
function signCall({ signature, origin, ...call }: ToolCallPart): ToolCallPart {
  const written = JSON.stringify(call.args)
  if (!written.startsWith('{') || /\\ud[89a-f]/.test(written)) return call
  const name = toWireName(call.name, PROFILES['gemini-3'])
  const id = call.id === '' ? {} : { id: call.id }
  return {
    ...call,
    signature: mintSignature('gemini', { name, args: call.args, ...id }),
    ...(origin ? { origin } : {}),
  }
}
