/**
 * Any model, one contract. `ProviderMessage` is the neutral shape between ADK's contents and a provider's
 * wire: a role and a list of parts. Nothing that a model said is flattened here: reasoning keeps its raw
 * signature and where it came from, calls keep their ids and arguments.
 */
import { decodeBase64, encodeBase64 } from '../base/base64.js'
import { isRecord } from '../base/is-record.js'
import { type AgentError, checkArgument } from '../errors.js'
import type { ModelPrice } from '../session/usage.js'
import type { Origin, PrefixBreakReason, Repair, StreamEvent, Vendor } from './stream-event.js'

export type { Origin, PrefixBreakReason, Repair, Vendor }

export interface Provider {
  /** The key under which the provider is configured: the part before `/` in `openai/gpt-5.2`. */
  readonly id: string
  /**
   * Streams one answer. The first event is always `request`; the last is `done` or `error`. What fails before
   * there is anything to send (an aborted signal, a history refused in `strict` mode) is an `error` alone.
   */
  generate(request: GenerateRequest, signal?: AbortSignal): AsyncIterable<StreamEvent>
  /** What is known of a model: from the catalogue, the configuration, or a sane guess. Never a network call. */
  describeModel(model: string): ModelInfo
  /** Throws when a request with these options and server tools is refused, whatever its history is. */
  check?(
    request: Pick<GenerateRequest, 'model' | 'options' | 'serverTools' | 'repairMode'>,
    agent?: string,
  ): void
  /**
   * Loads what the first request to a model would load, such as a vendor's SDK. Requests nothing. Throws when that
   * cannot be loaded, or when a setting is missing without which no request can be sent.
   */
  load?(model?: string): Promise<void>
  /** Asks the provider which models it serves. */
  listModels?(signal?: AbortSignal): Promise<ModelInfo[]>
}

/** The provider with another way to answer. What it cannot do is absent from the result too. */
export function withGenerate(provider: Provider, generate: Provider['generate']): Provider {
  return {
    id: provider.id,
    describeModel: model => provider.describeModel(model),
    ...(provider.check ? { check: (request, agent) => provider.check?.(request, agent) } : {}),
    ...(provider.load ? { load: async model => provider.load?.(model) } : {}),
    ...(provider.listModels
      ? { listModels: async signal => (await provider.listModels?.(signal)) ?? [] }
      : {}),
    generate,
  }
}

export interface GenerateRequest {
  /** The model's name without the provider's prefix. */
  model: string
  /** System messages first, if any. */
  messages: readonly ProviderMessage[]
  tools?: readonly ToolDeclaration[]
  /** Tools that the vendor's own servers run. A provider that has no such tool refuses the request. */
  serverTools?: readonly ServerTool[]
  options?: GenerationOptions
  /** What to do with a history that the model would refuse. Default `repair`. */
  repairMode?: RepairMode
  /** Which reading of disputed limits of media holds. Default `documented`. */
  mediaLimits?: 'documented' | 'strict' | undefined
  /**
   * How many messages, from the first, the model was sent in a request that it answered. Media among them are not left out
   * for a refusal that names no place. Default 0.
   */
  answered?: number
  /** A secret of the store, from which the tags of accounts are made (`Origin.account`). Never sent. */
  accountSecret?: string
  /**
   * The caller discards what it has received of an answer when a `restart` event says so. Without it a request is not
   * sent again once a part of its answer was emitted.
   */
  takesBack?: boolean
  /** Called before the request is sent again after an error. What it throws ends the call. */
  onRetry?: ((error: AgentError) => Promise<void>) | undefined
}

export type RepairMode = 'repair' | 'strict' | 'explain'

export interface GenerationOptions {
  temperature?: number
  topP?: number
  topK?: number
  seed?: number
  maxOutputTokens?: number
  stopSequences?: readonly string[]
  presencePenalty?: number
  frequencyPenalty?: number
  /** Log probabilities of the answer: how many alternatives to each token, 0 for the tokens alone. */
  logprobs?: number
  /** A JSON schema that the answer must satisfy. */
  responseSchema?: Readonly<Record<string, unknown>>
  /** The answer must be JSON, of any form. */
  responseFormat?: 'json'
  /** `{ names }`: one of these tools must be called. */
  toolChoice?: 'auto' | 'none' | 'required' | { name: string } | { names: readonly string[] }
  thinking?: {
    /** -1: the model decides. */
    budgetTokens?: number
    effort?: 'minimal' | 'low' | 'medium' | 'high'
    /** `if-open`: only where the vendor shows them to everybody. OpenAI wants a verified organization. */
    includeThoughts?: boolean | 'if-open'
  }
  /**
   * Options as `@google/genai` names and spells them: those that only Gemini has, and the exact form of those whose
   * neutral form above says less. Gemini gets them as they are; other providers report or refuse them.
   */
  gemini?: Readonly<Record<string, unknown>>
}

/** A tool as a model sees it: `parameters` is a JSON schema with lower-case types. */
export interface ToolDeclaration {
  name: string
  description: string
  parameters: Readonly<Record<string, unknown>>
  /** The declaration as ADK wrote it, in Gemini's dialect: Gemini gets this one. */
  gemini?: Readonly<Record<string, unknown>>
}

/** A tool that the vendor's servers run. Its name and configuration are Gemini's: `googleSearch`, `codeExecution`, … */
export interface ServerTool {
  name: string
  config: Readonly<Record<string, unknown>>
  /** It was declared before the functions. Gemini gets its tools in the order in which they were declared. */
  beforeFunctions?: true
}

/** Roles after conversion; a history from elsewhere may hold any string, which repair makes legal. */
export type ProviderRole = 'system' | 'user' | 'assistant' | 'tool' | (string & {})

export interface ProviderMessage {
  role: ProviderRole
  parts: readonly ProviderPart[]
  /**
   * Set on a message of the user's role that the user did not write: ADK's account of what another agent did, a
   * correction by Lango. Never sent.
   */
  writtenBy?: 'program'
}

export type ProviderPart = TextPart | ReasoningPart | ToolCallPart | ToolResultPart | MediaPart | VendorPart

/** What a model has sealed, and for whom. */
export interface Sealed {
  /** The vendor's raw signature or encrypted content, byte for byte. */
  signature?: string
  origin?: Origin
  /**
   * The provider's words, where it has refused what is sealed here. Set by the code that knows what it has refused; never
   * sent.
   */
  sealRefused?: string
}

/** Gemini 3 signs text parts too, the empty last one included. */
export interface TextPart extends Sealed {
  type: 'text'
  text: string
}

export interface ReasoningPart extends Sealed {
  type: 'reasoning'
  text: string
  /** The vendor withheld the text; `signature` holds its opaque data. */
  redacted?: boolean
  /**
   * Something before this part is not as it was when the model made it: instructions, tools or an earlier message.
   * Vendors that bind reasoning to its prefix refuse it then, so it is left out of their requests. Set by the code that
   * knows the earlier requests (see `breakReasoning`); never sent.
   */
  prefixBroken?: true
}

export interface ToolCallPart extends Sealed {
  type: 'tool-call'
  id: string
  name: string
  /** The arguments. An object, unless the history is malformed: then whatever was stored. */
  args: unknown
}

export interface ToolResultPart {
  type: 'tool-result'
  id: string
  name: string
  result: unknown
  isError?: boolean
  /** Images and files that the tool returned in addition to its JSON. */
  media?: readonly MediaPart[]
}

export interface MediaPart extends Sealed {
  type: 'media'
  mimeType: string
  /** Base64. Either `data` or `url`. */
  data?: string
  url?: string
  name?: string
  /** Further fields of Gemini's part: how a video is sampled, how closely an image is looked at. */
  gemini?: Readonly<Record<string, unknown>>
  /** A note stands in its place. Set by the code that knows what a provider has refused; never sent. */
  leftOut?: LeftOut
}

/** Why a part is not sent. */
export interface LeftOut {
  kind: 'media-left-out' | 'refused-by-provider'
  /** It is no file that anybody could read. */
  isUnreadable?: true
  /** A clause for people: the same in every request, because the model reads it. */
  reason: string
  /** Where the limit is documented, or the provider's words: for the receipt. */
  source: string
}

/** Something only one vendor understands (code execution, server tools). `text` is what others get. */
export interface VendorPart extends Sealed {
  type: 'vendor'
  vendor: Vendor
  value: unknown
  text: string
}

/** What a model takes and does. */
export interface ModelCapabilities {
  /** It takes images. */
  vision: boolean
  /** It calls tools. */
  tools: boolean
  /** It can think before it answers. */
  thinking: boolean
}

export interface ModelInfo {
  /** Without the provider's prefix. */
  id: string
  name?: string
  contextWindow: number
  outputLimit: number
  /** Absent when it is not known. */
  price?: ModelPrice
  /** Absent when they are not known. */
  capabilities?: ModelCapabilities
  /** Name of the repair profile. */
  profile: string
  /** False when the figures are a guess for an unknown model. */
  known: boolean
  /** A system message may follow the newest message: a changed instruction is appended there. */
  takesLaterSystem?: boolean
  /** Reasoning is bound to everything before it, and refused where that has changed. */
  bindsReasoning?: boolean
}

/**
 * The same messages with the reasoning of some of them marked as bound to an earlier form of the history. A change
 * invalidates what follows it and existed then; reasoning that the model makes after the change is bound to the
 * changed history, so the mark stays with the messages that got it.
 *
 * ```ts
 * import { breakReasoning, type ProviderMessage } from 'lango/provider'
 *
 * const messages: ProviderMessage[] = [{ role: 'user', parts: [{ type: 'text', text: 'Hello' }] }]
 * const changedAt = 0
 * const marked = breakReasoning(messages, (_, index) => index >= changedAt)
 * ```
 */
export function breakReasoning(
  messages: readonly ProviderMessage[],
  isBroken: (message: ProviderMessage, index: number) => boolean,
): ProviderMessage[] {
  checkArgument(Array.isArray(messages), 'breakReasoning', 'needs messages as its first argument')
  checkArgument(typeof isBroken === 'function', 'breakReasoning', 'needs a function as its second argument')
  return messages.map((message, index) => {
    if (!message?.parts?.some(part => part.type === 'reasoning') || !isBroken(message, index)) return message
    const parts = message.parts.map(part =>
      part.type === 'reasoning' ? { ...part, prefixBroken: true as const } : part,
    )
    return { ...message, parts }
  })
}

/** A URL that carries or names the media. */
export function mediaUrl(media: MediaPart): string {
  return media.data === undefined ? (media.url ?? '') : `data:${media.mimeType};base64,${media.data}`
}

/** The text that stands for media where it cannot be sent. */
export function mediaNote(media: MediaPart): string {
  const name = media.name === undefined ? '' : ` ${media.name}`
  const place = media.data === undefined && media.url !== undefined ? ` at ${media.url}` : ''
  return `[${media.mimeType}${name}${place}: not shown, because this model cannot take it here]`
}

/** A tool's result as the text that chat-style wires take. */
export function resultText(result: unknown): string {
  if (typeof result === 'string') return result === '' ? '(no output)' : result
  return JSON.stringify(result) ?? '(no output)'
}

/** A schema that every provider accepts as a tool's parameters: an object, even when it has no properties. */
export function objectSchema(schema: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return { ...schema, type: 'object', properties: schema.properties ?? {} }
}

const SEAL = 'lango.'

/**
 * ADK's parts have one field for a signature and none for its origin. Gemini's own signatures stay raw there,
 * so that ADK's Gemini model can use them; those of other vendors are sealed together with their origin.
 *
 * ```ts
 * import { openSignature, sealSignature } from 'lango/provider'
 *
 * const sealed = sealSignature('abc', { vendor: 'anthropic', model: 'claude-sonnet-4-6' })
 * const { signature, origin } = openSignature(sealed) // 'abc', { vendor: 'anthropic', … }
 * ```
 */
export function sealSignature(signature: string | undefined, origin: Origin, redacted = false): string {
  checkArgument(isRecord(origin), 'sealSignature', 'needs an origin with a vendor')
  if (origin.vendor === 'gemini' && signature !== undefined) return signature
  const envelope = {
    v: origin.vendor,
    ...(origin.model === undefined ? {} : { m: origin.model }),
    ...(signature === undefined ? {} : { s: signature }),
    ...(redacted ? { r: true } : {}),
  }
  // ADK and the Gemini API take the field as base64 bytes, so the seal must be base64 as well.
  return encodeBase64(SEAL + JSON.stringify(envelope))
}

export interface OpenedSignature {
  signature?: string
  origin: Origin
  redacted: boolean
}

/**
 * The reverse of `sealSignature`. Whatever carries no seal is Gemini's.
 *
 * ```ts
 * import { openSignature } from 'lango/provider'
 *
 * const { origin } = openSignature('a signature of Gemini') // { vendor: 'gemini' }
 * ```
 */
export function openSignature(sealed: string): OpenedSignature {
  checkArgument(typeof sealed === 'string', 'openSignature', 'needs a text')
  const text = sealed.startsWith(SEALED_PREFIX) ? decodeBase64(sealed) : ''
  if (!text.startsWith(SEAL)) return { signature: sealed, origin: { vendor: 'gemini' }, redacted: false }
  try {
    const envelope = JSON.parse(text.slice(SEAL.length)) as {
      v?: string
      m?: string
      s?: string
      r?: boolean
    }
    return {
      ...(envelope.s === undefined ? {} : { signature: envelope.s }),
      origin: { vendor: envelope.v ?? 'unknown', ...(envelope.m === undefined ? {} : { model: envelope.m }) },
      redacted: envelope.r === true,
    }
  } catch {
    return { signature: sealed, origin: { vendor: 'gemini' }, redacted: false }
  }
}

// 'lango.' is six bytes: exactly eight base64 characters, whatever follows.
const SEALED_PREFIX = 'bGFuZ28u'
