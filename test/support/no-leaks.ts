/** Test files share a process: each leaves the environment, the working folder and the globals as they were. */
import { afterAll, beforeAll, expect } from 'vitest'

/** The runtime sets it once for the whole process, before it loads ADK. */
const BY_THE_RUNTIME = 'ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS'

const before = processState()

beforeAll(() => {
  // A test that waits would hang until its time limit, without a reason.
  expect(setTimeout, 'an earlier file of this process left fake timers').not.toHaveProperty('clock')
})

afterAll(() => {
  const after = processState()
  const changed = [...new Set([...before.keys(), ...after.keys()])].filter(
    name => before.get(name) !== after.get(name),
  )
  // Names without values: a value may be a key of the machine.
  expect(changed, 'changed by this file and not restored').toEqual([])
})

function processState(): Map<string, unknown> {
  const globals = (['fetch', 'Date', 'setTimeout', 'setInterval'] as const).map(
    name => [name, globalThis[name]] as const,
  )
  const { [BY_THE_RUNTIME]: _, ...env } = process.env
  return new Map<string, unknown>([
    ...globals,
    ...Object.entries(env),
    ['working folder', process.cwd()],
    ['exit code', process.exitCode],
  ])
}
