/**
 * A wire's pieces become an answer's events here, once for all providers. What it guarantees:
 *
 * - a call is emitted whole, with an id that no other call of the answer has and with arguments that are an object;
 * - arguments are parsed once, when the call is complete; a call that cannot be parsed is never emitted, and the
 *   answer then ends as `malformed-call`;
 * - pieces of one block carry one block number, and a signed piece never shares its block with another piece;
 * - an answer without its closing event is an error.
 */
import { isRecord } from '../base/is-record.js'
import { isTooDeep } from '../base/json.js'
import { own } from '../base/own.js'
import { newCallId } from '../session/pair-calls.js'
import type { Usage } from '../session/usage.js'
import type { Origin } from './provider.js'
import { cutStreamError, type ErrorContext } from './provider-error.js'
import type { AnswerMetadata, FinishReason, StreamEvent } from './stream-event.js'

export interface AnswerContext extends ErrorContext {
  /** Whose signatures these are. */
  origin: Origin
  /** Tool names as the wire knows them → as the caller declared them, where they differ. */
  mappedNames?: Readonly<Record<string, string>>
  /** By message of the body after its leading system messages: its index in the history that was given. */
  places?: readonly number[]
}

/** A piece of a call, as chat-style servers send it. Every field may be missing. */
export interface CallPiece {
  id?: string | null | undefined
  index?: number | null | undefined
  name?: string | null | undefined
  args?: unknown
  signature?: string | undefined
}

export interface PieceOptions {
  signature?: string | undefined
  redacted?: boolean
  /** Pieces of the same kind with the same key belong to one block. */
  key?: string | number
}

/** Whether arguments may have ended. Pieces are scanned as they come, so that none is read twice. */
interface ArgumentScan {
  depth: number
  isBlank: boolean
  isInString: boolean
  isEscaped: boolean
  /** Set once, when every bracket and string is closed: more text cannot make an invalid object valid. */
  isObject: boolean | undefined
}

interface OpenCall {
  id: string | undefined
  index: number | undefined
  name: string
  argsText: string
  signature: string | undefined
  scan: ArgumentScan
}

/** Collects one answer. Methods return the events that may be emitted now. */
export class AnswerAssembly {
  readonly #context: AnswerContext
  readonly #openCalls: OpenCall[] = []
  readonly #usedIds = new Set<string>()
  #block = { number: -1, kind: '', key: undefined as string | number | undefined }
  #tokens: Partial<Usage> = {}
  #metadata: AnswerMetadata = {}
  #finishReason: FinishReason | undefined
  #finishMessage: string | undefined
  #malformed: string | undefined

  constructor(context: AnswerContext) {
    this.#context = context
  }

  text(text: string, options: PieceOptions = {}): StreamEvent[] {
    if (text === '' && options.signature === undefined) return []
    const block = this.#blockOf('text', options)
    if (options.signature === undefined) return [{ type: 'text-delta', text, block }]
    return [{ type: 'text-delta', text, signature: options.signature, origin: this.#context.origin, block }]
  }

  reasoning(text: string, options: PieceOptions = {}): StreamEvent[] {
    if (text === '' && options.signature === undefined) return []
    const block = this.#blockOf('reasoning', options)
    const signature = options.signature === undefined ? {} : { signature: options.signature }
    const redacted = options.redacted ? { redacted: true } : {}
    return [{ type: 'reasoning-delta', text, ...signature, origin: this.#context.origin, ...redacted, block }]
  }

  /** A piece of a call: a new id opens a call; otherwise the index decides; otherwise the last open call. */
  callPiece(piece: CallPiece): void {
    const call = this.#findCall(piece) ?? this.#openCall(piece)
    call.name ||= piece.name ?? ''
    call.id ??= piece.id || undefined
    call.signature ??= piece.signature
    if (typeof piece.args === 'string') {
      call.argsText += piece.args
      scanPiece(piece.args, call.scan)
    } else if (piece.args !== undefined && piece.args !== null) {
      call.argsText = isTooDeep(piece.args) ? TOO_DEEP : JSON.stringify(piece.args)
      call.scan = newScan()
      scanPiece(call.argsText, call.scan)
    }
  }

  /** A call that came whole. Its place among the parts is kept, because it is emitted at once. */
  call(piece: CallPiece): StreamEvent[] {
    const args = parseArguments(piece.args)
    const name = piece.name ?? ''
    if (args === undefined || name === '') {
      this.#malformed ??= describeMalformed(name, piece.args)
      return []
    }
    this.#closeBlock()
    return [
      {
        type: 'tool-call',
        id: this.#uniqueId(piece.id),
        name: own(this.#context.mappedNames ?? {}, name) ?? name,
        args,
        ...(piece.signature === undefined ? {} : { signature: piece.signature }),
        origin: this.#context.origin,
      },
    ]
  }

  media(mimeType: string, data: string, signature?: string): StreamEvent[] {
    this.#closeBlock()
    const signed = signature === undefined ? {} : { signature }
    return [{ type: 'media', mimeType, data, ...signed, origin: this.#context.origin }]
  }

  vendor(value: unknown, text: string, signature?: string): StreamEvent[] {
    this.#closeBlock()
    const signed = signature === undefined ? {} : { signature }
    const { origin } = this.#context
    return [{ type: 'vendor', vendor: origin.vendor, value, text, ...signed, origin }]
  }

  /** What the vendor says about its answer; later words replace earlier ones of the same name. */
  metadata(metadata: AnswerMetadata): void {
    this.#metadata = { ...this.#metadata, ...metadata }
  }

  /** Later figures replace earlier ones: every provider's counts are cumulative. */
  usage(usage: Partial<Usage>): void {
    this.#tokens = { ...this.#tokens, ...usage }
  }

  /** The closing event has come. A second one, as some servers send, changes nothing. */
  finish(reason: FinishReason, message?: string): void {
    this.#finishReason ??= reason
    this.#finishMessage ??= message
  }

  /** The stream is over: what is still open is closed, or the stream was cut. */
  end(): StreamEvent[] {
    if (this.#finishReason === undefined) throw cutStreamError(this.#context)
    const calls = this.#openCalls.flatMap(call =>
      this.call({ id: call.id, name: call.name, args: call.argsText, signature: call.signature }),
    )
    const isKnown = Object.keys(this.#metadata).length > 0
    const metadata: StreamEvent[] = isKnown ? [{ type: 'metadata', metadata: this.#metadata }] : []
    return [...calls, ...metadata, ...this.#usageEvents(), this.#doneEvent(this.#finishReason)]
  }

  #doneEvent(reason: FinishReason): StreamEvent {
    const message = this.#malformed ?? this.#finishMessage
    const said = message === undefined ? {} : { message }
    // An answer cut by its length limit explains a half call better than "malformed" does.
    if (this.#malformed !== undefined && reason !== 'length') {
      return { type: 'done', finishReason: 'malformed-call', ...said }
    }
    const called = this.#usedIds.size > 0
    if (reason === 'stop' && called) return { type: 'done', finishReason: 'tool-calls', ...said }
    if (reason === 'tool-calls' && !called) return { type: 'done', finishReason: 'stop', ...said }
    return { type: 'done', finishReason: reason, ...said }
  }

  #usageEvents(): StreamEvent[] {
    const { inputTokens, outputTokens } = this.#tokens
    if (inputTokens === undefined && outputTokens === undefined) return []
    const sum = (inputTokens ?? 0) + (outputTokens ?? 0)
    return [
      {
        type: 'usage',
        usage: {
          totalTokens: sum,
          ...this.#tokens,
          inputTokens: inputTokens ?? 0,
          outputTokens: outputTokens ?? 0,
        },
      },
    ]
  }

  /** What comes next follows something else, so it cannot continue the block before. */
  #closeBlock(): void {
    this.#block = { number: this.#block.number, kind: '', key: undefined }
  }

  #blockOf(kind: string, options: PieceOptions): number {
    // Without a key of its own, a signed piece is a part of its own: signatures cover exactly one part.
    const key = options.key ?? (options.signature === undefined ? 'unsigned' : undefined)
    const same = this.#block.kind === kind && key !== undefined && this.#block.key === key
    if (!same) this.#block = { number: this.#block.number + 1, kind, key }
    return this.#block.number
  }

  #findCall(piece: CallPiece): OpenCall | undefined {
    const index = piece.index ?? undefined
    const last = this.#openCalls.at(-1)
    if (piece.id) {
      const known = this.#openCalls.findLast(call => call.id === piece.id)
      const other = known && index !== undefined && known.index !== undefined && known.index !== index
      // An unknown id opens a call, and so does a known one that comes back with a name under another index.
      return known && !(other && piece.name) ? known : this.#awaitingId(index)
    }
    const byIndex = index === undefined ? last : this.#openCalls.findLast(call => call.index === index)
    // Servers without ids send each call whole: a second name after complete arguments is a second call.
    return byIndex && piece.name && isComplete(byIndex) ? undefined : byIndex
  }

  /** A call that was opened by its name and gets its id only later. */
  #awaitingId(index: number | undefined): OpenCall | undefined {
    if (index === undefined) return undefined
    return this.#openCalls.find(call => call.index === index && call.id === undefined && call.argsText === '')
  }

  #openCall(piece: CallPiece): OpenCall {
    const call: OpenCall = {
      id: piece.id || undefined,
      index: piece.index ?? undefined,
      name: piece.name ?? '',
      argsText: '',
      signature: piece.signature,
      scan: newScan(),
    }
    this.#openCalls.push(call)
    return call
  }

  #uniqueId(given: string | null | undefined): string {
    let id = given || newCallId()
    while (this.#usedIds.has(id)) id = newCallId()
    this.#usedIds.add(id)
    return id
  }
}

function newScan(): ArgumentScan {
  return { depth: 0, isBlank: true, isInString: false, isEscaped: false, isObject: undefined }
}

function scanPiece(text: string, scan: ArgumentScan): void {
  scan.isBlank &&= text.trim() === ''
  for (const character of text) {
    if (scan.isEscaped) scan.isEscaped = false
    else if (scan.isInString && character === '\\') scan.isEscaped = true
    else if (character === '"') scan.isInString = !scan.isInString
    else if (scan.isInString) continue
    else if (character === '{' || character === '[') scan.depth++
    else if (character === '}' || character === ']') scan.depth--
  }
}

/** Whether the arguments so far are a whole object. They are parsed only once. */
function isComplete({ name, argsText, scan }: OpenCall): boolean {
  if (name === '' || argsText === '') return false
  if (scan.isBlank) return true
  if (scan.depth <= 0 && !scan.isInString) scan.isObject ??= parseArguments(argsText) !== undefined
  return scan.isObject ?? false
}

/** Arguments as an object. Nothing means none; a text is parsed, twice when it was encoded twice. Not those that are too deep. */
function parseArguments(args: unknown): Record<string, unknown> | undefined {
  let value = args
  for (let depth = 0; depth < 2 && typeof value === 'string'; depth += 1) {
    if (value.trim() === '') return {}
    try {
      value = JSON.parse(value)
    } catch {
      return undefined
    }
  }
  if (value === undefined || value === null) return {}
  return isRecord(value) && !isTooDeep(value) ? value : undefined
}

/** Stands for arguments that cannot be written as text. */
const TOO_DEEP = 'nested too deep'

function describeMalformed(name: string, args: unknown): string {
  if (name === '') return 'The model called a tool without naming it.'
  const text = typeof args === 'string' ? args : isTooDeep(args) ? TOO_DEEP : JSON.stringify(args)
  const shown = text.length > 200 ? `${text.slice(0, 200)}…` : text
  return `The model called ${name} with arguments that are not a JSON object: ${shown}`
}
