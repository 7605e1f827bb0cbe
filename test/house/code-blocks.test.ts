// The check of code blocks in pages and comments, broken on purpose in separate trees.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { checkCodeBlocks, findCodeBlocks } from '../../scripts/check-code-blocks.mjs'

const ROOT = join(import.meta.dirname, '../..')

function plant(files: Record<string, string>): string {
  const tree = mkdtempSync(join(tmpdir(), 'lango-docs-'))
  onTestFinished(() => rmSync(tree, { recursive: true, force: true }))
  const config = {
    compilerOptions: {
      strict: true,
      target: 'ES2022',
      lib: ['ES2023'],
      module: 'NodeNext',
      moduleResolution: 'NodeNext',
      types: [],
      paths: { lango: ['./src/index.ts'] },
    },
  }
  const base = {
    'tsconfig.json': JSON.stringify(config),
    'package.json': '{ "type": "module" }',
    'src/index.ts': 'export const double = (n: number) => n * 2\n',
  }
  for (const [name, text] of Object.entries({ ...base, ...files })) {
    mkdirSync(dirname(join(tree, name)), { recursive: true })
    writeFileSync(join(tree, name), text)
  }
  return tree
}

const fence = (code: string, info = 'ts') => `\`\`\`${info}\n${code}\n\`\`\`\n`
const FAILS = "import { double } from 'lango'\nif (double(2) === 4) throw new RangeError('four')"

/** The declarations of the language, which all trees share. */
const parsed = new Map<string, unknown>()

test('blocks of pages and of comments are compiled and run', async () => {
  const example = " * ```ts\n * import { double } from 'lango'\n * double(3)\n * ```\n"
  const tree = plant({
    'README.md': fence("import { double } from 'lango'\nconst four: number = double(2)"),
    'docs/a.md': `<!-- setup\nimport { double } from 'lango'\n-->\n${fence('double(1)')}`,
    'src/b.ts': `/**\n * Example:\n${example} */\nexport const b = 1\n`,
  })
  expect(await checkCodeBlocks(tree, { parsed })).toEqual({ blocks: 3, run: 3, problems: [] })
})

test('a block that does not compile is reported with file and line', async () => {
  const { problems } = await checkCodeBlocks(
    plant({
      'README.md': `Text.\n\n${fence("import { double } from 'lango'\ndouble('2')")}`,
      'docs/import.md': fence("import { treble } from 'lango'\ntreble(2)"),
      'docs/adr/any.md': fence('export const f = x => x'),
      'docs/syntax.md': fence('const a = { … }'),
      'docs/setup.md': `<!-- setup\nconst a: string = 1\n-->\n${fence('a')}`,
      'docs/word.md': fence('1', 'ts norun'),
      'docs/reason.md': fence('1', 'ts no-run'),
      'src/b.ts': '/**\n * ```ts\n * missing()\n * ```\n */\nexport const b = 1\n',
    }),
    { parsed },
  )
  const all = problems.join('\n')
  expect(all).toContain("README.md:5: Argument of type 'string'")
  expect(all).toContain("docs/import.md:2: Module '\"lango\"' has no exported member 'treble'")
  expect(all).toContain("docs/adr/any.md:2: Parameter 'x' implicitly has an 'any' type")
  expect(all).toContain('docs/syntax.md:2: Invalid character')
  expect(all).toContain("docs/setup.md:4: in the setup: Type 'number'")
  expect(all).toContain('docs/word.md:1: "norun" after the fence is not "no-run: <reason>"')
  expect(all).toContain('docs/reason.md:1: "no-run" after the fence is not "no-run: <reason>"')
  expect(all).toContain("src/b.ts:3: Cannot find name 'missing'")
})

test('a block that throws or ends the process is reported, and the others run', async () => {
  const tree = plant({
    'docs/a.md': `Text.\n${fence(FAILS)}\n${fence('export const fine = 1')}`,
    'docs/b.md': fence(
      "const { exit }: { exit(code: number): void } = (globalThis as never)['process']\nexit(7)",
    ),
  })
  const { problems } = await checkCodeBlocks(tree, { parsed })
  expect(problems).toEqual([
    expect.stringContaining('docs/a.md:2: the block does not run: RangeError: four'),
    expect.stringContaining('docs/b.md:1: the block does not run: the process ended with code 7'),
  ])
})

test('a no-run block is compiled and not run', async () => {
  const tree = plant({ 'docs/a.md': fence(FAILS, 'ts no-run: it throws') })
  expect(await checkCodeBlocks(tree, { parsed })).toEqual({ blocks: 1, run: 0, problems: [] })
})

test('the code blocks of the real pages are found', () => {
  const files = new Set(findCodeBlocks(ROOT).map(({ file }) => file))
  expect([...files]).toEqual(expect.arrayContaining(['README.md', 'docs/library.md', 'docs/tools.md']))
})

test('every function and class of an entry point has an example in its comment', () => {
  const blocks = findCodeBlocks(ROOT)
  const entries = [
    'src/index.ts',
    ...readdirSync(join(ROOT, 'src/entries')).map(name => `src/entries/${name}`),
  ]
  const calls = entries.flatMap(entry => {
    const exported = readFileSync(join(ROOT, entry), 'utf8').matchAll(/^export \{([^}]*)\} from '([^']+)'/gm)
    return [...exported].flatMap(([, names = '', from = '']) => {
      const file = join(dirname(entry), from).replace(/\.js$/, '.ts')
      const values = names.split(',').map(name => name.trim())
      return values.filter(name => /^[a-z]\w*$|^[A-Z]\w*[a-z]\w*$/.test(name)).map(name => ({ name, file }))
    })
  })
  expect(calls.length).toBeGreaterThan(30)
  const missing = calls.filter(
    ({ name, file }) => !blocks.some(block => block.file === file && block.code.includes(name)),
  )
  expect(missing).toEqual([])
})
