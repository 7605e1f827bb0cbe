// The page about the strict servers names everything that they know.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { FAULT_KINDS, QUIRKS, STRICT_PROFILES } from '../../src/entries/testing.js'

const page = readFileSync(new URL('../../docs/strict-servers.md', import.meta.url), 'utf8')

test.each([...STRICT_PROFILES, ...FAULT_KINDS, ...QUIRKS])(
  'the page about strict servers explains `%s`',
  name => {
    expect(page).toContain(`\`${name}\``)
  },
)

test('the page about strict servers has a row for every rule in the source, and no other', () => {
  const root = new URL('../../src/testing/strict', import.meta.url).pathname
  const source = readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .map(name => readFileSync(join(root, name), 'utf8'))
    .join('\n')
  const inSource = new Set(source.match(/(?<=')[BGCRAMXP]\d+(?=')/g))
  const rows = page.split('\n').filter(line => /^\| [BGCRAMXP]\d/.test(line))
  const inPage = new Set(rows.flatMap(row => row.split('|')[1]?.match(/[BGCRAMXP]\d+/g) ?? []))
  expect([...inPage].sort()).toEqual([...inSource].sort())
})
