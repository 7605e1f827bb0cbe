// The one retry of a request that was refused for a picture: paid for once, remembered for the session, and never made for
// anything else.
import { LlmAgent, ParallelAgent } from '@google/adk'
import { expect, onTestFinished, test, vi } from 'vitest'
import { ModelAdapter } from '../../src/adk/model/model-adapter.js'
import type { StrictStep } from '../../src/entries/testing.js'
import { AgentError } from '../../src/errors.js'
import type { StreamEvent } from '../../src/provider/stream-event.js'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import { openStore } from '../../src/store/open-store.js'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'
import { defineTool } from '../../src/tool.js'
import { providerFor } from '../support/every-profile.js'
import { png } from '../support/pictures.js'
import { brokenPairs, type SentRecord } from '../support/steady.js'
import { temporaryFolder } from '../support/temporary-folder.js'

const key = { appName: 'lango', userId: 'user', sessionId: 's' }
const BROKEN = Buffer.from('no picture').toString('base64')
const model = 'main/claude-sonnet-4-6'

async function server(script: (index: number) => StrictStep = () => ({ text: 'ok' })) {
  const started = await startStrictProvider({
    ...{ profile: 'anthropic-4.6', limits: 'strict', script: (_, index) => script(index) },
  })
  onTestFinished(() => started.close())
  return started
}

async function start(baseUrl: string, store = 'memory:', more: object = {}): Promise<Runtime> {
  return createRuntime({
    store,
    providers: { main: providerFor('anthropic-4.6', baseUrl) },
    agent: { name: 'root', model, ...more },
  })
}

const say = (runtime: Runtime, text: string, ...pictures: string[]) =>
  runtime.runAndCollect({
    sessionId: key.sessionId,
    text,
    parts: pictures.map(data => ({ inlineData: { mimeType: 'image/png', data } })),
  })

test('a refused picture is paid for once, also after a restart', async () => {
  const folder = await temporaryFolder()
  const { baseUrl, requests, violations } = await server()
  for (let process = 0; process < 3; process++) {
    const runtime = await start(baseUrl, `sqlite:${folder}/lango.db`)
    const first = await say(runtime, 'look', ...(process === 0 ? [BROKEN] : []))
    expect(first.text).toBe('ok')
    expect((await say(runtime, 'and?')).text).toBe('ok')
    await runtime.close()
  }
  expect(violations.map(({ message }) => message)).toEqual(['Could not process image'])
  expect(requests).toHaveLength(7)
  for (const { body } of requests.slice(1)) expect(JSON.stringify(body)).not.toContain(BROKEN)
})

test('the retry is in the stored requests, with the words of the provider', async () => {
  const { baseUrl } = await server()
  const runtime = await start(baseUrl)
  const { runId } = await say(runtime, 'look', BROKEN)
  const inspection = await runtime.inspect(runId)
  const kinds = inspection?.steps.map(({ repairs }) => repairs.map(({ kind }) => kind))
  expect(kinds?.[0]).toEqual([])
  expect(kinds?.[1]).toContain('refused-by-provider')
  const receipt = inspection?.steps[1]?.repairs.find(({ kind }) => kind === 'refused-by-provider')
  expect(receipt?.detail).toContain('“Could not process image”')
  await runtime.close()
})

test('every request extends the one before it, or a receipt says why not', async () => {
  const folder = await temporaryFolder()
  const { baseUrl } = await server()
  const runtime = await start(baseUrl, `sqlite:${folder}/lango.db`)
  for (const pictures of [[png()], [BROKEN], [], [png({ fill: 2 })], [png({ width: 9000 })], []])
    expect((await say(runtime, 'look', ...pictures)).text).toBe('ok')
  await runtime.close()
  const store = await openStore(`sqlite:${folder}/lango.db`)
  const all: SentRecord[] = []
  for (const { runId } of (await store.runs.listRuns(key, { limit: 100 })).toReversed())
    for (const { record } of await store.runs.readRequests(runId)) all.push(record as unknown as SentRecord)
  await store.close()
  expect(all).toHaveLength(7)
  expect(brokenPairs(all)).toEqual([])
})

test('a request that is refused again without the newest picture is not sent a third time', async () => {
  const { baseUrl, requests } = await server()
  const other = await startStrictProvider({ profile: 'gemini-3', script: () => ({ text: 'seen' }) })
  onTestFinished(() => other.close())
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { main: providerFor('anthropic-4.6', baseUrl), other: providerFor('gemini-3', other.baseUrl) },
    agent: { name: 'root', model },
  })
  onTestFinished(() => runtime.close())
  const picture = (text: string) => [{ inlineData: { mimeType: 'image/png', data: btoa(text) } }]
  const look = { sessionId: 's', text: 'look' }
  await runtime.runAndCollect({ ...look, parts: picture('old'), model: 'other/gemini-3.5-flash' })
  await expect(runtime.runAndCollect({ ...look, parts: picture('new') })).rejects.toThrow(
    'Could not process image',
  )
  expect(requests).toHaveLength(2)
  expect(JSON.stringify(requests[1]?.body)).toContain(btoa('old'))
  // The next turn has no media: those that the model has not answered are left out.
  expect(await say(runtime, 'and?')).toMatchObject({ text: 'ok' })
  expect(requests).toHaveLength(4)
  expect(await say(runtime, 'and now?')).toMatchObject({ text: 'ok' })
  expect(requests).toHaveLength(5)
})

test('a picture that another model has seen is left out where it is refused, and is there again for that model', async () => {
  const { baseUrl, requests } = await server()
  const other = await startStrictProvider({ profile: 'gemini-3', script: () => ({ text: 'seen' }) })
  onTestFinished(() => other.close())
  const folder = await temporaryFolder()
  const open = () =>
    createRuntime({
      store: `sqlite:${folder}/lango.db`,
      providers: {
        main: providerFor('anthropic-4.6', baseUrl),
        other: providerFor('gemini-3', other.baseUrl),
      },
      agent: { name: 'root', model },
    })
  const first = await open()
  const look = { sessionId: key.sessionId, text: 'look', model: 'other/gemini-3.5-flash' }
  await first.runAndCollect({ ...look, parts: [{ inlineData: { mimeType: 'image/png', data: BROKEN } }] })
  expect(await say(first, 'and?')).toMatchObject({ text: 'ok' })
  await first.close()
  const second = await open()
  onTestFinished(() => second.close())
  expect(await say(second, 'and now?')).toMatchObject({ text: 'ok' })
  expect(requests).toHaveLength(3)
  expect(await second.runAndCollect(look)).toMatchObject({ text: 'seen' })
  expect(JSON.stringify(other.requests.at(-1)?.body)).toContain(BROKEN)
})

test('pictures that the model has answered are not left out for a later refusal without a place', async () => {
  const good = png({ fill: 7 })
  const { baseUrl, requests } = await server()
  const other = await startStrictProvider({ profile: 'gemini-3', script: () => ({ text: 'seen' }) })
  onTestFinished(() => other.close())
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { main: providerFor('anthropic-4.6', baseUrl), other: providerFor('gemini-3', other.baseUrl) },
    agent: { name: 'root', model },
  })
  onTestFinished(() => runtime.close())
  expect(await say(runtime, 'look', good)).toMatchObject({ text: 'ok' })
  const look = { sessionId: key.sessionId, text: 'look', model: 'other/gemini-3.5-flash' }
  await runtime.runAndCollect({ ...look, parts: [{ inlineData: { mimeType: 'image/png', data: BROKEN } }] })
  expect(await say(runtime, 'and?')).toMatchObject({ text: 'ok' })
  expect(requests).toHaveLength(3)
  const last = JSON.stringify(requests.at(-1)?.body)
  expect(last).toContain(good)
  expect(last).not.toContain(BROKEN)
})

test('a turn that was aborted before its picture was refused does not end the session', async () => {
  const { baseUrl, requests, violations, close } = await startStrictProvider({
    profile: 'anthropic-4.6',
    script: () => ({ text: 'ok' }),
    limits: 'strict',
    faults: [{ at: 0, kind: '429', retryAfter: 30 }],
  })
  onTestFinished(close)
  const runtime = await start(baseUrl)
  onTestFinished(() => runtime.close())
  const abort = new AbortController()
  const parts = [{ inlineData: { mimeType: 'image/png', data: BROKEN } }]
  const aborted = runtime.runAndCollect({
    sessionId: key.sessionId,
    text: 'look',
    parts,
    signal: abort.signal,
  })
  await vi.waitFor(() => expect(requests).toHaveLength(1))
  abort.abort()
  await aborted.catch(() => undefined)
  expect(await say(runtime, 'and?')).toMatchObject({ text: 'ok' })
  expect(await say(runtime, 'and now?')).toMatchObject({ text: 'ok' })
  expect(violations).toHaveLength(1)
  expect(requests).toHaveLength(4)
})

test('broken pictures of tools that ran in parallel are left out together', async () => {
  const camera = (name: string) =>
    defineTool({
      name,
      description: 'Takes a picture.',
      parameters: { type: 'object', properties: {} },
      effect: 'read',
      execute: () => ({ 'lango:media': [{ mimeType: 'image/png', data: btoa(name) }] }),
    })
  const { baseUrl, requests } = await server(index =>
    index === 0 ? { toolCalls: ['left', 'right'].map(name => ({ name, args: {} })) } : { text: 'ok' },
  )
  const runtime = await start(baseUrl, 'memory:', { tools: [camera('left'), camera('right')] })
  onTestFinished(() => runtime.close())
  expect(await say(runtime, 'look')).toMatchObject({ finishReason: 'stop', text: 'ok' })
  expect(requests).toHaveLength(3)
})

test('a text that quotes a refusal is no refusal of a picture', async () => {
  const started = await startStrictProvider({
    ...{ profile: 'anthropic-4.6', script: () => ({ text: 'ok' }), models: ['another'], platform: 'bedrock' },
  })
  onTestFinished(() => started.close())
  const runtime = await createRuntime({
    store: 'memory:',
    providers: {
      main: { type: 'bedrock', apiKey: 'k', region: 'r', baseUrl: started.baseUrl, profile: 'anthropic-4.6' },
    },
    agent: { name: 'root', model },
  })
  await say(runtime, 'Could not process image', png()).catch(() => undefined)
  expect(started.requests).toHaveLength(1)
  await runtime.close()
})

test('a refused picture of a tool is left out, and its result stays', async () => {
  const camera = defineTool({
    name: 'camera',
    description: 'Takes a picture.',
    parameters: { type: 'object', properties: {} },
    effect: 'read',
    execute: () => ({ note: 'taken', 'lango:media': [{ mimeType: 'image/png', data: BROKEN }] }),
  })
  const { baseUrl, requests } = await server(index =>
    index === 0 ? { toolCalls: [{ name: 'camera', args: {} }] } : { text: 'ok' },
  )
  const runtime = await start(baseUrl, 'memory:', { tools: [camera] })
  expect(await say(runtime, 'look')).toMatchObject({ finishReason: 'stop', text: 'ok' })
  const last = JSON.stringify(requests.at(-1)?.body)
  expect(last).toContain('taken')
  expect(last).toContain('not shown, because the provider refused it')
  await runtime.close()
})

test('the retry is held to the budget of the run', async () => {
  const { baseUrl, requests } = await server()
  // The first request is in the budget, and the refused one keeps its share of it: nothing is left for another.
  const runtime = await start(baseUrl)
  onTestFinished(() => runtime.close())
  const parts = [{ inlineData: { mimeType: 'image/png', data: BROKEN } }]
  const poor = runtime.runAndCollect({
    sessionId: 'a',
    text: 'look',
    parts,
    budget: { perRunUsd: 0.000_001 },
  })
  expect(await poor.catch(() => ({ text: '' }))).not.toMatchObject({ text: 'ok' })
  expect(requests).toHaveLength(0)
  const rich = await runtime.runAndCollect({ sessionId: 'b', text: 'look', parts, budget: { perRunUsd: 1 } })
  expect(rich).toMatchObject({ text: 'ok' })
  expect(requests).toHaveLength(2)
})

test('parallel agents that get the same refusal are both answered, and the session knows it afterwards', async () => {
  const { baseUrl, requests, violations } = await server()
  const worker = (name: string) => new LlmAgent({ name, model } as never)
  const rootAgent = new ParallelAgent({ name: 'both', subAgents: [worker('left'), worker('right')] })
  const runtime = await createRuntime({
    store: 'memory:',
    rootAgent,
    providers: { main: providerFor('anthropic-4.6', baseUrl) },
  })
  onTestFinished(() => runtime.close())
  expect(await say(runtime, 'look', BROKEN)).toMatchObject({ finishReason: 'stop' })
  // Each may have been sent before the other was refused.
  const refused = violations.length
  expect(refused).toBeGreaterThanOrEqual(1)
  expect(refused).toBeLessThanOrEqual(2)
  expect(requests).toHaveLength(2 + refused)
  expect(await say(runtime, 'and?')).toMatchObject({ finishReason: 'stop' })
  expect(violations).toHaveLength(refused)
  expect(requests).toHaveLength(4 + refused)
})

test('sessions that run at once learn each for itself, and a refusal costs each one request', async () => {
  const { baseUrl, requests, violations } = await server()
  const runtime = await start(baseUrl)
  onTestFinished(() => runtime.close())
  const parts = [{ inlineData: { mimeType: 'image/png', data: BROKEN } }]
  const sessions = Array.from({ length: 6 }, (_, index) => `s${index}`)
  const first = await Promise.all(
    sessions.map(sessionId => runtime.runAndCollect({ sessionId, text: 'look', parts })),
  )
  expect(first.map(({ text }) => text)).toEqual(sessions.map(() => 'ok'))
  await Promise.all(sessions.map(sessionId => runtime.runAndCollect({ sessionId, text: 'and?' })))
  expect(violations).toHaveLength(6)
  expect(requests).toHaveLength(18)
})

test('a refusal after the answer has begun is not answered by another request', async () => {
  let sent = 0
  const refused = { parts: [['digest', 'No.']], limits: 'documented' }
  const error = new AgentError('provider-rejected', 'Could not process image', { details: { refused } })
  async function* generate(begins: boolean): AsyncGenerator<StreamEvent> {
    sent += 1
    yield { type: 'request', model: 'm', profile: 'anthropic-4.6', repairs: [], mappedIds: {}, body: {} }
    if (begins) yield { type: 'text-delta', text: 'It is ' }
    yield { type: 'error', error }
  }
  const info = { id: 'm', contextWindow: 1000, outputLimit: 100, profile: 'anthropic-4.6', known: true }
  for (const begins of [true, false]) {
    sent = 0
    const provider = { id: 'p', generate: () => generate(begins), describeModel: () => info }
    const request = { contents: [{ role: 'user', parts: [{ text: 'look' }] }], toolsDict: {}, config: {} }
    const answers = new ModelAdapter({ provider, model: 'm' }).generateContentAsync(request as never, true)
    const readAll = async () => {
      for await (const answer of answers) expect(answer.errorCode).toBeUndefined()
    }
    await expect(readAll()).rejects.toThrow('Could not process image')
    expect(sent).toBe(begins ? 1 : 2)
  }
})
