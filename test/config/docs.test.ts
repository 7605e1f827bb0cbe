// docs/configuration.md is what the schema says. Run `node scripts/build-config-docs.mjs` after a change.
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { renderConfigDocs } from '../../scripts/build-config-docs.mjs'
import { configJsonSchema } from '../../src/config/config.js'
import { ENVIRONMENT_VARIABLES } from '../../src/config/environment.js'
import { KEYED_PROVIDERS } from '../../src/provider/vendors.js'

const page = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8')

test('docs/configuration.md is current', () => {
  const rendered = renderConfigDocs({
    schema: configJsonSchema(),
    variables: ENVIRONMENT_VARIABLES,
    providers: KEYED_PROVIDERS,
  })
  expect(page).toBe(rendered)
})

test.each([
  'agent.subAgents[]',
  'providers.<name>',
  'providers.<name>.retry',
  'providers.<name>.models.<name>.price',
  'mcpServers.<name>',
  'history',
  'server',
  'telemetry',
])('docs/configuration.md has a table for `%s`', place => {
  expect(page).toContain(`### \`${place}\``)
})

test('every key in docs/configuration.md has a description', () => {
  const silent = page.split('\n').filter(line => /^\| `[^`]+` \|.*\| {2}\|$/.test(line))
  expect(silent).toEqual([])
})
