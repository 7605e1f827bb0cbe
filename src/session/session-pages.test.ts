import { describe, expect, test } from 'vitest'
import type { SessionKey, StoredMessage } from './message.js'
import { messagePages, newestMessagePages, runEventPages, sessionPages } from './session-pages.js'
import type { ListQuery, ReadOptions, SessionPage, SessionSummary } from './session-store.js'

const key: SessionKey = { appName: 'app', userId: 'ann', sessionId: 'one' }

/** The part of a store that reads messages, over so many of them, and the limits it was asked with. */
function messageStore(count: number) {
  const limits: (number | undefined)[] = []
  const all = Array.from({ length: count }, (_, index): StoredMessage => {
    return { role: 'user', content: '', timestamp: 1, tokens: 4, seq: index + 1 }
  })
  const readMessages = async (_key: SessionKey, options: ReadOptions = {}): Promise<StoredMessage[]> => {
    const { afterSeq, beforeSeq = Number.MAX_SAFE_INTEGER, limit = 1000 } = options
    limits.push(limit)
    const range = all.slice(afterSeq ?? 0, Math.max(0, beforeSeq - 1))
    return afterSeq === undefined ? range.slice(-limit) : range.slice(0, limit)
  }
  return { readMessages, limits }
}

async function seqsOf(pages: AsyncIterable<readonly { seq: number }[]>): Promise<number[][]> {
  const found: number[][] = []
  for await (const page of pages) found.push(page.map(({ seq }) => seq))
  return found
}

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index)

test.each([0, 1, 999, 1000, 1001, 2000, 2500])(
  'messagePages yields each of %i messages once, in order',
  async count => {
    const store = messageStore(count)
    expect((await seqsOf(messagePages(store, key))).flat()).toEqual(range(1, count))
    expect(store.limits.length).toBe(Math.floor(count / 1000) + 1)
  },
)

test('messagePages respects a range, and reads no more than its limit needs', async () => {
  const store = messageStore(5000)
  const bounded = messagePages(store, key, { afterSeq: 10, beforeSeq: 1500 })
  expect((await seqsOf(bounded)).flat()).toEqual(range(11, 1499))
  store.limits.length = 0
  expect((await seqsOf(messagePages(store, key, { limit: 1200 }))).flat()).toEqual(range(1, 1200))
  expect(store.limits).toEqual([1000, 200])
  expect(await seqsOf(messagePages(store, key, { limit: 0 }))).toEqual([])
})

test('messagePages reads no further page after its reader has stopped', async () => {
  const store = messageStore(5000)
  for await (const page of messagePages(store, key)) {
    expect(page.length).toBe(1000)
    break
  }
  expect(store.limits).toEqual([1000])
})

test('newestMessagePages yields the newest page first, each in order, back to the first message', async () => {
  const pages = await seqsOf(newestMessagePages(messageStore(2500), key))
  expect(pages).toEqual([range(1501, 2500), range(501, 1500), range(1, 500)])
})

test.each([
  [2500, 1200, [range(1501, 2500), range(1301, 1500)]],
  [3, 10, [[1, 2, 3]]],
  [0, 10, []],
  [3, 0, []],
])('newestMessagePages of %i messages with a limit of %i', async (count, limit, expected) => {
  const store = messageStore(count)
  expect(await seqsOf(newestMessagePages(store, key, { limit }))).toEqual(expected)
  expect(store.limits.length).toBe(limit === 0 ? 0 : Math.max(1, expected.length))
})

test('newestMessagePages yields pages of the given size', async () => {
  const store = messageStore(5)
  expect(await seqsOf(newestMessagePages(store, key, { pageSize: 2 }))).toEqual([[4, 5], [2, 3], [1]])
  expect(await seqsOf(messagePages(store, key, { pageSize: 5 }))).toEqual([[1, 2, 3, 4, 5]])
})

test('newestMessagePages starts before the given message', async () => {
  expect(await seqsOf(newestMessagePages(messageStore(50), key, { beforeSeq: 3 }))).toEqual([[1, 2]])
})

describe('sessionPages', () => {
  const summary = (sessionId: string): SessionSummary => {
    return { key: { ...key, sessionId }, totalMessages: 0, totalTokens: 0, createdAt: 1, updatedAt: 1 }
  }

  test('sessionPages follows the cursors and passes the query on', async () => {
    const asked: ListQuery[] = []
    const answers: SessionPage[] = [
      { sessions: [summary('a'), summary('b')], nextCursor: 'x' },
      { sessions: [summary('c')] },
    ]
    const listSessions = async (query: ListQuery): Promise<SessionPage> => {
      return answers[asked.push(query) - 1] ?? { sessions: [] }
    }
    const found: string[] = []
    for await (const page of sessionPages({ listSessions }, { appName: 'app', search: 's' }))
      found.push(...page.map(({ key: { sessionId } }) => sessionId))
    expect(found).toEqual(['a', 'b', 'c'])
    expect(asked).toEqual([
      { appName: 'app', search: 's', limit: 1000 },
      { appName: 'app', search: 's', limit: 1000, cursor: 'x' },
    ])
  })

  test('sessionPages ends with an empty page, even if it has a cursor', async () => {
    let reads = 0
    const listSessions = async (): Promise<SessionPage> => {
      reads += 1
      return { sessions: [], nextCursor: 'again' }
    }
    for await (const page of sessionPages({ listSessions }, { appName: 'app' })) expect(page).toEqual([])
    expect(reads).toBe(1)
  })
})

test.each([0, 1000, 1500])('runEventPages yields each of %i events once, in order', async count => {
  const all = range(1, count).map(seq => ({ seq }))
  const readEvents = async (_runId: string, { afterSeq = 0, limit = 1000 } = {}) =>
    all.filter(({ seq }) => seq > afterSeq).slice(0, limit)
  expect((await seqsOf(runEventPages({ readEvents }, 'r'))).flat()).toEqual(range(1, count))
})

test('runEventPages reads at most a million events of a run without an end', async () => {
  const readEvents = async (_runId: string, { afterSeq = 0 } = {}) =>
    Array.from({ length: 1000 }, (_, index) => ({ seq: afterSeq + index + 1 }))
  let last = 0
  for await (const page of runEventPages({ readEvents }, 'r')) last = page.at(-1)?.seq ?? 0
  expect(last).toBe(1_000_000)
})
