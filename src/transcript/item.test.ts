// A conversation as the events of its run and as its stored messages gives the same items.
import { describe, expect, test } from 'vitest'
import {
  ABORTED_MARKER,
  CALL_NOT_RUN,
  MAY_BE_REPEATED,
  NOT_RUN_AGAIN,
  OUTCOME_UNKNOWN,
} from '../base/markers.js'
import type { RunEvent, RunEventBody } from '../run/run-event.js'
import type { ChatMessage, ChatPart } from '../session/chat-message.js'
import type { RunUsage } from '../session/usage.js'
import { applyRunEvent, isOpen, newRunTranscript, type RunTranscript } from './from-events.js'
import { fromMessages } from './from-messages.js'
import { codeText, isLink, sourceLabel, type TranscriptItem } from './item.js'

const usage: RunUsage = {
  inputTokens: 10,
  outputTokens: 5,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
  totalTokens: 15,
  cost: 0.5,
}

interface Conversation {
  events: RunEventBody[]
  /** The messages of the run, after the user's. */
  messages: [ChatMessage['role'], ChatPart[], Partial<ChatMessage>?][]
}

function play({ events }: Conversation): RunTranscript {
  const start: RunEventBody = { type: 'run-start', userId: 'user', agent: 'root', model: 'play/m' }
  return [start, ...events].reduce(
    (run, body, index) =>
      applyRunEvent(run, { ...body, sessionId: 's', runId: 'r1', seq: index + 1 } as RunEvent, index * 100),
    newRunTranscript({ runId: 'r1', afterSeq: 0 }),
  )
}

function reload({ messages }: Conversation, run: RunTranscript): TranscriptItem[] {
  const stored = messages.map(([role, parts, facts = {}], index): ChatMessage => {
    return { seq: index + 2, role, author: 'root', timestamp: index, tokens: 1, parts, ...facts }
  })
  const asked: ChatMessage = {
    seq: 1,
    role: 'user',
    author: 'user',
    timestamp: 0,
    tokens: 1,
    parts: [{ type: 'text', text: 'Go' }],
  }
  return fromMessages([asked, ...stored], [run.notes])
}

const bare = (items: readonly TranscriptItem[]) => items.map(({ key: _key, ...item }) => item)
const say = (text: string, author = 'root'): RunEventBody => ({ type: 'text-delta', author, text })
const text = (words: string): ChatPart => ({ type: 'text', text: words })
const finish = (finishReason: 'stop' | 'aborted' | 'error' | 'turn-limit' = 'stop'): RunEventBody => {
  return { type: 'run-finish', finishReason, text: '', turns: 0, delegations: 0, usage }
}
const call = (id: string, name = 'search', args: Record<string, unknown> = { q: id }): RunEventBody => {
  return { type: 'tool-call', author: 'root', id, name, args }
}
const result = (id: string, value: unknown = { found: id }, name = 'search'): RunEventBody => {
  const isError = JSON.stringify(value).includes('error')
  return { type: 'tool-result', author: 'root', id, name, result: value, isError, durationMs: 7 }
}
const called = (id: string, name = 'search', args: unknown = { q: id }): ChatPart => {
  return { type: 'tool-call', id, name, args }
}
const returned = (id: string, value: unknown = { found: id }, name = 'search'): ChatPart => {
  const failed = JSON.stringify(value).includes('error') ? { isError: true } : {}
  return { type: 'tool-result', id, name, result: value, ...failed }
}
const stoppedMessage: Conversation['messages'][number] = [
  'assistant',
  [text(ABORTED_MARKER)],
  { synthetic: true },
]
const filler = { error: '[no response available] The run was stopped.' }
const confirmation = { originalFunctionCall: { id: 'c1', name: 'send', args: { to: 'x' } } }

const unknown = (id: string, more: Partial<Extract<RunEventBody, { type: 'tool-unknown' }>> = {}) => {
  const facts = {
    author: 'root',
    id,
    name: 'pay',
    args: { q: id },
    idempotencyKey: 'key',
    policy: 'ask' as const,
  }
  return { type: 'tool-unknown' as const, ...facts, ...more }
}
const ended = (words: string) => ({ error: `[no response available] The process of the run ended. ${words}` })
const notRunAgain = { error: `${NOT_RUN_AGAIN} ${OUTCOME_UNKNOWN}` }
const interrupted: RunEventBody = {
  type: 'error',
  error: { code: 'run-interrupted', message: 'Gone.', retryable: true, details: {} },
}

const CONVERSATIONS: [string, Conversation, string[]][] = [
  [
    'text and reasoning',
    {
      events: [
        { type: 'reasoning-delta', author: 'root', text: 'H' },
        { type: 'reasoning-delta', author: 'root', text: 'm' },
        say('Hel'),
        say('lo'),
        finish(),
      ],
      messages: [['assistant', [{ type: 'reasoning', text: 'Hm' }, text('Hello')]]],
    },
    ['reasoning Hm', 'text Hello'],
  ],
  [
    'two model calls that each give text',
    {
      events: [
        say('One.'),
        { type: 'usage', author: 'root', model: 'm', usage },
        say('Two.'),
        { type: 'usage', author: 'root', model: 'm', usage },
        finish(),
      ],
      messages: [
        ['assistant', [text('One.')]],
        ['user', [text('[System: go on]')], { synthetic: true }],
        ['assistant', [text('Two.')]],
      ],
    },
    ['text One.', 'text Two.'],
  ],
  [
    'calls at the same time, answered in another order',
    {
      events: [call('c1'), call('c2'), call('c3'), result('c3'), result('c1'), result('c2'), finish()],
      messages: [
        ['assistant', [called('c1'), called('c2'), called('c3')]],
        ['tool', [returned('c3'), returned('c1'), returned('c2')]],
      ],
    },
    ['tool search done c1', 'tool search done c2', 'tool search done c3'],
  ],
  [
    'an id that is used again',
    {
      events: [
        call('call_0', 'search', { q: 'a' }),
        result('call_0', { found: 'a' }),
        call('call_0', 'search', { q: 'b' }),
        result('call_0', { found: 'b' }),
        finish(),
      ],
      messages: [
        ['assistant', [called('call_0', 'search', { q: 'a' })]],
        ['tool', [returned('call_0', { found: 'a' })]],
        ['assistant', [called('call_0', 'search', { q: 'b' })]],
        ['tool', [returned('call_0', { found: 'b' })]],
      ],
    },
    ['tool search done a', 'tool search done b'],
  ],
  [
    'a second result of one call',
    {
      events: [call('c1'), result('c1'), result('c1', { found: 'again' }), finish()],
      messages: [
        ['assistant', [called('c1')]],
        ['tool', [returned('c1')]],
        ['tool', [returned('c1', { found: 'again' })]],
      ],
    },
    ['tool search done c1', 'tool search done again'],
  ],
  [
    'a tool that failed',
    {
      events: [call('c1'), result('c1', { error: 'no' }), say('Sorry.'), finish()],
      messages: [
        ['assistant', [called('c1')]],
        ['tool', [returned('c1', { error: 'no' })]],
        ['assistant', [text('Sorry.')]],
      ],
    },
    ['tool search failed {"error":"no"}', 'text Sorry.'],
  ],
  [
    'an approval that was given, and one that was not',
    {
      events: [
        call('c1', 'send'),
        call('c2', 'send'),
        { type: 'approval-request', id: 'c1', name: 'send', args: {}, reason: 'It costs money.' },
        { type: 'approval-request', id: 'c2', name: 'send', args: {} },
        { type: 'approval-answer', id: 'c1', name: 'send', answer: 'once' },
        { type: 'approval-answer', id: 'c2', name: 'send', answer: 'no' },
        result('c1', { sent: true }, 'send'),
        result('c2', { error: 'refused' }, 'send'),
        finish(),
      ],
      messages: [
        ['assistant', [called('c1', 'send'), called('c2', 'send')]],
        ['tool', [returned('c1', { sent: true }, 'send'), returned('c2', { error: 'refused' }, 'send')]],
      ],
    },
    ['tool send done {"sent":true} once', 'tool send failed {"error":"refused"} no'],
  ],
  [
    "a question of ADK's",
    {
      events: [
        { ...call('k1', 'adk_request_confirmation', confirmation), pending: true } as RunEventBody,
        { type: 'approval-request', id: 'k1', name: 'send', args: { to: 'x' } },
        finish(),
      ],
      messages: [['assistant', [called('k1', 'adk_request_confirmation', confirmation)]]],
    },
    ['mark question'],
  ],
  [
    'a transfer',
    {
      events: [
        call('t1', 'transfer_to_agent', { agentName: 'helper' }),
        result('t1', {}, 'transfer_to_agent'),
        { type: 'agent-transfer', from: 'root', to: 'helper' },
        say('Hi.', 'helper'),
        finish(),
      ],
      messages: [
        ['assistant', [called('t1', 'transfer_to_agent', { agentName: 'helper' })]],
        ['tool', [returned('t1', {}, 'transfer_to_agent')]],
        ['assistant', [text('Hi.')], { author: 'helper' }],
      ],
    },
    ['mark transfer', 'text Hi.'],
  ],
  [
    'a transfer to an agent that does not exist, in a run with other marks',
    {
      events: [
        { type: 'turn-warning', turns: 1, maxTurns: 2 },
        call('t1', 'transfer_to_agent', { agentName: 'nobody' }),
        say('Hi.'),
        finish(),
      ],
      messages: [
        ['assistant', [called('t1', 'transfer_to_agent', { agentName: 'nobody' })]],
        ['user', [text('[System: no such agent]')], { synthetic: true }],
        ['assistant', [text('Hi.')]],
      ],
    },
    ['mark warning', 'text Hi.'],
  ],
  [
    'an abort while text was streamed',
    { events: [say('Hel'), finish('aborted')], messages: [stoppedMessage] },
    ['text Hel', 'mark stopped'],
  ],
  [
    'an abort while a tool ran',
    {
      events: [call('c1'), finish('aborted')],
      messages: [['assistant', [called('c1')]], ['tool', [returned('c1', filler)]], stoppedMessage],
    },
    ['tool search unanswered', 'mark stopped'],
  ],
  [
    'limits',
    {
      events: [
        call('c1'),
        result('c1'),
        { type: 'turn-warning', turns: 1, maxTurns: 2 },
        call('c2'),
        result('c2'),
        { type: 'wrap-up', reason: 'turn-limit', turns: 2, maxTurns: 2 },
        say('Done so far.'),
        finish('turn-limit'),
      ],
      messages: [
        ['assistant', [called('c1')]],
        ['tool', [returned('c1')]],
        ['assistant', [called('c2')]],
        ['tool', [returned('c2')]],
        ['user', [text('[System: last turn]')], { synthetic: true }],
        ['assistant', [text('Done so far.')]],
      ],
    },
    ['tool search done c1', 'mark warning', 'tool search done c2', 'mark wrap-up', 'text Done so far.'],
  ],
  [
    'an error of the provider after some text',
    {
      events: [
        say('Hel'),
        { type: 'error', error: { code: 'provider-auth', message: 'No.', retryable: false, details: {} } },
        finish('error'),
      ],
      messages: [['assistant', [], { error: { code: 'provider-auth', message: 'No.' } }]],
    },
    ['text Hel', 'error provider-auth'],
  ],
  [
    'a call whose process ended, with an unknown outcome',
    {
      events: [call('c1', 'pay'), unknown('c1', { policy: 'tell' }), interrupted, finish('error')],
      messages: [
        ['assistant', [called('c1', 'pay')]],
        ['tool', [returned('c1', ended(OUTCOME_UNKNOWN), 'pay')]],
      ],
    },
    ['tool pay unknown', 'error run-interrupted'],
  ],
  [
    'a call whose process ended, and which may be repeated',
    {
      events: [call('c1', 'pay'), unknown('c1', { policy: 'retry' }), interrupted, finish('error')],
      messages: [
        ['assistant', [called('c1', 'pay')]],
        ['tool', [returned('c1', ended(MAY_BE_REPEATED), 'pay')]],
      ],
    },
    ['tool pay unknown', 'error run-interrupted'],
  ],
  [
    'a call of an agent inside a tool, with an unknown outcome',
    {
      events: [
        call('c1', 'helper'),
        result('c1', { found: 'c1' }, 'helper'),
        unknown('n1'),
        interrupted,
        finish('error'),
      ],
      messages: [
        ['assistant', [called('c1', 'helper')]],
        ['tool', [returned('c1', { found: 'c1' }, 'helper')]],
      ],
    },
    ['tool helper done c1', 'tool pay unknown', 'error run-interrupted'],
  ],
  [
    'a repeated call that was not run, and what a person said about two others',
    {
      events: [
        call('c1', 'pay'),
        call('c2', 'pay'),
        call('c3', 'pay'),
        unknown('c1', { policy: 'tell' }),
        unknown('c2', { asks: true }),
        unknown('c3', { asks: true }),
        unknown('c2', { answer: 'happened' }),
        unknown('c3', { answer: 'leave' }),
        result('c1', notRunAgain, 'pay'),
        result('c2', { result: 'Confirmed.' }, 'pay'),
        result('c3', notRunAgain, 'pay'),
        finish(),
      ],
      messages: [
        ['assistant', [called('c1', 'pay'), called('c2', 'pay'), called('c3', 'pay')]],
        [
          'tool',
          [
            returned('c1', notRunAgain, 'pay'),
            returned('c2', { result: 'Confirmed.' }, 'pay'),
            returned('c3', notRunAgain, 'pay'),
          ],
        ],
      ],
    },
    [
      `tool pay unknown ${JSON.stringify(notRunAgain)}`,
      'tool pay done {"result":"Confirmed."} happened',
      `tool pay unknown ${JSON.stringify(notRunAgain)} leave`,
    ],
  ],
  [
    'an abort while a person is asked about an unknown outcome',
    {
      events: [
        call('c2', 'pay'),
        unknown('c2', { asks: true }),
        unknown('c2', { answer: 'leave' }),
        finish('aborted'),
      ],
      messages: [
        ['assistant', [called('c2', 'pay')]],
        ['tool', [returned('c2', ended(CALL_NOT_RUN), 'pay')]],
        stoppedMessage,
      ],
    },
    ['tool pay unanswered', 'mark stopped'],
  ],
  [
    'a tool that failed after a person had it run',
    {
      events: [
        call('c2', 'pay'),
        unknown('c2', { asks: true }),
        unknown('c2', { answer: 'run' }),
        result('c2', { error: 'no' }, 'pay'),
        finish(),
      ],
      messages: [
        ['assistant', [called('c2', 'pay')]],
        ['tool', [returned('c2', { error: 'no' }, 'pay')]],
      ],
    },
    ['tool pay failed {"error":"no"} run'],
  ],
]

/** An item in a few words, so that the table says what is expected and not only that both sides agree. */
function inWords(item: TranscriptItem): string {
  switch (item.kind) {
    case 'tool': {
      const found = (item.result as { found?: string } | undefined)?.found ?? JSON.stringify(item.result)
      const { name, status, approval, outcome } = item
      return ['tool', name, status, found, approval, outcome?.answer].filter(Boolean).join(' ')
    }
    case 'mark':
      return `mark ${item.mark.type}`
    case 'error':
      return `error ${item.error.code}`
    case 'text':
    case 'reasoning':
      return `${item.kind} ${item.text}`
    default:
      return item.kind
  }
}

test.each(CONVERSATIONS)('live and reloaded items are the same: %s', (_name, conversation, expected) => {
  const run = play(conversation)
  expect(run.items.map(inWords)).toEqual(expected)
  const [user, ...answer] = reload(conversation, run)
  expect(user).toMatchObject({ kind: 'user', text: 'Go' })
  expect(bare(answer.filter(({ kind }) => kind !== 'footer'))).toEqual(bare(run.items))
  const keys = answer.map(({ key }) => key)
  expect(new Set(keys).size).toBe(keys.length)
})

test.each([
  ['known', [usage, { ...usage, cost: 0.25 }], { totalTokens: 30, cost: 0.75, model: 'play/m' }],
  ['unknown once one price is', [usage, { ...usage, cost: undefined }], { totalTokens: 30, model: 'play/m' }],
])('live and reloaded usage is the same with a cost that is %s', (_name, all, expected) => {
  const steps = all.map(({ cost, ...used }) => (cost === undefined ? used : { ...used, cost }))
  const conversation: Conversation = {
    events: [
      ...steps.map(step => ({ type: 'usage' as const, author: 'root', model: 'play/m', usage: step })),
      finish(),
    ],
    messages: steps.map(step => ['assistant', [text('Hi.')], { usage: step, model: 'play/m' }]),
  }
  const run = play(conversation)
  expect(run.answer).toEqual(expected)
  const { totalTokens, cost, model } = reload(conversation, run).at(-1) as typeof expected & {
    cost?: number
  }
  expect({ totalTokens, model, ...(cost === undefined ? {} : { cost }) }).toEqual(expected)
})

describe('from events', () => {
  const events = (bodies: RunEventBody[]) => play({ events: bodies, messages: [] })

  test('an approval of an agent inside a tool is shown as a call of its own', () => {
    const run = events([
      call('c1', 'helper'),
      { type: 'approval-request', id: 'inner', name: 'send', args: {}, reason: 'Why not.' },
    ])
    expect(run.items).toMatchObject([
      { name: 'helper', status: 'running' },
      { name: 'send', status: 'waiting', reason: 'Why not.' },
    ])
    expect(run.questions).toMatchObject([{ callId: 'inner', asks: 'approval' }])
  })

  test("a confirmation of ADK's is kept for the next run", () => {
    const run = events([
      call('k1', 'adk_request_confirmation', confirmation),
      { type: 'approval-request', id: 'k1', name: 'send', args: { to: 'x' } },
    ])
    expect(run.questions).toMatchObject([{ callId: 'k1', tool: 'send', args: { to: 'x' } }])
  })

  test('the time of a call is measured without the wait for an approval when the event does not say it', () => {
    const { durationMs: _unknown, ...unmeasured } = result('c1') as RunEventBody & { durationMs: number }
    const run = events([
      call('c1'),
      { type: 'approval-request', id: 'c1', name: 'search', args: {} },
      { type: 'approval-answer', id: 'c1', name: 'search', answer: 'once' },
      unmeasured as RunEventBody,
    ])
    expect(run.items[0]).toMatchObject({ status: 'done', durationMs: 100 })
    expect(run.items[0]).not.toHaveProperty('startedAt')
  })

  test('a queued run shows its place until it begins', () => {
    const at = (seq: number, body: RunEventBody) =>
      ({ ...body, sessionId: 's', runId: 'r1', seq }) as RunEvent
    const queued = applyRunEvent(
      newRunTranscript({ runId: 'r1', afterSeq: 0 }),
      at(1, { type: 'run-queued', userId: 'user', place: 2 }),
    )
    expect(queued.items).toMatchObject([{ kind: 'mark', mark: { type: 'queued', place: 2 } }])
    const begun = applyRunEvent(
      queued,
      at(2, { type: 'run-start', userId: 'user', agent: 'root', model: 'play/m' }),
    )
    expect(begun.items).toEqual([])
    const stopped = applyRunEvent(queued, at(2, finish('aborted')))
    expect(stopped.items.map(inWords)).toEqual(['mark stopped'])
  })

  test('a restarted step takes back its half answer and keeps everything before it', () => {
    const used: RunEventBody = { type: 'usage', author: 'root', model: 'play/m', usage }
    const before = [say('I look.'), call('c1'), used, call('c2'), result('c1')]
    const half: RunEventBody[] = [{ type: 'reasoning-delta', author: 'root', text: 'Hm' }, say('The ans')]
    const resumed: RunEventBody = { type: 'run-resumed', attempt: 2, replayedSteps: 1 }
    const restart: RunEventBody = { type: 'step-restart', step: 2 }
    const run = events([
      ...before,
      ...half,
      resumed,
      restart,
      say('The answer.'),
      result('c2'),
      used,
      finish(),
    ])
    expect(run.items.map(inWords)).toEqual([
      'text I look.',
      'tool search done c1',
      'tool search done c2',
      'mark resumed',
      'text The answer.',
    ])
    expect(run.notes.marks).toEqual([{ anchor: 'c2', mark: { type: 'resumed', attempt: 2 } }])
    expect(new Set(run.items.map(({ key }) => key)).size).toBe(5)
    const complete = events([...before, say('Done.'), used, resumed, restart, finish()])
    expect(complete.items.map(inWords)).toContain('text Done.')
  })

  test('only the half answers of authors whose steps are not complete are taken back', () => {
    const used: RunEventBody = { type: 'usage', author: 'b', model: 'play/m', usage }
    const resumed: RunEventBody = { type: 'run-resumed', attempt: 1, replayedSteps: 1 }
    const run = events([
      say('A says', 'a'),
      say('B is done', 'b'),
      used,
      resumed,
      { type: 'step-restart', step: 1 },
    ])
    expect(run.items.map(inWords)).toEqual(['text B is done', 'mark resumed'])
  })

  test('a run that waits has not ended, and its next event has the number of what said so', () => {
    const run = events([call('c1'), { type: 'approval-request', id: 'c1', name: 'search', args: {} }])
    const waiting = { ...finish(), finishReason: 'waiting', sessionId: 's', runId: 'r1', seq: 4 } as RunEvent
    const paused = applyRunEvent(run, waiting)
    expect(paused.items).toMatchObject([{ status: 'waiting' }])
    expect(paused).not.toHaveProperty('finishReason')
    const resumed = { type: 'run-resumed', attempt: 1, replayedSteps: 1, sessionId: 's', runId: 'r1', seq: 4 }
    expect(applyRunEvent(paused, resumed as RunEvent).items.map(inWords)).toContain('mark resumed')
  })

  test('a call with an unknown outcome is open while a person is asked about it', () => {
    const asked = events([call('c1', 'pay'), unknown('c1', { asks: true })])
    expect(asked.items).toMatchObject([
      { status: 'unknown', outcome: { runId: 'r1', idempotencyKey: 'key', asks: true } },
    ])
    expect(asked.items.some(item => item.kind === 'tool' && isOpen(item))).toBe(true)
    const run = events([call('c1', 'pay'), unknown('c1', { asks: true }), unknown('c1', { answer: 'run' })])
    expect(run.items).toMatchObject([{ status: 'running', outcome: { answer: 'run' } }])
    expect(run.items[0]).not.toHaveProperty('outcome.asks')
  })

  test('a call that waits for something outside stays pending after its run', () => {
    const run = events([{ ...call('c1'), pending: true } as RunEventBody, finish()])
    expect(run.items).toMatchObject([{ status: 'pending' }])
  })
})

test('calls without ids are paired by position, and a result without a call is shown', () => {
  const items = fromMessages([
    {
      seq: 1,
      role: 'assistant',
      author: 'a',
      timestamp: 0,
      tokens: 1,
      parts: [called('', 'x'), called('', 'y')],
    },
    {
      seq: 2,
      role: 'tool',
      author: 'a',
      timestamp: 5,
      tokens: 1,
      parts: [returned('', { found: 'Y' }, 'y')],
    },
    {
      seq: 3,
      role: 'tool',
      author: 'a',
      timestamp: 9,
      tokens: 1,
      parts: [returned('z', { found: 'Z' }, 'z')],
    },
  ])
  expect(items.map(inWords)).toEqual(['tool x unanswered', 'tool y done Y', 'tool z done Z', 'footer'])
  expect(items[1]).toMatchObject({ durationMs: 5 })
})

test('system messages and what Lango wrote to the model are hidden, a stopped answer is a mark', () => {
  const message = (
    seq: number,
    role: ChatMessage['role'],
    words: string,
    synthetic: boolean,
  ): ChatMessage => {
    const facts = synthetic ? { synthetic } : {}
    return { seq, role, author: role, timestamp: 0, tokens: 1, parts: [text(words)], ...facts }
  }
  const items = fromMessages([
    message(1, 'system', 'You are helpful.', false),
    message(2, 'user', 'Hi', false),
    message(3, 'user', '[System: hurry]', true),
    message(4, 'user', ABORTED_MARKER, true),
  ])
  expect(items.map(inWords)).toEqual(['user', 'mark stopped'])
})

test('a source without a title is named by its address; only web addresses are links', () => {
  const sources = [
    { url: 'https://a.example', title: 'A' },
    { url: 'https://b.example/x' },
    { url: 'gs://bucket/doc', title: 'Doc' },
    { url: 'javascript:alert(1)' },
  ]
  expect(sources.map(sourceLabel)).toEqual(['A', 'b.example/x', 'Doc', 'javascript:alert(1)'])
  expect(sources.map(({ url }) => isLink(url))).toEqual([true, true, false, false])
})

test('code that holds a fence gets a longer one', () => {
  expect(codeText({ code: 'print("```")\n', language: 'python' })).toBe('````python\nprint("```")\n````')
})
