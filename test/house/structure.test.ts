// The layout checks, each broken on purpose in a separate tree.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import ts from 'typescript'
import { expect, onTestFinished, test } from 'vitest'
import { checkStructure } from '../../scripts/check-structure.mjs'
import { checkSwitches } from '../../scripts/check-switches.mjs'
import { checkTwins } from '../../scripts/check-twins.mjs'
import { compareRecords } from '../../scripts/compare-behaviour.mjs'
import { checkProjects } from '../../scripts/open-projects.mjs'
import { compareWalk } from '../../scripts/trace-walk.mjs'

const ROOT = join(import.meta.dirname, '../..')

function plant(files: Record<string, string>): string {
  const tree = mkdtempSync(join(tmpdir(), 'lango-structure-'))
  onTestFinished(() => rmSync(tree, { recursive: true, force: true }))
  const config =
    '{ "compilerOptions": { "strict": true, "noEmit": true, "noLib": true }, "include": ["src"] }'
  for (const [name, text] of Object.entries({ 'tsconfig.json': config, ...files })) {
    mkdirSync(dirname(join(tree, name)), { recursive: true })
    writeFileSync(join(tree, name), text)
  }
  return tree
}

const tree = () =>
  plant({
    'src/index.ts': "export { a } from './room/a.js'\nexport type B = import('./room/b.js').B\n",
    'src/room/a.ts':
      "import type { B } from './b.js'\nexport const a = (b: B) => import('./c.js').then(() => b)\n",
    'src/room/a.test.ts': "import './c.js'\n",
    'src/room/b.ts': 'export type B = 1\n',
    'src/room/c.ts': 'export const c = 1\n',
  })
const record = { files: 4, loose: ['index.ts'] }

test('the structure check counts type imports, re-exports and import(), and no tests', () => {
  // a and c have one importer, b has two, index has none.
  expect(checkStructure(tree(), record)).toMatchObject({
    figures: { files: 4, oneImporterPercent: 50, loose: 1, cycles: 0 },
    problems: [],
  })
})

test.each([
  ['more files than recorded', { ...record, files: 3 }, 'files: 4, and the record'],
  ['a record that is too high', { ...record, files: 99 }, 'files: 4, so lower the record of 99'],
  ['a loose file', { ...record, loose: [] }, 'loose-file: src/index.ts is not on the closed list'],
  [
    'a listed file that is gone',
    { ...record, loose: ['index.ts', 'old.ts'] },
    'loose-file: src/old.ts is gone',
  ],
])('the structure check refuses %s', (_name, given, problem) => {
  expect(checkStructure(tree(), given).problems.join('\n')).toContain(problem)
})

test('the structure check refuses a loop of type imports', () => {
  const loop = plant({
    'src/room/a.ts': "import type { B } from './b.js'\nexport type A = B\n",
    'src/room/b.ts': "import type { A } from './a.js'\nexport type B = A\n",
  })
  expect(checkStructure(loop, {}).problems).toEqual(['import-loop: src/room/a.ts → src/room/b.ts'])
})

test('the structure check counts the lines of a component that are JSX', () => {
  const lines = (count: number) => '      <b>x</b>\n'.repeat(count)
  const component = (count: number) =>
    `export const Page = () => {\n  return (\n    <p>\n${lines(count)}    </p>\n  )\n}\n`
  const long = plant({ 'web/src/page.tsx': component(65) })
  expect(checkStructure(long, {}).problems).toEqual([
    'function-too-long: web/src/page.tsx:1: Page has 71 lines, 70 are allowed',
  ])
  expect(checkStructure(plant({ 'web/src/page.tsx': component(64) }), {}).problems).toEqual([])
})

test('the structure check refuses a walk that names a missing file, or a file twice', () => {
  const page = '<!-- walk -->\n1. `src/a/b.ts`\n2. `src/a/b.ts`\n3. `src/a/gone.ts`\n<!-- /walk -->\n'
  const walked = plant({ 'docs/architecture.md': page, 'src/a/b.ts': 'export const b = 1\n' })
  expect(checkStructure(walked, { walk: 2 }).problems).toEqual([
    expect.stringContaining('walk: 3, and the record'),
    expect.stringContaining('walk: src/a/b.ts is listed twice'),
    expect.stringContaining('walk: src/a/gone.ts is listed in docs/architecture.md and does not exist'),
  ])
})

test('the comparison of walks reports a file too many and a file too few', () => {
  expect(compareWalk(['src/a.ts', 'src/b.ts'], ['src/b.ts', 'src/c.ts'])).toEqual([
    expect.stringContaining('src/a.ts is on the walk of a message and is not listed'),
    expect.stringContaining('src/c.ts is listed in docs/architecture.md and no function of it is called'),
  ])
})

const union = "type E = { type: 'a'; n: number } | { type: 'b' } | { type: 'c' }\n"
const check = (body: string) => checkSwitches(plant({ 'src/room/a.ts': `${union}${body}` }))

test.each([
  [
    'a default that takes the rest',
    "export function f(e: E): number { switch (e.type) { case 'a': return 1\n default: return 2 } }",
  ],
  [
    'a missing case',
    "export function f(e: E): void { switch (e.type) { case 'a': return\n case 'b': return } }",
  ],
  [
    'a function that need not return',
    "export function f(e: E): void { switch (e.type) { case 'a':\n case 'b':\n case 'c': return } }",
  ],
])('the switch check refuses %s', (_name, body) => {
  expect(check(body).problems).toEqual([expect.stringContaining('open-switch: src/room/a.ts:2')])
})

test.each([
  [
    'a switch that must return',
    "export function f(e: E): number { switch (e.type) { case 'a': return 1\n case 'b':\n case 'c': return 2 } }",
  ],
  [
    'a default that says satisfies never',
    "export function f(e: E): void { switch (e.type) { case 'a':\n case 'b':\n case 'c': return\n default: e satisfies never } }",
  ],
  [
    'a default that hands on the rest',
    "function rest(e: { type: 'b' } | { type: 'c' }): void {}\nexport function f(e: E): void { switch (e.type) { case 'a': return\n default: rest(e) } }",
  ],
])('the switch check accepts %s', (_name, body) => {
  expect(check(body)).toEqual({ switches: 1, problems: [] })
})

const treeWithTwins = () =>
  plant({
    'src/one/a.ts':
      "type K = 'typed-by-union'\nexport const k: K = 'typed-by-union'\nexport const a = 'lango-agent'\nexport const p = /^claude-/\nexport const w = 'messages'\n",
    'src/two/b.ts':
      "export const b = 'lango-agent'\nexport const p = /^claude-/\nexport const w = 'messages'\nexport const k: 'typed-by-union' = 'typed-by-union'\n",
    'src/two/c.ts': "export const once = 'stands in one room'\nexport const again = 'stands in one room'\n",
    'src/testing/d.ts': "export const c = 'stands in one room'\n",
  })

test('literals in two rooms are strings and patterns, not plain words, typed literals or those of strict servers', () => {
  const { twins, problems } = checkTwins(treeWithTwins(), { most: 2, allowed: {} })
  expect(twins.map(({ text }) => text)).toEqual(['"lango-agent"', '/^claude-/'])
  expect(problems).toEqual([])
})

test('the check of literals refuses one more than recorded, and an allowed one that is gone', () => {
  const refused = checkTwins(treeWithTwins(), {
    most: 0,
    allowed: { '/^claude-/': 'a reason', '"gone"': 'a reason' },
  })
  expect(refused.problems).toEqual([
    expect.stringContaining('twin: "gone" no longer stands in two rooms'),
    expect.stringContaining('twins: 1 literals stand in two rooms'),
    expect.stringContaining('"lango-agent": src/one, src/two'),
  ])
})

test('the check of types reports an error again until it is corrected, and checks a file of both projects once', () => {
  const globals =
    'Array<T> Boolean CallableFunction Function IArguments NewableFunction Number Object RegExp String'
  const config = '{ "extends": "../tsconfig.json", "include": ["src", "../src/globals.d.ts"] }'
  const root = plant({
    'src/globals.d.ts': globals.replaceAll(/\S+/g, 'interface $& {}'),
    'src/a.ts': "export const a: number = 'a'\n",
    'web/tsconfig.json': config,
    'web/src/page.ts': "import { a } from '../../src/a'\nexport const b: string = a\n",
  })
  const errors = () => checkProjects(root).errors
  const both = [
    "src/a.ts(1,14): error TS2322: Type 'string' is not assignable to type 'number'.",
    "web/src/page.ts(2,14): error TS2322: Type 'number' is not assignable to type 'string'.",
  ]
  expect(errors()).toEqual(both)
  expect(errors()).toEqual(both)
  expect(checkProjects(root, ['web/tsconfig.json'], name => !name.includes('/web/')).errors).toEqual([
    both[1],
  ])
  writeFileSync(join(root, 'src/a.ts'), "export const a: string = 'a'\n")
  expect(errors()).toEqual([])
  expect(errors()).toEqual([])
})

/** Files that handle every run event; docs/architecture.md lists them, too. */
const READERS = [
  'src/cli/chat/chat-state.ts',
  'src/cli/run-printer.ts',
  'src/observe/log.ts',
  'src/observe/spans.ts',
  'src/run/run-limits.ts',
  'src/server/protocols/a2a/a2a-task.ts',
  'src/server/protocols/adk/adk-run.ts',
  'src/server/protocols/agui/agui-writer.ts',
  'src/server/protocols/ai-sdk/chat-stream.ts',
  'src/server/protocols/openai/completion-run.ts',
  'src/transcript/from-events.ts',
]

test('an added run event fails to compile in every place that must handle it', () => {
  const file = 'src/run/run-event.ts'
  const text = ts.sys.readFile(join(ROOT, file)) ?? ''
  const added = text.replace(
    'export type RunEventBody =\n',
    "export type RunEventBody =\n  | { type: 'new-event' }\n",
  )
  expect(added).not.toBe(text)
  const compiled = compileReaders(new Map())
  const changed = compileReaders(new Map([[file, added]]), compiled)
  expect(READERS.filter(name => errorsIn(changed, name).length > errorsIn(compiled, name).length)).toEqual(
    READERS,
  )
}, 240_000)

function errorsIn(program: ts.Program, name: string): readonly ts.Diagnostic[] {
  return program.getSemanticDiagnostics(program.getSourceFile(join(ROOT, name)))
}

/**
 * The readers, and what is at most two imports away from them: packages and the rest of the product are left out. So both
 * programs have the same errors about what is missing, and only the second has those about the added event.
 */
function compileReaders(texts: ReadonlyMap<string, string>, before?: ts.Program): ts.Program {
  const { config } = ts.readConfigFile(join(ROOT, 'tsconfig.json'), ts.sys.readFile)
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, ROOT)
  const host = ts.createCompilerHost(options)
  const distances = new Map(READERS.map(name => [join(ROOT, name), 0]))
  host.getSourceFile = (name, version) => {
    const text = texts.get(relative(ROOT, name))
    if (text === undefined && before) return before.getSourceFile(name)
    return ts.createSourceFile(name, text ?? ts.sys.readFile(name) ?? '', version, true)
  }
  host.resolveModuleNameLiterals = (imports, importer) =>
    imports.map(({ text }) => {
      const distance = (distances.get(importer) ?? 0) + 1
      if (!text.startsWith('.') || distance > 2) return { resolvedModule: undefined }
      const resolvedFileName = join(dirname(importer), text.replace(/\.js$/, '.ts'))
      distances.set(resolvedFileName, Math.min(distance, distances.get(resolvedFileName) ?? distance))
      return { resolvedModule: { resolvedFileName, extension: ts.Extension.Ts } }
    })
  return ts.createProgram(
    READERS.map(name => join(ROOT, name)),
    { ...options, types: [] },
    host,
    before,
  )
}

const id = (letter: string) => `${letter.repeat(8)}-0000-4000-8000-000000000000`

test('two records of behaviour are alike when only ids and times differ, each in the same positions', () => {
  const record = (one: string, other: string, now: number) => ({
    events: { p: [{ id: one, at: now }, { id: other }, { id: one }] },
  })
  const alike = compareRecords(
    record(id('a'), id('b'), 1_700_000_000_000),
    record(id('c'), id('d'), 1_800_000_000_000),
  )
  expect(alike).toEqual({ structure: [], words: [] })
  const swapped = compareRecords(record(id('a'), id('b'), 1), record(id('a'), id('a'), 1))
  expect(swapped.structure).toHaveLength(1)
})

test('two records of behaviour differ in words where a message changed, and in structure where a request body did', () => {
  const record = (text: string) => ({
    cli: { c: { message: text, code: 'x' } },
    wire: { p: [{ message: text }] },
  })
  const { structure, words } = compareRecords(record('It has failed.'), record('It failed.'))
  expect(words.map(({ path }) => path)).toEqual(['cli.c.message'])
  expect(structure.map(({ path }) => path)).toEqual(['wire.p.0.message'])
})

test.each([
  ['a missing key', { cli: { c: { a: 1, b: 2 } } }, { cli: { c: { a: 1 } } }, 'cli.c.b'],
  ['another code', { cli: { c: { code: 'a' } } }, { cli: { c: { code: 'b' } } }, 'cli.c.code'],
  [
    'another order',
    { wire: { c: { a: 1, b: 2 } } },
    { wire: { c: { b: 2, a: 1 } } },
    'wire.c (order of keys)',
  ],
  ['a missing row', { rows: { c: [1, 2] } }, { rows: { c: [1] } }, 'rows.c.1'],
])('two records of behaviour differ in structure by %s', (_name, old, now, path) => {
  expect(compareRecords(old, now).structure.map(difference => difference.path)).toEqual([path])
})
