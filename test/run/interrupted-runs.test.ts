// A run may end at any event, by an abort, by a consumer that leaves, or by a killed process. Afterwards the
// session takes the next message, on every model.
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { RunEvent } from '../../src/run/run-event.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { openStore } from '../../src/store/open-store.js'
import { runScript } from '../support/child.js'
import { type EveryProfile, startEveryProfile } from '../support/every-profile.js'
import { expireLeases } from '../support/expire-leases.js'
import { multiToolProvider } from '../support/multi-tool-play.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { saveTool, searchTool } from '../support/tools.js'

/** run-start, thought, text, two calls, two results, call, result, call, result, three deltas, usage, finish. */
const EVENTS = 16
/** The last answer is stored with the end of the run: what is handed out with it comes after that end. */
const LAST_WRITE = EVENTS - 2
const INDEXES = Array.from({ length: EVENTS }, (_, index) => index)

let everyProfile: EveryProfile
beforeAll(async () => {
  everyProfile = await startEveryProfile()
})
afterAll(() => everyProfile.close())

async function playRuntime() {
  return createRuntime({
    store: 'memory:',
    providers: { play: multiToolProvider() },
    agent: { name: 'root', model: 'play/m', tools: [searchTool, saveTool] },
  })
}

const key = { appName: 'lango', userId: 'user', sessionId: 's' }

test('the run that is interrupted below has as many events as we think', async () => {
  const runtime = await playRuntime()
  const events: RunEvent[] = []
  for await (const event of runtime.run({ ...key, text: 'Look it up.' })) events.push(event)
  expect(events.map(event => event.type)).toHaveLength(EVENTS)
  expect(events.map(event => event.seq)).toEqual(INDEXES.map(index => index + 1))
  await runtime.close()
})

describe('aborted', () => {
  test.each(INDEXES)('by its signal at event %i', async index => {
    const runtime = await playRuntime()
    const abort = new AbortController()
    const events: RunEvent[] = []
    for await (const event of runtime.run({ ...key, text: 'Look it up.', signal: abort.signal })) {
      events.push(event)
      if (events.length - 1 === index) abort.abort()
    }
    const last = events.at(-1)
    const wasOver = index >= LAST_WRITE
    expect(last).toMatchObject({ type: 'run-finish', finishReason: wasOver ? 'stop' : 'aborted' })
    await everyProfile.expectNextMessageWorks(runtime.store, key)
    await runtime.close()
  })

  test.each(INDEXES)('by leaving the loop at event %i', async index => {
    const runtime = await playRuntime()
    let seen = 0
    let runId = ''
    for await (const event of runtime.run({ ...key, text: 'Look it up.' })) {
      runId = event.runId
      if (seen === index) break
      seen += 1
    }
    const recorded = await runtime.store.runs.readEvents(runId)
    expect(recorded.at(-1)).toMatchObject({
      type: 'run-finish',
      finishReason: index >= LAST_WRITE ? 'stop' : 'aborted',
    })
    await everyProfile.expectNextMessageWorks(runtime.store, key)
    await runtime.close()
  })
})

test('killed at every event, and the next message simply works', { timeout: 240_000 }, async () => {
  const folder = await temporaryFolder()
  const url = (index: number) => `sqlite:${join(folder, `killed-${index}.db`)}`
  const children: Promise<unknown>[] = []
  // Two at a time: starting ADK is work, and there are two cores.
  for (const lane of [0, 1]) {
    children.push(
      (async () => {
        for (const index of INDEXES.filter(each => each % 2 === lane)) {
          const child = runScript('run-and-die.ts', [url(index), 's', String(index)])
          const { signal } = await child.ended
          expect(signal, child.errors()).toBe('SIGKILL')
          expireLeases(url(index))
        }
      })(),
    )
  }
  await Promise.all(children)
  await Promise.all(
    INDEXES.map(async index => {
      const store = await openStore(url(index))
      const lease = await store.acquireLease(key, { waitMs: 60_000 })
      await lease.release()
      await everyProfile.expectNextMessageWorks(store, key)
      await store.close()
    }),
  )
})
