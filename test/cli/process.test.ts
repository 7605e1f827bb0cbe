// What only a process shows: its exit code, its pipes, and what `.env` adds to its environment.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../support/temporary-folder.js'
import { langoProcess } from './lango.js'

test('a process of lango run reads its prompt from a pipe, answers on stdout and exits with 0', async () => {
  const cwd = await temporaryFolder()
  const answered = await langoProcess(['run', '--quiet', '--model', 'demo'], { cwd, input: 'from a pipe\n' })
  expect(answered).toMatchObject({ code: 0, stdout: expect.stringContaining('from a pipe'), stderr: '' })
})

test('a process whose command fails exits with 1 and one line on stderr', async () => {
  const failed = await langoProcess(['run', 'hi', '--agent', 'nobody.ts'], { cwd: await temporaryFolder() })
  expect(failed).toEqual({
    code: 1,
    stdout: '',
    stderr: 'lango: Agent file nobody.ts does not exist. Check the path.\n',
  })
})

test('the variables of .env are added to the environment of the process, and replace none that it has', async () => {
  const cwd = await temporaryFolder()
  await writeFile(join(cwd, '.env'), 'SHOP=of-the-file\nBRANCH=of-the-file\n')
  const config = "export default { app: process.env.SHOP + ' ' + process.env.BRANCH }\n"
  await writeFile(join(cwd, 'lango.config.mjs'), config)
  const env = { SHOP: 'of-the-process' }
  const words = 'No sessions in the app "of-the-process of-the-file".\n'
  expect(await langoProcess(['sessions', 'list'], { cwd, env })).toMatchObject({ code: 0, stderr: words })
})
