import { FunctionTool, LlmAgent } from '@google/adk'
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { RunEvent } from '../../src/run/run-event.js'
import type { RunInput } from '../../src/run/run-host.js'
import type { RuntimeOptions } from '../../src/runtime/options.js'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import type { SessionStore } from '../../src/session/session-store.js'
import { openStore } from '../../src/store/open-store.js'
import { type Script, ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { defineTool } from '../../src/tool.js'
import { createDatabase } from '../support/postgres.js'

let done: string[] = []
const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  done = []
  for (const each of open.splice(0)) await each.close()
})

const deploy = defineTool({
  name: 'deploy',
  description: 'Deploys.',
  parameters: { type: 'object', properties: { to: { type: 'string' } } },
  needsApproval: true,
  execute: ({ to }) => {
    done.push(String(to))
    return { deployed: to }
  },
})

const call = (to: string) => ({ toolCalls: [{ name: 'deploy', args: { to } }] })

async function start(script: Script, options: Partial<RuntimeOptions> = {}): Promise<Runtime> {
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { play: new ScriptedProvider(script, { id: 'play' }) },
    ...(options.rootAgent ? {} : { agent: { name: 'root', model: 'play/m', tools: [deploy] } }),
    ...options,
  })
  open.push(runtime)
  return runtime
}

async function collect(
  runtime: Runtime,
  input: RunInput,
  hear?: (event: RunEvent) => Promise<void> | void,
): Promise<RunEvent[]> {
  const events: RunEvent[] = []
  for await (const event of runtime.run(input)) {
    events.push(event)
    await hear?.(event)
  }
  return events
}

const answersOf = (events: RunEvent[]) =>
  events.flatMap(event => (event.type === 'approval-answer' ? event.answer : []))

test('a tool that needs approval runs when the caller says yes, and request and answer are stored', async () => {
  const runtime = await start([call('prod'), { text: 'done' }])
  const events = await collect(runtime, {
    sessionId: 's',
    text: 'go',
    onApproval: ask => ask.name === 'deploy',
  })
  expect(done).toEqual(['prod'])
  expect(events.map(event => event.type).filter(type => type.startsWith('approval'))).toEqual([
    'approval-request',
    'approval-answer',
  ])
  const stored = await runtime.store.runs.readEvents(events[0]?.runId ?? '')
  expect(stored.find(event => event.type === 'approval-request')).toMatchObject({
    name: 'deploy',
    args: { to: 'prod' },
  })
  expect(stored.find(event => event.type === 'approval-answer')).toMatchObject({ answer: 'once' })
})

test('a reason for an approval reaches the caller, the event and the open question', async () => {
  const tool = { ...deploy, needsApproval: () => 'It cannot be undone.' }
  const runtime = await start([call('prod'), { text: 'done' }], {
    agent: { name: 'root', model: 'play/m', tools: [tool] },
  })
  const reasons: unknown[] = []
  const events = await collect(runtime, {
    text: 'go',
    onApproval: ({ reason }) => {
      reasons.push(reason)
      return true
    },
  })
  expect(reasons).toEqual(['It cannot be undone.'])
  expect(events.find(({ type }) => type === 'approval-request')).toMatchObject({
    reason: 'It cannot be undone.',
  })
  expect(done).toEqual(['prod'])
})

test.each([
  ['says no', () => 'no' as const],
  ['fails to ask', () => Promise.reject(new TypeError('no window'))],
])(
  'a tool that needs approval does not run when the caller %s, and the model is informed',
  async (_name, onApproval) => {
    const runtime = await start([call('prod'), { text: 'understood' }])
    const events = await collect(runtime, { sessionId: 's', text: 'go', onApproval })
    expect(done).toEqual([])
    expect(answersOf(events)).toEqual(['no'])
    expect(events.find(event => event.type === 'tool-result')).toMatchObject({
      isError: true,
      result: { error: expect.stringContaining('The user refused tool "deploy"') },
    })
    expect(events.at(-1)).toMatchObject({ finishReason: 'stop', text: 'understood' })
  },
)

test('a tool call is refused when nobody answers in time', async () => {
  const runtime = await start([call('prod'), { text: 'understood' }], { tools: { approvalTimeoutMs: 40 } })
  const events = await collect(runtime, { sessionId: 's', text: 'go' })
  expect(done).toEqual([])
  expect(events.find(event => event.type === 'tool-result')).toMatchObject({ isError: true })
  expect(events.at(-1)).toMatchObject({ finishReason: 'stop' })
})

test('a tool is asked about once when the answer is always, also in later runs of the session', async () => {
  const runtime = await start((_request, index) => (index % 2 === 0 ? call(`n${index}`) : { text: 'done' }))
  const asked: string[] = []
  const onApproval: RunInput['onApproval'] = ask => {
    asked.push(ask.sessionId)
    return 'always'
  }
  await collect(runtime, { sessionId: 's', text: 'go', onApproval })
  await collect(runtime, { sessionId: 's', text: 'again', onApproval })
  await collect(runtime, { sessionId: 'other', text: 'go', onApproval })
  expect(asked).toEqual(['s', 'other'])
  expect(done).toHaveLength(3)
})

test('a run that waits for an approval can be aborted', async () => {
  const runtime = await start([call('prod'), { text: 'never' }])
  const abort = new AbortController()
  const events = await collect(runtime, { sessionId: 's', text: 'go', signal: abort.signal }, event => {
    if (event.type === 'approval-request') abort.abort()
  })
  expect(done).toEqual([])
  expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'aborted' })
})

describe.each([
  ['SQLite in memory of one process', async () => ({ url: 'memory:', drop: async () => {} })],
  ['PostgreSQL', createDatabase],
])('signals through %s', (name, database) => {
  test(`signals through ${name} approve and stop a run from elsewhere`, async () => {
    const { url, drop } = await database()
    const store: SessionStore = await openStore(url)
    // Another process would open the same database; in memory there is only one store.
    const elsewhere = url === 'memory:' ? store : await openStore(url)
    const runtime = await start((_request, index) => (index === 0 ? call('prod') : call(`more ${index}`)), {
      store,
    })
    const events = await collect(runtime, { sessionId: 's', text: 'go' }, async event => {
      if (event.type !== 'approval-request') return
      const isFirst = event.args.to === 'prod'
      const signal = isFirst
        ? { type: 'approval' as const, callId: event.id, answer: 'once' as const }
        : { type: 'stop' as const }
      await elsewhere.runs.sendSignal(event.runId, signal)
    })
    expect(done).toEqual(['prod'])
    expect(answersOf(events)[0]).toBe('once')
    expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'aborted' })
    await runtime.close()
    if (elsewhere !== store) await elsewhere.close()
    await store.close()
    await drop()
  })
})

test.each([
  [true, { paid: 5 }],
  [false, { error: 'This tool call is rejected.' }],
])(
  'a tool that ADK guards surfaces as an approval request, and the next message answers it: %s',
  async (confirmed, result) => {
    const pay = new FunctionTool({
      name: 'pay',
      description: 'Pays.',
      parameters: z.object({ amount: z.number() }),
      requireConfirmation: true,
      execute: ({ amount }) => ({ paid: amount }),
    })
    const rootAgent = new LlmAgent({ name: 'root', model: 'play/m', tools: [pay] })
    const script = [{ toolCalls: [{ name: 'pay', args: { amount: 5 } }] }, { text: 'next' }]
    const runtime = await start(script, { rootAgent })
    const events = await collect(runtime, { sessionId: 's', text: 'pay' })
    const asked = events.find(event => event.type === 'approval-request')
    expect(asked).toMatchObject({ name: 'pay', args: { amount: 5 } })
    expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'waiting' })
    const answer = { id: asked?.id ?? '', name: 'adk_request_confirmation', response: { confirmed } }
    const resumed = await collect(runtime, { sessionId: 's', parts: [{ functionResponse: answer }] })
    expect(resumed.find(event => event.type === 'tool-result')).toMatchObject({ name: 'pay', result })
    expect(resumed.at(-1)).toMatchObject({ finishReason: 'stop', text: 'next' })
  },
)

test('a confirmation that is talked past leaves a session that continues', async () => {
  const pay = new FunctionTool({
    name: 'pay',
    description: 'Pays.',
    parameters: z.object({ amount: z.number() }),
    execute: (_, context) => {
      context?.requestConfirmation({ hint: 'Pay?' })
      return { status: 'waiting' }
    },
  })
  const rootAgent = new LlmAgent({ name: 'root', model: 'play/m', tools: [pay] })
  const script = [{ toolCalls: [{ name: 'pay', args: { amount: 5 } }] }, { text: 'as you like' }]
  const runtime = await start(script, { rootAgent })
  const first = await collect(runtime, { sessionId: 's', text: 'pay' })
  const asked = first.find(event => event.type === 'approval-request')
  const events = await collect(runtime, { sessionId: 's', text: 'never mind' })
  expect(asked).toMatchObject({ type: 'approval-request', name: 'pay', reason: 'Pay?' })
  expect(events.at(-1)).toMatchObject({ finishReason: 'stop', text: 'as you like' })
})

test('a long output is shortened for the model, kept whole, and can be read on', async () => {
  const book = defineTool({
    name: 'book',
    description: 'A whole book.',
    parameters: { type: 'object', properties: {} },
    effect: 'read',
    execute: () => ({ text: Array.from({ length: 5000 }, (_, line) => `line ${line}`).join('\n') }),
  })
  let marker = ''
  const runtime = await start(
    (request, index) => {
      if (index === 0) return { toolCalls: [{ name: 'book', args: {} }] }
      const last = JSON.stringify(request.messages.at(-1))
      if (index === 1) {
        marker = /kept as \\+"(output-\d+)/.exec(last)?.[1] ?? ''
        return {
          toolCalls: [{ name: 'read_output', args: { reference: marker, offset: 30_000, length: 400 } }],
        }
      }
      return { text: /line 2\d\d\d/.test(last) ? 'read on' : 'not found' }
    },
    {
      agent: { name: 'root', model: 'play/m', tools: [book, 'read_output'] },
      tools: { keepOutputs: true, outputLimitTokens: 500 },
    },
  )
  const events = await collect(runtime, { sessionId: 's', text: 'read' })
  expect(marker).toBe('output-1')
  expect(events.at(-1)).toMatchObject({ finishReason: 'stop', text: 'read on' })
  expect((await runtime.store.listSessions({ appName: 'lango' })).sessions).toHaveLength(1)
})

test('naming a built-in tool switches it on', async () => {
  const runtime = await start([{ toolCalls: [{ name: 'current_time', args: {} }] }, { text: 'late' }], {
    agent: { name: 'root', model: 'play/m', tools: ['current_time'] },
  })
  const events = await collect(runtime, { sessionId: 's', text: 'what time is it?' })
  expect(events.find(event => event.type === 'tool-result')).toMatchObject({
    name: 'current_time',
    isError: false,
  })
})

test('a tool name that nobody knows is refused with the names that there are', async () => {
  const runtime = await start([], { agent: { name: 'root', model: 'play/m', tools: ['current_tyme'] } })
  await expect(runtime.ready()).rejects.toMatchObject({
    code: 'invalid-config',
    message: expect.stringContaining('current_tyme'),
  })
})

test('the cost of a run is known when the prices are', async () => {
  const priced = new ScriptedProvider(
    [{ text: 'hi', usage: { inputTokens: 1_000_000, outputTokens: 100_000 } }],
    {
      id: 'play',
      model: { price: { input: 2, output: 10 } },
    },
  )
  const runtime = await start([], { providers: { play: priced } })
  const result = await runtime.runAndCollect({ sessionId: 's', text: 'go' })
  expect(result.usage.cost).toBeCloseTo(3)
})
