// What the inspector reads is read from requests that were really sent: one session goes through all families
// of wires, and strict servers have accepted every body.
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { RunInspection } from '../../src/observe/inspect.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import type { ChatMessage } from '../../src/session/chat-message.js'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'
import { type DescribedRow, describeStep } from '../../web/src/inspector/describe-rows.js'
import { budgetPicture, cutsOf } from '../../web/src/inspector/step-facts.js'
import { readWireRequest, type WireFamily } from '../../web/src/inspector/wire-messages.js'
import { openScene, SCENE_KEY, type Scene, type SceneFamily } from '../support/inspector-scene.js'

const FAMILIES: [SceneFamily, WireFamily][] = [
  ['gemini', 'gemini'],
  ['chat', 'openai-chat'],
  ['responses', 'openai-responses'],
  ['anthropic', 'anthropic'],
]

let scene: Scene
let stored: ChatMessage[]
const inspections = new Map<SceneFamily, RunInspection>()

beforeAll(async () => {
  scene = await openScene()
  stored = await scene.runtime.messages(SCENE_KEY, { afterSeq: 0, limit: 100 })
  for (const [family] of FAMILIES) {
    const inspection = await scene.runtime.inspect(scene.runs[family])
    if (inspection) inspections.set(family, inspection)
  }
})

afterAll(() => scene.close())

function stepOf(family: SceneFamily, number: 1 | 2) {
  const step = inspections.get(family)?.steps[number - 1]
  expect(step).toBeDefined()
  return step!
}

function describedStep(family: SceneFamily, number: 1 | 2) {
  const step = stepOf(family, number)
  const request = readWireRequest(step.sent.body)
  return { step, request, ...describeStep(step, request, stored) }
}

const texts = (row: DescribedRow) => row.notes.map(note => note.text)

test('no server has refused a request of the scene', () => {
  expect(Object.values(scene.servers).flatMap(server => [...server.violations])).toEqual([])
})

describe.each(FAMILIES)('requests to %s', (family, wire) => {
  test(`a request to ${family} is read as messages, instruction and tools`, () => {
    const request = readWireRequest(stepOf(family, 2).sent.body)
    expect(request.family).toBe(wire)
    expect(request.system).toContain('You plan journeys.')
    expect(request.tools).toMatchObject([
      { name: 'search', description: 'Searches.', parameters: { properties: { query: { type: 'string' } } } },
    ])
    const parts = request.messages.flatMap(message => message.parts)
    expect(parts.filter(part => part.type === 'other')).toEqual([])
    expect(parts.some(part => part.type === 'text' && part.text === 'Look up the ferries, please.')).toBe(
      true,
    )
    const calls = parts.filter(part => part.type === 'tool-call').map(part => part.callId)
    const results = parts.filter(part => part.type === 'tool-result').map(part => part.callId)
    expect(calls.length).toBeGreaterThan(2)
    expect(results).toEqual(calls)
    expect(request.settings).not.toHaveProperty('tools')
  })

  test(`a request to ${family} is aligned with the stored messages in the order of the request`, () => {
    for (const number of [1, 2] as const) {
      const { rows, request } = describedStep(family, number)
      const sent = rows.flatMap(row => row.sent.map(message => message.index))
      expect(sent).toEqual(request.messages.map(message => message.index))
      const seqs = rows.flatMap(row => row.stored.map(message => message.seq))
      expect(seqs).toEqual([...seqs].sort((one, other) => one - other))
    }
  })

  test(`a request to ${family} is aligned only with messages that were stored before it`, () => {
    const question = stored.findIndex(
      message => message.seq > (stepOf(family, 1).stored?.messages ?? 0) && message.role === 'user',
    )
    const newest = (number: 1 | 2) =>
      Math.max(...describedStep(family, number).rows.flatMap(row => row.stored.map(({ seq }) => seq)))
    expect(newest(1)).toBe(stored[question]?.seq)
    // The second request follows two calls and their results.
    expect(newest(2)).toBe((stored[question]?.seq ?? 0) + 2)
  })

  test(`a request to ${family} shows what the budget has cut and what that would have cost`, () => {
    const { rows, step } = describedStep(family, 1)
    const cuts = cutsOf(step)
    expect(cuts.messages).toBeGreaterThan(0)
    const cut = rows.filter(row => row.notes.some(note => note.kind === 'cut'))
    expect(cut.length).toBe(cuts.messages)
    expect(cut.every(row => row.fate === 'not-sent')).toBe(true)
    const tokens = cut.flatMap(row => row.stored).reduce((all, message) => all + message.tokens, 0)
    expect(tokens).toBe(cuts.tokens)
  })

  test(`a request to ${family} shows the result that repair added for the lost call, and its call`, () => {
    const { rows } = describedStep(family, 1)
    const call = rows.findIndex(row => row.stored.some(({ parts }) => parts.some(isLostCall)))
    expect(texts(rows[call]!)).toContain('The call of search had no result: one was added that says so.')
    expect(rows[call + 1]).toMatchObject({ fate: 'added', stored: [] })
    expect(texts(rows[call + 1]!)[0]).toMatch(/^Added by repair: The call of search had no result/)
  })

  test(`a request to ${family} shows the orphaned result as the note that it became`, () => {
    const { rows, repairSeqs, step } = describedStep(family, 1)
    const row = rows.find(({ stored: [message] }) => message?.seq === 27)
    expect(row?.fate).toBe('changed')
    expect(texts(row!)).toContain('A result of search without a call became a text note.')
    const orphan = step.repairs.findIndex(repair => repair.step === 'drop-orphans')
    expect(repairSeqs[orphan]).toBe(27)
  })

  test(`a request to ${family} has calls and results of every other vendor unchanged`, () => {
    const { rows } = describedStep(family, 2)
    const plain = rows.filter(row => row.stored.some(message => message.seq > 28))
    expect(plain.length).toBeGreaterThan(0)
    expect(plain.filter(row => row.fate === 'not-sent' || row.fate === 'added')).toEqual([])
  })

  test(`a request to ${family} has the numbers of its budget`, () => {
    const { step, request } = describedStep(family, 1)
    const picture = budgetPicture(step, request, { budgetTokens: 2000 })
    expect(picture).toMatchObject({ budget: 2000, counted: 1900, cut: cutsOf(step).tokens })
    expect(picture.system).toBeGreaterThan(10)
    expect(picture.tools).toBeGreaterThan(10)
    expect(picture.kept).toBeGreaterThan(1000)
    expect(picture.kept).toBeLessThanOrEqual(2000)
  })
})

test('ids that a provider refuses are shown with the id on its wire', () => {
  const { rows, step } = describedStep('anthropic', 1)
  const wire = step.mappedIds['lost call/1']
  expect(wire).toMatch(/^[a-zA-Z0-9_-]+$/)
  const row = rows.find(({ stored: [message] }) => message?.parts.some(isLostCall))
  expect(texts(row!)).toContain(`Id lost call/1 is ${wire} on the wire`)
})

test('kept signatures are shown in the messages that hold them, and in no other', () => {
  const { rows } = describedStep('gemini', 2)
  const signed = rows.filter(row => row.notes.some(note => note.kind === 'signed'))
  expect(signed.length).toBe(1)
  expect(signed[0]?.stored[0]?.parts[0]).toMatchObject({ type: 'tool-call', signed: true })
  expect(
    describedStep('chat', 2)
      .rows.flatMap(row => row.notes)
      .filter(note => note.kind === 'signed'),
  ).toEqual([])
})

test('what another agent said is aligned with the quotation that this agent was sent', async () => {
  const server = await startStrictProvider({
    profile: 'openai-chat',
    script: [
      { text: 'Over to you.', toolCalls: [{ name: 'transfer_to_agent', args: { agentName: 'helper' } }] },
      { text: 'Here is the answer.' },
    ],
  })
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { chat: { type: 'openai', api: 'chat', apiKey: 'k', baseUrl: server.baseUrl } },
    agent: {
      name: 'root',
      model: 'chat/gpt-4.1',
      multiAgent: true,
      subAgents: [{ name: 'helper', description: 'Helps.' }],
    },
  })
  onTestFinished(async () => {
    await runtime.close()
    await server.close()
  })
  const { runId } = await runtime.runAndCollect({ sessionId: 'scene', text: 'help me' })
  const messages = await runtime.messages(SCENE_KEY, { afterSeq: 0 })
  const step = (await runtime.inspect(runId))?.steps[1]
  const { rows } = describeStep(step!, readWireRequest(step?.sent.body), messages)
  expect(rows.map(row => [row.stored.map(({ seq }) => seq), row.sent.length, texts(row)])).toEqual([
    [[1], 1, []],
    [[2], 1, ['Quoted from another agent']],
    [[3], 1, ['Quoted from another agent']],
  ])
})

function isLostCall(part: ChatMessage['parts'][number]): boolean {
  return part.type === 'tool-call' && part.id === 'lost call/1'
}
