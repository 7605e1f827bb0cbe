/** Who observes: rules, or a model. */
import { AgentError } from '../errors.js'
import type { Provider } from '../provider/provider.js'
import type { StoredMessage } from '../session/message.js'
import {
  joinUsage,
  type Observed,
  type ObserverUsage,
  type StoredObservation,
} from '../session/session-memory.js'
import { completeUsage, costOf } from '../session/usage.js'
import { digest } from './digest.js'
import { dateWords, readableText } from './index-session.js'
import { OBSERVE_PROMPT } from './prompts/observe.js'
import { REFLECT_PROMPT } from './prompts/reflect.js'
import { readNotes } from './read-notes.js'
import { termsOf } from './terms.js'

export interface Observer {
  /** What is worth knowing of these messages. Every line names its sources among them. */
  observe(messages: readonly StoredMessage[], signal: AbortSignal): Promise<Observation>
  /** Fewer lines that say the same. Absent: rules cannot. */
  reflect?(observations: readonly StoredObservation[], signal: AbortSignal): Promise<Observation>
}

export interface Observation {
  lines: Observed[]
  usage?: ObserverUsage
  /** Entries of an answer that were left out. */
  refused: number
}

/** The line with its words for the index. */
export function withTerms(line: Observed): Observed {
  return { ...line, terms: termsOf(`${line.text} ${dateWords(line.time)}`) }
}

export const digestObserver: Observer = {
  observe: async messages => ({ lines: digest(messages), refused: 0 }),
}

/** A model as the observer. `reference` is `provider/model`. */
export function modelObserver(provider: Provider, model: string, reference: string): Observer {
  const ask = async (prompt: string, lines: readonly string[], signal: AbortSignal) =>
    collect(provider, { model, prompt, text: lines.join('\n') }, reference, signal)
  return {
    async observe(messages, signal) {
      const times = new Map(messages.map(({ seq, timestamp }) => [seq, timestamp]))
      const all: Observation = { lines: [], refused: 0 }
      for (const lines of inPieces(messages)) {
        const { text, usage } = await ask(OBSERVE_PROMPT, lines, signal)
        const { notes, refused } = readNotes(text, { times, origin: reference })
        all.lines.push(...notes)
        all.refused += refused
        const [sum] = joinUsage(all.usage ? [all.usage] : [], usage)
        all.usage = sum ?? usage
      }
      return all
    },
    async reflect(observations, signal) {
      const times = new Map<number, number>()
      for (const { fromSeq, toSeq, time } of observations) times.set(toSeq, time).set(fromSeq, time)
      const { text, usage } = await ask(REFLECT_PROMPT, observations.map(noteLine), signal)
      const { notes, refused } = readNotes(text, { times, origin: reference })
      return { lines: notes, refused, usage }
    },
  }
}

/** Characters of messages in one request. A longer message is observed in pieces. */
const PIECE = 24_000
/** Pieces of one message: beyond them a message is a file, which recall can still find. */
const MOST_PIECES = 16

/** Lines for one or more requests, each within the limit. */
function inPieces(messages: readonly StoredMessage[]): string[][] {
  const requests: string[][] = [[]]
  let room = PIECE
  for (const message of messages) {
    const text = readableText(message)
    const pieces = Math.min(MOST_PIECES, Math.max(1, Math.ceil(text.length / PIECE)))
    for (let piece = 0; piece < pieces; piece++) {
      const line = messageJson(message, text.slice(piece * PIECE, (piece + 1) * PIECE), piece + 1, pieces)
      if (line.length > room && requests.at(-1)?.length) {
        requests.push([])
        room = PIECE
      }
      requests.at(-1)?.push(line)
      room -= line.length
    }
  }
  return requests.filter(lines => lines.length > 0)
}

function messageJson(message: StoredMessage, text: string, piece: number, pieces: number): string {
  const { seq, timestamp, author, role } = message
  const part = pieces > 1 ? { part: `${piece} of ${pieces}` } : {}
  return JSON.stringify({ number: seq, date: dateWords(timestamp), author: author ?? role, ...part, text })
}

function noteLine({ time, kind, priority, fromSeq, toSeq, text }: StoredObservation): string {
  return JSON.stringify({ date: dateWords(time), kind, priority, from: fromSeq, to: toSeq, text })
}

interface Question {
  model: string
  prompt: string
  text: string
}

/** The most that is read of an answer: notes are far shorter. */
const LONGEST_ANSWER = 400_000
const MOST_OUTPUT_TOKENS = 8000

async function collect(
  provider: Provider,
  { model, prompt, text }: Question,
  reference: string,
  signal: AbortSignal,
): Promise<{ text: string; usage: ObserverUsage }> {
  const usage: ObserverUsage = { model: reference, calls: 1, inputTokens: 0, outputTokens: 0 }
  const { price } = provider.describeModel(model)
  let answer = ''
  const request = {
    model,
    messages: [
      { role: 'system', parts: [{ type: 'text' as const, text: prompt }] },
      { role: 'user', parts: [{ type: 'text' as const, text }] },
    ],
    options: { maxOutputTokens: MOST_OUTPUT_TOKENS },
  }
  for await (const event of provider.generate(request, signal)) {
    if (event.type === 'error') throw event.error
    if (event.type === 'text-delta') answer += event.text
    if (event.type === 'usage') {
      usage.inputTokens += event.usage.inputTokens
      usage.outputTokens += event.usage.outputTokens
      if (price) usage.cost = costOf(completeUsage(event.usage), price)
    }
    if (answer.length > LONGEST_ANSWER)
      throw new AgentError('provider-rejected', 'The answer of the observer is too long to be notes')
  }
  return { text: answer, usage }
}
