/** Stored messages as items: calls with their results, and what runs reported besides where it happened. */
import { isRecord } from '../base/is-record.js'
import { ABORTED_MARKER } from '../base/markers.js'
import { own } from '../base/own.js'
import type { ChatMessage, ChatPart } from '../session/chat-message.js'
import { type CallItem, pairCalls } from '../session/pair-calls.js'
import type { RunUsage } from '../session/usage.js'
import {
  answered,
  answerUsage,
  codeText,
  type FooterItem,
  isHiddenCall,
  type Mark,
  questionOf,
  type RunNotes,
  type TranscriptItem,
  type UnknownOutcome,
  withOutcome,
} from './item.js'

type CallPart = Extract<ChatPart, { type: 'tool-call' }>
type ResultPart = Extract<ChatPart, { type: 'tool-result' }>

/**
 * The items of messages in their order. `notes` are those of the runs that are known. `openEnd`: a run that is
 * shown by its events follows, so the last answer has no end yet.
 */
export function fromMessages(
  messages: readonly ChatMessage[],
  notes: readonly RunNotes[] = [],
  openEnd = false,
): TranscriptItem[] {
  const builder = new TranscriptBuilder(notes, pairParts(messages))
  for (const message of messages) builder.add(message)
  return builder.end(openEnd)
}

/** The text parts of a message, as one. */
export function textOf(parts: readonly ChatPart[]): string {
  return parts.flatMap(part => (part.type === 'text' ? [part.text] : [])).join('\n\n')
}

/** Written by a person: begins a turn. Results may come in the user's role. */
function isFromUser(message: ChatMessage): boolean {
  return message.role === 'user' && !message.parts.some(part => part.type === 'tool-result')
}

function isHidden(message: ChatMessage): boolean {
  return message.synthetic === true || message.role === 'system'
}

/** For each result that is the first of its call, the call. */
function pairParts(messages: readonly ChatMessage[]): ReadonlyMap<ChatPart, ChatPart> {
  const parts: ChatPart[] = []
  const items: CallItem[] = []
  let turn = 0
  for (const [at, message] of messages.entries()) {
    if (isHidden(message)) continue
    if (isFromUser(message)) turn += 1
    for (const part of message.parts) {
      if (part.type !== 'tool-call' && part.type !== 'tool-result') continue
      const { id, name } = part
      items.push({ kind: part.type === 'tool-call' ? 'call' : 'answer', id, name, at, turn })
      parts.push(part)
    }
  }
  const calls = new Map<ChatPart, ChatPart>()
  for (const [index, pair] of pairCalls(items).entries()) {
    const [part, call] = [parts[index], pair && parts[pair.call]]
    if (part && call && !pair?.duplicate) calls.set(part, call)
  }
  return calls
}

interface Answer {
  text: string[]
  seq: number
  timestamp: number
  model?: string
  used: RunUsage[]
}

class TranscriptBuilder {
  readonly #items: TranscriptItem[] = []
  /** The place of each call, and when it was stored. */
  readonly #places = new Map<ChatPart, { place: number; timestamp: number }>()
  readonly #callOf: ReadonlyMap<ChatPart, ChatPart>
  readonly #notes: readonly RunNotes[]
  #answer: Answer | undefined
  #userSeq: number | undefined
  #note: RunNotes | undefined
  #placed = new Set<number>()

  constructor(notes: readonly RunNotes[], callOf: ReadonlyMap<ChatPart, ChatPart>) {
    this.#notes = [...notes].sort((left, right) => left.afterSeq - right.afterSeq)
    this.#callOf = callOf
  }

  add(message: ChatMessage): void {
    if (message.role === 'system') return
    if (message.synthetic) this.#addSynthetic(message)
    else if (isFromUser(message)) this.#addUser(message)
    else this.#addAnswer(message)
  }

  end(openEnd: boolean): TranscriptItem[] {
    if (!openEnd) this.#closeAnswer()
    return this.#items
  }

  #addUser(message: ChatMessage): void {
    this.#closeAnswer()
    const { seq, parts } = message
    this.#userSeq = seq
    const media = parts.filter(part => part.type === 'media')
    this.#items.push({ kind: 'user', key: `m${seq}`, seq, text: textOf(parts), media })
    this.#openNotes(seq)
  }

  /** The notes of the run that this message began. */
  #openNotes(seq: number): void {
    this.#note = this.#notes.findLast(note => note.afterSeq === seq - 1)
    this.#placed = new Set()
    this.#placeMarks('')
  }

  /** Synthetic messages belong to the answer around them; of these only a stop is shown. */
  #addSynthetic(message: ChatMessage): void {
    if (message.role !== 'user') this.#continueAnswer(message)
    if (textOf(message.parts) !== ABORTED_MARKER) return
    // A run whose events are known says so at the end of the answer.
    const isNoted = this.#note?.marks.some(({ mark }) => mark.type === 'stopped')
    if (!isNoted) this.#pushMark(`m${message.seq}.0`, { type: 'stopped' })
  }

  #continueAnswer({ seq, timestamp }: ChatMessage): Answer {
    this.#answer = { ...(this.#answer ?? { text: [], used: [] }), seq, timestamp }
    return this.#answer
  }

  #addAnswer(message: ChatMessage): void {
    const answer = this.#continueAnswer(message)
    if (message.model) answer.model = message.model
    if (message.usage) answer.used.push(message.usage)
    for (const [index, part] of message.parts.entries()) {
      this.#addPart(message, part, `m${message.seq}.${index}`)
    }
    if (message.sources?.length) {
      const { author, seq, sources } = message
      this.#items.push({ kind: 'sources', key: `s${seq}`, author, sources })
    }
    if (message.error && !this.#note?.error) {
      this.#items.push({ kind: 'error', key: `e${message.seq}`, error: message.error })
    }
  }

  #addPart(message: ChatMessage, part: ChatPart, key: string): void {
    const { author } = message
    switch (part.type) {
      case 'text':
        if (part.text.trim() === '') return
        this.#answer?.text.push(part.text)
        this.#items.push({ kind: 'text', key, author, text: part.text })
        return
      case 'reasoning': {
        if (part.text.trim() === '' && !part.redacted) return
        const redacted = part.redacted ? { redacted: true } : {}
        this.#items.push({ kind: 'reasoning', key, author, text: part.text, ...redacted })
        return
      }
      case 'tool-call':
        this.#addCall(message, part, key)
        return
      case 'tool-result':
        if (!isHiddenCall(part.name)) this.#addResult(message, part, key)
        return
      case 'media':
        this.#items.push({ kind: 'media', key, author, media: part })
        return
      case 'code':
        this.#items.push({ kind: 'text', key, author, text: codeText(part) })
        return
      case 'other':
        this.#items.push({ kind: 'mark', key, mark: { type: 'note', text: part.text } })
        return
      default:
        part satisfies never
    }
  }

  #addCall({ author, timestamp }: ChatMessage, part: CallPart, key: string): void {
    const { id: callId, name, args } = part
    if (isHiddenCall(name)) this.#addHidden(author, part, key)
    else {
      const approval = own(this.#note?.approvals ?? {}, callId)
      const facts = approval === undefined ? {} : { approval }
      this.#places.set(part, { place: this.#items.length, timestamp })
      this.#items.push({ kind: 'tool', key, author, callId, name, args, status: 'unanswered', ...facts })
    }
    this.#placeMarks(callId)
  }

  #addHidden(author: string, { name, args }: CallPart, key: string): void {
    const question = questionOf(name, args)
    if (question) {
      this.#pushMark(key, question)
      return
    }
    const to = transferTarget(args)
    // A model may name an agent that does not exist: the run's events say whether the transfer took place.
    const marks = this.#note?.marks.map(({ mark }) => mark)
    if (marks && !marks.some(mark => mark.type === 'transfer' && mark.to === to)) return
    this.#pushMark(key, { type: 'transfer', from: author, to })
  }

  #pushMark(key: string, mark: Mark): void {
    const run = this.#note ? { runId: this.#note.runId } : {}
    this.#items.push({ kind: 'mark', key, mark, ...run })
  }

  #addResult({ author, timestamp }: ChatMessage, part: ResultPart, key: string): void {
    const { id: callId, name } = part
    const found = answered(part.result, part.isError === true)
    const given = part.media ? { ...found, media: part.media } : found
    const result = withOutcome(given, this.#outcomeOf(callId))
    const call = this.#callOf.get(part)
    const place = call && this.#places.get(call)
    const item = place && this.#items[place.place]
    if (item?.kind !== 'tool') {
      // Its call is in a page that is not loaded, or nowhere.
      this.#items.push({ kind: 'tool', key, author, callId, name, args: undefined, ...result })
      return
    }
    const took =
      own(this.#note?.durations ?? {}, callId) ?? Math.max(0, timestamp - (place?.timestamp ?? timestamp))
    const measured = 'result' in result ? { durationMs: took } : {}
    this.#items[place?.place ?? 0] = { ...item, ...result, ...measured }
  }

  #outcomeOf(callId: string): UnknownOutcome | undefined {
    const noted = own(this.#note?.outcomes ?? {}, callId)
    if (!noted) return undefined
    const { call: _call, ...outcome } = noted
    return outcome
  }

  /** Calls of agents inside tools are in no message: those with an unknown outcome stand at the end. */
  #placeNested({ runId, outcomes = {} }: RunNotes): void {
    for (const [callId, { call, ...outcome }] of Object.entries(outcomes)) {
      if (!call || outcome.answer === 'happened' || outcome.answer === 'run') continue
      const facts = { callId, ...call, status: 'unknown' as const, outcome }
      this.#items.push({ kind: 'tool', key: `o${runId}.${callId}`, ...facts })
    }
  }

  /** Places the marks that followed a call; without an anchor, all that are left. */
  #placeMarks(anchor: string | undefined): void {
    const note = this.#note
    if (!note) return
    for (const [index, { anchor: wanted, mark }] of note.marks.entries()) {
      if (this.#placed.has(index) || (anchor !== undefined && wanted !== anchor)) continue
      this.#placed.add(index)
      // Shown where its call is stored.
      if (mark.type !== 'transfer') this.#pushMark(`n${note.runId}.${index}`, mark)
    }
  }

  #closeAnswer(): void {
    const note = this.#note
    if (note) {
      this.#placeUnfinished(note)
      this.#placeNested(note)
    }
    this.#placeMarks(undefined)
    if (note?.error) {
      const { runId, error } = note
      this.#items.push({ kind: 'error', key: `e${runId}`, error, runId })
    }
    if (this.#answer) this.#items.push(this.#footer(this.#answer))
    this.#note = undefined
    this.#answer = undefined
  }

  #placeUnfinished({ runId, unfinished = [] }: RunNotes): void {
    for (const [index, { author, text }] of unfinished.entries()) {
      if (this.#answer?.text.some(stored => stored.includes(text.trim()))) continue
      this.#answer?.text.push(text)
      this.#items.push({ kind: 'text', key: `u${runId}.${index}`, author, text })
    }
  }

  #footer({ text, used, model, seq, timestamp }: Answer): FooterItem {
    const userSeq = this.#userSeq === undefined ? {} : { userSeq: this.#userSeq }
    const facts = { seq, timestamp, text: text.join('\n\n'), ...userSeq }
    return { kind: 'footer', key: `f${seq}`, ...facts, ...answerUsage(used, model) }
  }
}

function transferTarget(args: unknown): string {
  const name = isRecord(args) ? (args.agentName ?? args.agent_name) : undefined
  return typeof name === 'string' ? name : '?'
}
