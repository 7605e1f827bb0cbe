import { execFileSync } from 'node:child_process'
import { lstatSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../../test/support/temporary-folder.js'
import { AgentError } from '../errors.js'
import { intoFile } from './into-file.js'

test('intoFile writes a file that only its owner may read', async () => {
  const file = join(await temporaryFolder(), 'a.jsonl')
  await intoFile(file, async write => {
    await write('one\n')
    await write('two\n')
  })
  expect(await readFile(file, 'utf8')).toBe('one\ntwo\n')
  expect((await stat(file)).mode & 0o777).toBe(0o600)
})

test('intoFile leaves an existing file as it is when the work fails', async () => {
  const file = join(await temporaryFolder(), 'a.jsonl')
  await intoFile(file, write => write('before'))
  const failing = intoFile(file, async write => {
    await write('half')
    throw new AgentError('internal', 'gone')
  })
  await expect(failing).rejects.toThrow('gone')
  expect(await readFile(file, 'utf8')).toBe('before')
})

test('intoFile writes into a pipe and does not replace it by a file', async () => {
  const pipe = join(await temporaryFolder(), 'pipe')
  execFileSync('mkfifo', [pipe])
  const [read] = await Promise.all([readFile(pipe, 'utf8'), intoFile(pipe, write => write('through'))])
  expect(read).toBe('through')
  expect(lstatSync(pipe).isFIFO()).toBe(true)
})
