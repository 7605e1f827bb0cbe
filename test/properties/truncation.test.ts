import fc from 'fast-check'
import { expect, test } from 'vitest'
import { tokenBudgetTruncate } from '../../src/session/budget.js'
import { type BudgetLens, fitToBudget } from '../../src/session/fit-to-budget.js'
import { type Message, type StoredMessage, toolCallKind } from '../../src/session/message.js'
import { groupCalls } from '../../src/session/pair-calls.js'
import { countMessageTokens } from '../../src/session/tokens.js'
import { startsTurn } from '../../src/session/turn.js'
import { LONG } from '../support/tiers.js'

const text = fc.nat({ max: 400 }).map(length => 'lorem ipsum '.repeat(40).slice(0, length))
const id = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', '')

const message = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ role: fc.constantFrom('user', 'assistant', 'model', 'system'), content: text }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      role: fc.constantFrom('assistant', 'model'),
      content: fc.constantFrom('', 'let me see'),
      toolCalls: fc.array(fc.record({ id, name: fc.constant('tool'), input: fc.constant('{}') }), {
        minLength: 1,
        maxLength: 3,
      }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      role: fc.constantFrom('tool', 'function', 'user'),
      content: fc.constant(''),
      toolCalls: fc.array(
        fc.record({ id, name: fc.constant('tool'), output: text.map(output => JSON.stringify({ output })) }),
        {
          minLength: 1,
          maxLength: 2,
        },
      ),
    }),
  },
  { weight: 1, arbitrary: fc.record({ role: fc.constant('tool'), content: text }) },
)

const history = fc.array(message, { maxLength: 40 }).map(messages =>
  messages.map((one, index): StoredMessage => {
    const full = { timestamp: 1, ...one } as Message
    return { ...full, seq: index + 1, tokens: countMessageTokens(full) }
  }),
)

const budget = fc.integer({ min: 1, max: 3000 })

function groupsOf(messages: readonly StoredMessage[]) {
  const some = (one: Message, kind: 'call' | 'response') =>
    (one.toolCalls ?? []).filter(call => [kind, 'both'].includes(toolCallKind(call, one.role)))
  return groupCalls(messages, {
    calls: one => some(one, 'call'),
    answers: one => {
      const isBare = (one.role === 'tool' || one.role === 'function') && one.toolCalls === undefined
      return isBare ? [{}] : some(one, 'response')
    },
    startsTurn,
  })
}

/** A property that holds for a hundred cases here and for two thousand in the long tier. */
function law<Values>(title: string, property: fc.IProperty<Values>): void {
  test(title, () => fc.assert(property))
  test(`${title}, in 2000 cases`, LONG, () => fc.assert(property, { numRuns: 2000 }))
}

const total = (messages: readonly StoredMessage[]) => messages.reduce((sum, { tokens }) => sum + tokens, 0)

law(
  'truncation does not change a history that fits the budget',
  fc.property(history, messages => {
    expect(tokenBudgetTruncate(messages, Math.max(1, total(messages)))).toEqual({
      messages,
      missesCall: false,
    })
  }),
)

law(
  'truncation keeps a subsequence of the messages, and its counts add up',
  fc.property(history, budget, (messages, tokens) => {
    const { messages: kept, cut } = tokenBudgetTruncate(messages, tokens)
    const seqs = kept.map(({ seq }) => seq)
    expect(seqs).toEqual([...new Set(seqs)].sort((one, other) => one - other))
    const shortened = new Set(kept.filter(one => !messages.includes(one)).map(({ seq }) => seq))
    expect(shortened.size > 0).toBe((cut?.shortened.length ?? 0) > 0)
    if (cut === undefined) {
      expect(kept).toEqual(messages)
      return
    }
    expect(cut.messages + cut.keptMessages).toBe(messages.length)
    expect(cut.keptTokens).toBe(total(kept))
    expect(cut.tokens).toBe(total(messages.filter(({ seq }) => !seqs.includes(seq))))
  }),
)

law(
  'truncation keeps the whole current turn',
  fc.property(history, budget, (messages, tokens) => {
    const start = messages.findLastIndex(startsTurn)
    const kept = new Set(tokenBudgetTruncate(messages, tokens).messages.map(({ seq }) => seq))
    for (const { seq } of start === -1 ? messages.slice(-1) : messages.slice(start))
      expect(kept.has(seq)).toBe(true)
  }),
)

law(
  'truncation keeps or drops a call and its results together',
  fc.property(history, budget, (messages, tokens) => {
    const kept = new Set(tokenBudgetTruncate(messages, tokens).messages.map(({ seq }) => seq))
    for (const members of groupsOf(messages).members) {
      expect(new Set(members.map(index => kept.has(index + 1))).size).toBe(1)
    }
  }),
)

law(
  'after truncation the first message is neither an orphaned result nor an unanswered call',
  fc.property(history, budget, (messages, tokens) => {
    const { messages: kept, cut } = tokenBudgetTruncate(messages, tokens)
    const first = kept[0]
    const turn = messages.findLastIndex(startsTurn)
    const { groupOf, members, orphans, unanswered } = groupsOf(messages)
    const index = (first?.seq ?? 0) - 1
    const group = groupOf[index] ?? -1
    const isPinned = (members[group]?.at(-1) ?? 0) >= (turn === -1 ? messages.length - 1 : turn)
    if (cut === undefined || cut.messages === 0 || isPinned) return
    expect(orphans.has(index)).toBe(false)
    expect(unanswered.has(group)).toBe(false)
  }),
)

law(
  'a truncated history fits the budget, or is only the current turn with shortened outputs',
  fc.property(history, budget, (messages, tokens) => {
    const { messages: kept } = tokenBudgetTruncate(messages, tokens)
    if (total(kept) <= tokens) return
    const turn = messages.findLastIndex(startsTurn)
    const { groupOf, members } = groupsOf(messages)
    for (const { seq, toolCalls = [] } of kept) {
      const last = members[groupOf[seq - 1] ?? -1]?.at(-1) ?? -1
      expect(last).toBeGreaterThanOrEqual(turn === -1 ? messages.length - 1 : turn)
      for (const { output } of toolCalls) expect(output?.length ?? 0).toBeLessThan(400)
    }
  }),
)

law(
  'truncating a history twice equals truncating it once',
  fc.property(history, budget, (messages, tokens) => {
    const once = tokenBudgetTruncate(messages, tokens).messages
    fc.pre(total(once) <= tokens)
    expect(tokenBudgetTruncate(once, tokens).messages).toEqual(once)
  }),
)

/** Plain items for the options that only model calls use. */
interface Item {
  kind: 'user' | 'text' | 'call' | 'answer'
  tokens: number
  id: string
}

const itemLens: BudgetLens<Item> = {
  tokens: item => item.tokens,
  startsTurn: item => item.kind === 'user',
  calls: item => (item.kind === 'call' ? [{ id: item.id }] : []),
  answers: item => (item.kind === 'answer' ? [{ id: item.id }] : []),
  outputTokens: item => (item.kind === 'answer' ? [item.tokens] : []),
  shorten: (item, limit) => ({
    item: { ...item, tokens: Math.min(item.tokens, limit) },
    shortened: [{ callId: item.id, name: '', fromTokens: item.tokens, toTokens: limit }],
  }),
}

const step = fc
  .nat({ max: 200 })
  .chain(size =>
    fc
      .constantFrom<Item['kind'][]>(['user'], ['text'], ['call', 'answer'], ['call', 'text', 'answer'])
      .map(kinds => ({ size, kinds })),
  )
const items = fc
  .array(step, { minLength: 1, maxLength: 40 })
  .map(steps =>
    steps.flatMap(({ size, kinds }, index) =>
      kinds.map((kind): Item => ({ kind, tokens: size + 1, id: `c${index}` })),
    ),
  )

const sizesOfTexts = fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 60 })

law(
  'fitting a single turn drops its oldest groups, never the question or the newest group',
  fc.property(items, budget, (all, budgetTokens) => {
    const question: Item = { kind: 'user', tokens: 5, id: 'question' }
    const turn = [question, ...all.filter(({ kind }) => kind !== 'user')]
    const { items: kept } = fitToBudget(turn, { budgetTokens, dropWithinTurn: true }, itemLens)
    const ids = new Set(kept.map(item => item.id))
    const newest = turn.at(-1) ?? question
    expect(ids.has('question')).toBe(true)
    expect(ids.has(newest.id)).toBe(true)
    const sum = kept.reduce((tokens, item) => tokens + item.tokens, 0)
    if (sum > budgetTokens)
      expect([...ids].filter(one => one !== 'question' && one !== newest.id)).toEqual([])
    for (const one of kept.filter(({ kind }) => kind === 'answer')) {
      expect(kept.some(({ kind, id: callId }) => kind === 'call' && callId === one.id)).toBe(true)
    }
  }),
)

law(
  'a steady cut stays while the history grows by less than a quarter of the budget',
  fc.property(sizesOfTexts, fc.integer({ min: 400, max: 3000 }), (sizes, budgetTokens) => {
    const all = sizes.map((tokens, index): Item => ({ kind: 'text', tokens, id: `t${index}` }))
    const firstBySteps = new Map<number, string | undefined>()
    let sum = 0
    for (const [index, { tokens }] of all.entries()) {
      sum += tokens
      const { items: kept } = fitToBudget(all.slice(0, index + 1), { budgetTokens, steady: true }, itemLens)
      const steps = Math.max(0, Math.ceil((sum - budgetTokens) / (budgetTokens / 4)))
      const first = kept[0]?.id
      expect(firstBySteps.get(steps) ?? first).toBe(first)
      firstBySteps.set(steps, first)
      expect(kept.reduce((all, item) => all + item.tokens, 0)).toBeLessThanOrEqual(budgetTokens)
    }
  }),
)
