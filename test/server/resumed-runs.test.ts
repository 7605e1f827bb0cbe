// Runs that are continued by another process, and runs that wait for a person, as clients of the server see them.
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { AgentError } from '../../src/errors.js'
import { withGenerate } from '../../src/provider/provider.js'
import type { RunEvent, RunEventBody } from '../../src/run/run-event.js'
import { emptyUsage } from '../../src/session/usage.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { applyRunEvent, newRunTranscript } from '../../src/transcript/from-events.js'
import { eventually } from '../support/eventually.js'
import { startServer, startServerProcess, type TestServer } from '../support/start-server.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { LONG } from '../support/tiers.js'
import { continueRun, setState, storeWaitingRun } from '../support/waiting-run.js'

// Starting processes takes long on a busy machine.
vi.setConfig({ testTimeout: 120_000 })

const usage = emptyUsage()
const say = (text: string): RunEventBody => ({ type: 'text-delta', author: 'root', text })
const used: RunEventBody = { type: 'usage', author: 'root', model: 'play/model', usage }
const resumed: RunEventBody = { type: 'run-resumed', attempt: 2, replayedSteps: 1 }
const restart: RunEventBody = { type: 'step-restart', step: 2 }
const finish = (text: string): RunEventBody => {
  return { type: 'run-finish', finishReason: 'stop', text, turns: 1, delegations: 0, usage }
}

async function storeUrl(): Promise<string> {
  return `sqlite:${join(await temporaryFolder(), 'lango.db')}`
}

/** The data of a stream of server-sent events, as far as it is JSON. */
async function dataOf(response: Response): Promise<Record<string, unknown>[]> {
  const lines = (await response.text()).split('\n').filter(line => line.startsWith('data: {'))
  return lines.map(line => JSON.parse(line.slice('data: '.length)) as Record<string, unknown>)
}

/** Reads a body until its end, or until the connection is closed. */
function readUntilClosed({ body }: Response) {
  const read = { text: '', isWhole: false }
  const decoder = new TextDecoder()
  const closed = (async () => {
    for await (const bytes of body ?? []) read.text += decoder.decode(bytes, { stream: true })
    read.isWhole = true
  })().catch(() => {})
  return { read, closed }
}

function post(server: { url: string }, path: string, body: object, headers: Record<string, string> = {}) {
  const json = { 'content-type': 'application/json', ...headers }
  return fetch(`${server.url}${path}`, { method: 'POST', headers: json, body: JSON.stringify(body) })
}

/** Text reaches the reader of its own process first; other processes see it once it is stored. */
async function untilTextIsStored({ runtime }: TestServer, runId: string): Promise<void> {
  const types = async () => (await runtime.store.runs.readEvents(runId)).map(({ type }) => type)
  await eventually(types).toContain('text-delta')
}

test('a run that waits for a person is returned with its question, and accepts the answer', async () => {
  const store = await storeUrl()
  const runId = await storeWaitingRun(store)
  const { client, runtime } = await startServer({ store })
  const question = { callId: 'call-1', tool: 'send_letter', args: { to: 'Ada' }, asks: 'approval' }
  expect(await client.run(runId)).toMatchObject({ status: 'waiting', waitsFor: [question] })
  expect(await client.session('s1')).toMatchObject({
    activeRun: { runId, status: 'waiting', waitsFor: [question] },
  })
  await client.approve(runId, 'call-1', 'once')
  expect(await runtime.store.runs.takeSignals(runId)).toEqual([
    { type: 'approval', callId: 'call-1', answer: 'once' },
  ])
})

test('the active run of a session is the queued one when none has begun', async () => {
  const { client } = await startServer()
  const first = await client.start('s1', { text: 'hang' })
  const next = await client.start('s1', { text: 'say 1', whenBusy: 'queue' })
  expect((await client.session('s1')).activeRun?.runId).toBe(first.runId)
  const done = (async () => {
    for await (const event of client.follow(next.runId))
      if (event.type === 'run-finish') return event.finishReason
  })()
  await client.stop(first.runId)
  expect(await done).toBe('stop')
  expect(await client.session('s1')).not.toHaveProperty('activeRun')
})

test('resuming a run that has ended or does not exist is refused', async () => {
  const { client } = await startServer()
  const { runId } = await client.start('s1', { text: 'say 1' })
  for await (const _event of client.follow(runId));
  await expect(client.resume(runId)).rejects.toMatchObject({ code: 'invalid-argument' })
  await expect(client.resume('6f9b2a52-0a0e-4c6b-9d6a-3a1f0c7d1e11')).rejects.toMatchObject({ status: 404 })
})

test('a follower gets the events of the attempt that continues the run', async () => {
  const store = await storeUrl()
  const runId = await storeWaitingRun(store, { state: 'running', events: [say('The ans')] })
  const { client } = await startServer({ store })
  const seen: string[] = []
  for await (const event of client.follow(runId, { after: 1 })) {
    seen.push(event.type)
    if (event.type === 'text-delta' && event.text === 'The ans')
      await continueRun(store, runId, [resumed, restart, say('The answer.'), used, finish('The answer.')])
  }
  expect(seen).toEqual(['text-delta', 'run-resumed', 'step-restart', 'text-delta', 'usage', 'run-finish'])
})

test('the AI SDK’s stream ends a half answer that restarts as void, and a later stream is without it', async () => {
  const store = await storeUrl()
  const runId = await storeWaitingRun(store, { state: 'running', events: [say('The ans')] })
  const server = await startServer({ store })
  const response = await fetch(`${server.url}/api/chat/s1/stream`)
  const late: RunEventBody[] = [resumed, restart, say('The answer.'), used, finish('The answer.')]
  await continueRun(store, runId, late.slice(0, 3))
  const again = await fetch(`${server.url}/api/chat/s1/stream`)
  await continueRun(store, runId, late.slice(3))
  const chunks = await dataOf(response)
  const types = chunks.map(({ type }) => type)
  expect(types).toEqual([
    'start',
    'start-step',
    'text-start',
    'text-delta',
    'data-run-resumed',
    'text-end',
    'data-step-restart',
    'finish-step',
    'start-step',
    'text-start',
    'text-delta',
    'text-end',
    'data-usage',
    'finish-step',
    'finish',
  ])
  expect(chunks).toContainEqual({
    type: 'text-end',
    id: expect.stringMatching(/^text-\d+$/),
    providerMetadata: { lango: { void: true } },
  })
  expect(chunks).toContainEqual(expect.objectContaining({ data: { step: 2, voidParts: 1 } }))
  const texts = (await dataOf(again)).filter(({ type }) => type === 'text-delta')
  expect(texts.map(({ delta }) => delta)).toEqual(['The answer.'])
})

test('a restart of a step that has said nothing takes nothing back', async () => {
  const store = await storeUrl()
  const runId = await storeWaitingRun(store, { state: 'running', events: [say('Let me see.'), used] })
  const server = await startServer({ store })
  const response = await fetch(`${server.url}/api/chat/s1/stream`)
  await continueRun(store, runId, [resumed, restart, say('The answer.'), used, finish('The answer.')])
  const chunks = await dataOf(response)
  expect(chunks.filter(({ type }) => type === 'text-delta').map(({ delta }) => delta)).toEqual([
    'Let me see.',
    'The answer.',
  ])
  expect(JSON.stringify(chunks)).not.toContain('"void":true')
  const events = (await server.runtime.store.runs.readEvents(runId)) as unknown as RunEvent[]
  const shown = events.reduce(
    (run, event) => applyRunEvent(run, event),
    newRunTranscript({ runId, afterSeq: 0 }),
  )
  const texts = shown.items.flatMap(item => (item.kind === 'text' ? item.text : []))
  expect(texts).toEqual(['Let me see.', 'The answer.'])
  const task = await (await fetch(`${server.url}/a2a/tasks/${runId}`)).json()
  expect(JSON.stringify(task)).toMatch(/Let me see\..*The answer\./)
})

/** Sends a request whose run waits for an approval, and returns the answer to it. */
async function answerWhileWaiting(server: TestServer, store: string, send: () => Promise<Response>) {
  const answer = send()
  const key = { appName: 'lango', userId: 'user', sessionId: 's1' }
  const newest = async () => (await server.runtime.store.runs.listRuns(key))[0]?.runId ?? ''
  await eventually(async () => {
    const events = await server.runtime.store.runs.readEvents(await newest())
    return events.map(({ type }) => type)
  }).toContain('approval-request')
  const runId = await newest()
  setState(store, runId, 'waiting')
  return { runId, response: await answer }
}

const danger = { model: 'lango', messages: [{ role: 'user', content: 'danger' }] }
const inSession = { 'x-lango-session': 's1' }
const waiting = { status: 'waiting', waitsFor: [{ callId: 'call-danger', tool: 'danger', asks: 'approval' }] }

test('OpenAI’s completion of a run that waits for a person says so in its text and as data', async () => {
  const store = await storeUrl()
  const server = await startServer({ store })
  const send = () => post(server, '/v1/chat/completions', danger, inSession)
  const { runId, response } = await answerWhileWaiting(server, store, send)
  expect(response.status).toBe(200)
  expect(await response.json()).toMatchObject({
    choices: [{ message: { content: expect.stringContaining(runId) }, finish_reason: 'stop' }],
    lango: { ...waiting, runId },
  })
})

test('OpenAI’s stream of a run that waits for a person ends with the question', async () => {
  const store = await storeUrl()
  const server = await startServer({ store })
  const send = () => post(server, '/v1/chat/completions', { ...danger, stream: true }, inSession)
  const { runId, response } = await answerWhileWaiting(server, store, send)
  const chunks = await dataOf(response)
  expect(JSON.stringify(chunks)).toContain('danger needs approval (once, always or no), call call-danger')
  expect(chunks.at(-1)).toMatchObject({ choices: [{ finish_reason: 'stop' }], lango: { ...waiting, runId } })
})

test('ADK’s /run of a run that waits for a person returns its events and the question', async () => {
  const store = await storeUrl()
  const server = await startServer({ store })
  await server.client.createSession({ sessionId: 's1' })
  const newMessage = { role: 'user', parts: [{ text: 'danger' }] }
  const body = { appName: 'lango', userId: 'user', sessionId: 's1', newMessage }
  const { runId, response } = await answerWhileWaiting(server, store, () => post(server, '/run', body))
  expect(response.status).toBe(200)
  const events = (await response.json()) as Record<string, unknown>[]
  expect(events).toHaveLength(2)
  expect(events[1]).toMatchObject({
    partial: false,
    content: { parts: [{ functionCall: { name: 'adk_request_confirmation' } }] },
    customMetadata: { lango: { ...waiting, runId } },
  })
})

test(
  'OpenAI’s stream is closed without an end when another process restarts the answer, and the repeated request has it once',
  LONG,
  async () => {
    const store = await storeUrl()
    // The model of the other process stops in the middle of the answer; this one completes it.
    const provider = new ScriptedProvider([{ text: 'The answer.' }], { id: 'play' })
    const server = await startServer({ store, provider })
    const other = await startServerProcess(store)
    const hang = { model: 'lango', messages: [{ role: 'user', content: 'hang' }], stream: true }
    const first = await post(other, '/v1/chat/completions', hang, inSession)
    const cut = readUntilClosed(first)
    const runId = first.headers.get('x-lango-run') ?? ''
    await untilTextIsStored(server, runId)
    const live = await post(server, '/v1/chat/completions', hang, inSession)
    expect(live.headers.get('x-lango-run')).toBe(runId)
    const { read, closed } = readUntilClosed(live)
    // A reader that gets its first event after the restart is shown the second answer only.
    await eventually(() => read.text).toContain('word1')
    await other.kill()
    await cut.closed
    expect(cut.read.isWhole).toBe(false)
    await closed
    expect(read).toMatchObject({ text: expect.stringContaining('word1'), isWhole: false })
    expect(read.text).not.toMatch(/finish_reason":"|\[DONE\]|error/)
    // Whether the answer is complete by then or not.
    await eventually(async () => (await server.client.run(runId)).status).toBe('finished')
    const chunks = await dataOf(await post(server, '/v1/chat/completions', hang, inSession))
    const said = chunks.map(
      ({ choices }) => (choices as { delta?: { content?: string } }[])[0]?.delta?.content,
    )
    expect(said.join('')).toBe('The answer.')
  },
)

const broken = new AgentError('provider-stream', 'cut', { retryable: true })

/** A model that says half of its answer, waits, takes it back, and says it whole. */
async function startCutting() {
  const script = new ScriptedProvider([{ text: 'unused' }], { id: 'play' })
  let goOn = () => {}
  const isShown = new Promise<void>(resolve => {
    goOn = resolve
  })
  const provider = withGenerate(script, async function* (request) {
    yield { type: 'request', model: request.model, profile: 'p', repairs: [], mappedIds: {}, body: {} }
    yield { type: 'text-delta', text: 'word1 ' }
    await isShown
    yield { type: 'restart', error: broken }
    yield { type: 'text-delta', text: 'The answer.' }
    yield { type: 'done', finishReason: 'stop' }
  })
  return { server: await startServer({ provider }), goOn }
}

const chat = { model: 'lango', messages: [{ role: 'user', content: 'go' }] }
const responses = { model: 'lango', input: 'go' }

test.each([
  ['/v1/chat/completions', chat],
  ['/v1/responses', responses],
])(
  '%s closes a stream without a last event when the model breaks off in mid-text, and the repeated request gets the whole answer of the same run',
  async (path, body) => {
    const { server, goOn } = await startCutting()
    const live = await post(server, path, { ...body, stream: true }, inSession)
    const { read, closed } = readUntilClosed(live)
    await eventually(() => read.text).toContain('word1')
    const runId = live.headers.get('x-lango-run') ?? ''
    goOn()
    await closed
    expect(read).toMatchObject({ text: expect.stringContaining('word1'), isWhole: false })
    expect(read.text).not.toMatch(/"finish_reason":"|\[DONE\]|response\.(completed|failed)|error":\{/)
    const again = await post(server, path, { ...body, stream: true }, inSession)
    expect(again.headers.get('x-lango-run')).toBe(runId)
    const text = await again.text()
    expect(text).toContain('The answer.')
    expect(text).not.toContain('word1')
  },
)

test('a completion that is not streamed has an answer once whose model broke off in mid-text', async () => {
  const { server, goOn } = await startCutting()
  goOn()
  const response = await post(server, '/v1/chat/completions', chat, inSession)
  expect(await response.json()).toMatchObject({ choices: [{ message: { content: 'The answer.' } }] })
})

test(
  'a client follows a run over the kill of its server, and gets the attempt that continues it',
  LONG,
  async () => {
    const store = await storeUrl()
    const first = await startServerProcess(store)
    const { runId } = await first.client.start('s1', { text: 'hang' })
    const states: string[] = []
    const seen: string[] = []
    for await (const event of first.client.follow(runId, { onConnection: state => states.push(state) })) {
      seen.push(event.type)
      if (event.type !== 'text-delta' || seen.includes('run-resumed')) continue
      await first.kill()
      await continueRun(store, runId, [resumed, restart, say('The answer.'), used, finish('The answer.')])
      await startServer({ store, port: Number(new URL(first.url).port) })
    }
    expect(seen.slice(-5)).toEqual(['run-resumed', 'step-restart', 'text-delta', 'usage', 'run-finish'])
    expect(states).toEqual(['open', 'lost', 'open'])
  },
)
