import { expect, test } from 'vitest'
import { AgentError } from '../../errors.js'
import type { RunEvent, RunEventBody } from '../../run/run-event.js'
import type { RunUsage } from '../../session/usage.js'
import type { ChatItemBody } from './chat-item.js'
import { type ChatState, emptyChat, reduceChat } from './chat-state.js'

const usage: RunUsage = {
  inputTokens: 10,
  outputTokens: 5,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
  totalTokens: 15,
}
const start: RunEventBody = { type: 'run-start', userId: 'user', agent: 'root', model: 'openai/gpt-5.2' }
const finish = (finishReason: 'stop' | 'aborted' | 'turn-limit' | 'loop' | 'error'): RunEventBody => ({
  type: 'run-finish',
  finishReason,
  text: '',
  turns: 0,
  delegations: 0,
  usage,
})
const call = (id: string, name = 'search'): RunEventBody => ({
  type: 'tool-call',
  author: 'root',
  id,
  name,
  args: { q: 'x' },
})
const result = (id: string, isError = false): RunEventBody => ({
  type: 'tool-result',
  author: 'root',
  id,
  name: 'search',
  result: isError ? { error: 'no' } : { result: 'yes' },
  isError,
})
const text = (words: string, author = 'root'): RunEventBody => ({ type: 'text-delta', author, text: words })
const thought = (words: string): RunEventBody => ({ type: 'reasoning-delta', author: 'root', text: words })

/** Events come one every hundred milliseconds. */
function play(bodies: readonly RunEventBody[], state: ChatState = emptyChat('s', 'demo/demo')): ChatState {
  return bodies.reduce((before, body, index) => {
    const seq = (before.run?.lastSeq ?? 0) + 1
    const event = { ...body, sessionId: 's', runId: 'r1', seq } as RunEvent
    return reduceChat(before, { type: 'event', event, at: index * 100 })
  }, state)
}

function items(state: ChatState): ChatItemBody[] {
  return state.items.map(({ id: _id, key: _key, from: _from, ...body }) => body)
}

test('text of one author becomes one answer of the chat, which is no longer live at the end', () => {
  const during = play([start, text('Hel'), text('lo')])
  expect(items(during)).toEqual([{ kind: 'text', author: 'root', text: 'Hello', streaming: true }])
  expect(during.phase).toBe('answering')
  const after = play([start, text('Hel'), text('lo'), finish('stop')])
  expect(items(after)).toEqual([{ kind: 'text', author: 'root', text: 'Hello' }])
  expect(after.phase).toBe('idle')
})

test('reasoning, another author and a call each begin a new item of the chat', () => {
  const state = play([start, thought('hm'), text('a'), text('b', 'helper'), call('1'), text('c')])
  expect(items(state).map(item => [item.kind, 'text' in item ? item.text : ''])).toEqual([
    ['reasoning', 'hm'],
    ['text', 'a'],
    ['text', 'b'],
    ['tool', ''],
    ['text', 'c'],
  ])
})

test('a notice within an answer does not split it', () => {
  const before = play([start, text('Hel')])
  const between = reduceChat(before, { type: 'notice', tone: 'error', text: 'not now' })
  expect(items(play([text('lo')], between)).map(item => ('text' in item ? item.text : ''))).toEqual([
    'Hello',
    'not now',
  ])
})

test('a long answer is split after a paragraph, never within code, and loses nothing', () => {
  const paragraph = `${'word '.repeat(600)}\n\n`
  const code = `\`\`\`\n${'x = 1\n\n'.repeat(2000)}\`\`\`\n\n`
  const deltas = [paragraph, paragraph, paragraph, code, paragraph, 'end'].map(words => text(words))
  const answers = items(play([start, ...deltas])).filter(item => item.kind === 'text')
  expect(answers.length).toBeGreaterThan(1)
  expect(answers.map(item => item.text).join('')).toBe(
    deltas.map(each => (each as { text: string }).text).join(''),
  )
  for (const answer of answers) expect((answer.text.match(/```/g) ?? []).length % 2).toBe(0)
})

const tool = (state: ChatState) => items(state).find(item => item.kind === 'tool')

test.each([
  ['that runs', [call('1')], { status: 'running' }],
  [
    'that has answered',
    [call('1'), result('1')],
    { status: 'done', durationMs: 100, result: { result: 'yes' } },
  ],
  ['that failed', [call('1'), result('1', true)], { status: 'failed', durationMs: 100 }],
  ['that was stopped', [call('1'), finish('aborted')], { status: 'unanswered' }],
  ['that waits outside', [{ ...call('1'), pending: true }, finish('stop')], { status: 'pending' }],
  ['that asks', [call('1'), ask('1')], { status: 'waiting' }],
  ['that was allowed', [call('1'), ask('1'), answer('1', 'once')], { status: 'running', approval: 'once' }],
  [
    'whose asking is not counted as its time',
    [call('1'), ask('1'), answer('1', 'always'), result('1')],
    { status: 'done', approval: 'always', durationMs: 100 },
  ],
  [
    'that was refused',
    [call('1'), ask('1'), answer('1', 'no'), result('1', true)],
    { status: 'failed', approval: 'no' },
  ],
] as [string, RunEventBody[], object][])('the chat shows a call %s', (_, bodies, expected) => {
  expect(tool(play([start, ...bodies]))).toMatchObject({ callId: '1', name: 'search', ...expected })
})

test('parallel calls of the chat get their own results', () => {
  const state = play([start, call('1'), call('2'), result('2'), result('1', true)])
  expect(items(state)).toMatchObject([
    { callId: '1', status: 'failed' },
    { callId: '2', status: 'done' },
  ])
  expect(state.phase).toBe('thinking')
  expect(play([start, call('1'), call('2'), result('2')]).phase).toBe('tools')
})

test('a result for an id that is used again in a later run changes the new call only', () => {
  const state = play([start, call('1'), result('1'), finish('stop'), start, call('1')])
  expect(items(state)).toMatchObject([{ status: 'done' }, { status: 'running' }])
})

test("a confirmation of ADK's is kept for the next run", () => {
  const asked = { ...ask('c9'), callId: 'c1' } as RunEventBody
  const state = play([start, call('c9', 'adk_request_confirmation'), asked, finish('stop')])
  expect(state.confirmations).toMatchObject([{ callId: 'c9', tool: 'search', args: { q: 'x' } }])
  expect(items(state)).toEqual([])
})

const notices = (bodies: RunEventBody[]) =>
  items(play([start, ...bodies])).map(item => (item.kind === 'notice' ? [item.tone, item.text] : item.kind))
const repair: RunEventBody = {
  type: 'repair',
  model: 'm',
  profile: 'gemini-3',
  repairs: [
    { step: 'pair-calls', kind: 'k', at: 1, detail: 'd' },
    { step: 'pair-calls', kind: 'k', at: 2, detail: 'd' },
    { step: 'merge-roles', kind: 'k', at: 3, detail: 'd' },
  ],
}
const cut = (messages: number): RunEventBody => ({
  type: 'history-cut',
  cut: {
    reason: 'token-budget',
    messages,
    tokens: 4000,
    keptMessages: 10,
    keptTokens: 7000,
    budgetTokens: 8000,
    shortened: [],
  },
})

test.each([
  [[{ type: 'agent-transfer', from: 'root', to: 'helper' }], [['quiet', 'root hands over to helper']]],
  [
    [{ type: 'turn-warning', turns: 20, maxTurns: 25 }],
    [['quiet', 'turn 20 of 25: the run is near its limit']],
  ],
  [
    [{ type: 'wrap-up', reason: 'turn-limit', turns: 25, maxTurns: 25 }],
    [['quiet', 'turn 25 of 25 is used: one last answer, without tools']],
  ],
  [
    [repair, repair],
    [['quiet', 'history repaired for gemini-3: calls and their results (2), turns alternate · /inspect']],
  ],
  [
    [cut(3), cut(3), cut(1)],
    [
      [
        'quiet',
        '3 older messages left out to fit 8k tokens · /inspect\n1 older message left out to fit 8k tokens · /inspect',
      ],
    ],
  ],
  [[{ type: 'error', error: new AgentError('provider-auth', 'Set a key.') }], [['error', 'Set a key.']]],
  [[finish('aborted')], [['quiet', 'stopped']]],
  [[finish('turn-limit')], [['quiet', 'ended at the turn limit: send another message to continue']]],
  [[finish('stop')], []],
] as [RunEventBody[], unknown[]][])(
  'the events of row %# are shown as one notice of the chat',
  (bodies, expected) => {
    expect(notices(bodies)).toEqual(expected)
  },
)

test('a restarted step takes back its half answer, also when it was shown in parts', () => {
  const long = 'A line of the answer that is long enough.\n\n'.repeat(400)
  const usageOf: RunEventBody = { type: 'usage', author: 'root', model: 'openai/gpt-5.2', usage }
  const resumed: RunEventBody[] = [
    { type: 'run-resumed', attempt: 2, replayedSteps: 1 },
    { type: 'step-restart', step: 2 },
  ]
  const half = play([start, text('First.'), call('c1'), usageOf, result('c1'), thought('Hm'), text(long)])
  expect(half.items.length).toBeGreaterThan(4)
  const state = play([...resumed, text('Again.')], half)
  expect(items(state)).toMatchObject([
    { kind: 'text', text: 'First.' },
    { kind: 'tool' },
    { kind: 'notice', text: 'The run was resumed (attempt 2)' },
    { kind: 'text', text: 'Again.' },
  ])
  expect(state.phase).toBe('answering')
})

const used = (model: string, cost?: number): RunEventBody => ({
  type: 'usage',
  author: 'root',
  model,
  usage: cost === undefined ? usage : { ...usage, cost },
})

test('the usage of the chat is the sum of the session', () => {
  const state = play([start, used('openai/gpt-5.2', 0.5), used('openai/gpt-5.2', 0.25)])
  expect(state.usage).toMatchObject({ inputTokens: 20, outputTokens: 10, cost: 0.75 })
})

test('the usage of the chat has no cost once one price is unknown', () => {
  expect(play([used('demo/demo', 0), used('openai/gpt-5.2', 0.5)]).usage.cost).toBe(0.5)
  expect(play([used('mystery/model'), used('openai/gpt-5.2', 0.5)]).usage.cost).toBeUndefined()
})

test('opening another session in the chat removes all of the one before', () => {
  const before = play([start, text('old'), finish('stop')])
  const session = {
    sessionId: 't',
    items: [{ kind: 'user', text: 'hi' } as const],
    usage,
    usageIsPartial: true,
  }
  const after = reduceChat(before, { type: 'opened', session })
  expect(after).toMatchObject({ sessionId: 't', usage, usageIsPartial: true, model: 'openai/gpt-5.2' })
  expect(after.runId).toBeUndefined()
  expect(items(after)).toEqual([{ kind: 'user', text: 'hi' }])
})

test('a chat with more items than the limit keeps the newest', () => {
  let state = emptyChat('s', 'm')
  for (let count = 0; count < 2_500; count++) {
    state = reduceChat(state, { type: 'notice', tone: 'quiet', text: String(count) })
  }
  expect(state.items.length).toBeLessThanOrEqual(2_000)
  expect(state.items.at(-1)).toMatchObject({ text: '2499' })
})

function ask(id: string): RunEventBody {
  return { type: 'approval-request', id, name: 'search', args: { q: 'x' } }
}

function answer(id: string, words: 'once' | 'always' | 'no'): RunEventBody {
  return { type: 'approval-answer', id, name: 'search', answer: words }
}
