/**
 * A second reading of the providers' rules, over neutral messages: written for the tests alone, plainly and
 * without regard to speed, from the rules and not from the repair steps. It returns every rule that a history
 * breaks for a profile; an empty list means that the profile's servers would take it.
 */
import { isRecord } from '../../src/base/is-record.js'
import { parseJson } from '../../src/base/json.js'
import { readMediaHeader } from '../../src/base/media-header.js'
import type {
  Origin,
  ProviderMessage,
  ProviderPart,
  ToolCallPart,
  ToolResultPart,
} from '../../src/provider/provider.js'
import { type MediaLimits, mediaLimits } from '../../src/testing/strict/media/media-rule.js'
import type { StrictProfile } from '../../src/testing/strict/profile.js'
import { ACCOUNT } from './repair-generator.js'

export function violations(messages: readonly ProviderMessage[], profile: string): string[] {
  const found: string[] = []
  findViolations(messages, profile, found, Infinity)
  return found
}

/** Whether the profile's servers would take a history: the first rule that it breaks is enough to know. */
export function isLegal(messages: readonly ProviderMessage[], profile: string): boolean {
  const found: string[] = []
  findViolations(messages, profile, found, 1)
  return found.length === 0
}

/** Stops after the check that brings the number of violations to `most`. */
function findViolations(
  messages: readonly ProviderMessage[],
  profile: string,
  found: string[],
  most: number,
): void {
  const rules = RULES[profile]
  if (!rules) throw new Error(`no rules for ${profile}`)
  for (let index = 0; index < messages.length && found.length < most; index++)
    checkMessage(messages[index] as ProviderMessage, index, rules, found)
  if (found.length < most) checkFiles(messages, profile, found)
  for (const check of CHECKS) {
    if (found.length >= most) return
    check(messages, rules, found)
  }
}

/** Files by the beginning of their base64. */
const BEGINNINGS: readonly (readonly [string, string])[] = [
  ['iVBORw0KGgo', 'image/png'],
  ['/9j/', 'image/jpeg'],
  ['R0lGODlh', 'image/gif'],
  ['UklGR', 'image/webp'],
  ['JVBERi0', 'application/pdf'],
]

/** Types are those of the bytes, base64 is plain, and every limit holds. */
function checkFiles(messages: readonly ProviderMessage[], profile: string, found: string[]): void {
  const files = messages.flatMap(({ parts }, index) =>
    parts.flatMap(part =>
      (part.type === 'tool-result' ? (part.media ?? []) : part.type === 'media' ? [part] : []).map(media => ({
        media,
        index,
      })),
    ),
  )
  if (files.length === 0) return
  for (const { media } of files) {
    const { data, mimeType, url = '' } = media
    if (data === undefined && url.startsWith('data:') && url.includes(';base64,')) found.push('data URL')
    if (data === undefined) continue
    if (data !== Buffer.from(data, 'base64').toString('base64')) found.push('no plain base64')
    if (mimeType.startsWith('text/')) continue
    const actual = BEGINNINGS.find(([beginning]) => data.startsWith(beginning))?.[1]
    if (actual !== undefined ? actual !== mimeType : UNREGISTERED.test(mimeType))
      found.push('media of another type')
  }
  checkLimits(files, mediaLimits(profile as StrictProfile, 'documented', undefined), found)
}

const UNREGISTERED = /^((image\/(jpg|pjpeg|x-png)|application\/x-pdf)$|image\/.*[;A-Z])|^[A-Z]/

function checkLimits(
  files: readonly { media: ProviderPart & { type: 'media' }; index: number }[],
  limits: MediaLimits,
  found: string[],
): void {
  const images = files.filter(({ media }) => media.mimeType.startsWith('image/'))
  const documents = files.filter(({ media }) => /^(application\/pdf$|text\/)/.test(media.mimeType))
  for (const { media } of images) {
    const { width = 0, height = 0 } = readMediaHeader(media.data ?? '') ?? {}
    const side = Math.max(width, height)
    if ((media.data?.length ?? 0) > limits.imageSize) found.push('large picture')
    if (side > limits.imageSide || width * height > limits.imagePixels) found.push('wide picture')
    if (images.length > limits.many && side > limits.manySide) found.push('wide picture among many')
  }
  if (images.length > limits.images) found.push('many pictures')
  if (files.reduce((sum, { media }) => sum + (media.data?.length ?? 0), 0) > limits.total)
    found.push('large request')
  const isFull = documents.some(
    ({ index }) => documents.filter(other => other.index === index).length > limits.documentsPerMessage,
  )
  if (isFull) found.push('many documents in a message')
}

/** What is checked besides the single messages. */
const CHECKS = [checkOrder, checkPairs, checkSignatures, checkPlainTurns, checkNames]

interface Rules {
  vendor: string
  id: RegExp
  uniqueIds: 'message' | 'history' | 'never'
  toolName: RegExp
  userFirst: boolean
  needsTurn?: boolean
  /** System messages are allowed only here. */
  system: 'anywhere' | 'leading' | 'single' | 'mistral' | 'between user and assistant'
  lastMayBeAssistant: boolean
  lastUntrimmedRefused?: boolean
  noRepeatedRoles?: boolean
  pairs: 'adjacent' | 'later' | 'unchecked'
  resultsInOneMessage?: boolean
  resultsInCallOrder?: boolean
  resultsUnder: 'tool' | 'tool or user' | 'tool or user with text behind'
  resultIsNamedObject?: boolean
  emptyResultRefused?: boolean
  callsLast?: boolean
  emptyTextRefused?: 'empty' | 'blank'
  reasoning: 'refused' | 'own' | 'own and signed'
  reasoningNeedsFollower?: boolean
  reasoningNeedsCompany?: boolean
  /** Reasoning whose prefix has changed is refused. */
  boundReasoning?: boolean
  reasoningBesideCalls?: boolean
  /** The reasoning beside a call must say something. */
  reasoningNotEmpty?: boolean
  /** Turns alternate even when messages with calls and results are not counted. */
  plainTurnsAlternate?: boolean
  resultNamedAsCall?: boolean
  /** Nothing of the user's follows results directly: they are the user's turn. */
  resultsAnswered?: boolean
  signsCalls?: boolean
  checksSignatures?: boolean
  mediaTypes: RegExp
  mediaInResults?: boolean
  mediaFromAssistant?: boolean
  remoteMediaRefused?: boolean
  vendorParts?: boolean
}

const gemini: Rules = {
  vendor: 'gemini',
  id: /^/,
  uniqueIds: 'message',
  resultNamedAsCall: true,
  toolName: /^[A-Za-z_][\w.:-]{0,63}$/,
  userFirst: true,
  system: 'leading',
  lastMayBeAssistant: true,
  noRepeatedRoles: true,
  pairs: 'adjacent',
  resultsInOneMessage: true,
  resultsUnder: 'tool or user',
  resultIsNamedObject: true,
  emptyTextRefused: 'empty',
  reasoning: 'own',
  checksSignatures: true,
  signsCalls: true,
  mediaTypes: /^/,
  mediaInResults: true,
  mediaFromAssistant: true,
  vendorParts: true,
}

const chat: Rules = {
  vendor: 'openai',
  id: /^[\s\S]{1,40}$/,
  uniqueIds: 'message',
  toolName: /^[\w-]{1,64}$/,
  userFirst: false,
  system: 'anywhere',
  lastMayBeAssistant: true,
  pairs: 'adjacent',
  resultsUnder: 'tool',
  reasoning: 'refused',
  mediaTypes: /^image\/(jpeg|png|gif|webp)$|^audio\/(x-)?(wav|mp3|mpeg)$|^application\/pdf$/,
}

const claude: Rules = {
  vendor: 'anthropic',
  id: /^[\w-]{1,64}$/,
  uniqueIds: 'message',
  toolName: /^[\w-]{1,64}$/,
  userFirst: true,
  system: 'leading',
  lastMayBeAssistant: false,
  pairs: 'adjacent',
  resultsInOneMessage: true,
  resultsUnder: 'tool or user with text behind',
  callsLast: true,
  emptyTextRefused: 'blank',
  reasoning: 'own and signed',
  reasoningNeedsFollower: true,
  mediaTypes: /^image\/(jpeg|png|gif|webp)$|^application\/pdf$|^text\/plain$/,
  mediaInResults: true,
  vendorParts: true,
}

const vllm: Rules = {
  ...chat,
  vendor: 'vllm',
  userFirst: true,
  system: 'single',
  noRepeatedRoles: true,
  mediaTypes: /^(image|audio|video)\//,
}

const echoing: Rules = {
  ...vllm,
  emptyTextRefused: 'blank',
  reasoning: 'own',
  reasoningNeedsCompany: true,
  mediaTypes: /^image\/(jpeg|png|gif|webp)$/,
}

const deepseek: Rules = {
  ...chat,
  vendor: 'deepseek',
  reasoning: 'own',
  reasoningNeedsCompany: true,
  reasoningBesideCalls: true,
  mediaTypes: /^\b$/,
  remoteMediaRefused: true,
}

const responses: Rules = {
  ...chat,
  id: /^[\s\S]{1,64}$/,
  uniqueIds: 'history',
  pairs: 'later',
  reasoning: 'own and signed',
  reasoningNeedsFollower: true,
  mediaTypes: /^image\/(jpeg|png|gif|webp)$|^application\/pdf$/,
  mediaInResults: true,
  needsTurn: true,
  emptyTextRefused: 'empty',
}

const router: Rules = {
  ...chat,
  vendor: 'openrouter',
  id: /^[\w-]{1,40}$/,
  toolName: /^[A-Za-z_][\w-]{0,63}$/,
  userFirst: true,
  system: 'single',
  lastMayBeAssistant: false,
  emptyTextRefused: 'blank',
  reasoning: 'own and signed',
  reasoningNeedsCompany: true,
}

const RULES: Record<string, Rules> = {
  'gemini-2': {
    ...gemini,
    uniqueIds: 'never',
    resultsInCallOrder: true,
    signsCalls: false,
    mediaInResults: false,
  },
  'gemini-3': gemini,
  'gemini-3-strict': { ...gemini, lastMayBeAssistant: false },
  'openai-chat': chat,
  'openai-responses': responses,
  'xai-responses': { ...responses, vendor: 'xai' },
  'anthropic-4.5': { ...claude, lastMayBeAssistant: true, lastUntrimmedRefused: true },
  'anthropic-4.6': claude,
  'anthropic-5.1': { ...claude, system: 'between user and assistant', boundReasoning: true },
  mistral: {
    ...chat,
    vendor: 'mistral',
    id: /^[A-Za-z0-9]{9}$/,
    system: 'mistral',
    lastMayBeAssistant: false,
    emptyResultRefused: true,
    emptyTextRefused: 'empty',
    resultNamedAsCall: true,
    mediaTypes: /^image\/(jpeg|png|gif|webp)$|^application\/pdf$/,
  },
  'mistral-template': {
    ...vllm,
    id: /^[A-Za-z0-9]{9}$/,
    lastMayBeAssistant: false,
    emptyResultRefused: true,
    emptyTextRefused: 'empty',
    resultNamedAsCall: true,
    plainTurnsAlternate: true,
    mediaTypes: /^image\/(jpeg|png|gif|webp)$/,
  },
  'deepseek-thinking': deepseek,
  'deepseek-v4': deepseek,
  kimi: { ...echoing, vendor: 'moonshot', reasoningBesideCalls: true, reasoningNotEmpty: true },
  glm: { ...echoing, vendor: 'zai' },
  qwen: { ...echoing, vendor: 'qwen' },
  minimax: { ...echoing, vendor: 'minimax' },
  cohere: {
    ...chat,
    vendor: 'cohere',
    needsTurn: true,
    emptyTextRefused: 'blank',
    mediaTypes: /^image\/(jpeg|png|gif|webp)$/,
  },
  'compatible-gemini': {
    ...chat,
    vendor: 'compatible-gemini',
    toolName: /^[A-Za-z_][\w-]{0,63}$/,
    userFirst: true,
    system: 'single',
    lastMayBeAssistant: false,
    noRepeatedRoles: true,
    emptyTextRefused: 'empty',
    checksSignatures: true,
    signsCalls: true,
    mediaTypes: /^image\/(jpeg|png|gif|webp)$|^application\/pdf$/,
    remoteMediaRefused: true,
  },
  openrouter: router,
  'openrouter-gemini': {
    ...router,
    vendor: 'openrouter-gemini',
    noRepeatedRoles: true,
    checksSignatures: true,
    signsCalls: true,
  },
  converse: {
    ...claude,
    vendor: 'bedrock',
    noRepeatedRoles: true,
    resultsAnswered: true,
    resultsUnder: 'tool',
    reasoning: 'refused',
    reasoningNeedsFollower: false,
    mediaTypes:
      /^image\/(jpeg|png|gif|webp)$|^application\/pdf$|^text\/(plain|csv|html|markdown)$|^video\/(mp4|webm|quicktime)$/,
    mediaInResults: false,
    remoteMediaRefused: true,
    vendorParts: false,
  },
  groq: { ...chat, vendor: 'groq', mediaTypes: /^image\/(jpeg|png|gif|webp)$/ },
  vllm,
  ollama: {
    ...chat,
    vendor: 'ollama',
    id: /^/,
    uniqueIds: 'never',
    toolName: /^[\s\S]+$/,
    pairs: 'unchecked',
    reasoning: 'own',
    reasoningNeedsCompany: true,
    mediaTypes: /^image\/(jpeg|png|webp)$/,
    remoteMediaRefused: true,
  },
}

function checkMessage(message: ProviderMessage, index: number, rules: Rules, found: string[]): void {
  const say = (what: string) => found.push(`${index}: ${what}`)
  const { role, parts } = message
  if (!['system', 'user', 'assistant', 'tool'].includes(role)) say(`role ${role}`)
  if (!Array.isArray(parts) || parts.length === 0) {
    say('no parts')
    return
  }
  for (const part of parts) checkPart(part, role, rules, say)
  if (rules.vendorParts) checkServerTools(parts, say)
  const kinds = parts.map(part => part.type)
  const results = kinds.filter(kind => kind === 'tool-result').length
  if (results > 0 && role === 'user') {
    if (rules.resultsUnder === 'tool') say('results under user')
    if (rules.resultsUnder === 'tool or user' && results < kinds.length) say('results beside words')
    if (kinds.slice(0, results).some(kind => kind !== 'tool-result')) say('results not first')
  }
  const call = kinds.indexOf('tool-call')
  if (rules.callsLast && call !== -1 && kinds.slice(call).some(kind => kind !== 'tool-call')) {
    say('something behind a call')
  }
  const says = (part: ProviderPart) =>
    part.type === 'reasoning' && (!rules.reasoningNotEmpty || part.text !== '')
  if (rules.reasoningBesideCalls && call !== -1 && !parts.some(says)) say('no reasoning')
  if (rules.reasoningNeedsCompany && kinds.every(kind => kind === 'reasoning')) say('reasoning alone')
}

/** A server tool's question is followed by its answer, and every answer has its question before it. */
function checkServerTools(parts: readonly ProviderPart[], say: (what: string) => void): void {
  const values = parts.map(part => (part.type === 'vendor' ? (part.value as Record<string, unknown>) : {}))
  values.forEach((value, at) => {
    const is = (one: Record<string, unknown>, type: RegExp) => type.test(String(one?.type))
    if (is(value, /^(server|mcp)_tool_use$/)) {
      if (!/^(srv|mcp)toolu_\w+$/.test(String(value.id))) say('server tool id')
      const found = values.slice(at).some(one => is(one, /_tool_result$/) && one.tool_use_id === value.id)
      if (!found) say('server tool without result')
    } else if (is(value, /_tool_result$/)) {
      const asked = values.slice(0, at).some(one => is(one, /_tool_use$/) && one.id === value.tool_use_id)
      if (!asked) say('server result without tool')
    }
  })
}

const PARTS_OF_ROLE: Record<string, string[]> = {
  system: ['text'],
  user: ['text', 'media', 'vendor', 'tool-result'],
  assistant: ['text', 'media', 'vendor', 'reasoning', 'tool-call'],
  tool: ['tool-result'],
}

function checkPart(part: ProviderPart, role: string, rules: Rules, say: (what: string) => void): void {
  if (!PARTS_OF_ROLE[role]?.includes(part?.type)) {
    say(`${part?.type} under ${role}`)
    return
  }
  for (const fault of valueFaults(part)) say(fault)
  const { signature } = part as { signature?: string }
  if (rules.checksSignatures && signature !== undefined && !/^[\w+/-]+={0,2}$/.test(signature))
    say('signature form')
  if (part.type !== 'reasoning' && holdsNoFields(signature, rules)) say('signature without fields')
  if (isElsewhere(part, rules)) say('sealed for another account')
  switch (part.type) {
    case 'text':
      if (rules.checksSignatures && part.signature !== undefined) {
        if (!isOfVendor(part.origin, rules)) say('foreign signature')
      } else if (rules.emptyTextRefused === 'empty' ? part.text === '' : false) say('empty text')
      else if (rules.emptyTextRefused === 'blank' && part.text.trim() === '') say('blank text')
      return
    case 'reasoning':
      checkReasoning(part, rules, say)
      return
    case 'tool-call':
      if (typeof part.args !== 'object' || part.args === null || Array.isArray(part.args)) say('args form')
      if (!rules.toolName.test(part.name)) say('tool name')
      if (!rules.id.test(part.id)) say('call id')
      if (rules.checksSignatures && part.signature && !isOfVendor(part.origin, rules))
        say('foreign signature')
      return
    case 'tool-result':
      checkResult(part, rules, say)
      return
    case 'media':
      checkMedia(part, rules, role === 'assistant', say)
      return
    case 'vendor':
      if (!rules.vendorParts || part.vendor !== rules.vendor) say('foreign vendor part')
      if (rules.checksSignatures && part.signature && !isOfVendor(part.origin, rules))
        say('foreign signature')
  }
}

/** Google's endpoint with OpenAI's API carries an object of fields with a signature, or the stand-in. */
function holdsNoFields(signature: string | undefined, { vendor }: Rules): boolean {
  if (vendor !== 'compatible-gemini' || signature === undefined) return false
  if (signature === 'skip_thought_signature_validator') return false
  try {
    const fields = JSON.parse(Buffer.from(signature, 'base64').toString()) as Record<string, unknown> | null
    const { thought_signature: signed } = (fields?.google ?? fields?.vertex ?? {}) as Record<string, unknown>
    return typeof signed !== 'string' || signed === ''
  } catch {
    return true
  }
}

/** A signature without an origin is Gemini's: only Gemini's are stored bare. */
function isOfVendor(origin: Origin | undefined, { vendor }: Rules): boolean {
  return (origin?.vendor ?? 'gemini') === vendor
}

/** Whether a part holds something of the own vendor that only another account can read. */
function isElsewhere(part: ProviderPart, rules: Rules): boolean {
  if (part.type === 'tool-result') return (part.media ?? []).some(media => isElsewhere(media, rules))
  const { vendor, account } = part.origin ?? {}
  if (vendor !== rules.vendor || account === undefined || account === ACCOUNT) return false
  if (part.type === 'vendor' && rules.vendor === 'anthropic') return true
  return part.signature !== undefined && (part.type === 'reasoning' || rules.checksSignatures === true)
}

/** What is found for a key, once. It holds few keys: one history is checked after the other. */
export function boundedCache<Key, Value>(): (key: Key, find: () => Value) => Value {
  const known = new Map<Key, Value>()
  return (key, find) => {
    const found = known.get(key)
    if (found !== undefined) return found
    if (known.size > 2000) known.clear()
    const fresh = find()
    known.set(key, fresh)
    return fresh
  }
}

const faultsByPart = boundedCache<ProviderPart, readonly string[]>()

/** What no profile takes. Most profiles send a part as it is; histories are frozen, so what was read of it holds. */
function valueFaults(part: ProviderPart): readonly string[] {
  return faultsByPart(part, () => {
    const faults: string[] = []
    const { signature: _, ...rest } = part as { signature?: string }
    const media =
      part.type === 'tool-result' ? { media: part.media?.map(({ signature: _, ...one }) => one) } : {}
    const value = part.type === 'text' || part.type === 'reasoning' ? part.text : { ...rest, ...media }
    checkValue(value, 0, fault => faults.push(fault))
    return faults
  })
}

const LONE_SURROGATE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/

/** Text is well formed, and everything else is what JSON can say, at most 64 levels deep. */
function checkValue(value: unknown, depth: number, say: (what: string) => void): void {
  if (typeof value === 'string' && LONE_SURROGATE.test(value)) say('lone surrogate')
  if (typeof value === 'bigint') say('big number')
  if (typeof value !== 'object' || value === null) return
  if (depth > 64) say('nested too deeply')
  else if (!Array.isArray(value) && Object.prototype.toString.call(value) !== '[object Object]')
    say('no JSON value')
  else
    for (const [key, inner] of Object.entries(value)) {
      checkValue(key, depth, say)
      checkValue(inner, depth + 1, say)
    }
}

function checkReasoning(
  part: ProviderPart & { type: 'reasoning' },
  rules: Rules,
  say: (what: string) => void,
): void {
  if (rules.reasoning === 'refused') {
    say('reasoning')
    return
  }
  if (rules.boundReasoning && part.prefixBroken) say('reasoning of another history')
  if (rules.vendor === 'openrouter' && isUnsigned(part.signature))
    say('thoughts of Claude without a signature')
  const maker = part.origin?.vendor ?? (part.signature ? 'gemini' : undefined)
  if (rules.reasoning === 'own and signed') {
    const isBase64 = /^[\w+/-]+={0,2}$/.test(part.signature ?? '')
    if (part.origin?.vendor !== rules.vendor || !isBase64) say('reasoning not own and signed')
  } else if (maker !== undefined && maker !== rules.vendor) say('reasoning not own')
}

/** Details of a gateway in which a text of the model has none. */
function isUnsigned(seal: string | undefined): boolean {
  if (!seal?.startsWith('W3si')) return false
  const text = Buffer.from(seal, 'base64').toString()
  return text.includes('"reasoning.text"') && !text.includes('"signature"')
}

function checkResult(part: ToolResultPart, rules: Rules, say: (what: string) => void): void {
  const { result, name, media = [] } = part
  if (!rules.id.test(part.id)) say('result id')
  if (result === undefined) say('undefined result')
  if (rules.emptyResultRefused && (result === '' || result === null)) say('empty result')
  if (rules.resultIsNamedObject) {
    if (typeof result !== 'object' || result === null || Array.isArray(result)) say('result form')
    if (!rules.toolName.test(name)) say('result name')
  }
  if (media.length > 0 && !rules.mediaInResults) say('media in a result')
  for (const one of media) checkMedia(one, rules, false, say)
}

function checkMedia(
  part: ProviderPart & { type: 'media' },
  rules: Rules,
  fromAssistant: boolean,
  say: (what: string) => void,
): void {
  if (!part.data && !part.url) say('media without data')
  if (!rules.mediaTypes.test(part.mimeType)) say('media type')
  if (rules.remoteMediaRefused && !part.data) say('remote media')
  if (fromAssistant && !rules.mediaFromAssistant) say('media from the assistant')
  if (rules.checksSignatures && part.signature && !isOfVendor(part.origin, rules)) say('foreign signature')
  if (holdsNoFields(part.signature, rules)) say('signature without fields')
}

function holdsResults(message: ProviderMessage | undefined): boolean {
  return message?.parts?.some(part => part.type === 'tool-result') ?? false
}

function checkOrder(messages: readonly ProviderMessage[], rules: Rules, found: string[]): void {
  const systems = messages.findIndex(message => message.role !== 'system')
  const leading = systems === -1 ? messages.length : systems
  if (messages.length === 0) found.push('no messages')
  const needsTurn = rules.needsTurn || rules.userFirst || rules.system === 'mistral'
  if (needsTurn && leading === messages.length) found.push('no turn')
  const first = messages[leading]
  if (rules.userFirst && first && (first.role !== 'user' || holdsResults(first))) found.push('not user first')
  if (rules.system === 'mistral' && messages[0]?.role === 'assistant') found.push('assistant first')
  if (rules.system === 'single' && leading > 1) found.push('several system messages')
  const last = messages.at(-1)
  const endsWithSystem = last?.role === 'system' && rules.system !== 'between user and assistant'
  if (!rules.lastMayBeAssistant && (last?.role === 'assistant' || endsWithSystem)) {
    found.push(`ends with ${last.role}`)
  }
  const end = last?.parts?.at(-1)
  if (
    rules.lastUntrimmedRefused &&
    last?.role === 'assistant' &&
    end?.type === 'text' &&
    /\s$/.test(end.text)
  ) {
    found.push('trailing space')
  }
  for (const [index, message] of messages.entries()) {
    const before = messages[index - 1]
    if (message.role === 'system' && index >= leading && rules.system === 'between user and assistant') {
      const next = messages[index + 1]?.role ?? 'assistant'
      if (!['user', 'tool'].includes(before?.role ?? '') || next !== 'assistant')
        found.push(`${index}: system not between user and assistant`)
    } else if (message.role === 'system' && index >= leading && rules.system !== 'anywhere') {
      if (rules.system !== 'mistral' || !['user', 'system'].includes(before?.role ?? '')) {
        found.push(`${index}: system inside`)
      }
    }
    if (
      rules.noRepeatedRoles &&
      before?.role === message.role &&
      ['user', 'assistant'].includes(message.role)
    ) {
      if (!holdsResults(message) && !holdsResults(before)) found.push(`${index}: role repeated`)
    }
    if (rules.resultsAnswered && before?.role === 'tool' && message.role === 'user') {
      found.push(`${index}: words after results`)
    }
    if (rules.reasoningNeedsFollower && message.parts.at(-1)?.type === 'reasoning') {
      const closed = messages[index + 1]?.role !== 'assistant'
      if (closed || message.parts.some(part => part.type === 'tool-call'))
        found.push(`${index}: reasoning last`)
    }
  }
}

function partsOf<Type extends 'tool-call' | 'tool-result'>(message: ProviderMessage | undefined, type: Type) {
  return (message?.parts ?? []).filter(part => part.type === type) as (Type extends 'tool-call'
    ? ToolCallPart
    : ToolResultPart)[]
}

const keyOf = (part: ToolCallPart | ToolResultPart) => (part.id === '' ? `name ${part.name}` : part.id)

function checkPairs(messages: readonly ProviderMessage[], rules: Rules, found: string[]): void {
  if (rules.uniqueIds === 'history') {
    const allIds = messages.flatMap(message => partsOf(message, 'tool-call').map(call => call.id))
    if (new Set(allIds).size < allIds.length) found.push('ids repeat')
  }
  if (rules.uniqueIds === 'message') {
    for (const [index, message] of messages.entries()) {
      const ids = partsOf(message, 'tool-call').flatMap(call => call.id || [])
      if (new Set(ids).size < ids.length) found.push(`${index}: ids repeat`)
    }
  }
  if (rules.pairs === 'later') checkLater(messages, found)
  if (rules.pairs === 'adjacent') checkAdjacent(messages, rules, found)
}

function checkLater(messages: readonly ProviderMessage[], found: string[]): void {
  const open = new Set<string>()
  for (const [index, message] of messages.entries()) {
    for (const call of partsOf(message, 'tool-call')) open.add(keyOf(call))
    for (const result of partsOf(message, 'tool-result')) {
      if (!open.delete(keyOf(result))) found.push(`${index}: result without call`)
    }
  }
  if (open.size > 0) found.push('calls without result')
}

function checkAdjacent(messages: readonly ProviderMessage[], rules: Rules, found: string[]): void {
  for (let index = 0; index < messages.length; index++) {
    const calls = partsOf(messages[index], 'tool-call')
    if (calls.length === 0) {
      const orphan = holdsResults(messages[index]) && !isAnswer(messages, index)
      if (orphan) found.push(`${index}: results without calls before`)
      continue
    }
    const results: ToolResultPart[] = []
    let next = index + 1
    while (next < messages.length && holdsResults(messages[next])) {
      results.push(...partsOf(messages[next], 'tool-result'))
      const wordsBehind = messages[next]?.parts.at(-1)?.type !== 'tool-result'
      next++
      if (wordsBehind) break
    }
    const asked = calls.map(keyOf)
    const answered = results.map(keyOf)
    if (asked.toSorted().join('\n') !== answered.toSorted().join('\n'))
      found.push(`${index}: calls and results differ`)
    else if (rules.resultsInCallOrder && asked.join('\n') !== answered.join('\n')) {
      found.push(`${index}: results out of order`)
    }
    if (rules.resultsInOneMessage && next - index !== 2) found.push(`${index}: results in several messages`)
  }
}

/** Whether an unbroken run of results leads back to a message with calls. */
function isAnswer(messages: readonly ProviderMessage[], index: number): boolean {
  for (let before = index - 1; before >= 0; before--) {
    if (partsOf(messages[before], 'tool-call').length > 0) return true
    if (!holdsResults(messages[before]) || messages[before]?.parts.at(-1)?.type !== 'tool-result')
      return false
  }
  return false
}

function checkPlainTurns(messages: readonly ProviderMessage[], rules: Rules, found: string[]): void {
  if (!rules.plainTurnsAlternate) return
  const plain = messages.filter(
    ({ role, parts }) =>
      role !== 'system' && role !== 'tool' && !parts.some(part => part.type === 'tool-call'),
  )
  plain.forEach(({ role }, index) => {
    if (role !== (index % 2 === 0 ? 'user' : 'assistant')) found.push(`plain turn ${index} is of ${role}`)
  })
}

/** Every result has the name of the call that it answers. */
function checkNames(messages: readonly ProviderMessage[], rules: Rules, found: string[]): void {
  if (!rules.resultNamedAsCall) return
  messages.forEach((message, index) => {
    const calls = partsOf(message, 'tool-call')
    const names = new Map(calls.map(call => [call.id, call.name]))
    if (names.size < calls.length) return
    // They may be in several messages.
    for (let at = index + 1; holdsResults(messages[at]); at++) {
      for (const { id, name } of partsOf(messages[at], 'tool-result'))
        if (names.has(id) && id !== '' && names.get(id) !== name) found.push(`${at}: result of another name`)
    }
  })
}

function sealsCall(part: ProviderPart, id: string | undefined): boolean {
  if (part.type !== 'reasoning' || !part.signature?.startsWith('W3si')) return false
  // It may be cut off.
  const details = parseJson(Buffer.from(part.signature, 'base64').toString())
  return Array.isArray(details) && details.some(detail => isRecord(detail) && detail.id === id)
}

function checkSignatures(messages: readonly ProviderMessage[], rules: Rules, found: string[]): void {
  if (!rules.signsCalls) return
  // In earlier turns too: a signature that comes and goes changes what was sent before.
  for (let index = 0; index < messages.length; index++) {
    const first = partsOf(messages[index], 'tool-call')[0]
    // A gateway's seal holds the signatures of the whole answer.
    const sealed =
      rules.reasoning === 'own and signed' && messages[index]?.parts.some(part => sealsCall(part, first?.id))
    if (first && !first.signature && !sealed) found.push(`${index}: first call unsigned`)
  }
}
