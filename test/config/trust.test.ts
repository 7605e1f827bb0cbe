import { mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { executedFiles } from '../../src/config/executed-files.js'
import { changedFiles, folderNeeds } from '../../src/config/folder-needs.js'
import { changeTrust, readTrust, trustFile } from '../../src/config/trust-record.js'
import { temporaryFolder } from '../support/temporary-folder.js'

async function write(files: Record<string, string>): Promise<string> {
  const folder = await temporaryFolder()
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), text)
  }
  return folder
}

test('all files that an import, a require or a path in the source names are found, transitively', async () => {
  const folder = await write({
    'lango.config.mjs':
      "import './a.mjs'\nexport * from \"./b/index.js\"\nconst c = await import('./c.mjs?x=1')\n",
    'a.mjs':
      "import data from './data.json' with { type: 'json' }\nnew URL('./worker.mjs', import.meta.url)\n",
    'b/index.js': "const d = require('../d')\n",
    'c.mjs': "import './lango.config.mjs'\n",
    'd.cjs': '',
    'd.js': "import '#inner/e'\nimport 'shop/f'\n",
    'data.json': '{}',
    'worker.mjs': '',
    'package.json':
      '{ "name": "shop", "imports": { "#inner/*": { "node": "./src/*.mjs" } }, "exports": { "./f": "./f.mjs" } }',
    'src/e.mjs': '',
    'f.mjs': '',
    'not-named.mjs': '',
  })
  const { code, resolution } = executedFiles([join(folder, 'lango.config.mjs')])
  const names = code.map(file => file.slice(file.lastIndexOf(folder.slice(-8)) + 9))
  expect(names).toEqual([
    'a.mjs',
    'b/index.js',
    'c.mjs',
    'd.cjs',
    'd.js',
    'data.json',
    'f.mjs',
    'lango.config.mjs',
    'src/e.mjs',
    'worker.mjs',
  ])
  expect(resolution.map(file => file.slice(-12))).toEqual(['package.json'])
})

test('TypeScript: ".js" means the ".ts" in the same folder, and paths of tsconfig.json are followed', async () => {
  const folder = await write({
    'agent.ts': "import { x } from './x.js'\nimport { y } from '@app/y'\n",
    'x.ts': '',
    'lib/y.ts': '',
    'base.json': '{ "compilerOptions": { "paths": { "@app/*": ["./lib/*"] } } }',
    'tsconfig.json': '// comment\n{ "extends": "./base.json", }',
  })
  const { code, resolution } = executedFiles([join(folder, 'agent.ts')])
  expect(code.map(file => file.replace(/.*lango-test-[^/]*\//, ''))).toEqual(['agent.ts', 'lib/y.ts', 'x.ts'])
  expect(resolution.map(file => file.replace(/.*\//, ''))).toEqual(
    expect.arrayContaining(['base.json', 'tsconfig.json']),
  )
})

test.each([
  ['an imported file', 'tool.mjs', 'export const a = 2\n'],
  ['.env', '.env', 'OPENAI_BASE_URL=http://other\n'],
  ['what package.json maps a name to', 'package.json', '{ "imports": { "#x": "./other.mjs" } }'],
  ['a lock file', 'package-lock.json', '{ "changed": true }'],
])('a change of %s is seen; a new version in package.json is none', async (_what, path, text) => {
  const folder = await write({
    'lango.config.mjs': "import './tool.mjs'\nimport '#x'\nimport 'some-package'\nexport default {}\n",
    'tool.mjs': 'export const a = 1\n',
    'other.mjs': '',
    'first.mjs': '',
    '.env': 'OPENAI_BASE_URL=http://one\n',
    'package.json': '{ "version": "1.0.0", "imports": { "#x": "./first.mjs" } }',
    'package-lock.json': '{}',
  })
  const look = async () => (await folderNeeds({ cwd: folder, env: {} }))[0] ?? { files: {} }
  const { files } = await look()
  const trusted = { trustedAt: '', files }
  const changed = async () => changedFiles((await look()) as Parameters<typeof changedFiles>[0], trusted)
  await writeFile(join(folder, 'package.json'), '{ "version": "1.0.1", "imports": { "#x": "./first.mjs" } }')
  expect(await changed()).toEqual([])
  await writeFile(join(folder, path), text)
  expect(await changed()).toContain(path)
})

test('a folder without a configuration, with an empty .env or with harmless data needs no trust', async () => {
  const folder = await write({ '.env': '# nothing\n', 'readme.md': '' })
  expect(await folderNeeds({ cwd: folder, env: {} })).toEqual([])
  await writeFile(join(folder, 'lango.config.yaml'), 'app: shop\nagent: { name: a, model: openai/gpt-5.2 }\n')
  expect(await folderNeeds({ cwd: folder, env: {} })).toEqual([])
})

test('parallel writers of the trust record lose nothing, and only the user may read it', async () => {
  const file = join(await temporaryFolder(), 'deep', 'trust.json')
  const names = Array.from({ length: 20 }, (_, index) => `/folder/${index}`)
  await Promise.all(
    names.map(name =>
      changeTrust(file, folders => {
        folders.set(name, { trustedAt: '2026-01-01', files: { a: 'b' } })
      }),
    ),
  )
  const { folders } = await readTrust(file)
  expect([...folders.keys()].sort()).toEqual([...names].sort())
  expect((await stat(file)).mode & 0o777).toBe(0o600)
})

test('a trust record that cannot be read trusts nothing, is reported, and is set aside by the next change', async () => {
  const file = join(await temporaryFolder(), 'trust.json')
  await writeFile(file, '{ "version": 1, "folders": {')
  expect(await readTrust(file)).toMatchObject({ folders: new Map(), problem: expect.any(String) })
  const before = await changeTrust(file, folders => {
    folders.set('/a', { trustedAt: '2026-01-01', files: {} })
  })
  expect(before.problem).toBeDefined()
  expect([...(await readTrust(file)).folders.keys()]).toEqual(['/a'])
  expect(await readFile(`${file}.unreadable`, 'utf8')).toBe('{ "version": 1, "folders": {')
})

test('the environment sets the path of the trust record', () => {
  expect(trustFile({ LANGO_TRUST_FILE: '/x/t.json' })).toBe('/x/t.json')
  expect(trustFile({ XDG_CONFIG_HOME: '/x' }, 'linux')).toBe('/x/lango/trust.json')
  expect(trustFile({ APPDATA: '/roaming' }, 'win32')).toBe('/roaming/lango/trust.json')
  expect(trustFile({}, 'linux')).toMatch(/\.config\/lango\/trust\.json$/)
})
