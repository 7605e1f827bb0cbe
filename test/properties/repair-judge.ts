/**
 * The strict servers as an independent check: a history becomes the body that our providers would send, and the servers'
 * rules, which share no code with repair, say what they would refuse. Signatures are minted as the servers
 * mint them, so that a genuine one can be distinguished from one that repair should have removed.
 */
import { toAnthropicRequest } from '../../src/provider/anthropic/to-anthropic-request.js'
import { toConverseRequest } from '../../src/provider/converse/to-converse-request.js'
import { toGeminiRequest } from '../../src/provider/gemini/to-gemini-request.js'
import { chatQuirks, toChatRequest } from '../../src/provider/openai/to-chat-request.js'
import { toResponsesRequest } from '../../src/provider/openai/to-responses-request.js'
import type {
  GenerationOptions,
  Origin,
  ProviderMessage,
  ProviderPart,
  ToolCallPart,
} from '../../src/provider/provider.js'
import type { LimitsReading } from '../../src/provider/repair/media-limits.js'
import { PROFILES, type ProfileName } from '../../src/provider/repair/profile.js'
import { openFields, sealFields } from '../../src/provider/sealed-fields.js'
import { judge } from '../../src/testing/strict/judge.js'
import { mintReasoningId, mintSignature } from '../../src/testing/strict/mint-signature.js'
import { mintEncryptedContent } from '../../src/testing/strict/openai-responses/items.js'
import { ACCOUNT } from './repair-generator.js'

/** What the profile's strict server would refuse in the body made of these messages. */
export function strictJudge(
  messages: readonly ProviderMessage[],
  profile: ProfileName,
  limits: LimitsReading = 'documented',
): string[] {
  // Bytes that are no picture are sent, and refused by the stricter reading: nothing of them can be known beforehand.
  const opaque = limits === 'strict'
  // How much a window holds is no matter of repair.
  const options = { limits, opaque, account: ACCOUNT, contextWindow: Infinity }
  return judge(profile, wireBody(messages, profile), options).map(
    ({ code, message }) => `${code}: ${message}`,
  )
}

/** The body that our provider for the profile sends. */
export function wireBody(messages: readonly ProviderMessage[], name: ProfileName): unknown {
  const model = MODELS[name]
  const info = { id: model, contextWindow: 1_000_000, outputLimit: 8192, profile: name, known: true }
  // A request with tools is judged by more rules, one without needs stand-ins for them.
  const tools = messages.length % 2 === 0 ? TOOLS : []
  const { toolChoice, ...others } = OPTIONS[messages.length % OPTIONS.length] ?? {}
  // A forced tool is refused before anything is written for a model that cannot be forced.
  const options = toolChoice === undefined || name === 'anthropic-5.1' ? others : { ...others, toolChoice }
  const request = { model, messages, tools, options, profile: PROFILES[name], info, report: () => {} }
  if (name.startsWith('gemini')) return toGeminiRequest(request)
  if (name.startsWith('anthropic')) return toAnthropicRequest(request)
  if (name.endsWith('-responses')) return toResponsesRequest(request)
  if (name === 'converse') {
    const { modelId: _model, ...body } = toConverseRequest(request)
    return body
  }
  return toChatRequest(request, chatQuirks(name, HOSTS[name]))
}

/** Where a tool can be forced only in a way of the host's. */
const HOSTS: Partial<Readonly<Record<ProfileName, string>>> = {
  'deepseek-v4': 'deepseek',
  kimi: 'moonshot',
  qwen: 'dashscope',
}

/** Thinking as it may be asked for: it decides what a history may begin and end with. */
const OPTIONS: readonly GenerationOptions[] = [
  {},
  { thinking: { budgetTokens: 2048 }, maxOutputTokens: 4096 },
  { thinking: { effort: 'high' } },
  { thinking: { budgetTokens: 0 } },
  { thinking: { budgetTokens: 1024 }, toolChoice: 'required' },
]

const TOOLS = ['search', 'fetch'].map(name => ({ name, description: name, parameters: {} }))

const MODELS: Readonly<Record<ProfileName, string>> = {
  'gemini-2': 'gemini-2.5-flash',
  'gemini-3': 'gemini-3-pro',
  'gemini-3-strict': 'gemini-3.6-flash',
  'openai-chat': 'gpt-4o',
  'openai-responses': 'gpt-5.2',
  'anthropic-4.5': 'claude-sonnet-4-5',
  'anthropic-4.6': 'claude-opus-4-6',
  'anthropic-5.1': 'claude-opus-5-5',
  'xai-responses': 'grok-4.3',
  mistral: 'mistral-large-latest',
  'mistral-template': 'mistral-small',
  'deepseek-v4': 'deepseek-v4-flash',
  kimi: 'kimi-k2.6',
  glm: 'glm-5.1',
  qwen: 'qwen3.5-plus',
  minimax: 'MiniMax-M2.5',
  'deepseek-thinking': 'deepseek-reasoner',
  groq: 'llama-3.3-70b-versatile',
  vllm: 'some-model',
  ollama: 'llama3.2',
  converse: 'us.amazon.nova-pro-v1:0',
  cohere: 'command-a-03-2025',
  'compatible-gemini': 'gemini-3.5-flash',
  openrouter: 'anthropic/claude-sonnet-4.6',
  'openrouter-gemini': 'google/gemini-3.5-flash',
}

/** Puts genuine signatures in the place of made-up ones; what no server could have signed loses its own. */
export function signHistory(history: readonly ProviderMessage[]): ProviderMessage[] {
  return history.map(message => {
    const { parts } = message
    return { ...message, parts: parts.map(part => (typeof part === 'object' ? sign(part, parts) : part)) }
  })
}

function sign(part: ProviderPart, beside: readonly ProviderPart[]): ProviderPart {
  if (part.type === 'tool-result') {
    return part.media ? { ...part, media: part.media.map(media => sign(media, []) as typeof media) } : part
  }
  if (part.signature === undefined) return part
  const signature = isGateway(part) ? throughGateway(part, beside) : genuine(part)
  if (signature !== undefined) return { ...part, signature }
  const { signature: _, ...rest } = part
  return rest as ProviderPart
}

type Signed = Exclude<ProviderPart, { type: 'tool-result' }>

function isGateway({ origin }: Signed): boolean {
  return ['compatible-gemini', 'openrouter', 'openrouter-gemini'].includes(origin?.vendor ?? '')
}

/** The fields that a gateway would have sent with the part. */
function throughGateway(part: Signed, beside: readonly ProviderPart[]): string | undefined {
  if (part.origin?.vendor === 'compatible-gemini') {
    if (openFields(part.signature)) return part.signature
    const signature =
      part.type === 'tool-call' ? ofCall(part, part.origin) : mintSignature('gemini', undefined, part.origin)
    return signature && sealFields({ google: { thought_signature: signature } })
  }
  if (part.type !== 'reasoning') return undefined
  // What a program spoilt stays spoilt: no server would have sent it.
  if (!/^[\w+/=-]+$/.test(part.signature ?? '') || openFields(part.signature)) return part.signature
  if (part.origin?.vendor === 'openrouter') {
    const signature = mintSignature('anthropic', { thinking: part.text }, part.origin)
    const format = 'anthropic-claude-v1'
    return sealFields([{ type: 'reasoning.text', text: part.text, signature, format, index: 0 }])
  }
  const call = beside.find(other => other.type === 'tool-call')
  const data = call && ofCall(call, part.origin)
  const sealed =
    data && call ? { id: call.id, data } : { data: mintSignature('gemini', undefined, part.origin) }
  return sealFields([{ type: 'reasoning.encrypted', ...sealed, format: 'google-gemini-v1', index: 0 }])
}

function ofCall({ name, args }: ToolCallPart, owner: Origin | undefined): string | undefined {
  const signable = PROFILES['compatible-gemini'].names.test(name) && isPlain(args)
  return signable ? mintSignature('gemini', { name, args }, owner) : undefined
}

function genuine(part: Exclude<ProviderPart, { type: 'tool-result' }>): string | undefined {
  const vendor = part.origin?.vendor ?? 'gemini'
  if (part.type === 'tool-call') {
    if (vendor !== 'gemini') return part.signature
    const signable = PROFILES['gemini-3'].names.test(part.name) && isPlain(part.args)
    return signable ? mintSignature('gemini', { name: part.name, args: part.args }, part.origin) : undefined
  }
  if (vendor === 'gemini') return mintSignature('gemini', undefined, part.origin)
  if (part.type !== 'reasoning') return part.signature
  // What a program spoilt stays spoilt: no server would have sent it.
  if (!/^[\w+/=-]+$/.test(part.signature ?? '')) return part.signature
  if (vendor === 'anthropic') return mintSignature('anthropic', { thinking: part.text }, part.origin)
  if (vendor === 'xai')
    return mintEncryptedContent(mintReasoningId(), 'done', '', {
      maker: 'xai-responses',
      account: part.origin?.account,
    })
  return vendor === 'openai' ? mintSignature('openai', {}, part.origin) : part.signature
}

function isPlain(args: unknown): boolean {
  return (
    typeof args === 'object' &&
    args !== null &&
    !Array.isArray(args) &&
    !('when' in args || 'deep' in args) &&
    !/\\ud[89a-f]/.test(JSON.stringify(args))
  )
}
