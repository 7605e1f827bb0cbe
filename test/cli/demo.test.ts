import { expect, test } from 'vitest'
import { BROKEN_SESSIONS } from '../../src/testing/broken-sessions.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { lango } from './lango.js'

test('lango demo: every broken history is refused as it is and answered through Lango', async () => {
  const { code, stdout, stderr } = await lango(['demo', '--json'], { cwd: await temporaryFolder() })
  expect(stderr).toBe('')
  expect(code).toBe(0)
  const shown = JSON.parse(stdout) as {
    id: string
    asItIs: { status: number; message: string }
    throughLango: { text: string; finishReason: string; repairs: string[] }
  }[]
  expect(shown.map(({ id }) => id)).toEqual(BROKEN_SESSIONS.map(({ id }) => id))
  for (const { id, asItIs, throughLango } of shown) {
    expect(asItIs.status, id).toBe(400)
    expect(asItIs.message, id).not.toBe('')
    expect(throughLango.finishReason, id).toBe('stop')
    expect(throughLango.text, id).toBe(BROKEN_SESSIONS.find(session => session.id === id)?.answer)
    expect(throughLango.repairs.length, id).toBeGreaterThan(0)
  }
})

test('lango demo NAME prints the error of the provider, the repair and the answer', async () => {
  const { code, stdout } = await lango(['demo', 'two-answers-for-one-call'], { cwd: await temporaryFolder() })
  expect(code).toBe(0)
  expect(stdout).toContain('each tool_use must have a single result')
  expect(stdout).toContain('became a text note')
  expect(stdout).toContain('The lamp costs 49 dollars.')
  expect(stdout).not.toContain('killed-in-mid-tool')
})

test('lango demo refuses an unknown name with the list of names', async () => {
  const { code, stdout, stderr } = await lango(['demo', 'nope'], { cwd: await temporaryFolder() })
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr).toMatch(/There is no broken session "nope"\. Choose one of: killed-in-mid-tool, /)
})
