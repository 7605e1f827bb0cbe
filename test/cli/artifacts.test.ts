import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { FileArtifactService, LogLevel, setLogLevel } from '@google/adk'
import { expect, test } from 'vitest'
import { openStore } from '../../src/store/open-store.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { lango } from './lango.js'

setLogLevel(LogLevel.ERROR)

const KEY = { appName: 'lango', userId: 'user', sessionId: 's1' }

test('artifacts are exported with their session, and imported again', async () => {
  const cwd = await temporaryFolder()
  const store = await openStore(`sqlite:${join(cwd, 'one.db')}`)
  for (const sessionId of ['s1', 's2']) {
    await store.createSession({ ...KEY, sessionId })
    await store.appendMessage({ ...KEY, sessionId }, { role: 'user', content: 'hi', timestamp: 1 })
  }
  for (const body of ['one', 'x'.repeat(600_000), 'a\0\ud800'])
    await store.artifacts.save({ ...KEY, name: 'plan' }, { header: { part: {}, field: 'text' }, body })
  await store.artifacts.save({ ...KEY, name: 'user:me' }, { header: {}, body: 'mine' })
  await store.close()
  const out = await lango(['sessions', 'export', '--all', '-o', 'all.jsonl', '--store', 'sqlite:./one.db'], {
    cwd,
  })
  expect(out.code).toBe(0)
  const read = await lango(['sessions', 'import', 'all.jsonl', '--store', 'sqlite:./two.db'], { cwd })
  expect(read).toMatchObject({ code: 0 })
  const again = await lango(['lint', 'all.jsonl'], { cwd })
  expect(again.code).toBe(0)
  const copy = await openStore(`sqlite:${join(cwd, 'two.db')}`)
  expect(await copy.artifacts.list(KEY)).toEqual(['plan', 'user:me'])
  expect(await copy.artifacts.versions({ ...KEY, name: 'plan' })).toHaveLength(3)
  expect((await copy.artifacts.load({ ...KEY, name: 'plan' }))?.body).toBe('a\0\ud800')
  expect((await copy.artifacts.load({ ...KEY, name: 'plan' }, 1))?.body.length).toBe(600_000)
  expect(await copy.artifacts.versions({ ...KEY, name: 'user:me' })).toHaveLength(1)
  expect(await copy.artifacts.list({ ...KEY, sessionId: 's2' })).toEqual(['user:me'])
  await copy.close()
})

test('artifacts in a folder are deleted with their session and with their user, who gets a receipt', async () => {
  const cwd = await temporaryFolder()
  await writeFile(
    join(cwd, 'lango.config.json'),
    JSON.stringify({ store: 'sqlite:./a.db', artifacts: './files' }),
  )
  const store = await openStore(`sqlite:${join(cwd, 'a.db')}`)
  for (const sessionId of ['s1', 's2']) await store.createSession({ ...KEY, sessionId })
  await store.close()
  const service = new FileArtifactService(join(cwd, 'files', 'lango'))
  for (const sessionId of ['s1', 's2'])
    for (const filename of ['plan.txt', 'plan.txt', 'user:me.txt'])
      await service.saveArtifact({ ...KEY, sessionId, filename, artifact: { text: 'mine' } })
  const user = join(cwd, 'files', 'lango', 'users', 'user')
  const deleted = await lango(['sessions', 'delete', 's1', '--yes'], { cwd })
  expect(deleted, deleted.stderr).toMatchObject({ code: 0 })
  expect([existsSync(join(user, 'sessions', 's1')), existsSync(join(user, 'sessions', 's2'))]).toEqual([
    false,
    true,
  ])
  const erased = await lango(['erase', '--user', 'user', '--yes', '--json'], { cwd })
  expect(erased, erased.stderr).toMatchObject({ code: 0 })
  // Two versions of the plan, and two of the file of the user.
  expect(JSON.parse(erased.stdout)).toMatchObject({ artifacts: 4 })
  expect(existsSync(user)).toBe(false)
})
