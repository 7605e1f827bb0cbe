// docs/you-have-a-400.md is what lint says. Run `node --import tsx scripts/build-refusal-docs.mjs` after a change.
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { renderApiDocs } from '../../scripts/build-api-docs.mjs'
import { renderRefusalDocs } from '../../scripts/build-refusal-docs.mjs'
import { type FindingCode, findingText } from '../../src/provider/repair/finding.js'
import { REFUSALS } from '../../src/provider/repair/refusals.js'

const textOf = (code: string) => findingText(code as FindingCode)

test('the page about refusals is current', () => {
  const page = readFileSync(new URL('../../docs/you-have-a-400.md', import.meta.url), 'utf8')
  expect(page).toBe(renderRefusalDocs({ refusals: REFUSALS, textOf }))
})

test('the page about refusals is not rendered with a refusal without a cure or of an unknown vendor', () => {
  const render = (refusals: Record<string, Record<string, string>>) => renderRefusalDocs({ refusals, textOf })
  expect(() => render({ gemini: { 'new-code': 'G99: “No.”' } })).toThrow('No cure for: new-code.')
  expect(() => render({ newcomer: { 'empty-part': 'N1: “No.”' } })).toThrow('No heading for: newcomer.')
})

// Run `node scripts/build-api-docs.mjs` after a change of what the entry points export.
test('the API reference is current and names every export', () => {
  const page = readFileSync(new URL('../../docs/api.md', import.meta.url), 'utf8')
  expect(page).toBe(renderApiDocs())
  for (const name of ['createRuntime', 'SessionServiceAdapter', 'repairHistory', 'openStore', 'createClient'])
    expect(page).toContain(`\n### ${name}\n`)
})
