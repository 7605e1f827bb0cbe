import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')
const page = readFileSync(join(ROOT, 'docs/security.md'), 'utf8')
const named = [...page.matchAll(/`((?:test|src)\/[\w./-]+\.test\.ts)`/g)].map(([, file = '']) => file)

test('every row of the guard tables in docs/security.md names a test', () => {
  const guards = page.slice(page.indexOf('## What is guarded'), page.indexOf('## Prompt injection'))
  const rows = guards.split('\n').filter(line => /^\| (?!guard)/.test(line))
  expect(rows.length).toBeGreaterThan(15)
  expect(rows.filter(row => !row.includes('.test.ts`'))).toEqual([])
})

test.each([...new Set(named)])('docs/security.md names %s, which exists', file => {
  expect(existsSync(join(ROOT, file))).toBe(true)
})

test('SECURITY.md is part of the package', () => {
  const { files } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { files: string[] }
  expect(files).toContain('SECURITY.md')
  expect(readFileSync(join(ROOT, 'SECURITY.md'), 'utf8')).toContain('docs/security.md')
})
