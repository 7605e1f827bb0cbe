// Each rule of the repository is broken here on purpose, in a separate tree, to prove that its check can fail.
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkHouse } from '../../scripts/check-house.mjs'
import { checkRooms } from '../../scripts/check-rooms.mjs'
import { compare, readSpec } from '../../scripts/check-scenarios.mjs'

const ROOT = join(import.meta.dirname, '../..')
let tree = ''

beforeAll(() => {
  tree = mkdtempSync(join(tmpdir(), 'lango-house-'))
  for (const file of ['tsconfig.json', 'package.json', '.dependency-cruiser.mjs', 'biome.json', 'scripts']) {
    cpSync(join(ROOT, file), join(tree, file), { recursive: true })
  }
  symlinkSync(join(ROOT, 'node_modules'), join(tree, 'node_modules'))
})

afterAll(() => rmSync(tree, { recursive: true, force: true }))

function write(files: Record<string, string>): void {
  for (const folder of ['src', 'web']) rmSync(join(tree, folder), { recursive: true, force: true })
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(tree, name)), { recursive: true })
    writeFileSync(join(tree, name), text)
  }
}

test('the import table passes a tree that follows it', async () => {
  write({
    'src/errors.ts': 'export const a = 1\n',
    'src/base/defined.ts': 'export const e = 1\n',
    'src/session/message.ts':
      "import { a } from '../errors.js'\nexport { e } from '../base/defined.js'\nexport const b = a\n",
    'src/store/rows.ts': "import { b } from '../session/message.js'\nexport const c = b\n",
    'src/client/read.ts':
      "import { createParser } from 'eventsource-parser'\nexport const d = createParser\n",
    'src/transcript/item.ts': "import { b } from '../session/message.js'\nexport const f = b\n",
    'web/src/page.ts': "import { f } from '../../src/transcript/item.js'\nexport const g = f\n",
  })
  expect(await checkRooms(tree)).toMatchObject({ problems: [], seen: 6, files: 6 })
})

test('the import table reports every kind of violation by rule name', () => {
  const value = 'export const x = 1\n'
  const imports = (...names: string[]) =>
    names
      .map((name, index) => `import * as i${index} from '${name}'\nexport const v${index} = i${index}\n`)
      .join('')
  write({
    'src/errors.ts': imports('node:fs'),
    'src/runtime/runtime.ts': value,
    'src/base/b.ts': imports('../runtime/runtime.js'),
    'src/session/message.ts': imports('node:fs', '../store/rows.js'),
    'src/store/rows.ts': imports('../provider/provider.js', 'pg'),
    'src/provider/provider.ts': imports('./stream-event.js'),
    'src/provider/stream-event.ts': imports('./provider.js'),
    'src/provider/openai/a.ts': imports('../gemini/b.js', '@anthropic-ai/sdk'),
    'src/provider/gemini/b.ts': value,
    'src/provider/repair/r.ts': value,
    'src/adk/session/s.ts': imports('../model/m.js', '@google/adk', '../../provider/repair/r.js'),
    'src/adk/model/m.ts': imports('../../run/run.js'),
    'src/run/run.ts': imports('../provider/provider.js', 'vitest'),
    'src/testing/judge.ts': imports('../provider/repair/r.js'),
    'src/tools/t.ts': imports('../runtime/runtime.js'),
    'src/server/s.ts': imports('../config/c.js', 'hono'),
    'src/config/c.ts': imports('hono'),
    'src/client/c.ts': imports('../runtime/runtime.js', 'hono', 'node:fs'),
    'src/transcript/t.ts': imports('node:fs', '../runtime/runtime.js'),
    'web/src/page.ts': imports('../../src/runtime/runtime.js'),
  })
  const { status, stderr } = spawnSync(process.execPath, ['scripts/check-rooms.mjs'], {
    cwd: tree,
    encoding: 'utf8',
  })
  expect(status).toBe(1)
  for (const rule of [
    'leaves-import-only-leaves',
    'base-imports-nothing',
    'session-is-pure',
    'session-imports-only-its-own',
    'store-imports-only-its-own',
    'only-its-owner-imports-pg',
    'only-its-owner-imports-anthropic-ai-sdk',
    'only-its-owner-imports-google-adk',
    'no-import-loops',
    'providers-never-see-each-other',
    'adk-doors-never-see-each-other',
    'only-history-guard-repairs',
    'adk-imports-only-its-own',
    'run-imports-only-its-own',
    'the-judge-shares-nothing-with-repair',
    'tools-imports-only-its-own',
    'server-imports-only-its-own',
    'client-imports-only-its-own',
    'the-client-runs-in-browsers',
    'only-its-owner-imports-hono',
    'transcript-imports-only-its-own',
    'the-transcript-runs-in-browsers',
    'the-page-imports-only-client-transcript-and-formats',
  ]) {
    expect(stderr).toContain(`${rule}: `)
  }
})

test('the import table reports files that the cruiser did not see', async () => {
  write({ 'src/a.ts': 'export const a = 1\n' })
  mkdirSync(join(tree, 'src/node_modules'), { recursive: true })
  writeFileSync(join(tree, 'src/node_modules/hidden.ts'), 'export const b = 1\n')
  const { problems } = await checkRooms(tree)
  expect(problems).toEqual(['modules-unseen: 1 modules were cruised, src has 2 files'])
})

function lint(text: string): { status: number | null; output: string } {
  write({ 'src/store/example.ts': text })
  const biome = join(ROOT, 'node_modules/@biomejs/biome/bin/biome')
  const result = spawnSync(
    process.execPath,
    [biome, 'lint', '--vcs-enabled=false', '--error-on-warnings', 'src'],
    { cwd: tree, encoding: 'utf8' },
  )
  return { status: result.status, output: result.stdout + result.stderr }
}
const useLines = (count: number) => Array.from({ length: count }, (_, index) => `  use(${index})\n`).join('')

test.each([
  [
    'a function over 70 lines',
    `export function long(use: (n: number) => void) {\n${useLines(71)}}\n`,
    'noExcessiveLinesPerFunction',
  ],
  [
    'a file over 450 lines',
    Array.from({ length: 451 }, (_, i) => `export const a${i} = ${i}\n`).join(''),
    'noExcessiveLinesPerFile',
  ],
  ['a barrel', "export { a } from './a.js'\n", 'noBarrelFile'],
  ['a default export', 'export default 1\n', 'noDefaultExport'],
  ['any', 'export const a = (b: any) => b\n', 'noExplicitAny'],
  ['a non-null assertion', 'export const a = (b?: string) => b!.length\n', 'noNonNullAssertion'],
])('the linter refuses %s', (_name, text, rule) => {
  const result = lint(text)
  expect(result.output).toContain(rule)
  expect(result.status).not.toBe(0)
})

test('the linter accepts a plain file', () => {
  expect(lint('export const a = 1\n').status).toBe(0)
})

test.each([
  ['no-bare-error', "throw new Error('no')\n"],
  ['no-leftover', '// TO' + 'DO later\n'],
  ['no-skipped-test', 'test.' + "skip('x', () => {})\n"],
  ['no-tests-side-by-side', "import { onTestFinished } from 'vitest'\ntest." + "concurrent('x', () => {})\n"],
  ['no-dialect-name', "if (dialect.name === 'mysql') use()\n"],
  ['no-dialect-name', "const isServer = name === 'postgres'\n"],
  ['no-dialect-name', "const isFile = name !== 'sqlite'\n"],
  ['no-dialect-name', 'function place({ now, name }: Dialect): string {\n'],
  ['no-dialect-name', 'if (database.dialect instanceof PostgresDialect) use()\n'],
])('the code rules refuse %s', (rule, text) => {
  write({ 'src/a.ts': text })
  expect(checkHouse(tree).join('\n')).toContain(rule)
})

test('the code rules allow to compare the driver that a URL names', () => {
  write({ 'src/a.ts': "export const isServer = location.driver === 'postgres'\n" })
  expect(checkHouse(tree)).toEqual([])
})

test('the code rules allow concurrent tests that take hooks from their own context', () => {
  write({ 'src/a.ts': 'test.' + "concurrent('x', ({ onTestFinished }) => {})\n" })
  expect(checkHouse(tree)).toEqual([])
})

const listed = readSpec(
  '### R\n\n| Scenario | State | Note |\n|---|---|---|\n| A | done | |\n| B | open | |\n| C | superseded by ADR 0001 | |\n',
)

test('the scenario check reads titles and states of docs/spec.md', () => {
  expect(listed.map(entry => `${entry.requirement}/${entry.title}: ${entry.state}`)).toEqual([
    'R/A: done',
    'R/B: open',
    'R/C: superseded by adr 0001',
  ])
})

test.each([
  ['passes when what is done is tested', [{ requirement: 'R', title: 'A', passed: true }], []],
  ['fails without a test', [], ['marked done, but no test: R / A']],
  [
    'fails with a failing test',
    [{ requirement: 'R', title: 'A', passed: false }],
    ['marked done, but its test fails: R / A'],
  ],
  [
    'fails for a title that nobody listed',
    [
      { requirement: 'R', title: 'A', passed: true },
      { requirement: 'R', title: 'Z', passed: true },
    ],
    ['tested, but not listed in docs/spec.md: R / Z'],
  ],
])('the scenario check %s', (_name, tested, expected) => {
  expect(compare(listed, tested)).toEqual(expected)
})
