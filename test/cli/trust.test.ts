import { mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { folderNeeds } from '../../src/config/folder-needs.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { TestTerminal } from '../support/terminal.js'
import { lango } from './lango.js'

interface Place {
  root: string
  cwd: string
  env: Record<string, string>
}

/** A folder of a stranger, and a list of trusted folders of its own. */
async function place(files: Record<string, string> = {}): Promise<Place> {
  const root = await temporaryFolder()
  const cwd = join(root, 'project')
  await mkdir(cwd)
  for (const [name, text] of Object.entries(files)) await writeFile(join(cwd, name), text)
  return { root, cwd, env: { LANGO_TRUST: '', LANGO_TRUST_FILE: join(root, 'trust.json') } }
}

function open({ cwd, env }: Place, args: readonly string[]): TestTerminal {
  const terminal = new TestTerminal({ cwd, env, args, columns: 160, rows: 50 })
  onTestFinished(() => terminal.kill())
  return terminal
}

const AGENT = "import { name } from './name.mjs'\nexport default { agent: { name } }\n"

test('lango asks on a terminal whether to trust a folder, stores a yes, and asks again with what changed', async () => {
  const here = await place({
    'lango.config.mjs': AGENT,
    'name.mjs': "export const name = 'first'\n",
    '.env': 'OPENAI_BASE_URL=http://127.0.0.1:9/v1\nOPENAI_API_KEY=sk-not-to-be-shown-12345\n',
  })
  const args = ['run', 'hi', '-m', 'demo/demo']
  const asked = open(here, args)
  await asked.waitFor('Trust it? [y/N]:')
  const shown = asked.all()
  expect(shown).toContain('/project is not trusted.')
  expect(shown).toMatch(/It would run:\n +lango\.config\.mjs\n +name\.mjs\n/)
  expect(shown).toMatch(
    /It would send keys or messages to:\n +\.env: OPENAI_BASE_URL = http:\/\/127\.0\.0\.1:9\/v1/,
  )
  expect(shown).toMatch(/It would set:\n +\.env: OPENAI_API_KEY = \(not shown\)/)
  expect(shown).not.toContain('not-to-be-shown')
  asked.type('y\r')
  expect(await asked.ended()).toBe(0)
  expect(asked.all()).toContain('You said: "hi"')
  const again = await lango(args, here)
  expect(again).toMatchObject({ code: 0, stderr: expect.not.stringContaining('trust') })
  await writeFile(join(here.cwd, 'name.mjs'), "export const name = 'second'\n")
  const refused = await lango(args, here)
  expect(refused).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('has changed since it was trusted'),
  })
  const changed = open(here, args)
  await changed.waitFor('Trust it? [y/N]:')
  expect(changed.all()).toContain('has changed since it was trusted: name.mjs changed.')
  changed.key('ctrl-c')
  expect(await changed.ended()).not.toBe(0)
})

test('--trust and LANGO_TRUST hold for one command; --list, --json and --forget show and take back', async () => {
  const here = await place({ 'lango.config.mjs': AGENT, 'name.mjs': "export const name = 'first'\n" })
  const run = ['config', 'show', '--json']
  const nameIn = (stdout: string) => JSON.parse(stdout).config.agent.name
  const [flag, variable, none] = await Promise.all([
    lango([...run, '--trust'], here),
    lango(run, { ...here, env: { ...here.env, LANGO_TRUST: '1' } }),
    lango(run, here),
  ])
  expect([flag.stdout, variable.stdout].map(nameIn)).toEqual(['first', 'first'])
  expect(nameIn(none.stdout)).toBe('lango-agent')
  expect(JSON.parse(none.stdout).skipped).toEqual(['lango.config.mjs'])
  expect((await lango(['trust', '--list'], here)).stderr).toBe('No folder is trusted.\n')
  expect((await lango(['trust'], here)).code).toBe(1)
  expect((await lango(['trust', '--yes'], here)).code).toBe(0)
  expect(nameIn((await lango(run, here)).stdout)).toBe('first')
  const { folders } = JSON.parse((await lango(['trust', '--list', '--json'], here)).stdout)
  expect(folders).toMatchObject([
    { files: { 'lango.config.mjs': expect.any(String), 'name.mjs': expect.any(String) } },
  ])
  expect((await lango(['trust', '--forget'], here)).stdout).toContain('is no longer trusted.')
  expect(nameIn((await lango(run, here)).stdout)).toBe('lango-agent')
})

test('a folder of lango init runs at once; what else is in the folder is not trusted by it', async () => {
  const here = await place()
  expect(await lango(['init', 'shop', '--js', '--yes'], here)).toMatchObject({ code: 0, stderr: '' })
  const shop = join(here.cwd, 'shop')
  const check = await lango(['config', 'check', '--json'], { cwd: shop, env: here.env })
  expect(JSON.parse(check.stdout)).toMatchObject({
    ok: true,
    file: expect.stringContaining('lango.config.mjs'),
  })
  expect(check.stderr).toBe('')
  const other = await place({ '.env': 'OPENAI_BASE_URL=http://127.0.0.1:9\n' })
  const args = ['init', '--json', '--yes', '--store', 'postgres://127.0.0.1:1/x']
  expect(await lango(args, other)).toMatchObject({ code: 0, stderr: '' })
  const shown = await lango(['config', 'show'], other)
  expect(shown.stderr).toContain('is not trusted: .env, lango.config.json (store).')
  await rm(join(other.cwd, '.env'))
  expect(await lango(['config', 'show'], other)).toMatchObject({
    stderr: '',
    stdout: expect.stringContaining('postgres://127.0.0.1:1/x'),
  })
})

test('an empty folder, a harmless configuration and a clone of Lango need no trust', async () => {
  const empty = await place()
  const answered = open(empty, ['run', 'hi'])
  expect(await answered.ended()).toBe(0)
  expect(answered.all()).not.toContain('rust')
  const plain = await place({
    'lango.config.yaml': 'app: shop\nagent: { name: clerk, instruction: Be brief. }\n',
  })
  expect((await lango(['sessions', 'list'], plain)).stderr).toBe('No sessions in the app "shop".\n')
  const clone = fileURLToPath(new URL('../..', import.meta.url))
  expect(await folderNeeds({ cwd: clone, env: {} })).toEqual([])
})

test('a database that a link leads out of the folder is not opened without trust', async () => {
  const here = await place()
  await symlink('../outside.db', join(here.cwd, 'lango.db'))
  const [run, list] = await Promise.all([lango(['run', 'hi'], here), lango(['sessions', 'list'], here)])
  expect(run).toMatchObject({ code: 1, stderr: expect.stringContaining('lango.db would') })
  expect(list).toMatchObject({ code: 0, stderr: expect.stringContaining('Not loaded') })
})

test('a list of trusted folders that cannot be read trusts nothing and is reported', async () => {
  const here = await place({ '.env': 'OPENAI_BASE_URL=http://127.0.0.1:9\n' })
  const file = join(here.root, 'trust.json')
  await writeFile(file, 'not JSON')
  const list = await lango(['sessions', 'list'], here)
  expect(list.stderr).toContain('trust.json cannot be read')
  expect(list.stderr).toContain('Not loaded')
  const trusted = await lango(['trust', '--yes'], here)
  expect(trusted.stderr).toContain(`moved to ${file}.unreadable`)
  expect(await readFile(`${file}.unreadable`, 'utf8')).toBe('not JSON')
  expect((await lango(['sessions', 'list'], here)).stderr).not.toContain('Not loaded')
})
