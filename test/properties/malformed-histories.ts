/**
 * Histories as no program should have written them, and what must hold when they are restored all the same.
 * Every text, argument and output holds unique words (`w1`, `w2`, …), so that a loss or a change of order
 * can be seen from outside.
 */
import {
  CONTENT_REQUEST_PROCESSOR,
  type Event,
  type InvocationContext,
  LlmAgent,
  type LlmRequest,
} from '@google/adk'
import { messagesToProvider } from '../../src/adk/messages-to-provider.js'
import { convertMessages } from '../../src/adk/model/convert-messages.js'
import { adkView } from '../../src/adk/session/adk-view.js'
import { messagesToEvents, restoreEvents } from '../../src/adk/session/messages-to-events.js'
import type { Message, ToolCall } from '../../src/session/message.js'

/** A history that depends on nothing but its seed. */
export function malformedHistory(seed: number): Message[] {
  const random = randomFrom(seed)
  const words = { count: 0 }
  const length = Math.floor(random() * 12)
  return Array.from({ length }, (_, index) => malformedMessage(random, words, index))
}

type Random = () => number

/** mulberry32: small, fast, and good enough to wander. */
function randomFrom(seed: number): Random {
  let state = (seed * 2_654_435_761) >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

const ROLES = [
  'user',
  'user',
  'assistant',
  'assistant',
  'model',
  'tool',
  'tool',
  'function',
  'system',
  'ipython',
  '',
]
const AUTHORS = [undefined, undefined, 'user', 'root', 'root', 'writer', 'model', 'tool', '']
const IDS = ['', '', 'a', 'b', 'c', 'call_search', 'adk-1', 'a_2']
const NAMES = ['search', 'search', 'read', '', 'transfer_to_agent']

function malformedMessage(random: Random, words: { count: number }, index: number): Message {
  const pick = <Value>(values: readonly Value[]): Value =>
    values[Math.floor(random() * values.length)] as Value
  const word = () => {
    words.count += 1
    return `w${words.count}`
  }
  const json = () =>
    pick([`{"v":"${word()}"}`, `["${word()}"]`, `"${word()}"`, word(), '{}', 'null', '', `{"v":"${word()}`])
  const call = (): ToolCall => ({
    id: pick(IDS),
    name: pick(NAMES),
    ...(random() < 0.6 ? { input: json() } : {}),
    ...(random() < 0.5 ? { output: json() } : {}),
    ...(random() < 0.3 ? { kind: pick(['call', 'response'] as const) } : {}),
    ...(random() < 0.1 ? { signature: 'c2ln' } : {}),
  })
  const author = pick(AUTHORS)
  const toolCalls = random() < 0.55 ? Array.from({ length: Math.floor(random() * 4) }, call) : undefined
  const extra = pick<Record<string, unknown> | undefined>([
    undefined,
    undefined,
    undefined,
    { parts: [0, 'call', 900] },
    { parts: null },
    { role: null },
    { parts: [{ text: 900 }, 'call', 'call', { part: { text: 'x', thought: true } }] },
    { parts: 'no' },
    { role: 'function' },
  ])
  return {
    role: pick(ROLES),
    content: pick(['', word(), `${word()} and ${word()}`, json(), toolCalls?.[0]?.output ?? '']),
    timestamp: index,
    ...(author === undefined ? {} : { author }),
    ...(toolCalls ? { toolCalls } : {}),
    ...(extra ? { extra } : {}),
    ...(random() < 0.7 ? { id: `e${index}` } : {}),
    ...(random() < 0.1 ? { branch: pick(['root.writer', 'root']) } : {}),
  }
}

/** The first property that the history violates, as a sentence; `undefined` when all hold. */
export async function brokenRestoreLaw(messages: readonly Message[]): Promise<string | undefined> {
  const events = messagesToEvents(messages, { rootAgentName: 'root' })
  messagesToProvider(messages)
  const view = adkView(restoreEvents(messages, { rootAgentName: 'root' }), { rootAgentName: 'root' })
  return (
    lostWords(messages, events, 'restored events') ??
    lostWords(messages, view, 'the view') ??
    reordered(messages, events) ??
    reordered(messages, view) ??
    brokenPairs(view) ??
    (await brokenRequest(view))
  )
}

/** The text of a message: ids and names may change. */
function wordsOf(message: Message): string[] {
  const texts = [
    message.content,
    ...(message.toolCalls ?? []).flatMap(call => [spoken(call, 'input'), spoken(call, 'output')]),
  ]
  return texts.flatMap(text => text.match(/\bw\d+\b/g) ?? [])
}

/** A call that says it is a response has no arguments; a call may hold its own answer. */
function spoken(call: ToolCall, field: 'input' | 'output'): string {
  if (call.kind === 'response' && field === 'input') return ''
  return call[field] ?? ''
}

function wordsIn(value: unknown): string[] {
  return JSON.stringify(value)?.match(/\bw\d+\b/g) ?? []
}

function lostWords(
  messages: readonly Message[],
  events: readonly Event[],
  where: string,
): string | undefined {
  const kept = new Set(wordsIn(events.map(event => event.content?.parts ?? [])))
  const lost = messages.flatMap(wordsOf).filter(word => !kept.has(word))
  return lost.length > 0 ? `${where} lost ${lost.join(', ')}` : undefined
}

function reordered(messages: readonly Message[], events: readonly Event[]): string | undefined {
  const place = new Map(
    messages.flatMap((message, index) => wordsOf(message).map(word => [word, index] as const)),
  )
  let last = 0
  for (const word of wordsIn(events.map(event => event.content?.parts ?? []))) {
    const at = place.get(word) ?? last
    if (at < last) return `${word} of message ${at} stands behind message ${last}`
    last = at
  }
  return undefined
}

/** Ids are unique, and every result follows its call and has no other parts next to it. */
function brokenPairs(view: readonly Event[]): string | undefined {
  const calls = new Map<string, number>()
  for (const [index, event] of view.entries()) {
    const parts = event.content?.parts ?? []
    const results = parts.filter(part => part.functionResponse)
    if (results.length > 0 && results.length < parts.length)
      return `event ${index} mixes results with other parts`
    for (const { functionCall } of parts) {
      if (!functionCall) continue
      if (!functionCall.id || calls.has(functionCall.id))
        return `the call id ${functionCall.id} is missing or doubled`
      calls.set(functionCall.id, index)
    }
    const asked = new Set(results.map(part => calls.get(part.functionResponse?.id ?? '')))
    if (asked.has(undefined)) return `event ${index} answers a call that is not before it`
    if (asked.size > 1) return `event ${index} answers calls of several events`
  }
  return undefined
}

const AGENT = new LlmAgent({ name: 'root' })

/**
 * ADK's own processing accepts the view as it is and, with a new question after it as in every run, passes all
 * of it on.
 */
async function brokenRequest(view: readonly Event[]): Promise<string | undefined> {
  const question = { ...asEvent('user', 'next'), timestamp: view.length }
  try {
    await contentsOf(view)
    const contents = await contentsOf([...view, question])
    convertMessages(contents)
    const sent = new Set([...wordsIn(contents), ...supersededWords(view)])
    const lost = wordsIn(view.map(event => event.content?.parts ?? [])).filter(word => !sent.has(word))
    return lost.length > 0 ? `ADK drops ${lost.join(', ')}` : undefined
  } catch (error) {
    return `ADK throws: ${String(error)}`
  }
}

async function contentsOf(events: readonly Event[]): Promise<LlmRequest['contents']> {
  const request: LlmRequest = { contents: [], toolsDict: {}, liveConnectConfig: {} }
  const context = { agent: AGENT, session: { events: [...events] } } as unknown as InvocationContext
  for await (const _ of CONTENT_REQUEST_PROCESSOR.runAsync(context, request));
  return request.contents
}

function asEvent(author: string, text: string): Event {
  const [event] = messagesToEvents([{ role: 'user', author, content: text, timestamp: 1 }])
  return event as Event
}

/** ADK shows the last result of a call alone; earlier ones were meant to be replaced. */
function supersededWords(view: readonly Event[]): string[] {
  const results = view.flatMap(event => (event.content?.parts ?? []).filter(part => part.functionResponse))
  return results.flatMap((part, index) => {
    const later = results
      .slice(index + 1)
      .some(other => other.functionResponse?.id === part.functionResponse?.id)
    return later ? wordsIn(part) : []
  })
}
