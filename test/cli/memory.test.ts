import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { openStore } from '../../src/store/open-store.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { lango } from './lango.js'

// Starting processes takes long on a busy machine.
vi.setConfig({ testTimeout: 120_000 })

test('lango memory lists, shows, forgets, rebuilds and exports notes', async () => {
  const folder = await temporaryFolder()
  const url = `sqlite:${join(folder, 'lango.db')}`
  const call = (...words: string[]) => lango(['memory', ...words, '--store', url], { cwd: folder })
  const key = { appName: 'lango', userId: 'user', sessionId: 's1' }
  const store = await openStore(url)
  await store.createSession(key)
  for (const content of ['The roof leaks.', 'Repair it.'])
    await store.appendMessage(key, { role: 'user', author: 'user', content, timestamp: 1000 })
  const note = (text: string, fromSeq: number) => ({
    ...{
      text,
      fromSeq,
      toSeq: fromSeq,
      time: 1000,
      kind: 'fact' as const,
      priority: 1 as const,
      origin: 'a/b',
    },
  })
  await store.memory.observe(key, { observations: [note('A roof leaks', 1), note('Repair wanted', 2)] })
  await store.memory.observe(key, { supersedes: [1], observations: [note('The roof leaks', 1)] })
  await store.close()
  const list = await call('list', 's1')
  expect(list.stdout).toBe(
    '[2] fact (message 2, by a/b): Repair wanted\n[3] fact (message 1, by a/b): The roof leaks\n',
  )
  expect(JSON.parse((await call('list', 's1', '--json')).stdout)).toMatchObject({
    totalMessages: 2,
    indexedSeq: 0,
  })
  const shown = await call('show', 's1', '3')
  expect(shown.stdout).toContain('replaces [1] fact (message 1, by a/b, replaced by 3): A roof leaks')
  expect(shown.stdout).toContain('  1  1 January 1970 user: The roof leaks.')
  expect((await call('show', 's1', '9')).stderr).toContain('has no note 9')
  expect((await call('forget', 's1')).stderr).toContain('--all')
  expect((await call('forget', 's1', '3')).stdout).toBe('2 notes forgotten.\n')
  expect(
    (await call('export', 's1')).stdout
      .trim()
      .split('\n')
      .map(line => JSON.parse(line).text),
  ).toEqual(['', 'Repair wanted', ''])
  expect((await call('rebuild', 's1')).stdout).toContain('2 messages indexed.')
  expect((await call('list', 's1')).stderr).toContain('Nothing is noted about session "s1".')
})
