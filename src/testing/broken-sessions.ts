/**
 * Histories that providers refuse, each from a failure that happens in practice: data for `lango demo`, for the first
 * page, and for tests. A strict server of the named profile refuses each of them as it is.
 */
import type { Message } from '../session/message.js'
import type { StrictProfile } from './strict/profile.js'

/** A stored history that a provider refuses, and what happened to it. */
export interface BrokenSession {
  readonly id: string
  /** The symptom, in a few words. */
  readonly title: string
  /** What happened, in one or two sentences. */
  readonly story: string
  /** The rules by which it is refused. */
  readonly profile: StrictProfile
  readonly messages: readonly Message[]
  /** The message that the user sends next. */
  readonly question: string
  /** The request that fails continues a turn: it is the history alone, without the next message. */
  readonly inMidTurn?: boolean
  /** What the fake model answers, once it accepts the request. */
  readonly answer: string
  /** The tools that the history uses. */
  readonly tools: readonly string[]
}

const START = Date.UTC(2026, 8, 14, 9, 30)
const AGENT = 'lango-agent'

interface Spoken {
  role: 'user' | 'assistant' | 'tool'
  content?: string
  toolCalls?: Message['toolCalls']
}

/** One message a minute. */
function at(spoken: readonly Spoken[]): Message[] {
  return spoken.map(({ role, content = '', toolCalls }, index) => ({
    role,
    ...(role === 'user' ? {} : { author: AGENT }),
    content,
    ...(toolCalls ? { toolCalls } : {}),
    timestamp: START + index * 60_000,
  }))
}

const call = (id: string, name: string, input: Record<string, unknown>) =>
  ({ id, name, input: JSON.stringify(input), kind: 'call' }) as const
const result = (id: string, name: string, output: unknown) =>
  ({ id, name, output: JSON.stringify(output), kind: 'response' }) as const

/** The histories, in the order in which the gallery shows them. */
export const BROKEN_SESSIONS: readonly BrokenSession[] = [
  {
    id: 'killed-in-mid-tool',
    title: 'Killed in mid-tool',
    story:
      'The process was killed while a tool was running. The call is stored, its result is not, and every later message of this chat is refused.',
    profile: 'openai-chat',
    messages: at([
      { role: 'user', content: 'Book a table for two at Lumière, tomorrow at eight.' },
      {
        role: 'assistant',
        content: 'I will book it.',
        toolCalls: [call('call_b7Qm2', 'book_table', { restaurant: 'Lumière', people: 2, time: '20:00' })],
      },
    ]),
    question: 'Are we booked?',
    answer:
      'I do not know: the booking was interrupted before its result came back. I will check before I try again.',
    tools: ['book_table'],
  },
  {
    id: 'lost-ids',
    title: 'Lost ids',
    story:
      'A migration gave every row a new id. The results no longer carry the ids of their calls, so no provider can tell which answer belongs to which question.',
    profile: 'anthropic-4.6',
    messages: at([
      { role: 'user', content: 'How warm is it in Oslo and in Rome?' },
      {
        role: 'assistant',
        toolCalls: [
          call('toolu_01Oslo', 'get_weather', { city: 'Oslo' }),
          call('toolu_01Rome', 'get_weather', { city: 'Rome' }),
        ],
      },
      {
        role: 'tool',
        toolCalls: [
          result('row-58211', 'get_weather', { degrees: 7 }),
          result('row-58212', 'get_weather', { degrees: 24 }),
        ],
      },
      { role: 'assistant', content: 'Oslo has 7 degrees, Rome 24.' },
    ]),
    question: 'And which of the two is warmer?',
    answer: 'Rome, by 17 degrees.',
    tools: ['get_weather'],
  },
  {
    id: 'cut-in-the-wrong-place',
    title: 'Cut in the wrong place',
    story:
      'To save tokens, a program kept the last three messages. The first of them is a result whose call was cut off.',
    profile: 'gemini-2',
    messages: at([
      { role: 'tool', toolCalls: [result('call-3', 'search_flights', { flights: ['LX 14', 'UA 57'] })] },
      { role: 'assistant', content: 'There are two direct flights: LX 14 and UA 57.' },
    ]),
    question: 'Which of them leaves later?',
    answer: 'UA 57 leaves later, at a quarter past five.',
    tools: ['search_flights'],
  },
  {
    id: 'two-answers-for-one-call',
    title: 'Two answers for one call',
    story:
      'A retry ran the tool a second time, and both results were stored under the same call. Claude accepts exactly one.',
    profile: 'anthropic-4.6',
    messages: at([
      { role: 'user', content: 'What is in the cart?' },
      { role: 'assistant', toolCalls: [call('toolu_01Cart', 'read_cart', {})] },
      {
        role: 'tool',
        toolCalls: [
          result('toolu_01Cart', 'read_cart', { items: ['lamp'] }),
          result('toolu_01Cart', 'read_cart', { items: ['lamp', 'desk'] }),
        ],
      },
      { role: 'assistant', content: 'A lamp.' },
    ]),
    question: 'What does it cost?',
    answer: 'The lamp costs 49 dollars. A second reading also saw a desk: shall I look again?',
    tools: ['read_cart'],
  },
  {
    id: 'switched-from-claude-to-gemini',
    title: 'Switched from Claude to Gemini',
    story:
      'The model was switched while a tool was running. Gemini 3 demands a signature of its own on every call of the current turn, and Claude’s call has none.',
    profile: 'gemini-3-strict',
    inMidTurn: true,
    messages: at([
      { role: 'user', content: 'Find the invoice of the printer.' },
      { role: 'assistant', toolCalls: [call('toolu_01Inv', 'search_files', { query: 'printer invoice' })] },
      { role: 'tool', toolCalls: [result('toolu_01Inv', 'search_files', { files: ['2026/inv-1187.pdf'] })] },
      { role: 'assistant', content: 'It is 2026/inv-1187.pdf.' },
      { role: 'user', content: 'Read me the total.' },
      { role: 'assistant', toolCalls: [call('toolu_02Inv', 'read_file', { path: '2026/inv-1187.pdf' })] },
      { role: 'tool', toolCalls: [result('toolu_02Inv', 'read_file', { text: 'Total: 412.00 EUR' })] },
    ]),
    question: 'Go on, please.',
    answer: 'The total is 412.00 EUR.',
    tools: ['search_files', 'read_file'],
  },
  {
    id: 'two-model-turns',
    title: 'Two model turns',
    story:
      'Two agents answered one after the other. The chat template of a local Mistral model wants roles to alternate, and refuses the second answer.',
    profile: 'mistral-template',
    messages: at([
      { role: 'user', content: 'Plan a day in Lisbon.' },
      { role: 'assistant', content: 'In the morning: the castle.' },
      { role: 'assistant', content: 'In the afternoon: the tram to Belém.' },
    ]),
    question: 'And in the evening?',
    answer: 'In the evening: fado in Alfama.',
    tools: [],
  },
  {
    id: 'reasoning-was-dropped',
    title: 'Reasoning was dropped',
    story:
      'A proxy removed the model’s reasoning before it was stored. Kimi wants it back with every tool call, and refuses the second request of every tool loop.',
    profile: 'kimi',
    messages: at([
      { role: 'user', content: 'Is the build green?' },
      { role: 'assistant', toolCalls: [call('build_status:0', 'build_status', { branch: 'main' })] },
      { role: 'tool', toolCalls: [result('build_status:0', 'build_status', { state: 'green' })] },
    ]),
    question: 'Well?',
    answer: 'The build of main is green.',
    tools: ['build_status'],
  },
]
