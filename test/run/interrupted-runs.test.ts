// A run may end at any event, by an abort, by a consumer that leaves, or by a killed process. Afterwards the
// session takes the next message, on every model.
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { RunEvent } from '../../src/run/run-event.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { openStore } from '../../src/store/open-store.js'
import { runScript } from '../support/child.js'
import { gapsIn } from '../support/event-numbers.js'
import { type EveryProfile, startEveryProfile } from '../support/every-profile.js'
import { expireLeases } from '../support/expire-leases.js'
import { multiToolProvider } from '../support/multi-tool-play.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { LONG } from '../support/tiers.js'
import { saveTool, searchTool } from '../support/tools.js'

/** The events of the run without an interruption. */
const EVENTS = [
  'run-start',
  'reasoning-delta',
  'text-delta',
  'tool-call',
  'tool-call',
  'tool-result',
  'tool-result',
  'tool-call',
  'tool-result',
  'tool-call',
  'tool-result',
  'text-delta',
  'text-delta',
  'text-delta',
  'usage',
  'run-finish',
]
/** The last answer is stored with the end of the run: what is handed out with it comes after that end. */
const LAST_WRITE = EVENTS.length - 2
const INDEXES = EVENTS.map((_, index) => index)
/** The first event of each kind. */
const KINDS = INDEXES.filter(index => EVENTS.indexOf(EVENTS[index] ?? '') === index)
/** Before the first write of an answer, in an answer, in a call, and after the end. */
const SOME = KINDS.filter(index =>
  ['run-start', 'text-delta', 'tool-call', 'run-finish'].includes(EVENTS[index] ?? ''),
)
const except = (indexes: readonly number[]) => INDEXES.filter(index => !indexes.includes(index))

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

test('the run that these tests interrupt has the expected events', async () => {
  const runtime = await playRuntime()
  const events: RunEvent[] = []
  for await (const event of runtime.run({ ...key, text: 'Look it up.' })) events.push(event)
  expect(events.map(event => event.type)).toEqual(EVENTS)
  expect(gapsIn(events)).toEqual([])
  await runtime.close()
})

const kindOf = (index: number) => [EVENTS[index], index] as const

async function expectNextMessageAfterAbort(index: number): Promise<void> {
  const runtime = await playRuntime()
  const abort = new AbortController()
  const events: RunEvent[] = []
  for await (const event of runtime.run({ ...key, text: 'Look it up.', signal: abort.signal })) {
    events.push(event)
    if (events.length - 1 === index) abort.abort()
  }
  const wasOver = index >= LAST_WRITE
  expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: wasOver ? 'stop' : 'aborted' })
  await everyProfile.expectNextMessageWorks(runtime.store, key)
  await runtime.close()
}

const ABORTED = 'after a run was aborted at its %s (event %i), the next message works on every model'
test.each(SOME.map(kindOf))(ABORTED, (_kind, index) => expectNextMessageAfterAbort(index))
test.each(except(SOME).map(kindOf))(ABORTED, LONG, (_kind, index) => expectNextMessageAfterAbort(index))

async function expectNextMessageAfterBreak(index: number): Promise<void> {
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
}

const LEFT = 'after its reader left a run at its %s (event %i), the next message works on every model'
test.each(SOME.map(kindOf))(LEFT, (_kind, index) => expectNextMessageAfterBreak(index))
test.each(except(SOME).map(kindOf))(LEFT, LONG, (_kind, index) => expectNextMessageAfterBreak(index))

async function expectNextMessageAfterKill(index: number): Promise<void> {
  const url = `sqlite:${join(await temporaryFolder(), 'killed.db')}`
  const child = runScript('run-and-die.ts', [url, 's', String(index)])
  const { signal } = await child.ended
  expect(signal, child.errors()).toBe('SIGKILL')
  expireLeases(url)
  const store = await openStore(url)
  const lease = await store.acquireLease(key, { waitMs: 60_000 })
  await lease.release()
  await everyProfile.expectNextMessageWorks(store, key)
  await store.close()
}

const KILLED = 'after its process was killed at its %s (event %i), the next message works on every model'
test.each(KINDS.map(kindOf))(KILLED, (_kind, index) => expectNextMessageAfterKill(index))
test.each(except(KINDS).map(kindOf))(KILLED, LONG, (_kind, index) => expectNextMessageAfterKill(index))
