/**
 * The estimate of tokens: how far it is from o200k on the recorded samples, and what it adds to the cost of an append,
 * against counting bytes.
 *
 *     npm run bench -- tokens [--json]
 */
import { readFileSync } from 'node:fs'
import type { Message } from '../src/session/message.js'
import { countMessageTokens, estimateTokens, utf8Length } from '../src/session/tokens.js'
import { openStore } from '../src/store/open-store.js'
import { Report } from './support/report.js'

const report = new Report('tokens')
const samples = JSON.parse(
  readFileSync(new URL('../test/fixtures/token-samples.json', import.meta.url), 'utf8'),
) as { name: string; o200k: number; text: string }[]
const RUNS = new Set(['spaces', 'dashes', 'one letter'])

let lowest = 1
for (const { name, o200k, text } of samples) {
  if (RUNS.has(name)) continue
  const estimate = estimateTokens(text)
  report.atMost(name, 'tokens', estimate, o200k, 1.3)
  lowest = Math.min(lowest, estimate / o200k)
}
report.share('the lowest of all', lowest * 100, 80)

const english = samples.find(({ name }) => name === 'english')?.text ?? ''
const json = samples.find(({ name }) => name === 'json compact')?.text ?? ''
for (const [label, text] of [
  ['200 characters', english.slice(0, 200)],
  ['4,000 characters of JSON', json.repeat(3).slice(0, 4000)],
  ['200,000 characters of JSON', json.repeat(130).slice(0, 200_000)],
] as const) {
  const message: Message = { role: 'user', author: 'user', content: text, timestamp: 1 }
  const append = await appending(message)
  const estimating = microseconds(() => countMessageTokens(message))
  const counting = microseconds(() => utf8Length(text))
  report.atMost(`append ${label}`, 'µs', append, append - estimating + counting, 2)
}

const texts = Array.from({ length: 200 }, (_, index) => `${index} ${json.slice(0, 600)}`)
const scanning = microseconds(() => texts.map(estimateTokens))
const writing = microseconds(() => JSON.stringify(texts))
report.atMost('estimate 200 messages against writing them as JSON', 'µs', scanning, writing)
report.finish()

function microseconds(work: () => unknown): number {
  const times: number[] = []
  for (let sample = 0; sample < 60; sample++) {
    const start = performance.now()
    for (let round = 0; round < 20; round++) work()
    times.push(((performance.now() - start) * 1000) / 20)
  }
  return times.sort((one, other) => one - other)[6] ?? 0
}

async function appending(message: Message): Promise<number> {
  const store = await openStore('memory:')
  const key = { appName: 'bench', userId: 'u', sessionId: 's' }
  await store.createSession(key)
  const times: number[] = []
  for (let index = 0; index < 600; index++) {
    const start = performance.now()
    await store.appendMessage(key, message)
    times.push((performance.now() - start) * 1000)
  }
  await store.close()
  return times.sort((one, other) => one - other)[60] ?? 0
}
