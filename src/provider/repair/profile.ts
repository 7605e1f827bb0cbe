/**
 * A profile is what one generation of models demands of a history, as data. The steps of the pipeline read
 * it and know no vendor by name, so a new model is a new row here, and a custom server is a `Profile` of its
 * own: `{ ...PROFILES['openai-chat'], name: 'my-gateway', alternation: true }`.
 */
import { AgentError, checkArgument } from '../../errors.js'
import type { Vendor } from '../provider.js'
import {
  CLAUDE_LIMITS,
  CONVERSE_LIMITS,
  GEMINI_LIMITS,
  GROQ_LIMITS,
  type MediaLimit,
  MINIMAX_LIMITS,
  OPENAI_LIMITS,
  XAI_LIMITS,
} from './media-limits.js'

export interface Profile {
  readonly name: string
  /** Whose signatures, reasoning and vendor parts are native. Compared with a part's `origin.vendor`. */
  readonly vendor: Vendor
  readonly ids: IdRules
  /** The shape of a tool's name; others are mapped there and back. */
  readonly names: RegExp
  /** What the first message that is not a system message must be. */
  readonly first: 'user' | 'user-or-system' | 'any'
  /** True when system messages alone are not a conversation. */
  readonly needsTurn: boolean
  /** `trimmed`: an assistant may speak last if its text does not end in white space. */
  readonly last: 'any' | 'trimmed' | 'user-or-tool'
  /** Neighbours of one role must be one message. Tool results are a role of their own here. */
  readonly alternation: boolean
  /** Results must be answered by the assistant before the user speaks again. */
  readonly resultsAnswered?: true
  /**
   * Where system messages may stand. `open`: anywhere but after an assistant or a tool. `after-user`: also one
   * alone between a user (or results) and an assistant (or the end).
   */
  readonly system: 'anywhere' | 'open' | 'after-user' | 'leading' | 'one-leading'
  /** Where a call's result must be: directly after it, anywhere later, or nowhere in particular. */
  readonly pairing: 'next' | 'later' | 'none'
  readonly results: ResultRules
  /** A call must end its message: text after it is refused. */
  readonly callsLast: boolean
  /** Which text parts are refused: the empty, the blank (white space only), or none. */
  readonly dropText: 'never' | 'empty' | 'blank'
  readonly reasoning: ReasoningRules
  /** Signatures on calls and text: no such field, echoed, or demanded on the first call of a step. */
  readonly signatures: 'ignored' | 'optional' | 'required'
  /** A signature of a call or text is an object of fields, which are sent back as they came. */
  readonly signsInFields?: true
  readonly media: MediaRules
  /** The wire can carry the vendor's own parts (code execution, server tools). */
  readonly vendorParts: boolean
  /** Such parts hold data that only the account can read for which it was sealed. */
  readonly sealsVendorParts?: true
  /** The server forwards to several makers, which its models' names begin with: each reads what it has sealed itself. */
  readonly byMaker?: true
  /** A request with calls or results must declare tools. The request's business, not the history's. */
  readonly toolsRequired: boolean
}

export interface IdRules {
  /** Absent: any id will do, the empty one included. */
  readonly pattern?: RegExp
  readonly unique: 'no' | 'step' | 'history'
  /** `omitted`: the wire of this generation has no call ids, so order ties a result to its call. */
  readonly onWire: 'sent' | 'omitted'
}

export interface ResultRules {
  /** Whether a user message may hold results: alone, or first and followed by something else. */
  readonly inUser: 'no' | 'alone' | 'first'
  /** All results of one message's calls must be one message. */
  readonly grouped: boolean
  readonly inCallOrder: boolean
  /** A result must be a JSON object. */
  readonly object: boolean
  /** A result must name its tool, by the name that its call has. */
  readonly named: boolean
  /** An empty result is accepted. */
  readonly empty: boolean
}

export interface ReasoningRules {
  readonly keep: 'none' | 'own' | 'own-signed'
  /** What must stand with reasoning: nothing, something in the same message, or something after it. */
  readonly needs: 'nothing' | 'company' | 'follower'
  /** A message with calls must carry reasoning, be it a stand-in. */
  readonly requiredWithCalls: boolean
  /** The stand-in's text. Default: empty. */
  readonly standIn?: string
  /** A message sends back all of its reasoning or none. */
  readonly whole?: true
  /** Each piece is bound to everything before it: where that has changed, it is left out. */
  readonly bound?: true
}

export interface MediaRules {
  readonly types: RegExp
  /** The pictures that the vendor's page lists, where it is known that others were taken and refused: see `MediaLimit`. */
  readonly listed?: RegExp
  readonly inResult: boolean
  readonly inAssistant: boolean
  readonly remote: boolean
  readonly limits: readonly MediaLimit[]
}

export type ProfileName =
  | 'gemini-2'
  | 'gemini-3'
  | 'gemini-3-strict'
  | 'openai-chat'
  | 'openai-responses'
  | 'anthropic-4.5'
  | 'anthropic-4.6'
  | 'anthropic-5.1'
  | 'mistral'
  | 'mistral-template'
  | 'deepseek-thinking'
  | 'deepseek-v4'
  | 'kimi'
  | 'glm'
  | 'qwen'
  | 'minimax'
  | 'xai-responses'
  | 'converse'
  | 'cohere'
  | 'compatible-gemini'
  | 'openrouter'
  | 'openrouter-gemini'
  | 'groq'
  | 'vllm'
  | 'ollama'

const PLAIN_NAME = /^[a-zA-Z0-9_-]{1,64}$/
const IMAGES = /^image\/(jpeg|png|gif|webp)$/
const IMAGES_AND_PDF = /^(image\/(jpeg|png|gif|webp)|application\/pdf)$/
const CLAUDE_MEDIA = /^(image\/(jpeg|png|gif|webp)|application\/pdf|text\/plain)$/
const GPT_MEDIA = /^(image\/(jpeg|png|gif|webp)|application\/pdf|audio\/(wav|x-wav|mp3|mpeg))$/
const CONVERSE_MEDIA =
  /^(image\/(jpeg|png|gif|webp)|application\/pdf|text\/(plain|csv|html|markdown)|video\/(mp4|webm|quicktime))$/
const ANYTHING = /^/
/** ai.google.dev: Image understanding, 2026. gemini-cli issue 14838 and gcli2api issue 297: BMP and GIF were refused. */
const GEMINI_PICTURES = /^image\/(png|jpeg|webp|heic|heif)$/
const NOTHING = /^(?!)/

const GEMINI_3: Profile = {
  name: 'gemini-3',
  vendor: 'gemini',
  ids: { unique: 'step', onWire: 'sent' },
  names: /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$/,
  first: 'user',
  needsTurn: true,
  last: 'any',
  // Google accepts neighbours of one role; the specification's pipeline joins them, and so do we.
  alternation: true,
  system: 'leading',
  pairing: 'next',
  results: { inUser: 'alone', grouped: true, inCallOrder: false, object: true, named: true, empty: true },
  callsLast: false,
  dropText: 'empty',
  reasoning: { keep: 'own', needs: 'nothing', requiredWithCalls: false },
  signatures: 'required',
  media: {
    types: ANYTHING,
    listed: GEMINI_PICTURES,
    inResult: true,
    inAssistant: true,
    remote: true,
    limits: GEMINI_LIMITS,
  },
  vendorParts: true,
  toolsRequired: false,
}

const OPENAI_CHAT: Profile = {
  name: 'openai-chat',
  vendor: 'openai',
  ids: { pattern: /^.{1,40}$/s, unique: 'step', onWire: 'sent' },
  names: PLAIN_NAME,
  first: 'any',
  needsTurn: false,
  last: 'any',
  alternation: false,
  system: 'anywhere',
  pairing: 'next',
  results: { inUser: 'no', grouped: false, inCallOrder: false, object: false, named: false, empty: true },
  callsLast: false,
  dropText: 'never',
  reasoning: { keep: 'none', needs: 'company', requiredWithCalls: false },
  signatures: 'ignored',
  media: { types: GPT_MEDIA, inResult: false, inAssistant: false, remote: true, limits: OPENAI_LIMITS },
  vendorParts: false,
  toolsRequired: false,
}

/** Gemini from 3 on behind an API like OpenAI's: its rules for turns and signatures, in another form. */
const GEMINI_CHAT: Profile = {
  ...OPENAI_CHAT,
  name: 'compatible-gemini',
  vendor: 'compatible-gemini',
  names: /^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/,
  first: 'user',
  needsTurn: true,
  last: 'user-or-tool',
  alternation: true,
  system: 'one-leading',
  dropText: 'empty',
  signatures: 'required',
  signsInFields: true,
  media: { ...GEMINI_3.media, types: IMAGES_AND_PDF, inResult: false, inAssistant: false, remote: false },
}

/** OpenRouter passes histories on to every maker's API: what one of them refuses is refused for all. */
const OPENROUTER: Profile = {
  ...OPENAI_CHAT,
  name: 'openrouter',
  vendor: 'openrouter',
  ids: { pattern: /^[a-zA-Z0-9_-]{1,40}$/, unique: 'step', onWire: 'sent' },
  names: /^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/,
  first: 'user',
  needsTurn: true,
  last: 'user-or-tool',
  system: 'one-leading',
  dropText: 'blank',
  reasoning: { keep: 'own-signed', needs: 'company', requiredWithCalls: false },
  // The makers' limits differ, and which of them a model has is not known here: everything is sent.
  media: { ...OPENAI_CHAT.media, limits: [] },
  byMaker: true,
}

const CLAUDE_4_6: Profile = {
  name: 'anthropic-4.6',
  vendor: 'anthropic',
  ids: { pattern: /^[a-zA-Z0-9_-]{1,64}$/, unique: 'step', onWire: 'sent' },
  names: PLAIN_NAME,
  first: 'user',
  needsTurn: true,
  last: 'user-or-tool',
  alternation: false,
  system: 'leading',
  pairing: 'next',
  results: { inUser: 'first', grouped: true, inCallOrder: false, object: false, named: false, empty: true },
  callsLast: true,
  dropText: 'blank',
  reasoning: { keep: 'own-signed', needs: 'follower', requiredWithCalls: false, whole: true },
  signatures: 'ignored',
  media: { types: CLAUDE_MEDIA, inResult: true, inAssistant: false, remote: true, limits: CLAUDE_LIMITS },
  vendorParts: true,
  sealsVendorParts: true,
  toolsRequired: true,
}

const RESPONSES: Profile = {
  ...OPENAI_CHAT,
  name: 'openai-responses',
  ids: { pattern: /^.{1,64}$/s, unique: 'history', onWire: 'sent' },
  // System messages travel apart from the input, and an empty text is no item of it.
  needsTurn: true,
  dropText: 'empty',
  pairing: 'later',
  reasoning: { keep: 'own-signed', needs: 'follower', requiredWithCalls: false },
  media: { types: IMAGES_AND_PDF, inResult: true, inAssistant: false, remote: true, limits: OPENAI_LIMITS },
}

const DEEPSEEK: Profile = {
  ...OPENAI_CHAT,
  name: 'deepseek-thinking',
  vendor: 'deepseek',
  reasoning: { keep: 'own', needs: 'company', requiredWithCalls: true },
  media: { types: NOTHING, inResult: false, inAssistant: false, remote: false, limits: [] },
}

const MISTRAL_IDS: IdRules = { pattern: /^[a-zA-Z0-9]{9}$/, unique: 'step', onWire: 'sent' }

/** A server that puts the history through the model's own chat template. */
const VLLM: Profile = {
  ...OPENAI_CHAT,
  name: 'vllm',
  vendor: 'vllm',
  first: 'user',
  needsTurn: true,
  alternation: true,
  system: 'one-leading',
  media: {
    types: /^(image|audio|video)\//,
    inResult: false,
    inAssistant: false,
    remote: true,
    limits: [],
  },
}

/** Models that think between calls and want their thoughts back: the rules of their makers' own APIs, which vLLM takes too. */
const ECHOING: Profile = {
  ...VLLM,
  // The makers' own APIs refuse empty messages, which vLLM takes.
  dropText: 'blank',
  reasoning: { keep: 'own', needs: 'company', requiredWithCalls: false },
  media: { types: IMAGES, inResult: false, inAssistant: false, remote: true, limits: [] },
}

/** Every built-in profile by its name. */
export const PROFILES: Readonly<Record<ProfileName, Profile>> = {
  'gemini-2': {
    ...GEMINI_3,
    name: 'gemini-2',
    ids: { unique: 'no', onWire: 'omitted' },
    results: { ...GEMINI_3.results, inCallOrder: true },
    signatures: 'optional',
    media: { ...GEMINI_3.media, inResult: false },
  },
  'gemini-3': GEMINI_3,
  'gemini-3-strict': { ...GEMINI_3, name: 'gemini-3-strict', last: 'user-or-tool' },
  'openai-chat': OPENAI_CHAT,
  'openai-responses': RESPONSES,
  'xai-responses': {
    ...RESPONSES,
    name: 'xai-responses',
    vendor: 'xai',
    media: { ...RESPONSES.media, limits: XAI_LIMITS },
  },
  'anthropic-4.5': { ...CLAUDE_4_6, name: 'anthropic-4.5', last: 'trimmed' },
  'anthropic-4.6': CLAUDE_4_6,
  'anthropic-5.1': {
    ...CLAUDE_4_6,
    name: 'anthropic-5.1',
    system: 'after-user',
    reasoning: { ...CLAUDE_4_6.reasoning, bound: true },
  },
  mistral: {
    ...OPENAI_CHAT,
    name: 'mistral',
    vendor: 'mistral',
    ids: MISTRAL_IDS,
    first: 'user-or-system',
    needsTurn: true,
    last: 'user-or-tool',
    system: 'open',
    results: { ...OPENAI_CHAT.results, named: true, empty: false },
    dropText: 'empty',
    media: { types: IMAGES_AND_PDF, inResult: false, inAssistant: false, remote: true, limits: [] },
  },
  'mistral-template': {
    ...VLLM,
    name: 'mistral-template',
    ids: MISTRAL_IDS,
    last: 'user-or-tool',
    resultsAnswered: true,
    results: { ...OPENAI_CHAT.results, named: true, empty: false },
    dropText: 'empty',
    media: { types: IMAGES, inResult: false, inAssistant: false, remote: true, limits: [] },
  },
  'deepseek-thinking': DEEPSEEK,
  // The wire differs: every message of the assistant brings the field back, not only those with calls.
  'deepseek-v4': { ...DEEPSEEK, name: 'deepseek-v4' },
  kimi: {
    ...ECHOING,
    name: 'kimi',
    vendor: 'moonshot',
    // An empty text was refused by some, so the stand-in says that there is nothing.
    reasoning: { ...ECHOING.reasoning, requiredWithCalls: true, standIn: '(no reasoning was recorded)' },
  },
  glm: { ...ECHOING, name: 'glm', vendor: 'zai' },
  qwen: { ...ECHOING, name: 'qwen', vendor: 'qwen' },
  minimax: {
    ...ECHOING,
    name: 'minimax',
    vendor: 'minimax',
    media: { ...ECHOING.media, limits: MINIMAX_LIMITS },
  },
  // Whatever the maker of the model is; what only some of the models refuse is refused for all.
  converse: {
    ...CLAUDE_4_6,
    name: 'converse',
    vendor: 'bedrock',
    alternation: true,
    resultsAnswered: true,
    results: { ...CLAUDE_4_6.results, inUser: 'no' },
    // DeepSeek's models refuse what they thought before, and the others do not ask for it.
    reasoning: { keep: 'none', needs: 'company', requiredWithCalls: false },
    media: {
      types: CONVERSE_MEDIA,
      inResult: false,
      inAssistant: false,
      remote: false,
      limits: CONVERSE_LIMITS,
    },
    vendorParts: false,
  },
  cohere: {
    ...OPENAI_CHAT,
    name: 'cohere',
    vendor: 'cohere',
    needsTurn: true,
    dropText: 'blank',
    media: { types: IMAGES, inResult: false, inAssistant: false, remote: true, limits: [] },
  },
  'compatible-gemini': GEMINI_CHAT,
  openrouter: OPENROUTER,
  'openrouter-gemini': {
    ...OPENROUTER,
    name: 'openrouter-gemini',
    vendor: 'openrouter-gemini',
    alternation: true,
    signatures: 'required',
  },
  groq: {
    ...OPENAI_CHAT,
    name: 'groq',
    vendor: 'groq',
    media: { types: IMAGES, inResult: false, inAssistant: false, remote: true, limits: GROQ_LIMITS },
  },
  vllm: VLLM,
  ollama: {
    ...OPENAI_CHAT,
    name: 'ollama',
    vendor: 'ollama',
    ids: { unique: 'no', onWire: 'sent' },
    names: /^.+$/s,
    pairing: 'none',
    reasoning: { keep: 'own', needs: 'company', requiredWithCalls: false },
    media: {
      types: /^image\/(jpeg|png|webp)$/,
      inResult: false,
      inAssistant: false,
      remote: false,
      limits: [],
    },
  },
}

/** A profile by its name, or as it is. */
export function resolveProfile(profile: string | Profile): Profile {
  if (typeof profile !== 'string') {
    const isProfile = typeof profile === 'object' && profile !== null && 'reasoning' in profile
    checkArgument(
      isProfile,
      'The repair profile',
      `must be a name or a profile: ${Object.keys(PROFILES).join(', ')}`,
    )
    return profile
  }
  const known = Object.hasOwn(PROFILES, profile) ? PROFILES[profile as ProfileName] : undefined
  if (known) return known
  throw new AgentError(
    'invalid-argument',
    `There is no repair profile named "${profile}". Use one of: ${Object.keys(PROFILES).join(', ')}.`,
    { details: { profile } },
  )
}
