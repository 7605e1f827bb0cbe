import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { OUTCOME_UNKNOWN } from '../../base/markers.js'
import type { ApprovalOutcome, ToolContext } from '../../tool.js'
import { defineTool, type Tool } from '../../tool.js'
import type { Context } from '../sdk.js'
import { type ApprovalRequest, ToolAdapter, type ToolAdapterOptions } from './tool-adapter.js'

/** As much of ADK's context as a tool sees. */
function context(abortSignal?: AbortSignal): Context {
  const state = new Map<string, unknown>()
  return {
    functionCallId: 'call-1',
    sessionId: 's1',
    userId: 'ann',
    agentName: 'agent',
    abortSignal,
    state: {
      get: (key: string) => state.get(key),
      set: (key: string, value: unknown) => state.set(key, value),
    },
  } as unknown as Context
}

const run = (
  tool: Tool,
  args: Record<string, unknown> = {},
  options: ToolAdapterOptions = {},
  signal?: AbortSignal,
) => new ToolAdapter(tool, options).runAsync({ args, toolContext: context(signal) })

const returning = (value: unknown, fields: Partial<Tool> = {}): Tool => ({
  name: 't',
  description: 'T',
  parameters: { type: 'object', properties: {} },
  execute: () => value,
  ...fields,
})

describe('parameters', () => {
  const passThrough = (value: unknown) => ({ value })
  const zod = z.object({ q: z.string().describe('what'), n: z.number().int().default(3) })
  const json = {
    type: 'object',
    properties: { q: { type: 'string', minLength: 2 }, n: { type: 'integer' } },
    required: ['q'],
    additionalProperties: false,
  }

  test('a Zod schema is sent to the model as what it accepts', () => {
    const tool = defineTool({ name: 't', description: 'T', parameters: zod, execute: () => 1 })
    expect(new ToolAdapter(tool)._getDeclaration()).toEqual({
      name: 't',
      description: 'T',
      parametersJsonSchema: {
        type: 'object',
        properties: {
          q: { type: 'string', description: 'what' },
          n: expect.objectContaining({ type: 'integer', default: 3 }),
        },
        required: ['q'],
      },
    })
  })

  test('a JSON schema is sent as it is', () => {
    expect(
      new ToolAdapter(returning(1, { parameters: json }))._getDeclaration().parametersJsonSchema,
    ).toEqual(json)
  })

  test('a tool gets what its Zod schema makes of the arguments', async () => {
    const tool = defineTool({
      name: 't',
      description: 'T',
      parameters: zod,
      execute: args => ({ got: args }),
    })
    expect(await run(tool, { q: 'x' })).toEqual({ got: { q: 'x', n: 3 } })
  })

  test.each([
    ['Zod', zod, { q: 5 }, /^Invalid arguments for tool "t": q: /],
    ['Zod, missing', zod, {}, /q: /],
    ['JSON schema', json, { q: 'x' }, /^Invalid arguments for tool "t": q: /],
    ['JSON schema, unknown', json, { q: 'xx', z: 1 }, /z/],
  ])(
    'wrong arguments of a tool are a result that says what is wrong (%s)',
    async (_, parameters, args, message) => {
      const tool = returning('never', { parameters, execute: () => expect.unreachable() })
      expect(await run(tool, args)).toEqual({ error: expect.stringMatching(message) })
    },
  )

  test('a JSON schema beyond what can be checked lets objects through', async () => {
    const parameters = { type: 'object', properties: { a: { not: { type: 'string' } } } }
    expect(await run(returning(1, { parameters }), { a: 1 })).toEqual({ result: 1 })
  })

  test.each([
    ['Zod', zod.loose()],
    ['JSON schema', { type: 'object' }],
    ['own schema', { '~standard': { version: 1 as const, vendor: 'own', validate: passThrough } }],
  ])('what a tool does to its arguments stays with it (%s)', async (_, parameters) => {
    const args = { q: 'x', deep: { list: [1] } }
    const execute = (given: Record<string, unknown>) => {
      ;(given.deep as { list: number[] }).list.push(999)
      given.added = true
      return given
    }
    expect(await run(returning(0, { parameters, execute }), args)).toMatchObject({
      deep: { list: [1, 999] },
      added: true,
    })
    expect(args).toEqual({ q: 'x', deep: { list: [1] } })
  })

  test('arguments that cannot be copied are handed over as they are', async () => {
    const ask = () => 'here'
    const execute = (given: Record<string, unknown>) => (given.ask as typeof ask)()
    expect(await run(returning(0, { execute }), { ask })).toEqual({ result: 'here' })
  })

  test('any Standard Schema checks the arguments of a tool', async () => {
    const parameters = {
      '~standard': {
        version: 1 as const,
        vendor: 'own',
        validate: () => ({ issues: [{ message: 'never', path: [{ key: 'a' }] }] }),
      },
    }
    expect(await run(returning(1, { parameters }))).toEqual({
      error: 'Invalid arguments for tool "t": a: never',
    })
    expect(new ToolAdapter(returning(1, { parameters }))._getDeclaration().parametersJsonSchema).toEqual({
      type: 'object',
    })
  })
})

describe('results', () => {
  const loop: Record<string, unknown> = { a: 1 }
  loop.self = loop

  test.each<[string, unknown, object]>([
    ['an object', { a: 1 }, { a: 1 }],
    ['a text', 'x', { result: 'x' }],
    ['a number', 0, { result: 0 }],
    ['nothing', undefined, { result: null }],
    ['null', null, { result: null }],
    ['a list', [1, 2], { results: [1, 2] }],
    ['a date', new Date(0), { result: '1970-01-01T00:00:00.000Z' }],
    ['a loop', loop, { a: 1, self: '[circular]' }],
    ['a BigInt', { n: 2n }, { n: '2' }],
    ['an error', new RangeError('too far'), { error: 'too far' }],
    ['a promise', Promise.resolve({ a: 1 }), { a: 1 }],
  ])('the tool result %s becomes a JSON object', async (_, value, expected) => {
    expect(await run(returning(value))).toEqual(expected)
  })

  test.each<[string, unknown, string]>([
    ['an error', new RangeError('too far'), 'too far'],
    ['anything else', 'plain words', 'plain words'],
  ])('%s that is thrown is reported to the model', async (_, thrown, message) => {
    const execute = () => {
      throw thrown
    }
    expect(await run(returning(0, { execute }))).toEqual({ error: message })
  })

  test('an output over the limit is shortened, with a marker, and stays JSON', async () => {
    const text = `begin ${'word '.repeat(5000)} end`
    const result = (await run(returning({ text, ok: true }), {}, { outputLimitTokens: 500 })) as {
      text: string
      ok: boolean
    }
    expect(result.ok).toBe(true)
    expect(result.text).toMatch(/^begin .*shortened by Lango.* end$/s)
    expect(JSON.stringify(result).length).toBeLessThan(2400)
  })

  test('a shortened output is kept whole, and its marker says where', async () => {
    const kept: unknown[] = []
    const keepWhole: ToolAdapterOptions['keepWhole'] = async (...all) => {
      kept.push(all)
      return 'out-7'
    }
    const value = { text: `begin ${'word '.repeat(5000)} end` }
    const options = { outputLimitTokens: 500, keepWhole }
    const result = (await run(returning(value), {}, options)) as { text: string }
    expect(kept).toEqual([
      ['call-1', 't', JSON.stringify(value), { sessionId: 's1', userId: 'ann', agentName: 'agent' }],
    ])
    expect(result.text).toMatch(/^begin .*shortened by Lango.*"out-7".*read_output.* end$/s)
    expect(JSON.stringify(result).length).toBeLessThan(2400)
    await run(returning({ text: 'short' }), {}, options)
    expect(kept).toHaveLength(1)
  })

  test('an output that cannot be kept is shortened all the same', async () => {
    const keepWhole = () => Promise.reject(new TypeError('disk full'))
    const options = { outputLimitTokens: 500, keepWhole }
    expect(await run(returning('word '.repeat(5000)), {}, options)).toEqual({
      result: expect.stringMatching(/shortened by Lango.*disk full/),
    })
  })
})

describe('being stopped', () => {
  const never: Tool['execute'] = (_, { signal }) =>
    new Promise((_resolve, reject) =>
      signal.addEventListener('abort', () => reject(new TypeError('heard it'))),
    )

  test('a tool that takes too long is stopped, and the model gets an error', async () => {
    let heard = false
    const execute = (_: unknown, { signal }: ToolContext) =>
      new Promise(() => {
        signal.addEventListener('abort', () => {
          heard = true
        })
      })
    const result = await run(returning(0, { execute, timeoutMs: 5 }))
    expect(result).toEqual({
      error: `Tool "t" did not answer within 5 ms and was stopped. ${OUTCOME_UNKNOWN}`,
    })
    expect(heard).toBe(true)
  })

  test('the abort of the run reaches the tool', async () => {
    const stop = new AbortController()
    const result = run(returning(0, { execute: never }), {}, {}, stop.signal)
    setTimeout(() => stop.abort(), 1)
    expect(await result).toEqual({ error: expect.stringMatching(/heard it|was stopped before it answered/) })
  })

  test('after the abort of the run no tool is started', async () => {
    const execute = () => expect.unreachable()
    expect(await run(returning(0, { execute }), {}, {}, AbortSignal.abort())).toEqual({
      error: 'Tool "t" was not run: the run was stopped.',
    })
  })
})

describe('limits of time', () => {
  const slow = () => new Promise(resolve => setTimeout(() => resolve('done'), 20))
  const long = [Number.POSITIVE_INFINITY, 2 ** 31, 1e12]
  const wrong = [Number.NaN, 0, -1, '5' as unknown as number]

  test.each(long)('a tool may have a time limit of %s ms', async timeoutMs => {
    expect(await run(returning(0, { execute: slow, timeoutMs }))).toEqual({ result: 'done' })
  })

  test('a tool without a limit is stopped with its run', async () => {
    const stop = new AbortController()
    const execute = () => {
      queueMicrotask(() => stop.abort())
      return new Promise(() => {})
    }
    const tool = returning(0, { execute, timeoutMs: Number.POSITIVE_INFINITY })
    expect(await run(tool, {}, {}, stop.signal)).toEqual({
      error: `Tool "t" was stopped before it answered, because the run was stopped. ${OUTCOME_UNKNOWN}`,
    })
  })

  test.each(long)('an approval may have a time limit of %s ms', async approvalTimeoutMs => {
    const approve = () => slow().then(() => true)
    const tool = returning('done', { needsApproval: true })
    expect(await run(tool, {}, { approve, approvalTimeoutMs })).toEqual({ result: 'done' })
  })

  test.each(wrong)('the time limit %s is refused', value => {
    const refusal = (name: string) =>
      expect.objectContaining({
        code: 'invalid-argument',
        message: expect.stringMatching(new RegExp(`"t".*${name}.*${value}`)),
      })
    expect(() => new ToolAdapter(returning(0, { timeoutMs: value }))).toThrow(refusal('timeoutMs'))
    expect(() => new ToolAdapter(returning(0), { approvalTimeoutMs: value })).toThrow(
      refusal('approvalTimeoutMs'),
    )
  })
})

describe('the state', () => {
  /** Writes before and after it is stopped, and says when it has done so. */
  const writer = () => {
    let written = () => {}
    const done = new Promise<void>(resolve => {
      written = resolve
    })
    const execute = (_: unknown, { state, signal }: ToolContext) => {
      state.set('before', 1)
      signal.addEventListener('abort', () =>
        queueMicrotask(() => {
          state.set('after', 1)
          written()
        }),
      )
      return new Promise(() => {})
    }
    return { execute, done }
  }

  test('a tool whose time is up does not write the state', async () => {
    const { execute, done } = writer()
    const toolContext = context()
    await new ToolAdapter(returning(0, { execute, timeoutMs: 5 })).runAsync({ args: {}, toolContext })
    await done
    expect([toolContext.state.get('before'), toolContext.state.get('after')]).toEqual([1, undefined])
  })

  test('a tool whose run was stopped does not write the state', async () => {
    const { execute, done } = writer()
    const stop = new AbortController()
    const toolContext = context(stop.signal)
    setTimeout(() => stop.abort(), 1)
    await new ToolAdapter(returning(0, { execute })).runAsync({ args: {}, toolContext })
    await done
    expect(toolContext.state.get('after')).toBeUndefined()
  })

  test('a tool that was started early and whose time is up does not write the state', async () => {
    const { execute, done } = writer()
    const adapter = new ToolAdapter(returning(0, { execute, timeoutMs: 5, effect: 'read' }))
    const { stateWrites } = await adapter.runEarly({}, 'c', context())
    await done
    expect([...stateWrites]).toEqual([['before', 1]])
  })
})

describe('approval', () => {
  const dangerous = (needsApproval: Tool['needsApproval']) =>
    returning('done', needsApproval === undefined ? {} : { needsApproval })

  test('without anybody to ask, a tool that needs approval is refused', async () => {
    expect(await run(dangerous(true))).toEqual({
      error: expect.stringContaining("needs a person's approval"),
    })
  })

  test.each<[boolean | ApprovalOutcome, object]>([
    [true, { result: 'done' }],
    ['once', { result: 'done' }],
    ['always', { result: 'done' }],
    [false, { error: expect.stringMatching(/^The user refused tool "t"\. It was not run/) }],
    ['no', { error: expect.stringMatching(/^The user refused tool "t"\. It was not run/) }],
    ['timeout', { error: expect.stringContaining('nobody answered') }],
    ['aborted', { error: expect.stringContaining('was not run: the run was stopped') }],
    ['perhaps' as 'no', { error: expect.stringContaining('refused') }],
  ])('the answer to an approval decides: %s', async (answer, expected) => {
    expect(await run(dangerous(true), {}, { approve: async () => answer })).toEqual(expected)
  })

  test('the answer "always" is kept in the state of the session, which does not ask again', async () => {
    let asked = 0
    const approve = () => {
      asked++
      return 'always' as const
    }
    const adapter = new ToolAdapter(dangerous(true), { approve })
    const [here, elsewhere] = [context(), context()]
    for (const toolContext of [here, here, elsewhere]) {
      expect(await adapter.runAsync({ args: {}, toolContext })).toEqual({ result: 'done' })
    }
    expect(asked).toBe(2)
    expect(here.state.get('lango:approvals')).toEqual(['t'])
    const other = new ToolAdapter(returning('done', { name: 'u', needsApproval: true }))
    expect(await other.runAsync({ args: {}, toolContext: here })).toHaveProperty('error')
  })

  test('after the answer "once" the next call asks again', async () => {
    let asked = 0
    const approve = () => ++asked > 0
    const adapter = new ToolAdapter(dangerous(true), { approve })
    const toolContext = context()
    await adapter.runAsync({ args: {}, toolContext })
    await adapter.runAsync({ args: {}, toolContext })
    expect(asked).toBe(2)
  })

  test('an approval that nobody answers is a refusal, and its request is aborted', async () => {
    let signal: AbortSignal | undefined
    const approve = (request: ApprovalRequest) => {
      signal = request.context.signal
      return new Promise<boolean>(() => {})
    }
    const tool = returning(0, { needsApproval: true, execute: () => expect.unreachable() })
    expect(await run(tool, {}, { approve, approvalTimeoutMs: 5 })).toEqual({
      error: 'Tool "t" was refused and not run: nobody answered the request for approval within 0.005 s.',
    })
    expect(signal?.aborted).toBe(true)
  })

  test('the wait for an approval does not use up the time of the tool', async () => {
    const approve = () => new Promise<boolean>(resolve => setTimeout(() => resolve(true), 30))
    expect(await run(returning('done', { needsApproval: true, timeoutMs: 5 }), {}, { approve })).toEqual({
      result: 'done',
    })
  })

  test('the abort of the run ends its approval request, and the tool is not run', async () => {
    const stop = new AbortController()
    const approve = () => {
      queueMicrotask(() => stop.abort())
      return new Promise<boolean>(() => {})
    }
    const tool = returning(0, { needsApproval: true, execute: () => expect.unreachable() })
    expect(await run(tool, {}, { approve }, stop.signal)).toEqual({
      error: expect.stringContaining('was not run: the run was stopped'),
    })
  })

  test('an approval request that fails is a refusal', async () => {
    const approve = () => Promise.reject(new TypeError('no line'))
    expect(await run(dangerous(true), {}, { approve })).toEqual({
      error: 'Tool "t" was not run: asking for approval failed (no line).',
    })
  })

  test('whether a tool needs approval may depend on the arguments', async () => {
    const tool = dangerous(args => args.path === '/')
    expect(await run(tool, { path: 'here' })).toEqual({ result: 'done' })
    expect(await run(tool, { path: '/' })).toHaveProperty('error')
  })
})

test('a tool sees its session and may use its state', async () => {
  const execute = (_: unknown, { state, ...rest }: ToolContext) => {
    state.set('count', 1)
    const { signal, ...facts } = rest
    return { ...facts, count: state.get('count'), aborted: signal.aborted }
  }
  expect(await run(returning(0, { execute }))).toEqual({
    callId: 'call-1',
    idempotencyKey: expect.stringMatching(/^[0-9a-f]{32}$/),
    attempt: 1,
    sessionId: 's1',
    userId: 'ann',
    agentName: 'agent',
    count: 1,
    aborted: false,
  })
})
