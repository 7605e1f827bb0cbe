// Text reaches followers in the process of its run before it is stored; every other event after.
import { expect, onTestFinished, test, vi } from 'vitest'
import type { RunEvent } from '../../src/run/run-event.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import type { SessionStore } from '../../src/session/session-store.js'
import { openStore } from '../../src/store/open-store.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { applyRunEvent, newRunTranscript } from '../../src/transcript/from-events.js'
import { runScript } from '../support/child.js'
import { gapsIn, textOf } from '../support/event-numbers.js'
import { expireLeases } from '../support/expire-leases.js'
import { faultyStore } from '../support/faulty-store.js'
import { halfAnswer } from '../support/half-answer.js'
import { gate } from '../support/paced-model.js'
import { temporaryFolder } from '../support/temporary-folder.js'

const RUN = '6f9b2a52-0a0e-4c6b-9d6a-3a1f0c7d1e11'
const AGENT = { name: 'root', model: 'play/m' }

async function open(store: SessionStore | string, provider = halfAnswer()) {
  const runtime = await createRuntime({ store, providers: { play: provider }, agent: AGENT })
  onTestFinished(() => runtime.close())
  return runtime
}

/** A store that completes no step before `letPass`, and says how many it has completed. */
async function slowStore() {
  const { passed, open: letPass } = gate()
  const steps = { stored: 0 }
  const store = faultyStore(await openStore('memory:'), {
    runs: {
      saveStep: async (real, step) => {
        await passed
        const saved = await real(step)
        steps.stored += 1
        return saved
      },
    },
  })
  return { store, steps, letPass }
}

test('a delta is handed out while the write before it is under way, and stored after it', async () => {
  const { store, steps, letPass } = await slowStore()
  const { passed, open: goOn } = gate()
  const runtime = await open(store, halfAnswer(passed))
  await runtime.start({ sessionId: 's', text: 'Go.', runId: RUN })
  const seen: RunEvent[] = []
  for await (const event of runtime.follow(RUN)) {
    seen.push(event)
    if (textOf(seen) !== 'The ans') continue
    expect(steps.stored).toBe(0)
    expect(await store.runs.readEvents(RUN, { afterSeq: 1 })).toEqual([])
    letPass()
    goOn()
  }
  expect(seen.at(-1)).toMatchObject({ type: 'run-finish', text: 'The answer.' })
  expect(gapsIn(seen)).toEqual([])
})

test('the end of a run is not handed out before it is stored', async () => {
  const { store, steps, letPass } = await slowStore()
  const runtime = await open(store, halfAnswer(Promise.resolve()))
  await runtime.start({ sessionId: 's', text: 'Go.', runId: RUN })
  for await (const event of runtime.follow(RUN)) {
    if (event.type === 'text-delta') letPass()
    if (event.type === 'run-finish') expect(steps.stored).toBeGreaterThan(0)
  }
})

test('an answer in 150 pieces is three rows: without the timer that stores text while it streams, its text is one', async () => {
  const store = await openStore('memory:')
  const deltas = Array.from({ length: 150 }, (_, index) => `word${index} `)
  const runtime = await open(store, new ScriptedProvider([{ deltas }], { id: 'play' }))
  vi.useFakeTimers({ toFake: ['setTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  await runtime.runAndCollect({ sessionId: 's', text: 'Go.', runId: RUN })
  const stored = (await store.runs.readEvents(RUN)) as unknown as RunEvent[]
  expect(stored.map(({ type }) => type)).toEqual(['run-start', 'text-delta', 'run-finish'])
  expect(textOf(stored)).toBe(deltas.join(''))
})

test('text that was read and not stored when the process died is taken back, and the answer comes once', async () => {
  const url = `sqlite:${await temporaryFolder()}/lango.db`
  const child = runScript('say-and-die.ts', [url, RUN])
  expect(await child.ended, child.errors()).toMatchObject({ signal: 'SIGKILL' })
  const read = child.lines.map(line => JSON.parse(line) as RunEvent)
  expect(textOf(read)).toBe('The ans')
  const store = await openStore(url)
  expect((await store.runs.readEvents(RUN)).map(({ type }) => type)).toEqual(['run-start'])
  await store.close()
  expireLeases(url)
  const runtime = await open(url, halfAnswer(Promise.resolve()))
  await runtime.ready()
  const afterSeq = read.at(-1)?.seq ?? 0
  const rest: RunEvent[] = []
  for await (const event of runtime.follow(RUN, { afterSeq })) rest.push(event)
  expect(rest.slice(0, 2)).toMatchObject([
    { type: 'run-resumed', seq: 2 ** 24, attempt: 2 },
    { type: 'step-restart', author: 'root' },
  ])
  expect(gapsIn([...read, ...rest])).toEqual([])
  const shown = [...read, ...rest].reduce(
    (run, event) => applyRunEvent(run, event),
    newRunTranscript({ runId: RUN, afterSeq: 0 }),
  )
  const texts = shown.items.flatMap(item => (item.kind === 'text' ? item.text : []))
  expect(texts).toEqual(['The answer.'])
})
