import { expect, test, vi } from 'vitest'
import { demo } from '../../src/cli/demo.js'
import { captured } from './doctor-output.js'

vi.mock(import('../../src/testing/start-strict-provider.js'), async original => {
  const { startStrictProvider } = await original()
  return { startStrictProvider: options => startStrictProvider({ ...options, faults: [{ kind: 'auth' }] }) }
})

test('lango demo shows the error of a run that fails and exits with 1', async () => {
  const { code, text: printed } = await captured(io => demo(io, ['lost-ids'], {}))
  expect(code).toBe(1)
  expect(printed).toMatch(/ {2}as it is {5}anthropic-4\.6 answers 401: /)
  expect(printed).toMatch(/ {2}failed {7}strict-anthropic-4\.6\/claude-sonnet-4-6 .*key/)
  expect(printed).not.toContain('with Lango')
})
