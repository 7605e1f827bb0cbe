import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { loadConfig } from './load-config.js'
import { loadStoreSettings } from './load-store-settings.js'

interface Case {
  files?: Record<string, string>
  env?: Record<string, string>
  file?: string
}

const CASES: Record<string, Case> = {
  'nothing at all': {},
  'a JSON file': { files: { 'lango.config.json': '{"app":"shop","store":"sqlite:./a.db"}' } },
  'a YAML file': { files: { 'lango.config.yaml': 'app: shop\nstore: sqlite:./a.db\n' } },
  'a program': { files: { 'lango.config.mjs': 'export default { app: "shop", store: "sqlite:./a.db" }' } },
  'a file elsewhere': {
    files: { 'sub/lango.config.json': '{"store":"sqlite:./a.db"}' },
    file: 'sub/lango.config.json',
  },
  'a named file in the environment': {
    files: { 'sub/x.json': '{"store":"sqlite:./a.db"}' },
    env: { LANGO_CONFIG: 'sub/x.json' },
  },
  'variables over a file': {
    files: { 'lango.config.json': '{"app":"shop","store":"sqlite:./a.db"}' },
    env: { LANGO_APP: 'other', LANGO_STORE: 'memory:' },
  },
  'a .env file': { files: { '.env': 'LANGO_STORE=sqlite:./env.db\n' } },
  'a platform’s database': { env: { DATABASE_URL: 'postgres://u@h/d' } },
  'another kind of database': { env: { DATABASE_URL: 'mysql://u@h/d' } },
  'LANGO_STORE before DATABASE_URL': { env: { LANGO_STORE: 'memory:', DATABASE_URL: 'postgres://u@h/d' } },
  'a variable in the file': { files: { 'lango.config.json': '{"store":"\u0024{PLACE:-sqlite:./b.db}"}' } },
  'an empty variable': { env: { LANGO_STORE: ' ' } },
  'an absolute path': { files: { 'lango.config.json': '{"store":"sqlite:/var/a.db?sync=normal"}' } },
}

test.each(Object.entries(CASES))(
  'loadStoreSettings reads %s as the whole configuration does',
  async (_name, { files, env, file }) => {
    const cwd = await folderWith(files ?? {})
    const options = { cwd, env: env ?? {}, file }
    const { config } = await loadConfig(options)
    expect(await loadStoreSettings(options)).toEqual({ app: config.app, store: config.store })
  },
)

test('loadStoreSettings prefers flags to everything', async () => {
  const cwd = await folderWith({ 'lango.config.json': '{"app":"shop","store":"sqlite:./a.db"}' })
  const env = { LANGO_APP: 'other', LANGO_STORE: 'memory:' }
  const flags = { app: 'mine', store: 'sqlite:/x.db' }
  expect(await loadStoreSettings({ cwd, env, ...flags })).toEqual(flags)
})

test.each([
  [{ 'lango.config.json': '{"store":5}' }, /`store` is 5, but must start with sqlite:/],
  [{ 'lango.config.json': '{"store":"\u0024{NOWHERE}"}' }, /refers to the environment variable NOWHERE/],
  [{ 'lango.config.json': '[]' }, /must contain an object of settings/],
  [{ 'lango.config.json': '{' }, /Cannot read .*lango\.config\.json/],
  [{ 'lango.config.json': '{}', 'lango.config.yaml': '' }, /Several configuration files/],
])('loadStoreSettings refuses %j as the whole configuration does', async (files, message) => {
  const cwd = await folderWith(files)
  await expect(loadStoreSettings({ cwd, env: {} })).rejects.toThrow(message)
})

async function folderWith(files: Record<string, string>): Promise<string> {
  const cwd = await mkdtemp(join(tmpdir(), 'lango-test-'))
  onTestFinished(() => rm(cwd, { recursive: true, force: true }))
  for (const [name, text] of Object.entries(files)) {
    await mkdir(join(cwd, name, '..'), { recursive: true })
    await writeFile(join(cwd, name), text)
  }
  return cwd
}
