// Links and docs/architecture.md: each check is broken on purpose in a separate tree, then run on the real pages.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { checkLinks } from '../../scripts/check-links.mjs'
import { writeWalk } from '../../scripts/trace-walk.mjs'

const ROOT = join(import.meta.dirname, '../..')

function plant(files: Record<string, string>): string {
  const tree = mkdtempSync(join(tmpdir(), 'lango-docs-'))
  onTestFinished(() => rmSync(tree, { recursive: true, force: true }))
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(tree, name)), { recursive: true })
    writeFileSync(join(tree, name), text)
  }
  return tree
}

const pageWith = (link: string) =>
  plant({ 'README.md': `${link}\n`, 'docs/a.md': '# One, two\n\n## `three` four\n' })

test.each([
  ['[a](docs/a.md)'],
  ['[a](docs/a.md#one-two)'],
  ['[a](docs/a.md#three-four)'],
  ['[a](https://example.com/none)'],
  ['`[a](none.md)`'],
  ['```\n[a](none.md)\n```'],
])('the check of links passes %s', link => {
  expect(checkLinks(pageWith(link))).toEqual([])
})

test.each([
  ['[a](docs/none.md)', 'README.md:1: docs/none.md: docs/none.md does not exist'],
  ['[a](docs/a.md#three)', 'docs/a.md has no heading "three"'],
  ['[a](#none)', 'README.md has no heading "none"'],
  ['[a](../other.md)', 'is outside the repository'],
  ['<img src="docs/none.png">', 'docs/none.png does not exist'],
])('the check of links refuses %s', (link, problem) => {
  expect(checkLinks(pageWith(link)).join('\n')).toContain(problem)
})

test('no page has a broken link', () => {
  expect(checkLinks(ROOT)).toEqual([])
})

test('docs/README.md links every page of docs', () => {
  const index = readFileSync(join(ROOT, 'docs/README.md'), 'utf8')
  const pages = readdirSync(join(ROOT, 'docs')).filter(name => name.endsWith('.md') && name !== 'README.md')
  expect(pages.filter(name => !index.includes(`](${name})`))).toEqual([])
})

test('pages name only files that exist', () => {
  const pages = ['README.md', ...readdirSync(join(ROOT, 'docs')).map(name => `docs/${name}`)]
  const named = pages
    .filter(name => name.endsWith('.md'))
    .flatMap(name => {
      const text = readFileSync(join(ROOT, name), 'utf8').replace(/<!-- walk -->[\s\S]*<!-- \/walk -->/, '')
      const files = text.matchAll(/`((?:src|test|docs|scripts|web|bench)\/[\w./-]+\.\w+)`/g)
      return [...files].map(([, file = '']) => ({ name, file }))
    })
  expect(named.length).toBeGreaterThan(60)
  // `acme` is the vendor that docs/adding-a-provider.md adds.
  const missing = named.filter(({ file }) => !existsSync(join(ROOT, file)) && !file.includes('/acme'))
  expect(missing).toEqual([])
})

const page = readFileSync(join(ROOT, 'docs/architecture.md'), 'utf8')

test('docs/architecture.md has a table with the rooms of src and of the import rules', async () => {
  const { default: cruiser } = (await import(join(ROOT, '.dependency-cruiser.mjs'))) as Rules
  const [, section = ''] = page.split('## Who may import whom\n')
  const table = section.split(/^## /m)[0] ?? ''
  const named = [...table.matchAll(/^\| ((?:`[a-z]+\/?`(?:, )?)+) \|/gm)]
    .flatMap(([, cell = '']) => [...cell.matchAll(/`([a-z]+)\/?`/g)].map(([, room = '']) => room))
    .filter(room => room !== 'web')
  const ruled = cruiser.forbidden
    .map(({ name }) => /^([a-z]+)-imports-only-its-own$/.exec(name)?.[1])
    .filter(room => room !== undefined)
  const folders = readdirSync(join(ROOT, 'src'), { withFileTypes: true })
    .filter(entry => entry.isDirectory())
    .map(({ name }) => name)
  // `runtime` and `entries` join the rooms: no rule limits what they import.
  expect(named.sort()).toEqual([...ruled, 'runtime', 'entries'].sort())
  expect(folders.filter(room => !named.includes(room))).toEqual([])
})

test('docs/architecture.md has fewer than 1500 words, the list of the walk aside', () => {
  const own = page.replace(/<!-- walk -->[\s\S]*<!-- \/walk -->/, '')
  expect(own.split(/\s+/).length).toBeLessThan(1500)
})

test('trace-walk --write replaces the list between the markers, and refuses a page without them', () => {
  const before = 'a\n<!-- walk -->\n1. `src/old.ts`\n<!-- /walk -->\nb\n'
  expect(writeWalk(before, ['src/x.ts', 'src/y.ts'])).toBe(
    'a\n<!-- walk -->\n1. `src/x.ts`\n2. `src/y.ts`\n<!-- /walk -->\nb\n',
  )
  expect(() => writeWalk('no markers', ['src/x.ts'])).toThrow('<!-- walk -->')
})

interface Rules {
  default: { forbidden: { name: string }[] }
}
