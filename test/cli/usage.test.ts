import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { openStore } from '../../src/store/open-store.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { lango } from './lango.js'

// Starting processes takes long on a busy machine.
vi.setConfig({ testTimeout: 120_000 })

test('lango usage prints a table, JSON and CSV of what was counted, and refuses a wrong day and a wrong budget', async () => {
  const folder = await temporaryFolder()
  const url = `sqlite:${join(folder, 'lango.db')}`
  const call = (...words: string[]) => lango([...words, '--store', url], { cwd: folder })
  const store = await openStore(url)
  const key = { appName: 'lango', userId: '=ann,1', sessionId: 's1' }
  await store.createSession(key)
  const tokens = { inputTokens: 1000, outputTokens: 100, cachedInputTokens: 10, cacheWriteTokens: 20 }
  const usage = { ...tokens, reasoningTokens: 5, totalTokens: 1100, cost: 0.25 }
  await store.runs.appendEvents(key, 'r', [
    { seq: 1, type: 'run-start' },
    { seq: 2, type: 'usage', author: 'a', model: 'x/m', usage },
    { seq: 3, type: 'usage', author: 'a', model: 'demo/demo', usage: { ...usage, cost: 0 } },
  ])
  await store.close()
  const table = await call('usage')
  expect(table.stdout).toMatch(/x\/m .*\$0\.2500$/m)
  expect(table.stdout).toMatch(/demo\/demo .* free$/m)
  expect(table.stdout).toContain('Total: $0.2500')
  const json = JSON.parse((await call('usage', '--json')).stdout)
  expect(json).toMatchObject({
    costUsd: 0.25,
    lines: [
      { model: 'demo/demo', usage: { cost: 0 } },
      { model: 'x/m', calls: 1, usage },
    ],
  })
  const [head, , row] = (await call('usage', '--csv')).stdout.split('\n')
  expect(head).toContain('cost_usd')
  expect(row).toContain(`,"'=ann,1",x/m,run,1,1000,10,20,100,5,0.25`)
  expect((await call('usage', '--from', 'monday')).code).toBe(1)
  const wrong = await call('run', '--budget', 'much', 'Hello')
  expect(wrong.code).not.toBe(0)
  expect(wrong.stderr).toContain('--budget needs a number of dollars')
})
