import { copyFile, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { expect, test, vi } from 'vitest'
import { openStore } from '../../src/store/open-store.js'
import { runScript } from '../support/child.js'
import { expireLeases } from '../support/expire-leases.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { lango, langoProcess, type Outcome } from './lango.js'

// Starting processes takes long on a busy machine.
vi.setConfig({ testTimeout: 120_000 })

const KEY = { appName: 'lango', userId: 'ann', sessionId: 'one' }

async function fill(url: string, count: number): Promise<void> {
  const store = await openStore(url)
  await store.createSession(KEY)
  for (let index = 0; index < count; index++)
    await store.appendMessage(KEY, { role: 'user', content: `secret ${index}`, timestamp: 1 })
  await store.close()
}

/** Read by a process of its own: the driver keeps a file open for a while after closing it. */
async function contents(cwd: string, file: string): Promise<string[]> {
  const args = [
    'sessions',
    'show',
    'one',
    '--user',
    'ann',
    '--raw',
    '--limit',
    '100000',
    '--store',
    `sqlite:${file}`,
  ]
  const { stdout } = await lango(args, { cwd })
  const lines = stdout.split('\n').filter(line => line !== '')
  return lines.map(line => (JSON.parse(line) as { content: string }).content)
}

test('a backup taken under load restores to what was acknowledged before it began', async () => {
  const cwd = await temporaryFolder()
  const url = `sqlite:${join(cwd, 'lango.db')}`
  await fill(url, 1)
  const writer = runScript('store-child.ts', ['append', url, 'lango', 'one', '5000', 'w'])
  await writer.untilLines(50)
  const acknowledged = writer.lines.length
  const made = await lango(['backup', 'copy.db', '--json'], { cwd })
  const afterwards = writer.lines.length
  writer.process.kill('SIGKILL')
  await writer.ended
  expect(made).toMatchObject({ code: 0, stderr: expect.stringContaining('Copied 100 %') })
  const receipt = JSON.parse(made.stdout) as { messages: number; path: string }
  expect(receipt.path).toBe(join(cwd, 'copy.db'))
  // Everything acknowledged before, in order and without gaps, and nothing that was not yet sent.
  const expected = ['secret 0', ...Array.from({ length: receipt.messages - 1 }, (_, index) => `w ${index}`)]
  expect(receipt.messages - 1).toBeGreaterThanOrEqual(acknowledged)
  expect(receipt.messages - 1).toBeLessThanOrEqual(afterwards + 1)
  const restored = await lango(['restore', 'copy.db', '--store', 'sqlite:drill.db', '--yes'], { cwd })
  expect(restored).toMatchObject({ code: 0, stdout: expect.stringContaining('Restored 1 session') })
  expect(await contents(cwd, 'drill.db')).toEqual(expected)
  expect((await readdir(cwd)).filter(name => name.includes('part'))).toEqual([])
})

test('a backup overwrites nothing without --force, and is one file', async () => {
  const cwd = await temporaryFolder()
  await fill(`sqlite:${join(cwd, 'lango.db')}`, 2)
  await writeFile(join(cwd, 'copy.db'), 'mine')
  const refused = await lango(['backup', 'copy.db'], { cwd })
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('--force') })
  expect(await readFile(join(cwd, 'copy.db'), 'utf8')).toBe('mine')
  expect((await lango(['backup', 'copy.db', '--force'], { cwd })).code).toBe(0)
  expect((await readdir(cwd)).filter(name => name.startsWith('copy'))).toEqual(['copy.db'])
  const itself = await lango(['backup', 'lango.db', '--force'], { cwd })
  expect(itself).toMatchObject({ code: 1, stderr: expect.stringContaining('the database itself') })
  const absent = await lango(['backup', 'x.db', '--store', 'sqlite:none.db'], { cwd })
  expect(absent).toMatchObject({ code: 1, stderr: expect.stringContaining('nothing to back up') })
})

/** In a process of its own: the driver keeps a connection open until it is collected, and a restore needs the file alone. */
function restored(args: readonly string[], options: { cwd: string }): Promise<Outcome> {
  return langoProcess(['restore', ...args], options)
}

test('a restore keeps the earlier database, and refuses a database in use and what is no backup', async () => {
  const cwd = await temporaryFolder()
  const url = `sqlite:${join(cwd, 'lango.db')}`
  await fill(`sqlite:${join(cwd, 'seed.db')}`, 2)
  await lango(['backup', 'copy.db', '--store', 'sqlite:seed.db'], { cwd })
  const first = await restored(['copy.db', '--yes'], { cwd })
  expect(first).toMatchObject({ code: 0, stdout: expect.not.stringContaining('earlier') })
  await runScript('store-child.ts', ['append', url, 'lango', 'one', '1', 'later']).ended
  const holder = runScript('store-child.ts', ['hold', url, 'lango', 'one', '600000'])
  await holder.untilLines(1)
  const busy = await restored(['copy.db', '--yes'], { cwd })
  expect(busy).toMatchObject({ code: 1, stderr: expect.stringContaining('open in another process') })
  holder.process.kill('SIGKILL')
  await holder.ended
  const leased = await restored(['copy.db', '--yes'], { cwd })
  expect(leased).toMatchObject({ code: 1, stderr: expect.stringContaining('held a session') })
  expireLeases(url)
  const unsure = await restored(['copy.db'], { cwd })
  expect(unsure).toMatchObject({ code: 1, stderr: expect.stringContaining('--yes') })
  await writeFile(join(cwd, 'text.db'), 'no database')
  const text = await restored(['text.db', '--yes'], { cwd })
  expect(text).toMatchObject({ code: 1, stderr: expect.stringContaining('not a usable copy') })
  const foreign = new DatabaseSync(join(cwd, 'foreign.db'))
  foreign.exec('CREATE TABLE t (a)')
  foreign.close()
  const other = await restored(['foreign.db', '--yes'], { cwd })
  expect(other).toMatchObject({ code: 1, stderr: expect.stringContaining('not one of Lango') })
  await copyFile(join(cwd, 'copy.db'), join(cwd, 'newer.db'))
  const newer = new DatabaseSync(join(cwd, 'newer.db'))
  newer.exec("INSERT INTO lango_schema (version, digest) VALUES (9999, 'later')")
  newer.close()
  const unknown = await restored(['newer.db', '--yes'], { cwd })
  expect(unknown).toMatchObject({ code: 1, stderr: expect.stringContaining('schema version 9999') })
  expect(await contents(cwd, 'lango.db')).toEqual(['secret 0', 'secret 1', 'later 0'])
  const done = await restored(['copy.db', '--yes', '--json'], { cwd })
  expect(done).toMatchObject({ code: 0, stderr: expect.stringContaining('Copied 100 %') })
  const { kept } = JSON.parse(done.stdout) as { kept: string }
  expect(await contents(cwd, 'lango.db')).toEqual(['secret 0', 'secret 1'])
  expect(await contents(cwd, kept)).toEqual(['secret 0', 'secret 1', 'later 0'])
})

test('a database of a development version is neither opened, copied nor restored, and a backup replaces it', async () => {
  const cwd = await temporaryFolder()
  for (const name of ['seed.db', 'lango.db']) await fill(`sqlite:${join(cwd, name)}`, 1)
  await lango(['backup', 'copy.db', '--store', 'sqlite:seed.db'], { cwd })
  const database = new DatabaseSync(join(cwd, 'lango.db'))
  database.exec("UPDATE lango_schema SET digest = 'other'")
  database.close()
  await copyFile(join(cwd, 'lango.db'), join(cwd, 'early.db'))
  await writeFile(join(cwd, 'mine.db'), 'mine')
  const refusals = await Promise.all([
    lango(['sessions', 'list'], { cwd }),
    lango(['backup', 'mine.db', '--force'], { cwd }),
    restored(['early.db', '--yes', '--store', 'sqlite:seed.db'], { cwd }),
  ])
  for (const refused of refusals)
    expect(refused).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('written by a development version of Lango before its first release'),
    })
  expect(await readFile(join(cwd, 'mine.db'), 'utf8')).toBe('mine')
  expect(await contents(cwd, 'seed.db')).toEqual(['secret 0'])
  const early = await readFile(join(cwd, 'early.db'))
  expect(await readFile(join(cwd, 'lango.db'))).toEqual(early)
  const { code, stdout } = await restored(['copy.db', '--yes', '--json'], { cwd })
  expect(code).toBe(0)
  expect(await readFile((JSON.parse(stdout) as { kept: string }).kept)).toEqual(early)
  expect(await contents(cwd, 'lango.db')).toEqual(['secret 0'])
})

test('lango backup and restore of PostgreSQL print what to run, without the password, and exit with 3', async () => {
  const cwd = await temporaryFolder()
  const store = 'postgres://ann:hush@db.example:5432/lango?pool=4&sslmode=require'
  const dump = await lango(['backup', 'my copy', '--store', store], { cwd })
  expect(dump).toMatchObject({
    code: 3,
    stdout:
      "pg_dump --format=custom --file='my copy' 'postgres://ann@db.example:5432/lango?sslmode=require'\n",
  })
  const load = await lango(['restore', 'copy', '--store', store], { cwd })
  expect(load.code).toBe(3)
  expect(load.stdout).toMatch(/^pg_restore .* copy\n$/)
  expect(dump.stdout + dump.stderr + load.stdout + load.stderr).not.toContain('hush')
})

test('lango erase needs a user and --yes, and prints a receipt', async () => {
  const cwd = await temporaryFolder()
  await fill(`sqlite:${join(cwd, 'lango.db')}`, 3)
  expect(await lango(['erase', '--yes'], { cwd })).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('--user'),
  })
  expect(await lango(['erase', '--user', 'ann'], { cwd })).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('--yes'),
  })
  expect(await contents(cwd, 'lango.db')).toHaveLength(3)
  const erased = await lango(['erase', '--user', 'ann', '--yes', '--json'], { cwd })
  expect(erased.code).toBe(0)
  expect(JSON.parse(erased.stdout)).toMatchObject({ sessions: 1, messages: 3, residue: 'none' })
  expect((await readFile(join(cwd, 'lango.db'))).includes('secret')).toBe(false)
  const again = await lango(['erase', '--user', 'ann', '--yes'], { cwd })
  expect(again.stdout).toContain('0 sessions, 0 messages')
})
