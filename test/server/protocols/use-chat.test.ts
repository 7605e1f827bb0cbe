// The AI SDK's `Chat`, which `useChat` renders, against the server. The hook itself, in a browser, is in test/clients.
import { Chat } from '@ai-sdk/react'
import { DefaultChatTransport, isToolUIPart, type UIMessage } from 'ai'
import { expect, onTestFinished, test } from 'vitest'
import { searchTool } from '../../support/tools.js'
import {
  heldTool,
  type ProtocolServer,
  type ProtocolServerOptions,
  searchThenTell,
  sessionIds,
  startProtocolServer,
  until,
} from './support.js'

const KEY = { appName: 'lango', userId: 'user', sessionId: 'c' }

function start(options: ProtocolServerOptions = {}): Promise<ProtocolServer> {
  return startProtocolServer({ script: searchThenTell, ...options })
}

function open({ url }: ProtocolServer, headers: Record<string, string> = {}): Chat<UIMessage> {
  return new Chat({
    id: 'c',
    transport: new DefaultChatTransport({ api: `${url}/api/chat`, headers }),
    sendAutomaticallyWhen: isAnswered,
  })
}

/** Whether every approval that was asked for has been answered: then the answers are sent by themselves. */
function isAnswered({ messages }: { messages: UIMessage[] }): boolean {
  const states = (messages.at(-1)?.parts ?? []).map(part => (isToolUIPart(part) ? part.state : ''))
  return states.includes('approval-responded') && !states.includes('approval-requested')
}

function textOf(message: UIMessage | undefined): string {
  return (message?.parts ?? []).flatMap(part => (part.type === 'text' ? [part.text] : [])).join('|')
}

function typesOf(message: UIMessage | undefined): string[] {
  return (message?.parts ?? []).map(({ type }) => type)
}

/** Waits until the last message says this and nothing is under way. */
async function says(chat: Chat<UIMessage>, text: string): Promise<void> {
  await until(() => chat.status === 'ready' && JSON.stringify(chat.messages.at(-1)).includes(text))
}

test('the AI SDK’s chat gets an answer as steps with texts, calls and usage, in one session', async () => {
  const server = await start()
  const chat = open(server)
  for (const text of ['apples', 'pears', 'plums']) await chat.sendMessage({ text })
  expect(chat.error).toBeUndefined()
  expect(chat.messages.map(({ role }) => role)).toEqual(Array(3).fill(['user', 'assistant']).flat())
  const answer = chat.messages.at(-1)
  const step = ['step-start', 'text', 'data-usage']
  expect(typesOf(answer)).toEqual([...step, 'dynamic-tool', ...step])
  expect(answer?.parts[3]).toMatchObject({
    toolName: 'search',
    state: 'output-available',
    input: { query: 'plums' },
    output: { found: 'plums' },
  })
  expect(answer?.parts.at(-2)).toMatchObject({ text: 'I found plums.', state: 'done' })
  expect(answer?.metadata).toMatchObject({
    lango: { sessionId: 'c', finishReason: 'stop', usage: { totalTokens: 38 } },
  })
  expect(server.provider.violations).toEqual([])
  expect(await sessionIds(server.runtime)).toEqual(['c'])
})

test('the AI SDK’s chat gets reasoning and the error of a tool', async () => {
  const script = [
    { thinking: 'Hm.', toolCalls: [{ name: 'search', args: { query: 'x' } }] },
    { text: 'It failed.' },
  ]
  const tool = { ...searchTool, execute: () => Promise.reject(new TypeError('The net is torn.')) }
  const chat = open(await start({ script, tools: [tool], profile: 'deepseek-thinking' }))
  await chat.sendMessage({ text: 'look' })
  const answer = chat.messages.at(-1)
  expect(typesOf(answer).filter(type => type !== 'data-usage')).toEqual([
    'step-start',
    'reasoning',
    'dynamic-tool',
    'step-start',
    'text',
  ])
  expect(answer?.parts[1]).toMatchObject({ text: 'Hm.' })
  const failed = answer?.parts.find(({ type }) => type === 'dynamic-tool')
  expect(failed).toMatchObject({ state: 'output-error' })
  expect(JSON.stringify(failed)).toContain('The net is torn.')
})

test('the AI SDK’s chat sends files to the model', async () => {
  const server = await start({ script: [{ text: 'A dot.' }] })
  const chat = open(server)
  const url = 'data:image/png;base64,iVBORw0KGgo='
  await chat.sendMessage({ text: 'look', files: [{ type: 'file', mediaType: 'image/png', url }] })
  expect(textOf(chat.messages.at(-1))).toBe('A dot.')
  expect(JSON.stringify(server.provider.requests[0]?.body)).toContain(url)
})

test('an approval in the AI SDK’s chat, next to a call that needs none, continues in the same message', async () => {
  const script: ProtocolServerOptions['script'] = ({ messages }) =>
    messages.at(-1)?.role === 'tool'
      ? { text: 'Done with it.' }
      : { text: 'May I?', toolCalls: [{ name: 'danger' }, { name: 'search', args: { query: 'x' } }] }
  const server = await start({ script })
  const chat = open(server)
  for (const [turn, approved] of [true, false].entries()) {
    await chat.sendMessage({ text: 'go' })
    const asking = chat.messages.at(-1)
    const asked = (asking?.parts ?? []).flatMap(part =>
      part.type === 'dynamic-tool' && part.state === 'approval-requested' ? [part] : [],
    )
    expect(asked).toMatchObject([{ toolName: 'danger' }])
    await chat.addToolApprovalResponse({ id: asked[0]?.approval.id ?? '', approved })
    await says(chat, 'Done with it.')
    expect(chat.error).toBeUndefined()
    expect(chat.messages).toHaveLength(2 * (turn + 1))
    expect(chat.messages.at(-1)?.id).toBe(asking?.id)
    expect(textOf(chat.messages.at(-1))).toBe('May I?|Done with it.')
    expect(statesOf(chat.messages.at(-1))).toEqual({
      danger: approved ? 'output-available' : 'output-denied',
      search: 'output-available',
    })
  }
  expect(server.provider.violations).toEqual([])
})

test('a turn that is regenerated and a message that is edited in the AI SDK’s chat keep the earlier ones', async () => {
  const server = await start()
  const chat = open(server)
  for (const text of ['apples', 'pears']) await chat.sendMessage({ text })
  await chat.regenerate()
  await chat.sendMessage({ text: 'plums' })
  const users = chat.messages.filter(({ role }) => role === 'user')
  expect(users.map(textOf)).toEqual(['apples', 'pears', 'plums'])
  await chat.sendMessage({ text: 'figs', messageId: users[1]?.id ?? '' })
  expect(chat.error).toBeUndefined()
  expect(chat.messages.filter(({ role }) => role === 'user').map(textOf)).toEqual(['apples', 'figs'])
  expect(textOf(chat.messages.at(-1))).toBe('Let me look.|I found figs.')
  const histories = await Promise.all((await sessionIds(server.runtime)).map(id => usersSaid(server, id)))
  expect(histories.map(said => said.join(' ')).sort()).toEqual([
    'apples figs',
    'apples pears',
    'apples pears plums',
  ])
  expect(server.provider.violations).toEqual([])
})

test('resuming the AI SDK’s chat without an active run does nothing', async () => {
  const server = await start()
  const chat = open(server)
  await chat.sendMessage({ text: 'apples' })
  const later = open(server)
  await later.resumeStream()
  expect(later).toMatchObject({ messages: [], status: 'ready' })
  expect((await fetch(`${server.url}/api/chat/c/stream`)).status).toBe(204)
})

test('a reopened AI SDK chat starts with its earlier messages, as they were shown', async () => {
  const server = await start()
  const chat = open(server)
  for (const text of ['apples', 'pears']) await chat.sendMessage({ text })
  const stored = await fetch(`${server.url}/api/chat/c`)
  const { messages: again } = (await stored.json()) as { messages: UIMessage[] }
  expect(again.map(({ role, parts }) => ({ role, parts: parts.map(shown) }))).toEqual(
    chat.messages.map(({ role, parts }) => ({
      role,
      parts: parts.filter(({ type }) => type !== 'data-usage').map(shown),
    })),
  )
})

test('regenerating an active turn in the AI SDK’s chat replaces the run', async () => {
  const { tool, called, letGo } = heldTool()
  onTestFinished(letGo)
  const server = await start({ tools: [tool] })
  const chat = open(server)
  void chat.sendMessage({ text: 'apples' })
  await called
  await chat.stop()
  await until(() => chat.status === 'ready')
  const answered = chat.regenerate()
  await until(async () => (await server.runtime.listRuns(KEY))[0]?.finishReason === 'aborted')
  letGo()
  await answered
  expect(textOf(chat.messages.at(-1))).toContain('I found apples.')
  expect(chat.messages).toHaveLength(2)
  expect(server.provider.violations).toEqual([])
})

test('disconnecting from the AI SDK’s chat does not stop the run; the stop request does', async () => {
  const { tool, called, letGo } = heldTool()
  onTestFinished(letGo)
  const server = await start({ tools: [tool] })
  const chat = open(server)
  void chat.sendMessage({ text: 'apples' })
  await called
  await chat.stop()
  await until(() => chat.status === 'ready')
  expect(await server.runtime.listRuns(KEY)).toMatchObject([{ finished: false }])
  const stopped = await fetch(`${server.url}/api/chat/c/stream`, { method: 'DELETE' })
  expect(stopped.status).toBe(204)
  await until(async () => (await server.runtime.listRuns(KEY))[0]?.finished === true)
  expect(await server.runtime.listRuns(KEY)).toMatchObject([{ finishReason: 'aborted' }])
})

test('an empty message of the AI SDK’s chat is refused with one sentence', async () => {
  const chat = open(await start())
  await chat.sendMessage({ text: '' })
  expect(chat.error?.message).toBe('The last message is empty: it needs text or a file.')
})

test('users with the same AI SDK chat id have separate chats', async () => {
  const tokens = { 'token-of-ann': 'ann', 'token-of-bob': 'bob' }
  const server = await start({ serve: { tokens } })
  for (const [token, user] of Object.entries(tokens)) {
    const chat = open(server, { authorization: `Bearer ${token}` })
    await chat.sendMessage({ text: user })
    expect(textOf(chat.messages.at(-1))).toBe(`Let me look.|I found ${user}.`)
    expect(await usersSaid(server, 'c', user)).toEqual([user])
  }
  const stranger = open(server)
  await stranger.sendMessage({ text: 'eve' })
  expect(stranger.error?.message).toContain('token')
})

/** What a reader sees of a part. */
function shown(part: UIMessage['parts'][number]): object {
  if (part.type === 'text') return { text: part.text }
  if (part.type !== 'dynamic-tool') return { type: part.type }
  return {
    name: part.toolName,
    id: part.toolCallId,
    input: part.input,
    state: part.state,
    output: part.output,
  }
}

function statesOf(message: UIMessage | undefined): Record<string, string> {
  const tools = (message?.parts ?? []).filter(part => part.type === 'dynamic-tool')
  return Object.fromEntries(tools.map(({ toolName, state }) => [toolName, state]))
}

async function usersSaid({ runtime }: ProtocolServer, sessionId: string, userId = 'user'): Promise<string[]> {
  const messages = await runtime.messages({ appName: 'lango', userId, sessionId })
  return messages.flatMap(({ role, parts }) =>
    role === 'user' ? parts.map(part => (part.type === 'text' ? part.text : '')) : [],
  )
}
