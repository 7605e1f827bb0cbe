import { describe, expect, test } from 'vitest'
import { tokenBudgetTruncate } from '../../../src/session/budget.js'
import type { Message, SessionKey, StoredMessage } from '../../../src/session/message.js'
import type { LoadOptions } from '../../../src/session/session-store.js'
import { longUnless } from '../../support/tiers.js'
import { FAST_DRIVERS, newKey, type Place, useStore } from './drivers.js'

/** Every message of a session, page by page. */
async function readAll(place: Place, key: SessionKey): Promise<StoredMessage[]> {
  const all: StoredMessage[] = []
  for (let afterSeq = 0; ; ) {
    const page = await place.store.readMessages(key, { afterSeq })
    all.push(...page)
    const last = page.at(-1)
    if (last === undefined) return all
    afterSeq = last.seq
  }
}

/** A small generator, so that every driver gets the same histories. */
function random(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return state / 2_147_483_648
  }
}

/** Turns with calls, parallel calls, late answers, answers without ids or calls, and text between. */
function randomHistory(seed: number, length: number): Message[] {
  const next = random(seed)
  const messages: Message[] = []
  const open: string[] = []
  for (let index = 0; messages.length < length; index++) {
    const text = 'word '.repeat(Math.floor(next() * 40))
    const dice = next()
    if (dice < 0.3) messages.push({ role: 'user', content: text, timestamp: index })
    else if (dice < 0.5) messages.push({ role: 'assistant', content: text, timestamp: index })
    else if (dice < 0.75) {
      const ids = Array.from({ length: 1 + Math.floor(next() * 3) }, (_, call) => `c${index}-${call}`)
      open.push(...ids)
      const toolCalls = ids.map(id => ({ id, name: 'search', input: '{}', kind: 'call' as const }))
      messages.push({ role: 'assistant', content: '', toolCalls, timestamp: index })
    } else {
      const id = (next() < 0.8 ? open.pop() : open.shift()) ?? (next() < 0.5 ? '' : 'unknown')
      const toolCalls = [{ id, name: 'search', output: JSON.stringify({ text }), kind: 'response' as const }]
      messages.push({ role: 'tool', content: '', toolCalls, timestamp: index })
    }
  }
  return messages
}

describe.each(FAST_DRIVERS)('loading from $name', driver => {
  const place = useStore(driver)

  async function stored(messages: readonly Message[]): Promise<SessionKey> {
    const key = newKey()
    await place.store.createSession(key)
    await place.store.appendMessages(key, messages)
    return key
  }

  for (const seed of [1, 2, 3, 4, 5, 6])
    test(
      `history ${seed} in ${driver.name}, read from its end, is what truncating all of it gives`,
      longUnless(seed <= 2),
      async () => {
        const key = await stored(randomHistory(seed, 300))
        const all = await readAll(place, key)
        const cases: LoadOptions[] = [
          {},
          { budgetTokens: 50 },
          { budgetTokens: 700 },
          { budgetTokens: 3000 },
          { budgetTokens: 0, maxMessages: 7 },
          { budgetTokens: 2000, maxMessages: 60 },
          { budgetTokens: 'off' },
          { budgetTokens: 'off', maxMessages: 12 },
          { budgetTokens: 1500, steady: true },
        ]
        for (const options of cases) {
          const loaded = await place.store.loadSession(key, options)
          const expected = tokenBudgetTruncate(all, options.budgetTokens, options)
          expect(loaded?.messages, JSON.stringify(options)).toEqual(expected.messages)
          expect(loaded?.cut, JSON.stringify(options)).toEqual(expected.cut)
          expect(loaded?.totalMessages).toBe(all.length)
        }
      },
    )

  for (const total of [1500, 10_000])
    test(
      `a session of ${total} messages in ${driver.name} is complete, and opens with what the budget holds`,
      longUnless(total === 1500),
      async () => {
        const key = newKey()
        await place.store.createSession(key)
        const pending: Promise<unknown>[] = []
        for (let index = 1; index <= total; index++) {
          pending.push(
            place.store.appendMessage(key, {
              role: index % 2 ? 'user' : 'assistant',
              content: `message ${index} ${'x'.repeat(60)}`,
              timestamp: 1,
            }),
          )
          if (pending.length === 500) await Promise.all(pending.splice(0))
        }
        const all = await readAll(place, key)
        expect(all.map(({ seq }) => seq)).toEqual(Array.from({ length: total }, (_, index) => index + 1))
        expect(new Set(all.map(({ content }) => content)).size).toBe(total)
        const loaded = await place.store.loadSession(key)
        const kept = loaded?.messages ?? []
        expect(kept).toEqual(all.slice(-kept.length))
        expect(loaded?.cut).toMatchObject({
          reason: 'token-budget',
          budgetTokens: 32_000,
          messages: total - kept.length,
          keptMessages: kept.length,
          keptTokens: kept.reduce((sum, { tokens }) => sum + tokens, 0),
          tokens: all.slice(0, -kept.length).reduce((sum, { tokens }) => sum + tokens, 0),
        })
      },
    )

  test(`the call of a late answer in ${driver.name} is found beyond the budget`, async () => {
    const key = await stored([
      { role: 'user', content: 'start the long job', timestamp: 1 },
      { role: 'assistant', content: '', timestamp: 1, toolCalls: [{ id: 'late', name: 'job', input: '{}' }] },
      ...Array.from({ length: 600 }, (_, index) => ({
        role: index % 2 ? 'assistant' : 'user',
        content: 'meanwhile',
        timestamp: 1,
      })),
      { role: 'user', content: 'and now?', timestamp: 1 },
      { role: 'tool', content: '', timestamp: 1, toolCalls: [{ id: 'late', name: 'job', output: '"done"' }] },
    ])
    const loaded = await place.store.loadSession(key, { budgetTokens: 100 })
    expect(loaded?.messages.map(({ seq }) => seq)).toContain(2)
    expect(loaded?.messages.at(-1)?.seq).toBe(604)
  })

  test(`the steady cut in ${driver.name} stays while the history grows by less than a quarter of the budget`, async () => {
    const key = newKey()
    await place.store.createSession(key)
    const starts: number[] = []
    for (let index = 0; index < 120; index++) {
      await place.store.appendMessage(key, {
        role: index % 2 ? 'assistant' : 'user',
        content: 'x'.repeat(60),
        timestamp: 1,
      })
      const loaded = await place.store.loadSession(key, { budgetTokens: 1000, steady: true })
      starts.push(loaded?.messages[0]?.seq ?? 0)
      expect(loaded?.messages.reduce((sum, { tokens }) => sum + tokens, 0)).toBeLessThanOrEqual(1000)
    }
    expect(starts).toEqual([...starts].sort((one, other) => one - other))
    // 120 messages of 20 tokens are 1400 over the budget: six steps of a quarter, not seventy.
    expect(new Set(starts).size).toBe(7)
  })
})
