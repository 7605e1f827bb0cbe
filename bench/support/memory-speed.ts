/** What recall and the index cost in one session of 100,000 messages, on SQLite and PostgreSQL. */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { indexSession, type MemoryCapableStore } from '../../src/memory/index-session.js'
import { recall } from '../../src/memory/recall.js'
import { interleaved } from './interleaved.js'
import { withStore } from './memory-stores.js'
import type { Report } from './report.js'

const MESSAGES = Number(process.env.LANGO_BENCH_MESSAGES ?? 100_000)
const QUESTIONS = 200
const APPENDS = 512
/** Messages that wait before they are indexed together, as in a runtime. */
const INDEXED_TOGETHER = 128

export async function benchRecall(report: Report): Promise<void> {
  for (const kind of ['sqlite', 'postgres'])
    await withStore(kind, async store => {
      report.progress(`${kind}: ${MESSAGES} messages …`)
      const key = await fill(store, 'long')
      report.progress(`${kind}: indexing …`)
      const started = performance.now()
      await indexSession(store, key)
      const seconds = (performance.now() - started) / 1000
      report.figure(`${kind}, indexing ${MESSAGES} messages`, 's', seconds)
      const delay = monitorEventLoopDelay({ resolution: 5 })
      delay.enable()
      const samples: number[] = []
      for (let index = 0; index < QUESTIONS; index++) {
        const words = question(index)
        const begun = performance.now()
        await recall(store.memory, key, { words })
        samples.push(performance.now() - begun)
        await new Promise(resume => setTimeout(resume, 2))
      }
      delay.disable()
      samples.sort((one, other) => one - other)
      report.figure(`${kind}, recall over ${MESSAGES} messages, p50`, 'ms', samples[QUESTIONS / 2] ?? 0, 60)
      report.figure(
        `${kind}, recall over ${MESSAGES} messages, p95`,
        'ms',
        samples[QUESTIONS * 0.95] ?? 0,
        250,
      )
      report.figure(`${kind}, longest delay of the event loop`, 'ms', delay.max / 1e6)
      await benchAppend(report, kind, store)
    })
}

async function benchAppend(report: Report, kind: string, store: MemoryCapableStore): Promise<void> {
  let session = 0
  const append = (withIndex: boolean) => async () => {
    const key = { appName: 'bench', userId: 'user', sessionId: `append-${session++}` }
    await store.createSession(key)
    const started = performance.now()
    for (let index = 0; index < APPENDS; index++) {
      await store.appendMessage(key, message(index))
      if (withIndex && index % INDEXED_TOGETHER === INDEXED_TOGETHER - 1) await indexSession(store, key)
    }
    return ((performance.now() - started) * 1000) / APPENDS
  }
  const { ours, peer } = await interleaved(append(true), append(false))
  report.atMost(`${kind}, append with the index on`, 'µs', ours, peer, 1.7)
}

async function fill(store: MemoryCapableStore, sessionId: string) {
  const key = { appName: 'bench', userId: 'user', sessionId }
  await store.createSession(key)
  for (let start = 0; start < MESSAGES; start += 5000) {
    const count = Math.min(5000, MESSAGES - start)
    await store.appendMessages?.(
      key,
      Array.from({ length: count }, (_, index) => message(start + index)),
    )
  }
  return key
}

/** Thirty words, half of them those that every sentence has, and frequent ones more often, as in any language. */
function message(index: number) {
  const random = randomFrom(index)
  const words = Array.from({ length: 30 }, () => (random() < 0.5 ? 'the' : word(random)))
  const role = index % 2 === 0 ? 'user' : 'assistant'
  return {
    role,
    author: role === 'user' ? 'Ann' : 'Bob',
    content: words.join(' '),
    timestamp: index * 60_000,
  }
}

/** Two frequent words, a name, and three rarer words. */
function question(index: number): string {
  const random = randomFrom(1_000_000 + index)
  return `What did Ann say about ${Array.from({ length: 5 }, () => word(random)).join(' ')} in March?`
}

const VOCABULARY = 20_000

function word(random: () => number): string {
  const rank = Math.floor(VOCABULARY ** random())
  return `${SYLLABLES[rank % 20]}${SYLLABLES[Math.floor(rank / 20) % 20]}${SYLLABLES[Math.floor(rank / 400) % 20]}${rank < 8000 ? '' : 'n'}`
}

const SYLLABLES = 'ba co du fe gi ho ju ka le mi no pu ra so ti vu we xa yo zu'.split(' ')

function randomFrom(seed: number): () => number {
  let state = seed * 2_654_435_761 + 1
  return () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x297a2d39) | 0
    return ((state ^ (state >>> 13)) >>> 0) / 2 ** 32
  }
}
