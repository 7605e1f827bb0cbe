/** Stored messages as entries: calls joined with their results, notes of runs put where they happened. */
import { own } from '../../../src/base/own.js'
import type { ChatMessage, ChatPart } from './api.js'
import {
  type Entry,
  type FooterEntry,
  type RunNotes,
  STOPPED_TEXT,
  type ToolEntry,
  TRANSFER_TOOL,
} from './entry.js'

/** The entries of messages in order. `openEnd`: a live run goes on after them, so the last answer has no footer. */
export function storedEntries(
  messages: readonly ChatMessage[],
  notes: readonly RunNotes[],
  openEnd = false,
): Entry[] {
  const builder = new EntryBuilder(notes)
  for (const message of messages) builder.add(message)
  return builder.end(openEnd)
}

class EntryBuilder {
  private readonly entries: Entry[] = []
  /** Calls without a result yet: id → index of the entry. */
  private readonly open = new Map<string, { index: number; timestamp: number }>()
  private readonly notes: readonly RunNotes[]
  private answer: Answer | undefined
  private userSeq: number | undefined
  private note: RunNotes | undefined
  private placed = new Set<number>()

  constructor(notes: readonly RunNotes[]) {
    this.notes = [...notes].sort((left, right) => left.afterSeq - right.afterSeq)
  }

  add(message: ChatMessage): void {
    if (message.role === 'user' && !hasResult(message)) this.addUser(message)
    else if (message.role !== 'system') this.addAnswer(message)
  }

  end(openEnd: boolean): Entry[] {
    this.closeAnswer(openEnd)
    return this.entries
  }

  private addUser(message: ChatMessage): void {
    // What Lango itself told the model belongs to the answer around it.
    if (message.synthetic) return
    this.closeAnswer(false)
    this.userSeq = message.seq
    this.entries.push({
      kind: 'user',
      key: `m${message.seq}`,
      seq: message.seq,
      text: textOf(message.parts),
      media: message.parts.filter(part => part.type === 'media'),
    })
    this.openNotes(message.seq)
  }

  /** The notes of the run that this message began. */
  private openNotes(seq: number): void {
    this.note = this.notes.findLast(note => note.afterSeq < seq)
    if (this.note && this.note.afterSeq !== seq - 1) this.note = undefined
    this.placed = new Set()
    this.placeMarks('')
  }

  private addAnswer(message: ChatMessage): void {
    this.answer ??= { text: [], timestamp: message.timestamp, seq: message.seq, totalTokens: 0, costs: [] }
    const answer = this.answer
    answer.seq = message.seq
    answer.timestamp = message.timestamp
    if (message.model) answer.model = message.model
    if (message.usage) {
      answer.totalTokens += message.usage.totalTokens
      answer.costs.push(message.usage.cost ?? Number.NaN)
    }
    message.parts.forEach((part, index) => {
      this.addPart(message, part, `m${message.seq}.${index}`)
    })
    if (message.error && !this.note?.error) {
      this.entries.push({ kind: 'error', key: `e${message.seq}`, error: message.error })
    }
  }

  private addPart(message: ChatMessage, part: ChatPart, key: string): void {
    const { author } = message
    switch (part.type) {
      case 'text':
        if (part.text.trim() === '') return
        this.addText(author, part.text, key)
        return
      case 'reasoning': {
        const redacted = part.redacted ? { redacted: true } : {}
        if (part.text.trim() === '' && !part.redacted) return
        this.entries.push({ kind: 'reasoning', key, author, text: part.text, ...redacted })
        return
      }
      case 'tool-call':
        this.addCall(message, part, key)
        return
      case 'tool-result':
        this.addResult(message, part, key)
        return
      case 'media':
        this.entries.push({ kind: 'media', key, author, media: part })
        return
      case 'other':
        this.entries.push({ kind: 'mark', key, mark: { type: 'note', text: part.text } })
        return
      default:
        part satisfies never
    }
  }

  private addText(author: string, text: string, key: string): void {
    if (text === STOPPED_TEXT) {
      this.addStopped(key)
      return
    }
    this.answer?.text.push(text)
    this.entries.push({ kind: 'text', key, author, text })
  }

  /** A run that was seen tells of it at the end of the answer. */
  private addStopped(key: string): void {
    const isTold = this.note?.marks.some(({ mark }) => mark.type === 'stopped')
    if (!isTold) this.entries.push({ kind: 'mark', key, mark: { type: 'stopped' } })
  }

  private addCall(message: ChatMessage, part: Extract<ChatPart, { type: 'tool-call' }>, key: string): void {
    if (part.name === TRANSFER_TOOL) {
      const to = transferTarget(part.args)
      this.entries.push({ kind: 'mark', key, mark: { type: 'transfer', from: message.author, to } })
    } else {
      this.open.set(part.id, { index: this.entries.length, timestamp: message.timestamp })
      this.entries.push({
        kind: 'tool',
        key,
        author: message.author,
        callId: part.id,
        name: part.name,
        args: part.args,
        status: 'unanswered',
      })
    }
    this.placeMarks(part.id)
  }

  private addResult(message: ChatMessage, part: Extract<ChatPart, { type: 'tool-result' }>, key: string) {
    if (part.name === TRANSFER_TOOL) return
    const call = this.open.get(part.id)
    this.open.delete(part.id)
    const status = part.isError ? 'failed' : 'done'
    const entry = call && this.entries[call.index]
    if (call && entry?.kind === 'tool') {
      const durationMs =
        own(this.note?.durations ?? {}, part.id) ?? Math.max(0, message.timestamp - call.timestamp)
      this.entries[call.index] = { ...entry, status, result: part.result, durationMs }
      return
    }
    // The call is in a page that is not loaded, or nowhere.
    const { author } = message
    const orphan: ToolEntry = {
      kind: 'tool',
      key,
      author,
      callId: part.id,
      name: part.name,
      args: undefined,
      status,
    }
    this.entries.push({ ...orphan, result: part.result })
  }

  private placeMarks(anchor: string | undefined): void {
    this.note?.marks.forEach(({ anchor: wanted, mark }, index) => {
      if (this.placed.has(index) || (anchor !== undefined && wanted !== anchor)) return
      this.placed.add(index)
      // A stored call tells of the same transfer.
      if (mark.type === 'transfer') return
      const runId = this.note?.runId ?? ''
      this.entries.push({ kind: 'mark', key: `n${runId}.${index}`, mark, runId })
    })
  }

  private closeAnswer(openEnd: boolean): void {
    const { note, answer } = this
    if (openEnd) return
    this.placeUnfinished()
    this.placeMarks(undefined)
    if (note?.error) {
      this.entries.push({ kind: 'error', key: `e${note.runId}`, error: note.error, runId: note.runId })
    }
    if (answer) this.entries.push(this.footer(answer))
    this.note = undefined
    this.answer = undefined
    this.open.clear()
  }

  private placeUnfinished(): void {
    const { note, answer } = this
    note?.unfinished?.forEach(({ author, text }, index) => {
      if (answer?.text.some(stored => stored.includes(text.trim()))) return
      answer?.text.push(text)
      this.entries.push({ kind: 'text', key: `u${note.runId}.${index}`, author, text })
    })
  }

  private footer({ text, costs, ...facts }: Answer): FooterEntry {
    // One step without a known price leaves the sum unknown, as in the run's own figure.
    const cost = costs.reduce((sum, each) => sum + each, 0)
    return {
      kind: 'footer',
      key: `f${facts.seq}`,
      ...facts,
      text: text.join('\n\n'),
      ...(costs.length === 0 || Number.isNaN(cost) ? {} : { cost }),
      ...(this.userSeq === undefined ? {} : { userSeq: this.userSeq }),
    }
  }
}

interface Answer {
  text: string[]
  seq: number
  timestamp: number
  model?: string
  totalTokens: number
  /** Dollars of each step; not a number where the price is unknown. */
  costs: number[]
}

function hasResult(message: ChatMessage): boolean {
  return message.parts.some(part => part.type === 'tool-result')
}

/** The text parts of a message, as one. */
export function textOf(parts: readonly ChatPart[]): string {
  return parts.flatMap(part => (part.type === 'text' ? [part.text] : [])).join('\n\n')
}

function transferTarget(args: unknown): string {
  if (typeof args !== 'object' || args === null) return '?'
  const name: unknown = Reflect.get(args, 'agentName') ?? Reflect.get(args, 'agent_name')
  return typeof name === 'string' ? name : '?'
}
