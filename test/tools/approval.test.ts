import { LlmAgent } from '@google/adk'
import { expect, onTestFinished, test } from 'vitest'
import { ToolAdapter, type ToolAdapterOptions } from '../../src/adk/agent/tool-adapter.js'
import { messagesToProvider } from '../../src/adk/messages-to-provider.js'
import { lintHistory } from '../../src/provider/repair/lint-history.js'
import { ApprovalDesk, type ApprovalDeskOptions } from '../../src/run/run-approvals.js'
import type { RunEvent } from '../../src/run/run-event.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { type Script, ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { defineTool, type Tool } from '../../src/tool.js'
import { readOutputTool } from '../../src/tools/read-output.js'
import { temporaryFolder } from '../support/temporary-folder.js'

const KEY = { appName: 'lango', userId: 'user', sessionId: 's' }

interface Stage {
  store?: string
  script: Script
  tools: readonly Tool[]
  options?: ToolAdapterOptions
}

async function play({ store = 'memory:', script, tools, options = {} }: Stage) {
  const provider = new ScriptedProvider(script, { id: 'play' })
  const rootAgent = new LlmAgent({
    name: 'root',
    model: 'play/m',
    tools: tools.map(tool => new ToolAdapter(tool, options)),
  })
  const runtime = await createRuntime({ store, providers: { play: provider }, rootAgent })
  onTestFinished(() => runtime.close())
  const run = async (sessionId = 's', signal?: AbortSignal) => {
    const events: RunEvent[] = []
    for await (const event of runtime.run({ sessionId, text: 'go', signal })) events.push(event)
    const history = messagesToProvider(await runtime.store.readMessages({ ...KEY, sessionId }))
    expect(lintHistory(history, 'openai-chat').filter(({ severity }) => severity === 'breaks')).toEqual([])
    return events
  }
  return { runtime, run }
}

const results = (events: readonly RunEvent[]) =>
  events.flatMap(event => (event.type === 'tool-result' ? [event.result] : []))

/** A dangerous tool that counts how often it really ran. */
function dangerous(): { tool: Tool; ran: () => number } {
  let count = 0
  const tool = defineTool({
    name: 'launch',
    description: 'Launches.',
    parameters: { type: 'object', properties: {} },
    needsApproval: true,
    execute: () => ({ launched: ++count }),
  })
  return { tool, ran: () => count }
}

/** A desk whose requests are answered by a person who is played. */
function staffed(answer: (callId: string, desk: ApprovalDesk) => void, options: ApprovalDeskOptions = {}) {
  const desk: ApprovalDesk = new ApprovalDesk({
    ...options,
    onRequest: ({ callId }) => setImmediate(() => answer(callId, desk)),
  })
  const approve: ToolAdapterOptions['approve'] = ({ tool, args, context }) =>
    desk.request({ callId: context.callId, tool: tool.name, args }, context.signal)
  return { desk, approve }
}

const LAUNCH = { toolCalls: [{ name: 'launch', args: {} }] }

test.each<[string, 'once' | 'no', number, object]>([
  ['allowed', 'once', 1, { launched: 1 }],
  ['denied', 'no', 0, { error: expect.stringContaining('The user refused tool "launch"') }],
])('a run whose tool needs approval is %s, and ends well', async (_, answer, times, result) => {
  const { tool, ran } = dangerous()
  const { approve } = staffed((callId, desk) => desk.answer(callId, answer))
  const { run } = await play({ script: [LAUNCH, { text: 'fine' }], tools: [tool], options: { approve } })
  const events = await run()
  expect(results(events)).toEqual([result])
  expect(events.at(-1)).toMatchObject({ finishReason: 'stop', text: 'fine' })
  expect(ran()).toBe(times)
})

test.each<[string, ApprovalDeskOptions, ToolAdapterOptions]>([
  ['the desk', { timeoutMs: 20 }, {}],
  ['the tool', {}, { approvalTimeoutMs: 20 }],
])('a tool call is refused when nobody answers in the time of %s', async (_, deskOptions, options) => {
  const { tool, ran } = dangerous()
  const { desk, approve } = staffed(() => {}, deskOptions)
  const script = [LAUNCH, { text: 'fine' }]
  const { run } = await play({ script, tools: [tool], options: { ...options, approve } })
  const events = await run()
  expect(results(events)).toEqual([{ error: expect.stringContaining('nobody answered') }])
  expect(events.at(-1)).toMatchObject({ finishReason: 'stop', text: 'fine' })
  expect(ran()).toBe(0)
  expect(desk.pending).toEqual([])
})

test('a run can be stopped while it waits for an approval', async () => {
  const { tool, ran } = dangerous()
  const stop = new AbortController()
  const { desk, approve } = staffed(() => stop.abort())
  const { run } = await play({ script: [LAUNCH, { text: 'never' }], tools: [tool], options: { approve } })
  expect((await run('s', stop.signal)).at(-1)).toMatchObject({ finishReason: 'aborted' })
  expect(ran()).toBe(0)
  expect(desk.pending).toEqual([])
})

test('the answer "always" holds for the session, after a restart too, and for no other session', async () => {
  const store = `sqlite:${await temporaryFolder()}/lango.db`
  const { tool, ran } = dangerous()
  const script = () => LAUNCH
  let asked = 0
  const start = async () => {
    // A new desk each time: what is remembered is in the store.
    const { approve } = staffed((callId, desk) => {
      asked++
      desk.answer(callId, asked === 1 ? 'always' : 'no')
    })
    const steps: Script = [{ toolCalls: [...LAUNCH.toolCalls, ...script().toolCalls] }, { text: 'a' }]
    return play({ store, script: [...steps, ...steps], tools: [tool], options: { approve } })
  }
  const first = await start()
  expect(results(await first.run())).toEqual([{ launched: 1 }, { launched: 2 }])
  expect((await first.runtime.store.loadSession(KEY))?.state).toMatchObject({
    'lango:approvals': ['launch'],
  })
  await first.runtime.close()
  const second = await start()
  expect(results(await second.run())).toEqual([{ launched: 3 }, { launched: 4 }])
  expect(asked).toBe(1)
  expect(results(await second.run('other'))).toEqual([
    { error: expect.stringContaining('refused') },
    { error: expect.stringContaining('refused') },
  ])
  expect(ran()).toBe(4)
})

test('an output that is too long is kept whole, and the model pages through it', async () => {
  const kept = new Map<string, string>()
  const text = Array.from({ length: 4_000 }, (_, index) => `line ${index}`).join('\n')
  const long = defineTool({
    name: 'long',
    description: 'Long.',
    parameters: { type: 'object', properties: {} },
    effect: 'read',
    execute: () => ({ text }),
  })
  const readOutput = readOutputTool(async (reference, offset, length, { sessionId }) => {
    const whole = kept.get(`${sessionId}/${reference}`)
    if (whole === undefined) return undefined
    return { text: whole.slice(offset, offset + length), totalCharacters: whole.length }
  })
  const keepWhole: ToolAdapterOptions['keepWhole'] = async (callId, name, json, { sessionId }) => {
    expect([name, callId]).toEqual(['long', expect.stringMatching(/./)])
    kept.set(`${sessionId}/out-1`, json)
    return 'out-1'
  }
  const read = (args: object) => ({
    toolCalls: [{ name: 'read_output', args: { reference: 'out-1', ...args } }],
  })
  const { run } = await play({
    script: [
      { toolCalls: [{ name: 'long', args: {} }] },
      read({ length: 16_000 }),
      read({ offset: 16_000, length: 16_000 }),
      read({ offset: 32_000, length: 16_000 }),
      read({ offset: 1_000_000 }),
      read({ reference: 'out-2' }),
      { text: 'read' },
    ],
    tools: [long, readOutput],
    options: { keepWhole, outputLimitTokens: 6_000 },
  })
  const [shortened, ...pages] = results(await run()) as Record<string, unknown>[]
  expect(shortened?.text).toMatch(/shortened by Lango.*kept as "out-1".*read_output/)
  const whole = JSON.stringify({ text })
  expect(
    pages
      .slice(0, 3)
      .map(page => page.text)
      .join(''),
  ).toBe(whole)
  expect(pages.map(page => page.nextOffset)).toEqual([16_000, 32_000, undefined, undefined, undefined])
  expect(pages[3]).toMatchObject({ text: '', totalCharacters: whole.length })
  expect(pages[4]).toEqual({ error: 'No stored output "out-2" in this session.' })
})
