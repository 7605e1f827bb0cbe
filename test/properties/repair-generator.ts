/**
 * Histories for the properties of repair. One builder serves twice: fast-check feeds it a tape of numbers, which it
 * can shorten and lower when a property fails, and the long fuzz feeds it a seeded generator. Every text and
 * result carries a unique token, so that a property can check whether it is still there.
 */
import type { MediaPart, Origin, ProviderMessage, ProviderPart } from '../../src/provider/provider.js'
import { gif, jpeg, pdf, png, webp } from '../support/pictures.js'

/** Gives a whole number from 0 up to, and without, `bound`. */
export type Choose = (bound: number) => number

/** Chooses along a tape of numbers; after its end, always 0. */
export function tapeChooser(tape: readonly number[]): Choose {
  let position = 0
  return bound => (tape[position++] ?? 0) % bound
}

/** Chooses by a seeded generator (mulberry32). */
export function seededChooser(seed: number): Choose {
  let state = seed >>> 0
  return bound => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % bound
  }
}

/** A history of any kind: a conversation as it should be, one that was damaged, or chaos. */
export function buildHistory(choose: Choose): ProviderMessage[] {
  const builder = new Builder(choose)
  const kind = choose(5)
  if (kind === 0) return builder.conversation()
  if (kind === 1) return builder.chaos()
  return kind === 2 ? builder.converted() : builder.damaged()
}

/** A history that nothing can modify. */
export function deepFreeze<Value>(value: Value): Value {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  // Bytes cannot be frozen.
  if (ArrayBuffer.isView(value)) return value
  Object.freeze(value)
  for (const inner of Object.values(value)) deepFreeze(inner)
  return value
}

const VENDORS = [
  ...['gemini', 'openai', 'anthropic', 'mistral', 'deepseek', 'ollama', 'groq', 'vllm', 'bedrock'],
  ...['moonshot', 'zai', 'qwen', 'minimax', 'xai', 'compatible-gemini', 'openrouter', 'openrouter-gemini'],
]
/** The account that every history is sent with. */
export const ACCOUNT = 'a'
/** The accounts that have sealed something: this one, another one, and none in older histories. */
const ACCOUNTS = [ACCOUNT, 'b', undefined]
const IDS = [
  'aaaaaaaaa',
  'bbbbbbbbb',
  'call_search',
  'toolu_01',
  '',
  'a|b:c.d',
  'x'.repeat(70),
  'y'.repeat(45),
]
const NAMES = ['search', 'fetch', 'read.file', 'ns:tool', '', '9lives', 'n'.repeat(80), 'tool name']
const ROLES = ['user', 'assistant', 'tool', 'system', 'model', 'function', 'developer', 'critic', '', 'USER']
const TYPES = [
  ...['image/png', 'image/tiff', 'application/pdf', 'audio/wav', 'video/mp4', 'text/plain', 'text/csv'],
  ...['text/html', 'text/markdown', 'application/json', 'image/svg+xml', 'image/heic', ''],
  'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
]

/** Files of every kind, with sides around every limit. */
const FILES = [
  ...[8, 2000, 2001, 5760, 5761, 8000, 8001].flatMap(width => [
    png({ width }),
    png({ width, height: width }),
    jpeg({ width }),
    webp({ width }),
  ]),
  // Around the limit of pixels: 5760 × 5760.
  png({ width: 5760, height: 5760 }),
  png({ width: 5761, height: 5760 }),
  gif(),
  gif({ width: 9000 }),
  webp({}, 'VP8 '),
  webp({}, 'VP8L'),
  pdf(),
  // Headers that end too early, and a preview that is longer than the file.
  png().slice(0, 16),
  jpeg({}, 4000).slice(0, 64),
  webp().slice(0, 20),
  Buffer.from('a,b\n1,2\n').toString('base64'),
  Buffer.from('BM begins this text').toString('base64'),
  Buffer.from('%PDF-').toString('base64'),
]
const FILE_TYPES = [
  ...['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'application/pdf', 'image/jpg', 'IMAGE/PNG'],
  ...['application/octet-stream', 'text/plain', 'text/csv', 'image/png; q=1', 'application/x-pdf', 'png', ''],
]
/** How many stand in one message: around the limits of numbers. */
const FILE_COUNTS = [1, 1, 1, 2, 5, 6, 20, 21, 50, 51, 100, 101]
/** The limits of numbers that are reached by few histories. */
const MANY_FILES = [500, 501, 600, 601, 3000, 3001, 3600, 3601]

const MB = 1024 * 1024
/** Around the limits of sizes, in characters of base64. */
const LARGE_SIZES = around([3.75, 4, encoded4(3.75), 5, encoded4(4.5), 10])
/** Those of whole requests and of documents: reading one for every profile takes seconds. */
const LARGEST_SIZES = around([encoded4(10), 20, encoded4(20), 32, encoded4(32), 50, encoded4(50)])
/** More than any limit of a whole request. */
const MOST_CHARACTERS = 140 * MB

function around(megabytes: readonly number[]): number[] {
  return megabytes.flatMap(size => [Math.ceil((size * MB) / 4) * 4, Math.ceil((size * MB) / 4) * 4 + 4])
}

/** So many megabytes in base64. */
function encoded4(megabytes: number): number {
  return (megabytes * 4) / 3
}

/** Made at the first use: a few of them would be most of a run's time. The largest are not kept. */
const largeFiles = new Map<string, string>()

function largeFile(characters: number, make: typeof png): string {
  const name = `${make.name} ${characters}`
  const known = largeFiles.get(name) ?? make({ bytes: (characters * 3) / 4 })
  if (characters <= 15 * MB) largeFiles.set(name, known)
  return known
}

const BLOCKS = [
  { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} },
  { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] },
  { type: 'server_tool_use', id: 'call_1', name: 'web_search', input: {} },
]

/** Fields of gateways as no server would have sent them, or without what is signed. */
const GATEWAY_FIELDS = [
  ...['[]', '[1,null]', '{}', '{"google":{}}', '{"google":{"thought":true}}', '[{"type":"reasoning.text"}]'],
  ...[
    '[{"type":"reasoning.summary","summary":"short"}]',
    '[{"type":"reasoning.newer","more":[1]}]',
    '[{"id"',
  ],
]

function encoded(text: string): string {
  return Buffer.from(text).toString('base64')
}

function nested(levels: number, bottom: unknown): unknown {
  let value = bottom
  for (let level = 0; level < levels; level++) value = level % 2 === 0 ? { a: value } : [value]
  return value
}

class Builder {
  private tokens = 0
  private freshIds = 0
  private readonly choose: Choose

  constructor(choose: Choose) {
    this.choose = choose
  }

  /** Turns as a provider would have made them: nearly always legal somewhere. */
  conversation(): ProviderMessage[] {
    const origin = this.origin()
    const messages: ProviderMessage[] = []
    if (this.choose(3) === 0) messages.push({ role: 'system', parts: [this.text('s')] })
    const turns = 1 + this.choose(3)
    for (let turn = 0; turn < turns; turn++) {
      messages.push({ role: 'user', parts: [this.text('u'), ...this.files()] })
      const steps = this.choose(3)
      for (let step = 0; step < steps; step++)
        messages.push(...this.step(this.choose(3) === 0 ? this.origin(origin.vendor) : origin))
      if (turn < turns - 1 || this.choose(2) === 0) {
        messages.push({ role: 'assistant', parts: [...this.thoughts(origin), this.text('a')] })
      }
    }
    return messages
  }

  damaged(): ProviderMessage[] {
    const messages = this.conversation()
    const wounds = 1 + this.choose(4)
    for (let wound = 0; wound < wounds && messages.length > 0; wound++) this.wound(messages)
    return messages
  }

  /** As other frameworks' logs read: results without names or under other ones, thoughts without origin or signature. */
  converted(): ProviderMessage[] {
    const messages = this.damaged().map(
      (message): ProviderMessage => ({ ...message, parts: message.parts.map(part => this.convert(part)) }),
    )
    if (this.choose(3) === 0) messages.push(this.unknownParts())
    return messages
  }

  private convert(part: ProviderPart): ProviderPart {
    if (part.type === 'tool-result')
      return { ...part, name: this.pick(['', 'function', part.name, 'tool name']) }
    if (part.type === 'reasoning') {
      const { origin: _origin, signature: _signature, ...rest } = part
      return this.choose(2) === 0 ? rest : part
    }
    return part
  }

  /** Parts of kinds that nobody here knows. */
  private unknownParts(): ProviderMessage {
    const parts = [
      { type: 'input_text', text: this.token('x') },
      { type: 'citation', title: this.token('x') },
      this.token('x'),
      { type: 'refusal', refusal: this.token('x') },
    ]
    return { role: this.pick(ROLES), parts: [this.pick<unknown>(parts)] as ProviderPart[] }
  }

  chaos(): ProviderMessage[] {
    const count = this.choose(8)
    return Array.from({ length: count }, () => this.anyMessage())
  }

  /** Somebody's, under one of the accounts. */
  private origin(vendor = this.pick(VENDORS)): Origin {
    const account = this.pick(ACCOUNTS)
    return { vendor, ...(account === undefined ? {} : { account }) }
  }

  private step(origin: Origin): ProviderMessage[] {
    const { vendor } = origin
    const calls = Array.from({ length: 1 + this.choose(3) }, (_, index) => {
      const id = `call${String(this.freshIds++).padStart(5, '0')}`
      const signs = vendor === 'gemini' || vendor === 'compatible-gemini'
      const signature = signs && index === 0 ? { signature: encoded(`sig-${id}`) } : {}
      const name = this.pick(['search', 'fetch'])
      return {
        type: 'tool-call' as const,
        id,
        name,
        args: { q: this.token('c') },
        ...signature,
        origin,
      }
    })
    const results = calls.map(({ id, name }) => ({
      type: 'tool-result' as const,
      id,
      name,
      result: this.choose(4) === 0 ? this.token('r') : { output: this.token('r') },
    }))
    const opening = this.choose(3) === 0 ? [this.text('a')] : []
    return [
      { role: 'assistant', parts: [...this.thoughts(origin), ...opening, ...calls] },
      { role: 'tool', parts: results },
    ]
  }

  private thoughts(origin: Origin): ProviderPart[] {
    const { vendor } = origin
    if (this.choose(3) !== 0) return []
    const signs = ['gemini', 'openai', 'anthropic', 'xai', 'openrouter', 'openrouter-gemini'].includes(vendor)
    const signature = signs ? { signature: this.signature() } : {}
    const broken = this.choose(4) === 0 ? { prefixBroken: true as const } : {}
    return [{ type: 'reasoning', text: this.token('t'), ...signature, origin, ...broken }]
  }

  private wound(messages: ProviderMessage[]): void {
    const at = this.choose(messages.length)
    const other = this.choose(messages.length)
    const message = messages[at] as ProviderMessage
    switch (this.choose(10)) {
      case 0:
        messages.splice(at, 1)
        return
      case 1:
        messages.splice(other, 0, ...messages.splice(at, 1))
        return
      case 2:
        messages.splice(other, 0, message)
        return
      case 3:
        messages[at] = { ...message, role: this.pick(ROLES) }
        return
      case 4:
        messages.splice(0, at)
        return
      case 5:
        messages.splice(at, 0, this.anyMessage())
        return
      case 6:
        messages[at] = { ...message, parts: message.parts.slice(this.choose(message.parts.length + 1)) }
        return
      case 7:
        messages[at] = { ...message, parts: [...message.parts, this.anyPart()] }
        return
      case 8:
        messages[at] = { ...message, parts: message.parts.map(part => this.disturb(part)) }
        return
      default:
        messages[at] = {
          ...message,
          parts: [...message.parts, ...(messages[other] as ProviderMessage).parts],
        }
        messages.splice(other, at === other ? 0 : 1)
    }
  }

  private disturb(part: ProviderPart): ProviderPart {
    if (part.type === 'tool-call' || part.type === 'tool-result') {
      const id = this.choose(2) === 0 ? this.pick(IDS) : part.id
      const name = this.choose(3) === 0 ? this.pick(NAMES) : part.name
      return { ...part, id, name }
    }
    return part.type === 'text'
      ? { ...part, text: this.pick(['', ' \n', `${part.text} `, `${part.text}\ud800`]) }
      : part
  }

  private anyMessage(): ProviderMessage {
    const parts = Array.from({ length: this.choose(4) }, () => this.anyPart())
    return { role: this.pick(ROLES), parts }
  }

  private anyPart(): ProviderPart {
    switch (this.choose(9)) {
      case 0:
        return this.text('x')
      case 1:
        return {
          type: 'text',
          text: this.pick(['', ' ', '\n\t', `${this.token('x')}\udc00 `, `${this.token('x')} `]),
          ...this.signed(),
        }
      case 2:
        return { type: 'reasoning', text: this.pick(['', this.token('t')]), ...this.signed() }
      case 3:
      case 4:
        return {
          type: 'tool-call',
          id: this.pick(IDS),
          name: this.pick(NAMES),
          args: this.anyArgs(),
          ...this.signed(),
        }
      case 5:
      case 6:
        return this.anyResult()
      case 7:
        return this.media()
      default:
        return this.vendorPart()
    }
  }

  private vendorPart(): ProviderPart {
    const vendor = this.pick(VENDORS)
    const code = { executableCode: { language: 'PYTHON', code: 'print(1)' } }
    const value = vendor === 'gemini' ? code : this.pick(BLOCKS)
    return { type: 'vendor', vendor, value, text: this.pick(['', this.token('v')]), ...this.signed() }
  }

  private anyResult(): ProviderPart {
    const word = this.token('r')
    const result = this.pick<unknown>([
      { output: word },
      word,
      [word],
      '',
      null,
      undefined,
      { text: `${word}\ud83d` },
      { at: new Date(this.choose(1e9)), word },
      new Map([['word', word]]),
      { word, big: 12n, bytes: new Uint8Array([1, 2]) },
      nested(this.pick([3, 60, 64, 65, 90, 2000]), word),
    ])
    const media = this.choose(4) === 0 ? { media: [this.media()] } : {}
    const isError = this.choose(4) === 0 ? { isError: true } : {}
    return { type: 'tool-result', id: this.pick(IDS), name: this.pick(NAMES), result, ...media, ...isError }
  }

  /** What a user shows: now and then, and sometimes many. */
  private files(): MediaPart[] {
    if (this.choose(6) !== 5) return []
    const count = this.choose(4) === 0 ? this.pick(FILE_COUNTS) : 1
    if (this.choose(300) !== 0) {
      const many = this.choose(1500) === 1 ? this.pick(MANY_FILES) : count
      const data = this.pick(FILES)
      return Array.from({ length: many }, () => this.file(data))
    }
    const sizes = this.choose(8) === 0 ? LARGEST_SIZES : LARGE_SIZES
    const data = largeFile(this.pick(sizes), this.pick([png, png, jpeg, pdf]))
    const fitting = Math.min(count, Math.floor(MOST_CHARACTERS / data.length))
    return Array.from({ length: fitting }, () => this.file(data))
  }

  private file(data: string): MediaPart {
    const file = { type: 'media' as const, mimeType: this.pick(FILE_TYPES) }
    switch (this.choose(8)) {
      case 0:
        return { ...file, data: `data:${file.mimeType};base64,${data}` }
      case 1:
        return { ...file, url: `data:${file.mimeType};base64,${data}` }
      case 2:
        return { ...file, data: data.replace(/=+$/, '').replace(/^.{9}/, '$&\n') }
      case 3:
        return { ...file, data: this.pick(['%%', 'a', '{}', 'data:', '', 'data:image/png;base64,', '==']) }
      default:
        return { ...file, data }
    }
  }

  private media(): MediaPart {
    if (this.choose(2) === 0) return this.file(this.pick(FILES))
    const place = this.pick([
      { data: Buffer.from(this.token('m')).toString('base64') },
      { url: `https://host/${this.token('m')}` },
      {},
    ])
    return { type: 'media' as const, mimeType: this.pick(TYPES), ...place, ...this.signed() }
  }

  private anyArgs(): unknown {
    return this.pick<unknown>([
      { q: 1 },
      {},
      '{"q":1}',
      '{"q":',
      [1],
      null,
      undefined,
      'text',
      { q: 'a\ud800' },
      { when: new Date(0), size: 3n },
      { deep: nested(this.pick([10, 70, 5000]), 1) },
    ])
  }

  private signed(): { signature?: string; origin?: Origin } {
    const kind = this.choose(4)
    if (kind === 0) return {}
    const origin = this.origin()
    if (kind === 1) return { origin }
    return kind === 2 ? { signature: this.signature() } : { signature: this.signature(), origin }
  }

  /** A signature as a vendor writes it, or as a program spoilt it. */
  private signature(): string {
    const text = encoded(this.token('g'))
    const kind = this.choose(14)
    if (kind > 6) return text
    if (kind === 6) return encoded(this.pick(GATEWAY_FIELDS))
    const [half, url] = [text.slice(0, 5), text.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')]
    return [this.token('g'), `${text}\ud800`, `${text} ${text}`, `${half}…`, url, `"${text}"`][kind] ?? text
  }

  private text(prefix: string): ProviderPart {
    return { type: 'text', text: this.token(prefix) }
  }

  private token(prefix: string): string {
    return `${prefix}${this.tokens++}#`
  }

  private pick<Value>(list: readonly Value[]): Value {
    return list[this.choose(list.length)] as Value
  }
}
