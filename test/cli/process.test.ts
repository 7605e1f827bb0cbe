// Facts that need a real process: exit codes, pipes, and the variables that `.env` adds to the environment.
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

test('the variables that a configuration in code sets count for the model, the app and the store', async () => {
  const cwd = await temporaryFolder()
  await writeFile(join(cwd, '.env.local'), 'GEMINI_API_KEY=x\nLANGO_APP=shop\nLANGO_STORE=sqlite:./shop.db\n')
  await writeFile(
    join(cwd, 'lango.config.mjs'),
    "process.loadEnvFile('.env.local')\nexport default { app: 'other' }\n",
  )
  const checked = await langoProcess(['config', 'check'], { cwd })
  expect(checked).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/gemini\/\S+ \(GEMINI_API_KEY is set\)/),
  })
  const shown = await langoProcess(['config', 'show', '--json'], { cwd })
  expect(JSON.parse(shown.stdout)).toMatchObject({ config: { app: 'shop', store: 'sqlite:./shop.db' } })
  const listed = await langoProcess(['sessions', 'list'], { cwd })
  expect(listed).toMatchObject({ code: 0, stderr: 'No sessions in the app "shop".\n' })
})

test('lango lint reads and repairs a file with an absolute path when the working folder was deleted', async () => {
  const cwd = await temporaryFolder()
  const file = join(cwd, 'request.json')
  const contents = [{ role: 'robot', parts: [{ text: 'hi' }] }]
  await writeFile(file, JSON.stringify({ contents }))
  const leave =
    "import fs from 'node:fs'; fs.mkdirSync('gone'); process.chdir('gone'); fs.rmdirSync('../gone')"
  const imports = [`data:text/javascript,${encodeURIComponent(leave)}`]
  const linted = await langoProcess(['lint', file], { cwd, imports })
  expect(linted).toMatchObject({ code: 3, stdout: expect.stringContaining('Gemini request'), stderr: '' })
  const output = join(cwd, 'repaired.json')
  const repaired = await langoProcess(['lint', file, '--output', output], { cwd, imports })
  expect(repaired).toMatchObject({ stdout: expect.stringContaining(`Wrote ${output}.`), stderr: '' })
})
