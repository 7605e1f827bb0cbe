// Sessions that real frameworks wrote, exported to the form of every other: its own package reads the file and goes on with
// it before a strict provider, and Lango's reader finds the same messages again, or the export names what it left out.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Gemini, InMemorySessionService, LlmAgent, type LogLevel, Runner, setLogLevel } from '@google/adk'
import { AIMessage, HumanMessage, mapStoredMessagesToChatMessages } from '@langchain/core/messages'
import { MemorySaver, MessagesAnnotation, StateGraph } from '@langchain/langgraph'
import { ChatOpenAI } from '@langchain/openai'
import { Agent, Runner as AgentsRunner, MemorySession, OpenAIProvider } from '@openai/agents'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { messagesToProvider } from '../../../src/adk/messages-to-provider.js'
import { exportSessions } from '../../../src/cli/sessions-export.js'
import { importSessions } from '../../../src/cli/sessions-import.js'
import { EXPORT_FORMATS, type ExportFormat } from '../../../src/formats/export-forms.js'
import type { ProviderPart } from '../../../src/provider/provider.js'
import { writeSession } from '../../../src/runtime/export-session.js'
import { heal } from '../../../src/runtime/heal/heal.js'
import type { SessionKey } from '../../../src/session/message.js'
import { appendAll } from '../../../src/session/session-pages.js'
import type { SessionStore } from '../../../src/session/session-store.js'
import { openStore } from '../../../src/store/open-store.js'
import { type StrictProvider, startStrictProvider } from '../../../src/testing/start-strict-provider.js'
import { PROFILE_FACTS, type StrictProfile } from '../../../src/testing/strict/profile.js'
import { captured } from '../../cli/doctor-output.js'
import { makeFolder, removeFolder } from '../../support/temporary-folder.js'
import { ADK_USER, playAdk } from './support/adk.js'
import { loadAiSdks } from './support/ai-sdk.js'
import { written } from './support/imported.js'
import { SCENES } from './support/scenes.js'

const MASTRA = new URL('mastra/mastra.db', import.meta.url).pathname

let folder = ''
let url = ''
let store: SessionStore
let keys: SessionKey[] = []

beforeAll(async () => {
  // ADK has no level that says nothing.
  setLogLevel(99 as LogLevel)
  folder = await makeFolder()
  url = `sqlite:${join(folder, 'lango.db')}?sync=normal`
  const service = new InMemorySessionService()
  const sessions = []
  for (const scene of SCENES) sessions.push((await playAdk(scene, service as never)).session)
  const file = await written(folder, 'adk', sessions)
  for (const place of [file, MASTRA]) {
    const flags = { store: url, json: true, app: place === file ? 'shop' : 'lango', author: ['clerk=root'] }
    await captured(io => importSessions(io, [place], flags))
  }
  store = await openStore(url)
  for (const appName of ['shop', 'lango']) {
    const page = await store.listSessions({ appName, limit: 200 })
    for (const { key } of page.sessions) keys.push(key)
  }
  await addHealedCopies()
  expect(keys.length).toBeGreaterThanOrEqual(40)
})
afterAll(async () => {
  await store.close()
  await removeFolder(folder)
})

const healed = new Set<string>()

/** What a framework goes on with must be legal: it repairs nothing. */
async function addHealedCopies(): Promise<void> {
  for (const key of keys) {
    const { messages } = heal(await store.readMessages(key, { limit: 1000 }))
    const copy = { ...key, sessionId: `${key.sessionId} (healed)` }
    await store.createSession(copy)
    await appendAll(
      store,
      copy,
      messages.map(({ id: _id, ...message }) => message),
    )
    healed.add(nameOf(copy))
  }
  keys = [...keys, ...keys.map(key => ({ ...key, sessionId: `${key.sessionId} (healed)` }))]
}

function nameOf({ appName, sessionId }: SessionKey): string {
  return `${appName}/${sessionId}`
}

async function exported(key: SessionKey, format: ExportFormat) {
  const result = await writeSession(store, key, format)
  if (!result) throw new Error(`${key.sessionId} is gone`)
  return { ...result, content: JSON.parse(JSON.stringify(result.content)) }
}

function serverOf(profile: StrictProfile): Promise<StrictProvider> {
  return startStrictProvider({ profile, script: () => ({ text: 'It goes on.' }) })
}

async function eachSession(check: (key: SessionKey) => Promise<void>): Promise<void> {
  for (const key of keys) {
    try {
      await check(key)
    } catch (error) {
      throw new Error(`${nameOf(key)}: ${String(error).slice(0, 2000)}`, { cause: error })
    }
  }
}

/** What a message says, as one list: forms differ in how they cut it into messages. */
function saidIn(parts: readonly ProviderPart[]): string[] {
  return parts.flatMap(part => {
    if (part.type === 'text') return part.text === '' ? [] : [`text ${part.text}`]
    if (part.type === 'tool-call') return [`call ${part.id} ${part.name}`]
    if (part.type === 'tool-result') return [`result ${part.id}`]
    return []
  })
}

describe.each(EXPORT_FORMATS)('%s', format => {
  test('an import finds the same messages, or the export named what is missing', async () => {
    let number = 0
    await eachSession(async key => {
      number += 1
      const file = join(folder, `${format}-${number}.json`)
      const { sessionId, appName: app, userId: user } = key
      await captured(io =>
        exportSessions(io, [sessionId], { store: url, app, user, to: format, output: file }),
      )
      const as = `${format}-${number}`
      const { leftOut } = await exported(key, format)
      const hint = format === 'adk' || format === 'adk-python' ? {} : { format }
      const flags = { store: url, as, app: 'again', user: 'user', json: true, ...hint }
      await captured(io => importSessions(io, [file], flags))
      const given = messagesToProvider(await store.readMessages(key, { limit: 1000 }))
      const again = { appName: 'again', userId: 'user', sessionId: as }
      const found = messagesToProvider(await store.readMessages(again, { limit: 1000 }))
      const texts = found.flatMap(({ parts }) => saidIn(parts)).join('\n')
      const missing = given
        .flatMap(({ parts }) => saidIn(parts))
        .filter(words => !texts.includes(words.replace(/^text /, '')))
      if (!leftOut.some(name => /^(tool-|text|vendor|role)/.test(name))) expect(missing).toEqual([])
      if (
        healed.has(nameOf(key)) &&
        !['anthropic', 'gemini', 'openai-chat', 'openai-responses'].includes(format)
      )
        expect(missing).toEqual([])
      expect(JSON.parse(await readFile(file, 'utf8'))).toEqual((await exported(key, format)).content)
    })
  })
})

describe.each(await loadAiSdks())('AI SDK $version', ({ sdk, makers, version }) => {
  test('UI messages are valid, and the SDK goes on with them', async () => {
    const server = await serverOf('openai-chat')
    onTestFinished(() => server.close())
    const model = makers.createOpenAI({ apiKey: 'none', baseURL: server.baseUrl }).chat('gpt-4.1')
    await eachSession(async key => {
      const { content } = await exported(key, 'ai-sdk-ui')
      if (version > 5 || 'validateUIMessages' in sdk) await sdk.validateUIMessages({ messages: content })
      const messages = await sdk.convertToModelMessages(content)
      if (!healed.has(nameOf(key))) return
      const next = [...messages, { role: 'user' as const, content: 'And now?' }]
      const { text } = await sdk.generateText({
        model,
        messages: next,
        maxRetries: 0,
        allowSystemInMessages: true,
      } as never)
      expect(text).toBe('It goes on.')
    })
    expect(server.violations).toEqual([])
  })

  test('model messages are valid, and the SDK goes on with them', async () => {
    const server = await serverOf('openai-chat')
    onTestFinished(() => server.close())
    const model = makers.createOpenAI({ apiKey: 'none', baseURL: server.baseUrl }).chat('gpt-4.1')
    await eachSession(async key => {
      const { content } = await exported(key, 'ai-sdk-model')
      for (const message of content) sdk.modelMessageSchema.parse(message)
      if (!healed.has(nameOf(key))) return
      const messages = [...content, { role: 'user' as const, content: 'And now?' }]
      const { text } = await sdk.generateText({
        model,
        messages,
        maxRetries: 0,
        allowSystemInMessages: true,
      } as never)
      expect(text).toBe('It goes on.')
    })
    expect(server.violations).toEqual([])
  })
})

test('LangGraph takes the messages by updateState, and goes on', async () => {
  const server = await serverOf('openai-chat')
  onTestFinished(() => server.close())
  const model = new ChatOpenAI({
    model: 'gpt-4.1',
    apiKey: 'none',
    configuration: { baseURL: server.baseUrl },
    maxRetries: 0,
  })
  const graph = new StateGraph(MessagesAnnotation)
    .addNode('model', async ({ messages }) => ({ messages: [await model.invoke(messages)] }))
    .addEdge('__start__', 'model')
    .compile({ checkpointer: new MemorySaver() })
  await eachSession(async key => {
    const { content } = await exported(key, 'langchain')
    const messages = mapStoredMessagesToChatMessages(content)
    const config = { configurable: { thread_id: nameOf(key) } }
    await graph.updateState(config, { messages }, 'model')
    const { values } = await graph.getState(config)
    expect(values.messages).toHaveLength(content.length)
    const calls = messages.flatMap(message =>
      message instanceof AIMessage ? (message.tool_calls ?? []) : [],
    )
    const given = messagesToProvider(await store.readMessages(key, { limit: 1000 }))
    expect(calls).toHaveLength(
      given.flatMap(({ parts }) => parts.filter(({ type }) => type === 'tool-call')).length,
    )
    if (!healed.has(nameOf(key))) return
    const answered = await graph.invoke({ messages: [new HumanMessage('And now?')] }, config)
    expect(answered.messages.at(-1)?.text).toBe('It goes on.')
  })
  expect(server.violations).toEqual([])
})

test('a session of OpenAI Agents takes the items, and goes on', async () => {
  const server = await serverOf('openai-responses')
  onTestFinished(() => server.close())
  const client = new OpenAI({ apiKey: 'none', baseURL: server.baseUrl, maxRetries: 0 })
  const provider = new OpenAIProvider({ openAIClient: client as never, useResponses: true })
  const runner = new AgentsRunner({ modelProvider: provider, tracingDisabled: true })
  const agent = new Agent({
    name: 'root',
    instructions: 'Be brief.',
    model: PROFILE_FACTS['openai-responses'].model,
  })
  await eachSession(async key => {
    const { content } = await exported(key, 'openai-agents')
    const session = new MemorySession({ sessionId: nameOf(key), initialItems: content })
    expect(await session.getItems()).toHaveLength(content.length)
    if (!healed.has(nameOf(key))) return
    const { finalOutput } = await runner.run(agent, 'And now?', { session })
    expect(finalOutput).toBe('It goes on.')
  })
  expect(server.violations).toEqual([])
})

test('ADK takes the events, and goes on', async () => {
  const server = await serverOf('gemini-3')
  onTestFinished(() => server.close())
  process.env.GOOGLE_GEMINI_BASE_URL = server.baseUrl
  onTestFinished(() => {
    delete process.env.GOOGLE_GEMINI_BASE_URL
  })
  const sessionService = new InMemorySessionService()
  const model = new Gemini({ model: PROFILE_FACTS['gemini-3'].model, apiKey: 'none' })
  const agent = new LlmAgent({ name: 'root', model, instruction: 'Be brief.' })
  const runner = new Runner({ appName: 'taken', agent, sessionService })
  await eachSession(async key => {
    const { content, leftOut } = await exported(key, 'adk')
    expect(leftOut.filter(name => !/^(title|reasoning\.signature|vendor|reasoning)/.test(name))).toEqual([])
    const { state, events } = content
    const place = { appName: 'taken', userId: ADK_USER, sessionId: nameOf(key) }
    const session = await sessionService.createSession({ ...place, state })
    for (const event of events) await sessionService.appendEvent({ session, event })
    expect((await sessionService.getSession(place))?.events.map(({ id }) => id)).toEqual(
      events.map(({ id }: { id: string }) => id),
    )
    if (!healed.has(nameOf(key))) return
    const texts = []
    const newMessage = { role: 'user', parts: [{ text: 'And now?' }] }
    for await (const event of runner.runAsync({ userId: ADK_USER, sessionId: place.sessionId, newMessage }))
      texts.push(event.errorMessage ?? event.content?.parts?.[0]?.text)
    expect(texts).toEqual(['It goes on.'])
  })
  expect(server.violations).toEqual([])
})

/** The wire of each body: where it is sent, and how a message of the user is added. */
const BODIES = [
  ['openai-chat', 'openai-chat', '/chat/completions', 'messages', { role: 'user', content: 'And now?' }],
  ['openai-responses', 'openai-responses', '/responses', 'input', { role: 'user', content: 'And now?' }],
  ['anthropic', 'anthropic-4.6', '/v1/messages', 'messages', { role: 'user', content: 'And now?' }],
  [
    'gemini',
    'gemini-3',
    `/v1beta/models/${PROFILE_FACTS['gemini-3'].model}:generateContent`,
    'contents',
    { role: 'user', parts: [{ text: 'And now?' }] },
  ],
] as const

test.each(BODIES)(
  'the body of %s is accepted with the next message',
  async (format, profile, path, list, next) => {
    const server = await serverOf(profile)
    onTestFinished(() => server.close())
    await eachSession(async key => {
      const { content } = await exported(key, format)
      // A history that ends with results waits for the model, any other for the user.
      const isOpen = content[list].length > 0 && (await endsOpen(key))
      const settings =
        format === 'gemini'
          ? {}
          : { model: PROFILE_FACTS[profile].model, ...(format === 'anthropic' ? { max_tokens: 1000 } : {}) }
      const body = { ...settings, ...content, [list]: isOpen ? content[list] : [...content[list], next] }
      const headers = {
        'content-type': 'application/json',
        authorization: 'Bearer none',
        'x-api-key': 'none',
        'x-goog-api-key': 'none',
        'anthropic-version': '2023-06-01',
      }
      const response = await fetch(`${server.baseUrl}${path}`, {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
      })
      expect(`${response.status} ${await response.text()}`).toMatch(/^200 /)
    })
    expect(server.violations).toEqual([])
  },
)

async function endsOpen(key: SessionKey): Promise<boolean> {
  const last = messagesToProvider(await store.readMessages(key, { limit: 1000 })).at(-1)
  return (
    last?.role === 'user' ||
    last?.role === 'tool' ||
    last?.parts.some(({ type }) => type === 'tool-call') === true
  )
}
