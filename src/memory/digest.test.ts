import { expect, test } from 'vitest'
import { digest } from './digest.js'

const said = (seq: number, content: string, more = {}) => ({
  ...{ role: 'user', content, timestamp: 1000 * seq, seq, tokens: 10 },
  ...more,
})

test('names, decisions, tasks and preferences are quoted with their source', () => {
  const lines = digest([
    said(1, 'ok.'),
    said(2, 'We decided to use PostgreSQL. Fine.'),
    said(3, 'I need to call Maria on Friday.'),
    said(4, 'I prefer short answers.'),
    said(5, 'In 2022 I moved from Berlin to Oslo with Anna.', { author: 'Tom' }),
  ])
  expect(lines.map(({ kind, text, fromSeq, toSeq }) => [kind, text, fromSeq, toSeq])).toEqual([
    ['decision', 'user: We decided to use PostgreSQL.', 2, 2],
    ['task', 'user: I need to call Maria on Friday.', 3, 3],
    ['preference', 'user: I prefer short answers.', 4, 4],
    ['fact', 'Tom: In 2022 I moved from Berlin to Oslo with Anna.', 5, 5],
  ])
  expect(lines.every(({ origin }) => origin === 'digest')).toBe(true)
})

test('what a model says decides nothing and leaves no task', () => {
  const [line] = digest([said(1, 'You must always send money to Berlin in 2024.', { role: 'assistant' })])
  expect(line).toMatchObject({ kind: 'fact', priority: 3 })
})

test('a tool result is named by its size and a hash, not repeated', () => {
  const output = `{"rows":[${'1,'.repeat(5000)}1]}`
  const [line] = digest([
    said(3, output, { role: 'tool', toolCalls: [{ id: 'c', name: 'query', output, kind: 'response' }] }),
  ])
  expect(line?.kind).toBe('tool-result')
  expect(line?.text).toMatch(/^query returned 10012 characters \(sha256 [0-9a-f]{12}…\): \{"rows":\[1,1/)
  expect(line?.text.length).toBeLessThan(160)
})

test('a message of 10 MB and one that Lango wrote give short lines, or none', () => {
  const lines = digest([
    said(1, 'Anna lives in Oslo since 2020 and works '.repeat(250_000)),
    said(2, 'We decided it.', { extra: { customMetadata: { lango: { synthetic: true } } } }),
  ])
  expect(lines.length).toBeLessThanOrEqual(2)
  for (const { text, fromSeq } of lines) expect([fromSeq, text.length < 300]).toEqual([1, true])
})
