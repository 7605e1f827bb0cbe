// A session in the forms of other frameworks, read again by Lango's own readers. That the frameworks take the files is in
// test/clients/histories.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { messagesToProvider } from '../../src/adk/messages-to-provider.js'
import { exportSessions } from '../../src/cli/sessions-export.js'
import { EXPORT_FORMATS, type ExportFormat } from '../../src/formats/export-forms.js'
import { readHistoryText } from '../../src/formats/history-files.js'
import { neutralToMessages } from '../../src/formats/neutral-to-messages.js'
import type { ProviderMessage } from '../../src/provider/provider.js'
import { writeSession } from '../../src/runtime/export-session.js'
import type { Message } from '../../src/session/message.js'
import { openStore } from '../../src/store/open-store.js'
import { captured } from '../cli/doctor-output.js'
import { startServer } from '../support/start-server.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { CONVERSATION } from './foreign-conversations.js'

const KEY = { appName: 'lango', userId: 'user', sessionId: 's1' }
const START = Date.UTC(2026, 8, 14)

function stored(messages: readonly ProviderMessage[]): Message[] {
  const placed = messages.map((message, index) => ({ ...message, place: '', timestamp: START + index }))
  return neutralToMessages(placed, { now: START })
}

async function storeWith(messages: readonly Message[], more: { title?: string; state?: object } = {}) {
  const store = await openStore('memory:')
  await store.createSession(KEY, { ...more.state }, more.title === undefined ? {} : { title: more.title })
  for (const message of messages) await store.appendMessage(KEY, message)
  return store
}

async function written(messages: readonly Message[], format: ExportFormat) {
  const result = await writeSession(await storeWith(messages), KEY, format)
  if (!result) throw new TypeError('There is no session')
  return result
}

/** The history of a file, as lint and import read it. */
async function readAgain(content: unknown, format?: string): Promise<ProviderMessage[]> {
  const { histories } = await readHistoryText(JSON.stringify(content), 'the export', format)
  const [history] = histories
  if (history?.kind === 'session') return messagesToProvider(history.messages)
  return messagesToProvider(neutralToMessages(history?.messages ?? [], { now: START }))
}

/** What every form has no place for, or only some. */
const LEFT_OUT: Readonly<Record<ExportFormat, string[]>> = {
  adk: ['reasoning.signature'],
  'adk-python': ['reasoning.signature'],
  'ai-sdk-ui': ['author (3)', 'timestamp (2)'],
  'ai-sdk-model': ['timestamp (4)', 'author (3)'],
  mastra: ['author (3)', 'timestamp (2)'],
  langchain: ['timestamp (4)', 'author (3)'],
  'openai-agents': ['reasoning.signature', 'tool-result.isError', 'timestamp (4)', 'author (3)'],
  'openai-chat': ['reasoning', 'tool-result.isError', 'timestamp (4)', 'author (3)'],
  'openai-responses': ['reasoning', 'tool-result.isError', 'timestamp (4)', 'author (3)'],
  anthropic: ['timestamp (4)', 'author (3)'],
  gemini: ['reasoning', 'tool-result.isError', 'timestamp (4)', 'author (3)'],
}

for (const format of EXPORT_FORMATS) {
  test(`an export as ${format} is read back as the same messages, and what it cannot hold is named`, async () => {
    const messages = stored(CONVERSATION)
    const { content, leftOut } = await written(messages, format)
    expect(leftOut).toEqual(LEFT_OUT[format])
    const again = await readAgain(content)
    const lostTypes = leftOut.filter(name => /^[a-z-]+$/.test(name))
    const kinds = (list: readonly ProviderMessage[]) =>
      list.flatMap(({ parts }) => parts.map(({ type }) => type)).filter(type => !lostTypes.includes(type))
    expect(kinds(again)).toEqual(kinds(messagesToProvider(messages)))
    expect(JSON.stringify(again)).toContain('What is this?')
    expect(JSON.stringify(again)).toContain('too dark')
  })

  test(`an export as ${format} names results without a call, repeated results and parts that only one vendor reads`, async () => {
    const odd: ProviderMessage[] = [
      { role: 'user', parts: [{ type: 'text', text: 'Go.' }] },
      {
        role: 'assistant',
        parts: [
          {
            type: 'vendor',
            vendor: 'openai',
            value: { type: 'web_search_call', id: 'ws_1' },
            text: '[searched]',
          },
          { type: 'tool-call', id: 'a', name: 'pay', args: { sum: 5 } },
        ],
      },
      { role: 'tool', parts: [{ type: 'tool-result', id: 'a', name: 'pay', result: { paid: 5 } }] },
      { role: 'tool', parts: [{ type: 'tool-result', id: 'a', name: 'pay', result: { paid: 6 } }] },
      { role: 'assistant', parts: [{ type: 'text', text: 'Paid.' }] },
    ]
    const { content, leftOut, notes } = await written(stored(odd), format)
    const file = JSON.stringify(content)
    const lost = (name: string) => leftOut.some(entry => entry.startsWith(name))
    expect(file.includes('paid\\":6') || file.includes('"paid":6') || lost('tool-result')).toBe(true)
    expect(file.includes('web_search_call') || lost('vendor')).toBe(true)
    // A body is repaired by its provider; the other forms say that they are not.
    expect(notes.join(' ')).toMatch(/Repaired: |lango doctor --session s1 --fix/)
  })
}

test('an export names what a session has in addition to its messages', async () => {
  const [message, ...others] = stored(CONVERSATION)
  const first = { ...message, invocationId: 'i-1', branch: 'root.helper' } as Message
  const store = await storeWith([first, ...others], { title: 'Holidays', state: { city: 'Rome' } })
  await store.artifacts.save({ ...KEY, name: 'a.txt' }, {
    header: { mimeType: 'text/plain' },
    body: 'aGk=',
  } as never)
  const { leftOut } = (await writeSession(store, KEY, 'ai-sdk-ui')) ?? {}
  expect(leftOut).toEqual(
    expect.arrayContaining(['invocationId', 'branch', 'state', 'title', 'artifacts (1)']),
  )
  const adk = await writeSession(store, KEY, 'adk')
  expect(adk?.leftOut).toEqual(['reasoning.signature', 'title', 'artifacts (1)'])
})

test('an export for ADK for Python has the times, bytes and fields that its models accept', async () => {
  const bytes = '+/+/'
  const messages = stored([
    { role: 'user', parts: [{ type: 'media', mimeType: 'image/png', data: bytes }] },
    {
      role: 'assistant',
      parts: [{ type: 'text', text: 'Hm.', signature: bytes, origin: { vendor: 'gemini' } }],
    },
  ])
  const extra = { ...messages[1]?.extra, isolationScope: 'only ADK for TypeScript', finishReason: 'STOP' }
  const { content, leftOut } = await written(
    [messages[0] as Message, { ...messages[1], extra } as Message],
    'adk-python',
  )
  expect(content).toMatchObject({
    id: 's1',
    appName: 'lango',
    userId: 'user',
    events: [
      {
        author: 'user',
        timestamp: START / 1000,
        content: { role: 'user', parts: [{ inlineData: { data: '-_-_' } }] },
      },
      {
        timestamp: (START + 1) / 1000,
        content: { role: 'model', parts: [{ text: 'Hm.', thoughtSignature: '-_-_' }] },
      },
    ],
  })
  expect(leftOut).toEqual(['isolationScope', 'finishReason'])
})

function run(ids: string[], flags: object): Promise<{ code: number; text: string; notes: string }> {
  return captured(io => exportSessions(io, ids, { app: 'lango', ...flags }))
}

test('lango sessions export writes a file or standard output, and reports on standard error what is missing', async () => {
  const folder = await temporaryFolder()
  const store = `sqlite:${join(folder, 'lango.db')}`
  const opened = await openStore(store)
  await opened.createSession(KEY)
  for (const message of stored(CONVERSATION)) await opened.appendMessage(KEY, message)
  await opened.createSession({ ...KEY, sessionId: 'empty' })
  await opened.close()
  const output = join(folder, 'messages.json')
  const toFile = await run(['s1'], { store, to: 'langchain', output })
  expect(toFile).toMatchObject({ code: 0, text: '' })
  expect(toFile.notes).toContain('Not written: timestamp (4), author (3).')
  const toScreen = await run(['s1'], { store, to: 'langchain' })
  expect(JSON.parse(toScreen.text)).toEqual(JSON.parse(await readFile(output, 'utf8')))
  for (const [ids, flags, message] of [
    [['s1'], { to: 'ai-sdk-iu' }, 'Did you mean ai-sdk-ui?'],
    [['s1'], { to: 'nothing of the kind' }, 'Formats: lango, adk,'],
    [['s1', 'empty'], { to: 'adk' }, 'pass one id'],
    [[], { to: 'adk', all: true }, 'pass one id'],
    [['empty'], { to: 'anthropic', output: join(folder, 'empty.json') }, 'has no messages to write'],
    [['nobody'], { to: 'adk' }, 'nobody'],
  ] as const) {
    await expect(run([...ids], { store, ...flags })).rejects.toThrow(message)
  }
  expect((await readdir(folder)).filter(name => name.endsWith('.json') || name.endsWith('.partial'))).toEqual(
    ['messages.json'],
  )
})

test('the server exports a session in the requested format, and names in headers what is missing', async () => {
  const { url, runtime } = await startServer()
  await runtime.store.createSession(KEY, { größe: 'Ünïcödé' })
  for (const message of stored(CONVERSATION)) await runtime.store.appendMessage(KEY, message)
  const at = (query: string) => fetch(`${url}/api/sessions/s1/export${query}`)
  const response = await at('?format=openai-agents')
  expect(response.headers.get('content-type')).toContain('application/json')
  expect(JSON.parse(response.headers.get('lango-left-out') ?? '')).toEqual([
    ...LEFT_OUT['openai-agents'],
    'state',
  ])
  expect(await response.json()).toMatchObject([
    { type: 'message', role: 'user' },
    { type: 'reasoning' },
    {},
    {},
    {},
    {},
    {},
    {},
  ])
  expect((await at('')).headers.get('content-type')).toContain('ndjson')
  expect((await at('?format=lango')).headers.get('content-type')).toContain('ndjson')
  const wrong = await at('?format=anthropics')
  expect([wrong.status, await wrong.text()]).toEqual([
    400,
    expect.stringContaining('Did you mean anthropic?'),
  ])
  expect((await fetch(`${url}/api/sessions/nobody/export?format=adk`)).status).toBe(404)
})
