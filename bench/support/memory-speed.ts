/** What recall and the index cost in one session of 100,000 messages, on SQLite and PostgreSQL. */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { indexSession, type MemoryCapableStore } from '../../src/memory/index-session.js'
import { recall } from '../../src/memory/recall.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { interleaved } from './interleaved.js'
import { withStore } from './memory-stores.js'
import type { Report } from './report.js'

const MESSAGES = Number(process.env.LANGO_BENCH_MESSAGES ?? 100_000)
const QUESTIONS = 200
const APPENDS = 512
/** Messages that wait before they are indexed together, as in a runtime. */
const INDEXED_TOGETHER = 128

const TURNS = 40

export async function benchRecall(report: Report): Promise<void> {
  for (const kind of ['sqlite', 'postgres']) await withStore(kind, store => benchTurn(report, kind, store))
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

/** Turns with and without memory, in sessions whose history is over the budget; what is done beside the runs included. */
async function benchTurn(report: Report, kind: string, store: MemoryCapableStore): Promise<void> {
  report.progress(`${kind}: turns with memory …`)
  const script = new ScriptedProvider(() => ({ text: 'It is in the second drawer. '.repeat(8) }), {
    id: 'script',
  })
  let session = 0
  const turns = (history: { maxMessageTokenBudget: number; memory?: object }) => async () => {
    const runtime = await createRuntime({
      store,
      providers: { script },
      agent: { model: 'script/any' },
      history,
    })
    const sessionId = `turns-${session++}`
    const key = { appName: 'lango', userId: 'user', sessionId }
    await store.createSession(key)
    await store.appendMessages(
      key,
      Array.from({ length: 200 }, (_, index) => message(index)),
    )
    await runtime.runAndCollect({ sessionId, text: 'Where is the key that I put away last week?' })
    const started = performance.now()
    for (let turn = 0; turn < TURNS; turn++)
      await runtime.runAndCollect({ sessionId, text: 'Where is the key that I put away last week?' })
    await runtime.close()
    return (performance.now() - started) / TURNS
  }
  const limit = { maxMessageTokenBudget: 8000 }
  const { ours, peer } = await interleaved(turns({ ...limit, memory: {} }), turns(limit))
  report.atMost(`${kind}, a turn with memory on`, 'ms', ours, peer, 1.3)
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
    await store.appendMessages(
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

/** A name, a month and five words; every fifth question has a word that is misspelt. */
function question(index: number): string {
  const random = randomFrom(1_000_000 + index)
  const words = Array.from({ length: 5 }, () => word(random))
  if (index % 5 === 0) words.push(`${word(random)}x`)
  return `What about Ann and ${words.join(' ')} in March?`
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
