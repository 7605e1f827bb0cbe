import { describe, expect, test } from 'vitest'
import { DEFAULT_BUDGET_TOKENS, tokenBudgetTruncate } from './budget.js'
import type { Message, ToolCall } from './message.js'
import { countMessageTokens } from './tokens.js'
import { startsTurn } from './turn.js'

function filled(label: string): string {
  let content = label
  while (countMessageTokens({ role: 'user', content, timestamp: 1 }) < 100) content += '.'
  return content
}

/** Every plain message here costs 100 tokens. */
const say = (role: string, label: string): Message => ({
  role,
  content: filled(label),
  timestamp: 1,
})
const ask = (...ids: string[]): Message => ({
  role: 'assistant',
  content: '',
  toolCalls: ids.map(id => ({ id, name: 'tool', input: '{}', kind: 'call' })),
  timestamp: 1,
})
const tell = (id: string, output = '"ok"'): Message => ({
  role: 'tool',
  content: output,
  toolCalls: [{ id, name: 'tool', output, kind: 'response' }],
  timestamp: 1,
})

const labels = (messages: readonly Message[]) =>
  messages.map(
    ({ content, toolCalls }) =>
      toolCalls?.map(({ id, kind }) => `${kind} ${id}`).join('+') ?? content.replace(/\.+$/, ''),
  )

describe('tokenBudgetTruncate', () => {
  const chat = [
    say('user', 'q1'),
    say('assistant', 'a1'),
    say('user', 'q2'),
    say('assistant', 'a2'),
    say('user', 'q3'),
  ]

  test('tokenBudgetTruncate takes messages from the newest to the oldest until the budget is spent', () => {
    expect(labels(tokenBudgetTruncate(chat, 100).messages)).toEqual(['q3'])
    expect(labels(tokenBudgetTruncate(chat, 399).messages)).toEqual(['q2', 'a2', 'q3'])
    expect(labels(tokenBudgetTruncate(chat, 499).messages)).toEqual(['a1', 'q2', 'a2', 'q3'])
    expect(tokenBudgetTruncate(chat, 500)).toEqual({ messages: chat, missesCall: false })
  })

  test('tokenBudgetTruncate reports what was left out and why', () => {
    expect(tokenBudgetTruncate(chat, 300).cut).toEqual({
      reason: 'token-budget',
      messages: 2,
      tokens: 200,
      keptMessages: 3,
      keptTokens: 300,
      budgetTokens: 300,
      shortened: [],
    })
    expect(tokenBudgetTruncate(chat, 'off', { maxMessages: 3 }).cut).toMatchObject({
      reason: 'message-limit',
      maxMessages: 3,
      messages: 2,
    })
  })

  test('a token budget of 0 or none is the default, and off means a hundred messages', () => {
    const many = Array.from({ length: 400 }, (_, index) => say(index % 2 ? 'assistant' : 'user', `${index}`))
    for (const budget of [0, undefined] as const) {
      const { messages, cut } = tokenBudgetTruncate(many, budget)
      expect(messages).toHaveLength(320)
      expect(cut?.budgetTokens).toBe(DEFAULT_BUDGET_TOKENS)
    }
    expect(tokenBudgetTruncate(many, 'off').messages).toHaveLength(100)
    expect(tokenBudgetTruncate(many, 'off', { maxMessages: 8 }).messages).toHaveLength(8)
    expect(tokenBudgetTruncate(many, 32_000, { maxMessages: 8 }).messages).toHaveLength(8)
    expect(tokenBudgetTruncate(many.slice(0, 90), 'off').messages).toHaveLength(90)
  })

  test('the current turn is cut neither by the message limit nor by the budget', () => {
    const turn = [
      say('user', 'q'),
      ...Array.from({ length: 20 }, (_, index) => [ask(`c${index}`), tell(`c${index}`)]).flat(),
    ]
    expect(tokenBudgetTruncate([...chat, ...turn], 'off', { maxMessages: 5 }).messages).toEqual(turn)
    expect(tokenBudgetTruncate([...chat, ...turn], 10).messages).toEqual(turn)
  })

  test('a call and its answers are truncated together', () => {
    const history = [
      say('user', 'q1'),
      ask('a', 'b'),
      tell('a'),
      say('assistant', 'between'),
      tell('b'),
      say('assistant', 'end'),
      say('user', 'q2'),
    ]
    for (let budget = 1; budget < 700; budget += 7) {
      const kept = labels(tokenBudgetTruncate(history, budget).messages)
      const parts = ['call a+call b', 'response a', 'response b'].map(label => kept.includes(label))
      expect(new Set(parts).size).toBe(1)
    }
  })

  test('an answer without an id belongs to the call before it', () => {
    const bare: Message = { role: 'function', content: 'result', timestamp: 1 }
    const history = [
      say('user', 'q1'),
      say('assistant', 'x'),
      ask(''),
      bare,
      say('assistant', 'y'),
      say('user', 'q2'),
    ]
    const { messages } = tokenBudgetTruncate(history, 240)
    expect(messages.includes(bare)).toBe(messages.some(({ toolCalls }) => toolCalls !== undefined))
  })

  test('tokenBudgetTruncate starts in the middle of a turn when the boundary would cost more than half', () => {
    const long = [
      say('user', 'q1'),
      ...Array.from({ length: 9 }, (_, index) => say('assistant', `a${index}`)),
      say('user', 'q2'),
    ]
    expect(labels(tokenBudgetTruncate(long, 500).messages)).toEqual(['a5', 'a6', 'a7', 'a8', 'q2'])
  })

  test('a truncated history begins with no tool message and no unanswered call', () => {
    const history = [
      say('user', 'q0'),
      ask('x'),
      ...Array.from({ length: 4 }, (_, index) => say('assistant', `a${index}`)),
      tell('orphan'),
      ask('never'),
      say('assistant', 'end'),
      say('user', 'q1'),
    ]
    expect(labels(tokenBudgetTruncate(history, 260).messages)).toEqual(['end', 'q1'])
  })

  test('a trailing call without its answer is kept, in a truncated history and in a whole one', () => {
    const pending = [say('user', 'q'), ask('open')]
    expect(tokenBudgetTruncate(pending).messages).toEqual(pending)
    expect(tokenBudgetTruncate([...chat, ...pending], 130).messages).toEqual(pending)
  })

  test('a message that Lango wrote in the role of the user does not start a turn', () => {
    const nudge: Message = {
      ...say('user', 'nudge'),
      extra: { customMetadata: { lango: { synthetic: true } } },
    }
    const turn = [say('user', 'q'), say('assistant', 'a'), nudge, say('assistant', 'b')]
    expect(startsTurn(nudge)).toBe(false)
    expect(startsTurn({ ...tell('x'), role: 'user' })).toBe(false)
    expect(tokenBudgetTruncate([...chat, ...turn], 100).messages).toEqual(turn)
  })

  test('a truncated history without a user keeps its newest group', () => {
    const history = [say('assistant', 'a'), ask('x', 'y'), tell('x'), say('assistant', 'b'), tell('y')]
    expect(labels(tokenBudgetTruncate(history, 10).messages)).toEqual([
      'call x+call y',
      'response x',
      'response y',
    ])
    expect(tokenBudgetTruncate([], 10)).toEqual({ messages: [], missesCall: false })
  })
})

describe('a current turn over the budget', () => {
  const big = (size: number) => JSON.stringify({ text: 'x'.repeat(size) })

  test('a current turn over the budget has its largest outputs shortened, and nothing else is changed', () => {
    const turn = [
      say('user', 'q'),
      ask('a', 'b', 'c'),
      tell('a', big(80_000)),
      tell('b', big(40_000)),
      tell('c', big(400)),
    ]
    const before = structuredClone(turn)
    const { messages, cut } = tokenBudgetTruncate(turn, 2000)
    expect(turn).toEqual(before)
    expect(messages).toHaveLength(5)
    expect(messages.reduce((sum, message) => sum + countMessageTokens(message), 0)).toBeLessThanOrEqual(2000)
    expect(messages[4]).toBe(turn[4])
    const outputs = messages.slice(2, 4).map(message => message.toolCalls?.[0] as ToolCall)
    for (const [index, { output = '' }] of outputs.entries()) {
      expect((JSON.parse(output) as { text: string }).text).toContain('[shortened by Lango:')
      expect(messages[index + 2]?.content).toBe(output)
    }
    expect(cut?.shortened.map(({ callId, name }) => [callId, name])).toEqual([
      ['a', 'tool'],
      ['b', 'tool'],
    ])
    expect(cut?.shortened[0]?.fromTokens).toBeGreaterThan(20_000)
    expect(cut?.shortened[0]?.toTokens).toBeLessThan(1000)
    expect(cut).toMatchObject({ messages: 0, tokens: 0, keptMessages: 5 })
  })

  test('a current turn over the budget counts the tokens of a shortened message anew', () => {
    const stored = [say('user', 'q'), ask('a'), tell('a', big(80_000))].map((message, index) => ({
      ...message,
      seq: index + 1,
      tokens: countMessageTokens(message),
    }))
    const { messages } = tokenBudgetTruncate(stored, 500)
    for (const message of messages) expect(message.tokens).toBe(countMessageTokens(message))
  })

  test('a current turn over the budget has the text of an older row without outputs shortened', () => {
    const bare: Message = { role: 'tool', content: 'y'.repeat(50_000), timestamp: 1 }
    const { messages, cut } = tokenBudgetTruncate([say('user', 'q'), ask('a'), bare], 400)
    expect(messages[2]?.content).toContain('[shortened by Lango:')
    expect(cut?.shortened).toHaveLength(1)
  })
})
