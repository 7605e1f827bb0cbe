// `runLive` with ADK's own Gemini model and the vendor's SDK, over a WebSocket on loopback: Lango's session service stores
// what ADK's stores, and gives it back to the next connection.
import {
  type BaseSessionService,
  type Event,
  FunctionTool,
  Gemini,
  InMemorySessionService,
  LiveRequestQueue,
  LlmAgent,
  LogLevel,
  Runner,
  setLogLevel,
} from '@google/adk'
import { Modality } from '@google/genai'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { ModelAdapter } from '../../src/adk/model/model-adapter.js'
import { SessionServiceAdapter } from '../../src/adk/session/session-service-adapter.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { openTestStore, STORES } from '../support/adk-run.js'
import { viewEvents } from './compare.js'
import { type LiveMessage, type LiveServer, startLiveServer } from './live-server.js'

const KEY = { appName: 'app', userId: 'ann', sessionId: 's' } as const

let server: LiveServer
beforeAll(async () => {
  setLogLevel(LogLevel.ERROR)
  server = await startLiveServer(answer)
  Object.assign(process.env, { GOOGLE_GEMINI_BASE_URL: server.baseUrl, GEMINI_API_KEY: 'key' })
})
afterAll(async () => {
  await server.close()
  delete process.env.GOOGLE_GEMINI_BASE_URL
  delete process.env.GEMINI_API_KEY
})

/** A model that calls a tool and speaks. */
function answer(message: LiveMessage): LiveMessage[] {
  if ('setup' in message) return [{ setupComplete: {} }]
  const text = JSON.stringify(message)
  if (text.includes('what time'))
    return [CLOCK, ...spoken('It is noon.'), { usageMetadata: { totalTokenCount: 9 } }]
  // ADK keeps a call until the turn is complete.
  if (text.includes('look at the watch')) return [WATCH, { serverContent: { turnComplete: true } }]
  if ('toolResponse' in message && text.includes('watch')) return spoken('The watch says noon.')
  return text.includes('goodbye') ? spoken('Bye.') : []
}

/** The client answers it; this model goes on without waiting. */
const CLOCK = { toolCall: { functionCalls: [{ id: 'live-1', name: 'clock', args: {} }] } }

/** This model speaks when it has the result. */
const WATCH = { toolCall: { functionCalls: [{ id: 'live-2', name: 'watch', args: {} }] } }

function spoken(text: string): LiveMessage[] {
  return [
    { serverContent: { modelTurn: { role: 'model', parts: [{ text }] } } },
    { serverContent: { outputTranscription: { text, finished: true } } },
    { serverContent: { turnComplete: true } },
  ]
}

/** One live connection: a message, and the events until the model has ended its turn. */
async function live(
  sessions: BaseSessionService,
  text: string,
  model: ModelAdapter | Gemini,
): Promise<Event[]> {
  const tools = ['clock', 'watch'].map(
    name =>
      new FunctionTool({
        name,
        description: 'Tells the time.',
        parameters: z.object({}),
        execute: () => ({ time: 'noon', at: new Date(0) }),
      }),
  )
  const agent = new LlmAgent({ name: 'root', model, tools })
  const runner = new Runner({ appName: 'app', agent, sessionService: sessions })
  const liveRequestQueue = new LiveRequestQueue()
  liveRequestQueue.sendContent({ role: 'user', parts: [{ text }] })
  const seen: Event[] = []
  const runConfig = { responseModalities: [Modality.TEXT] }
  for await (const event of runner.runLive({ userId: 'ann', sessionId: 's', liveRequestQueue, runConfig })) {
    seen.push(event)
    if (event.turnComplete && seen.some(each => each.content?.parts?.[0]?.text)) liveRequestQueue.close()
    if (event.turnComplete && seen.some(each => each.content?.parts?.[0]?.text)) break
  }
  return seen
}

const gemini = () => new Gemini({ model: 'gemini-2.5-flash', apiKey: 'key' })

async function twice(sessions: BaseSessionService): Promise<{ events: unknown[]; sent: string }> {
  await sessions.createSession({ ...KEY })
  await live(sessions, 'what time is it?', gemini())
  const before = server.received.length
  await live(sessions, 'goodbye', gemini())
  const sent = JSON.stringify(server.received.slice(before).filter(message => 'clientContent' in message))
  return {
    events: viewEvents((await sessions.getSession({ ...KEY }))?.events ?? []),
    sent: sent.replaceAll(/"id":"[^"]+"/g, ''),
  }
}

test.each(STORES)(
  'live events on %s are those of ADK’s own service, and the next connection gets them',
  async kind => {
    const bare = await twice(new InMemorySessionService())
    expect(JSON.stringify(bare.events)).toContain('It is noon.')
    expect(JSON.stringify(bare.events)).toContain('"clock"')
    const store = await openTestStore(kind)
    const ours = await twice(new SessionServiceAdapter(store))
    await store.close()
    expect(ours.events).toEqual(JSON.parse(JSON.stringify(bare.events)))
    expect(ours.sent).toBe(bare.sent)
  },
)

test.each(STORES)('the result that a live model waits for is stored on %s, and restored', async kind => {
  const run = async (sessions: BaseSessionService) => {
    await sessions.createSession({ ...KEY })
    await live(sessions, 'look at the watch', gemini())
    return viewEvents((await sessions.getSession({ ...KEY }))?.events ?? [])
  }
  const bare = JSON.parse(JSON.stringify(await run(new InMemorySessionService())))
  const store = await openTestStore(kind)
  const ours = await run(new SessionServiceAdapter(store))
  await store.close()
  expect(JSON.stringify(bare)).toContain('The watch says noon.')
  expect(JSON.stringify(bare)).toMatch(/"functionResponse":\{[^}]*"name":"watch"/)
  expect(ours).toEqual(bare)
})

test('a live connection through the model adapter is refused with an error that says what to do', async () => {
  const model = new ModelAdapter({ provider: new ScriptedProvider([]), model: 'any' })
  const run = live(new InMemorySessionService(), 'hello', model)
  await expect(run).rejects.toMatchObject({
    code: 'invalid-argument',
    message: /not supported. Use runAsync/,
  })
})
