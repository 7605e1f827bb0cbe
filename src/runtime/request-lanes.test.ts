import { expect, test, vi } from 'vitest'
import { silentLogger } from '../logger.js'
import type { Refused } from '../provider/refused.js'
import type { RunScope } from '../run/run-scope.js'
import { openStore } from '../store/open-store.js'
import { CalibratedTokens, RequestLanes } from './request-lanes.js'

test('the token scale is learnt from what providers count, and another process knows it too', async () => {
  const store = await openStore('memory:')
  const tokens = new CalibratedTokens(store.calibration, silentLogger)
  expect(tokens.scale('m')).toBe(1)
  tokens.observe('m', 1000, 1300)
  expect(tokens.scale('m'), 'too little to go by').toBe(1)
  tokens.observe('m', 9000, 11_700)
  expect(tokens.scale('m')).toBeCloseTo(1.3)
  expect(tokens.scale('other')).toBe(1)
  // The store writes in order.
  await store.calibration.record('other', 1, 1)

  const later = new CalibratedTokens(store.calibration, silentLogger)
  await expect.poll(() => later.scale('m')).toBeCloseTo(1.3)
  await store.close()
})

test('the token scale is bounded, whatever is reported', () => {
  const store = { read: async () => undefined, record: async () => {} }
  const tokens = new CalibratedTokens(store, silentLogger)
  tokens.observe('dense', 10_000, 900_000)
  tokens.observe('thin', 1_000_000, 3_000)
  tokens.observe('odd', 0, 5)
  expect([tokens.scale('dense'), tokens.scale('thin'), tokens.scale('odd')]).toEqual([6, 0.5, 1])
})

test('ten requests in a script that the model counts four times as high are enough for the token scale', () => {
  const store = { read: async () => undefined, record: async () => {} }
  const tokens = new CalibratedTokens(store, silentLogger)
  for (let request = 0; request < 200; request++) tokens.observe('m', 5000, 5000)
  for (let request = 0; request < 10; request++) tokens.observe('m', 5000, 23_000)
  expect((5000 * tokens.scale('m')) / 23_000).toBeGreaterThanOrEqual(0.8)
  expect(tokens.scale('m')).toBeLessThanOrEqual(4.6)
})

test('a store that fails to keep the token scale does not fail a run', async () => {
  const debug = vi.fn()
  const refuse = async () => Promise.reject(new TypeError('no'))
  const tokens = new CalibratedTokens({ read: refuse, record: refuse }, { ...silentLogger, debug })
  tokens.observe('m', 10, 10)
  expect(tokens.scale('m')).toBe(1)
  await expect.poll(() => debug.mock.calls.length).toBe(2)
})

test('what one agent or run was refused, all agents and runs of the session know, and no other model', async () => {
  const store = await openStore('memory:')
  const lanes = new RequestLanes(store.runs, silentLogger)
  const key = { appName: 'a', userId: 'u', sessionId: 's' }
  const scopeOf = (runId: string) =>
    ({ key, runId, isResumed: false, countFrom: () => {} }) as unknown as RunScope
  const place = (agent: string) => ({ app: 'a', agent, branch: '' })
  const refused: Refused = { parts: [['digest', 'No.']], limits: 'documented' }
  const decided = {
    instruction: '',
    tools: [],
    notes: [],
    dropped: 0,
    head: [],
    shortened: [],
    omitted: [],
    broken: [],
  }
  const prefix = { system: { digest: '', tokens: 0 }, tools: { digest: '', tokens: 0 }, items: [] }
  await lanes.find(scopeOf('one'), place('root'), 'm')
  lanes.sent(scopeOf('one'), place('root'), 'm', { decided: { ...decided, refused }, prefix })
  expect((await lanes.find(scopeOf('one'), place('helper'), 'm')).refused).toEqual(refused)
  expect((await lanes.find(scopeOf('two'), place('root'), 'm')).refused).toEqual(refused)
  expect((await lanes.find(scopeOf('two'), place('root'), 'other')).refused).toBeUndefined()
  await store.close()
})
