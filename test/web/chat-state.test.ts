import { describe, expect, test } from 'vitest'
import { fromMessages } from '../../src/transcript/from-messages.js'
import type { ChatMessage, RunEvent, RunItem, SessionDetail } from '../../web/src/state/api.js'
import { attachmentProblem } from '../../web/src/state/attachments.js'
import type { Entry } from '../../web/src/state/entry.js'
import { applyLiveEvent, liveEntries, newLiveRun } from '../../web/src/state/live-run.js'
import { markdownBlocks } from '../../web/src/state/markdown-blocks.js'
import { runStatus } from '../../web/src/state/run-status.js'
import {
  NEW_THREAD,
  reduceThread,
  type ThreadAction,
  type ThreadState,
  threadEntries,
} from '../../web/src/state/thread-state.js'

const usage = {
  inputTokens: 1,
  outputTokens: 1,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
  totalTokens: 2,
}
const agent = 'lango-agent'

type Body = RunEvent extends infer Event
  ? Event extends RunEvent
    ? Omit<Event, 'sessionId' | 'runId' | 'seq'>
    : never
  : never

/** Events of one run, numbered. */
function eventsOf(bodies: readonly Body[], runId = 'r1'): RunEvent[] {
  return bodies.map((body, index) => ({ ...body, sessionId: 's', runId, seq: index + 1 }) as RunEvent)
}

function message(
  seq: number,
  role: ChatMessage['role'],
  parts: ChatMessage['parts'],
  more = {},
): ChatMessage {
  return {
    seq,
    role,
    author: role === 'user' ? 'user' : agent,
    timestamp: seq * 1000,
    tokens: 1,
    parts,
    ...more,
  }
}

const text = (words: string) => ({ type: 'text' as const, text: words })

function detail(change: Partial<SessionDetail> = {}): SessionDetail {
  return { sessionId: 's', totalMessages: 0, totalTokens: 0, createdAt: 0, updatedAt: 0, usage, ...change }
}

function runItem(change: Partial<RunItem> = {}): RunItem {
  return { runId: 'r1', sessionId: 's', startedAt: 0, afterSeq: 2, lastSeq: 0, status: 'running', ...change }
}

function reduce(actions: readonly ThreadAction[], from: ThreadState = NEW_THREAD): ThreadState {
  return actions.reduce(reduceThread, from)
}

/** What a reader sees, without keys. */
function shown(entries: readonly Entry[]): string[] {
  return entries.map(entry => {
    switch (entry.kind) {
      case 'user':
      case 'text':
      case 'reasoning':
        return `${entry.kind}: ${entry.text}`
      case 'tool':
        return `tool: ${entry.name} ${entry.status}`
      case 'mark':
        return `mark: ${entry.mark.type}`
      case 'error':
        return `error: ${entry.error.code}`
      default:
        return entry.kind
    }
  })
}

const oneRun: Body[] = [
  { type: 'run-start', userId: 'user', agent, model: 'demo/demo' },
  {
    type: 'repair',
    model: 'demo',
    profile: 'openai-chat',
    repairs: [{ step: 'a', kind: 'b', at: 0, detail: 'c' }],
  },
  { type: 'reasoning-delta', author: agent, text: 'Hm' },
  { type: 'reasoning-delta', author: agent, text: 'm.' },
  { type: 'text-delta', author: agent, text: 'I will ' },
  { type: 'text-delta', author: agent, text: 'look.' },
  { type: 'tool-call', author: agent, id: 'c1', name: 'search', args: { q: 'x' } },
  { type: 'tool-result', author: agent, id: 'c1', name: 'search', result: 'found', isError: false },
  { type: 'turn-warning', turns: 8, maxTurns: 10 },
  { type: 'text-delta', author: agent, text: 'Here.' },
  { type: 'run-finish', finishReason: 'stop', text: 'Here.', turns: 2, delegations: 0, usage },
]

const storedRun: ChatMessage[] = [
  message(3, 'user', [text('Look it up')]),
  message(4, 'assistant', [
    { type: 'reasoning', text: 'Hmm.' },
    text('I will look.'),
    { type: 'tool-call', id: 'c1', name: 'search', args: { q: 'x' } },
  ]),
  message(5, 'tool', [{ type: 'tool-result', id: 'c1', name: 'search', result: 'found' }]),
  message(6, 'assistant', [text('Here.')], { model: 'demo', usage: { ...usage, totalTokens: 9, cost: 0.5 } }),
]

test('a live run shows its events in order, and joins the parts of a text and of a call', () => {
  const run = eventsOf(oneRun).reduce(
    (state, event) => applyLiveEvent(state, event),
    newLiveRun({ runId: 'r1', afterSeq: 2 }),
  )
  expect(shown(liveEntries(run))).toEqual([
    'mark: repair',
    'reasoning: Hmm.',
    'text: I will look.',
    'tool: search done',
    'mark: warning',
    'text: Here.',
  ])
})

test('a live run shows the same however often its events are delivered', () => {
  const events = eventsOf(oneRun)
  const start = newLiveRun({ runId: 'r1', afterSeq: 2 })
  const once = events.reduce((state, event) => applyLiveEvent(state, event), start)
  const twice = [...events.slice(0, 7), ...events].reduce(
    (state, event) => applyLiveEvent(state, event),
    start,
  )
  expect(twice).toEqual(once)
})

test('a live run shows repairs and breaks as different marks, each once', () => {
  const change = { step: 'pair-calls', kind: 'synthesize-result', at: 1, detail: 'One was added.' }
  const broken = { step: 'steady', kind: 'prefix-break', at: 0, detail: 'It breaks.', tokens: 9 }
  const repair = (repairs: (typeof change)[]): Body => {
    return { type: 'repair', model: 'demo', profile: 'openai-chat', repairs }
  }
  const run = eventsOf([repair([change, broken]), repair([change]), repair([broken])]).reduce(
    (state, event) => applyLiveEvent(state, event),
    newLiveRun({ runId: 'r1', afterSeq: 2 }),
  )
  expect(run.notes.marks.map(({ mark }) => mark)).toEqual([
    { type: 'repair', profile: 'openai-chat', repairs: [change] },
    { type: 'break', breaks: [broken] },
  ])
})

test('a live run keeps the texts of two agents apart that write at the same time', () => {
  const bodies: Body[] = [
    { type: 'text-delta', author: 'ann', text: 'A1' },
    { type: 'text-delta', author: 'bob', text: 'B1' },
    { type: 'text-delta', author: 'ann', text: 'A2' },
    { type: 'text-delta', author: 'bob', text: 'B2' },
  ]
  const run = eventsOf(bodies).reduce(
    (state, event) => applyLiveEvent(state, event),
    newLiveRun({ runId: 'r1', afterSeq: 0 }),
  )
  expect(shown(run.items)).toEqual(['text: A1A2', 'text: B1B2'])
})

test('a live run asks for approval in the card of the call, and the answer closes the question', () => {
  const bodies: Body[] = [
    { type: 'tool-call', author: agent, id: 'c1', name: 'send', args: {} },
    { type: 'approval-request', id: 'c1', name: 'send', args: {}, reason: 'It leaves the house.' },
    { type: 'approval-answer', id: 'c1', name: 'send', answer: 'once' },
    { type: 'tool-result', author: agent, id: 'c1', name: 'send', result: 'ok', isError: false },
  ]
  let run = newLiveRun({ runId: 'r1', afterSeq: 0 })
  const states = eventsOf(bodies).map(event => {
    run = applyLiveEvent(run, event)
    return run
  })
  expect(states.map(({ items }) => shown(items))).toEqual([
    ['tool: send running'],
    ['tool: send waiting'],
    ['tool: send running'],
    ['tool: send done'],
  ])
})

test('a live run shows the time of a call only if it saw start and end', () => {
  const bodies = eventsOf([
    { type: 'tool-call', author: agent, id: 'c1', name: 'send', args: {} },
    { type: 'tool-result', author: agent, id: 'c1', name: 'send', result: 'ok', isError: false },
  ])
  const start = newLiveRun({ runId: 'r1', afterSeq: 0 })
  const seen = applyLiveEvent(applyLiveEvent(start, bodies[0]!, 100), bodies[1]!, 350)
  const replayed = applyLiveEvent(applyLiveEvent(start, bodies[0]!), bodies[1]!, 350)
  expect(seen.items[0]).toMatchObject({ durationMs: 250 })
  expect(replayed.items[0]).not.toHaveProperty('durationMs')
  const told = applyLiveEvent(
    applyLiveEvent(start, bodies[0]!, 100),
    { ...bodies[1]!, durationMs: 9 } as RunEvent,
    350,
  )
  expect(told.items[0]).toMatchObject({ durationMs: 9 })
  expect(told.notes.durations).toEqual({ c1: 9 })
})

test('stored messages join calls with results, omit what Lango wrote to the model, and end with the cost', () => {
  const told = message(7, 'user', [text('Please go on.')], { synthetic: true })
  const entries = fromMessages([...storedRun, told], [])
  expect(shown(entries)).toEqual([
    'user: Look it up',
    'reasoning: Hmm.',
    'text: I will look.',
    'tool: search done',
    'text: Here.',
    'footer',
  ])
  expect(entries[3]).toMatchObject({ durationMs: 1000 })
  const callId = entries[3]?.kind === 'tool' ? entries[3].callId : ''
  const measured = { runId: 'r1', afterSeq: 2, marks: [], durations: { [callId]: 7 } }
  expect(fromMessages(storedRun, [measured])[3]).toMatchObject({ durationMs: 7 })
  expect(entries.at(-1)).toMatchObject({ seq: 6, userSeq: 3, totalTokens: 9, cost: 0.5, model: 'demo' })
})

test('a stored result whose call is in an older page is shown, and joined when that page comes', () => {
  expect(shown(fromMessages(storedRun.slice(2), []))[0]).toBe('tool: search done')
  const calls = fromMessages(storedRun, []).filter(({ kind }) => kind === 'tool')
  expect(calls).toHaveLength(1)
})

test('a stored call without a result is shown as unanswered, and a transfer as a mark', () => {
  const call = message(2, 'assistant', [
    { type: 'tool-call', id: 't', name: 'transfer_to_agent', args: { agentName: 'bob' } },
    { type: 'tool-call', id: 'c', name: 'search', args: {} },
  ])
  const answer = message(3, 'tool', [
    { type: 'tool-result', id: 't', name: 'transfer_to_agent', result: null },
  ])
  expect(shown(fromMessages([call, answer], []))).toEqual([
    'mark: transfer',
    'tool: search unanswered',
    'footer',
  ])
})

test('stored messages keep their keys when older messages are loaded', () => {
  const all = Array.from({ length: 60 }, (_, index) =>
    message(index + 1, index % 2 === 0 ? 'user' : 'assistant', [text(`m${index}`)]),
  )
  const tail = fromMessages(all.slice(30), []).map(({ key }) => key)
  const whole = fromMessages(all, []).map(({ key }) => key)
  expect(whole.slice(-tail.length)).toEqual(tail)
  expect(new Set(whole).size).toBe(whole.length)
})

describe('a session', () => {
  const before = [message(1, 'user', [text('Hi')]), message(2, 'assistant', [text('Hello')])]

  test('a session opened in mid-answer shows the same as one opened before the run', () => {
    const events = eventsOf(oneRun)
    for (let seen = 0; seen <= events.length; seen += 1) {
      for (let stored = 1; stored <= storedRun.length; stored += 1) {
        const opened = reduce([
          { type: 'open', sessionId: 's' },
          {
            type: 'opened',
            detail: detail({ activeRun: runItem({ lastSeq: seen }) }),
            messages: [...before, ...storedRun.slice(0, stored)],
          },
          { type: 'run-events', events: events.slice(0, seen).map(event => ({ event })) },
          { type: 'run-events', events: events.map(event => ({ event })) },
        ])
        expect(shown(threadEntries(opened))).toEqual([
          'user: Hi',
          'text: Hello',
          'footer',
          'user: Look it up',
          ...shown(liveEntries(opened.live!)),
        ])
      }
    }
  })

  test('a session shows the user message of a run once, also if it was not stored when the session was opened', () => {
    const opened = reduce([
      { type: 'open', sessionId: 's' },
      { type: 'opened', detail: detail({ activeRun: runItem() }), messages: before },
      { type: 'messages-loaded', messages: storedRun.slice(0, 2) },
      { type: 'messages-loaded', messages: storedRun.slice(0, 1) },
    ])
    expect(shown(threadEntries(opened))).toEqual([
      'user: Hi',
      'text: Hello',
      'footer',
      'user: Look it up',
      'working',
    ])
  })

  test('a session shows queued runs after the live one, next first, and the live one once', () => {
    const queued = [3, 1, 2].map(place => runItem({ runId: `q${place}`, status: 'queued' as const, place }))
    const opened = reduce([
      { type: 'open', sessionId: 's' },
      { type: 'opened', detail: detail({ activeRun: runItem({ runId: 'q1' }) }), messages: before },
      { type: 'queue-read', runs: [...queued, runItem({ runId: 'old', status: 'finished' as const })] },
    ])
    const entries = threadEntries(opened).filter(({ kind }) => kind === 'queued')
    expect(entries).toMatchObject([
      { runId: 'q2', place: 2 },
      { runId: 'q3', place: 3 },
    ])
  })

  test('a session shows an answer about an unknown outcome on every call with its key', () => {
    const outcome = (runId: string, idempotencyKey: string) => {
      const outcomes = { c: { runId, idempotencyKey, policy: 'tell' as const } }
      return { type: 'notes-loaded' as const, notes: { runId, afterSeq: 0, marks: [], outcomes } }
    }
    const state = reduce([
      outcome('r1', 'k1'),
      outcome('r2', 'k1'),
      outcome('r3', 'k2'),
      { type: 'outcome-answered', idempotencyKey: 'k1', answer: 'happened' },
    ])
    const answers = state.notes.map(({ outcomes = {} }) => outcomes.c?.answer)
    expect(answers).toEqual(['happened', 'happened', undefined])
  })

  test('a session replaces a live run by its stored messages and keeps the marks in their order', () => {
    const finished = reduce([
      { type: 'open', sessionId: 's' },
      { type: 'opened', detail: detail(), messages: before },
      {
        type: 'run-sent',
        sessionId: 's',
        run: newLiveRun({ runId: 'r1', afterSeq: 2, user: { text: 'Look it up', media: [] } }),
      },
      { type: 'run-events', events: eventsOf(oneRun).map(event => ({ event })) },
    ])
    const live = shown(threadEntries(finished))
    const stored = reduceThread(finished, {
      type: 'run-stored',
      detail: detail({ lastRun: runItem() }),
      messages: storedRun,
    })
    expect(stored.live).toBeUndefined()
    expect(shown(threadEntries(stored))).toEqual([...live, 'footer'])
  })

  test('a session keeps the error of a run after its messages are stored', () => {
    const failed: Body[] = [
      { type: 'run-start', userId: 'user', agent, model: 'm' },
      { type: 'error', error: { code: 'provider-auth', message: 'No.', retryable: false, details: {} } },
      { type: 'run-finish', finishReason: 'error', text: '', turns: 0, delegations: 0, usage },
    ]
    const state = reduce([
      {
        type: 'run-sent',
        sessionId: 's',
        run: newLiveRun({ runId: 'r1', afterSeq: 0, user: { text: 'Hi', media: [] } }),
      },
      { type: 'run-events', events: eventsOf(failed).map(event => ({ event })) },
      {
        type: 'run-stored',
        detail: detail({ lastRun: runItem({ afterSeq: 0 }) }),
        messages: before.slice(0, 1),
      },
    ])
    expect(shown(threadEntries(state))).toEqual(['user: Hi', 'error: provider-auth'])
  })

  test('a session removes a message that the server refused', () => {
    const opened = reduce([
      { type: 'open', sessionId: 's' },
      { type: 'opened', detail: detail(), messages: before },
    ])
    const refused = reduce(
      [
        {
          type: 'run-sent',
          sessionId: 's',
          run: newLiveRun({ runId: 'r1', afterSeq: 2, user: { text: 'x', media: [] } }),
        },
        { type: 'run-refused', problem: { code: 'session-busy', message: 'Busy.' } },
      ],
      opened,
    )
    expect(shown(threadEntries(refused))).toEqual(shown(threadEntries(opened)))
    expect(refused.problem?.code).toBe('session-busy')
  })
})

test.each([
  ['one\n\ntwo', ['one\n', 'two']],
  ['```js\na\n\nb\n```\n\nafter', ['```js\na\n\nb\n```\n', 'after']],
  ['- a\n\n- b\n\n  more\n\nend', ['- a\n\n- b\n\n  more\n', 'end']],
  ['1. a\n\n2. b', ['1. a\n\n2. b']],
  ['> a\n\n> b', ['> a\n\n> b']],
  ['see [x]\n\n[x]: /there', ['see [x]\n\n[x]: /there']],
  ['~~~\n```\n\nstill\n~~~', ['~~~\n```\n\nstill\n~~~']],
  ['', ['']],
])('markdown %j is split into blocks', (source, blocks) => {
  expect(markdownBlocks(source)).toEqual(blocks)
})

test('markdown blocks keep all text, and only the last one changes while text is added', () => {
  const source = '# A\n\nfirst\n\n```ts\nconst a = 1\n\nconst b = 2\n```\n\n- x\n- y\n\nlast one'
  expect(markdownBlocks(source).join('\n')).toBe(source)
  for (let length = 1; length < source.length; length += 1) {
    const now = markdownBlocks(source.slice(0, length))
    const next = markdownBlocks(source.slice(0, length + 1))
    expect(next.slice(0, now.length - 1)).toEqual(now.slice(0, -1))
  }
})

test('an attachment that does not fit is refused in words that say the limit', () => {
  const limit = 1024 * 1024
  expect(attachmentProblem([], { name: 'a.png', size: 500_000 }, limit)).toBeUndefined()
  expect(attachmentProblem([], { name: 'a.png', size: 900_000 }, limit)).toMatch(
    /a\.png is too large.*720 KB/,
  )
  const attached = [{ mimeType: 'image/png', data: 'x'.repeat(600_000) }]
  expect(attachmentProblem(attached, { name: 'b.png', size: 400_000 }, limit)).toMatch(/b\.png is too large/)
})

describe('the status of a run', () => {
  const start: Body = { type: 'run-start', userId: 'user', agent, model: 'demo/demo' }
  const end = (finishReason: 'stop' | 'aborted' | 'error'): Body => {
    return { type: 'run-finish', finishReason, text: '', turns: 1, delegations: 0, usage }
  }
  const error = { name: 'AgentError', code: 'provider-rejected', message: 'No.', retryable: false } as const
  const call: Body = { type: 'tool-call', author: agent, id: 'c1', name: 'send', args: {} }
  const question: Body = { type: 'approval-request', id: 'c1', name: 'send', args: {} }

  test.each<[string, Body[], object]>([
    ['running before its end', [start], { type: 'running' }],
    ['waiting while it asks for approval', [start, call, question], { type: 'waiting' }],
    ['answered after its end', [start, end('stop')], { type: 'answered' }],
    ['stopped after an abort', [start, end('aborted')], { type: 'stopped' }],
    [
      'failed with the words of its error',
      [start, { type: 'error', error }, end('error')],
      { type: 'failed', error: { code: 'provider-rejected', message: 'No.' } },
    ],
  ])('the status of a run is %s, live and when it is stored', (_title, bodies, expected) => {
    const run = newLiveRun({ runId: 'r1', afterSeq: 2 })
    const live = reduce([
      { type: 'run-sent', sessionId: 's', run },
      { type: 'run-events', events: eventsOf(bodies).map(event => ({ event })) },
    ])
    expect(runStatus(live, 'r1')).toEqual(expected)
    const last = bodies.at(-1)
    if (last?.type !== 'run-finish') return
    const lastRun = runItem({ status: 'finished', finishReason: last.finishReason })
    const settled = reduce([{ type: 'run-stored', detail: detail({ lastRun }), messages: storedRun }], live)
    expect(runStatus(settled, 'r1')).toEqual(expected)
    // A later run of the chat changes nothing about this one.
    const later = reduce(
      [{ type: 'run-stored', detail: detail({ lastRun: runItem({ runId: 'r2' }) }), messages: [] }],
      settled,
    )
    expect(runStatus(later, 'r1')).toEqual(expected)
  })

  test('the status of a run is failed if only the stored run says so', () => {
    const lastRun = runItem({ status: 'finished', finishReason: 'error' })
    const state = reduce([{ type: 'opened', detail: detail({ lastRun }), messages: storedRun }])
    expect(runStatus(state, 'r1')).toEqual({ type: 'failed' })
  })
})
