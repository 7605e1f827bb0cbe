import type { ProviderMessage } from '../../provider/provider.js'
import type { GenerateContentConfig, Part } from '../sdk.js'

/** The system instruction as one message: its texts joined by newlines. `undefined` when there is none. */
export function systemMessage(config: GenerateContentConfig | undefined): ProviderMessage | undefined {
  const texts = textsOf(config?.systemInstruction)
  if (texts.length === 0) return undefined
  return { role: 'system', parts: [{ type: 'text', text: texts.join('\n') }] }
}

/** ADK sends a string; its type also allows a part, a list of parts or texts, and a content. */
function textsOf(instruction: GenerateContentConfig['systemInstruction']): string[] {
  if (!instruction) return []
  if (typeof instruction === 'string') return [instruction]
  if (Array.isArray(instruction)) return instruction.flatMap(textsOf)
  if ('parts' in instruction) return (instruction.parts ?? []).flatMap(part => textsOf(part))
  const { text } = instruction as Part
  return text ? [text] : []
}
