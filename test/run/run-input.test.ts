// What `run` and `defineTool` are given is checked before anything happens, typos included.
import { afterEach, expect, test } from 'vitest'
import { AgentError } from '../../src/errors.js'
import type { RunInput } from '../../src/run/run-host.js'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import { defineTool, type Tool } from '../../src/tool.js'

let runtime: Runtime | undefined
afterEach(() => runtime?.close())

const INPUTS: [input: unknown, message: string][] = [
  [{ txt: 'a secret prompt' }, '`txt` is not a known key. Did you mean `text`?'],
  [{ text: 'x', sesionId: 's' }, '`sesionId` is not a known key. Did you mean `sessionId`?'],
  [{ text: 'x', session_id: 's' }, '`session_id` is not a known key. Did you mean `sessionId`?'],
  [
    { text: 'x', constructor: 1 },
    expect.stringMatching(/^`constructor` is not a known key\. Known keys: sessionId, /) as never,
  ],
  [
    JSON.parse('{ "text": "x", "__proto__": 1 }'),
    expect.stringMatching(/^`__proto__` is not a known key\./) as never,
  ],
  [undefined, 'It is missing. Pass an object such as { text }.'],
  ['hello', 'It must be an object such as { text }.'],
  [{ text: 3 }, '`text` must be a string.'],
  [{ parts: [{}] }, '`parts` must be a list of parts such as { text } or { inlineData }.'],
  [{ text: 'x', sessionId: 7 }, '`sessionId` must be a string.'],
  [{ text: 'x', model: {} }, '`model` must be a string.'],
  [{ text: 'x', stateDelta: [] }, '`stateDelta` must be an object.'],
  [{ text: 'x', whenBusy: 'wait' }, '`whenBusy` must be `queue` or `reject`.'],
  [{ text: 'x', onApproval: true }, '`onApproval` must be a function.'],
  [{ text: 'x', onStored: {} }, '`onStored` must be a function.'],
  [{ text: 'x', signal: {} }, '`signal` must be an AbortSignal.'],
  [{ text: 'x', runId: '7' }, '`runId` must be a UUID.'],
  [
    { text: 'x', appName: 'other' },
    '`appName` is not the app of this runtime, which is "lango". Omit it, or set `app` in createRuntime.',
  ],
]

test.each(INPUTS)('the run input %j is refused', async (input, message) => {
  runtime = await createRuntime({ store: 'memory:', agent: { model: 'demo/demo' } })
  const failures = [
    await runtime.runAndCollect(input as RunInput).catch(error => error),
    await runtime
      .run(input as RunInput)
      .next()
      .catch(error => error),
  ]
  for (const failure of failures) {
    expect(failure).toBeInstanceOf(AgentError)
    expect(failure).toMatchObject({ code: 'invalid-argument' })
    expect(failure.details.problems.map((problem: { message: string }) => problem.message)).toEqual([message])
    expect(failure.message).toMatch(/^The input of the run is not valid/)
    expect(failure.message).not.toContain('secret prompt')
  }
  expect((await runtime.store.listSessions({ appName: 'lango' })).sessions).toEqual([])
})

test('a session key may be spread into the input of a run', async () => {
  runtime = await createRuntime({ store: 'memory:', agent: { model: 'demo/demo' } })
  const key = { appName: 'lango', userId: 'u', sessionId: 's' }
  expect((await runtime.runAndCollect({ ...key, text: 'x' })).sessionId).toBe('s')
})

test('keys of a run input set to undefined count as absent', async () => {
  runtime = await createRuntime({ store: 'memory:', agent: { model: 'demo/demo' } })
  const input = { text: 'x', sesionId: undefined, parts: undefined, signal: undefined } as RunInput
  expect((await runtime.runAndCollect(input)).finishReason).toBe('stop')
})

const tool = { name: 'a', description: '', parameters: {}, execute: () => 1 }

test.each([
  [{ ...tool, needApproval: true }, '`needApproval` is not a known key. Did you mean `needsApproval`?'],
  [{ ...tool, timeout: 5 }, '`timeout` is not a known key. Did you mean `timeoutMs`?'],
  [
    { ...tool, execute: undefined, exeucte: () => 1 },
    '`exeucte` is not a known key. Did you mean `execute`?',
  ],
  [{ ...tool, timeoutMs: -1 }, '`timeoutMs` must be a number of milliseconds greater than 0, or Infinity.'],
  [{ ...tool, name: 'a b' }, '`name` must be a name of letters, digits, underscores, dots or hyphens.'],
])('defineTool refuses %j', (given, message) => {
  expect(() => defineTool(given as never)).toThrow(AgentError)
  try {
    defineTool(given as never)
  } catch (error) {
    expect(error).toMatchObject({ code: 'invalid-config' })
    const { problems } = (error as AgentError).details as { problems: { message: string }[] }
    expect(problems.map(problem => problem.message)).toContain(message)
  }
})

test('defineTool returns its object, and takes an instance of a class with fields of its own', () => {
  class Counter implements Tool {
    name = 'counter'
    description = ''
    parameters = {}
    count = 0
    execute() {
      this.count += 1
      return this.count
    }
  }
  const counter = new Counter()
  expect(defineTool(counter)).toBe(counter)
  expect(defineTool(tool)).toBe(tool)
})
