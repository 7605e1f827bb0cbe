// The AI SDK's `useChat`, rendered by React in a real browser, against the server.
import type { UIMessage } from 'ai'
import type { Browser, Page } from 'playwright-core'
import { build } from 'vite'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { launchBrowser } from '../../support/browser.js'
import { makeFolder, removeFolder } from '../../support/temporary-folder.js'
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
import type { ChatWindow } from './use-chat-page/chat-window.js'

// Starting processes takes long on a busy machine.
vi.setConfig({ testTimeout: 120_000 })

let browser: Browser
let webRoot = ''

beforeAll(async () => {
  webRoot = await makeFolder()
  const root = new URL('./use-chat-page', import.meta.url).pathname
  const outputs = { outDir: webRoot, emptyOutDir: true, chunkSizeWarningLimit: 10_000 }
  await build({ configFile: false, root, logLevel: 'error', build: outputs })
  browser = await launchBrowser()
}, 120_000)

afterAll(async () => {
  await browser?.close()
  await removeFolder(webRoot)
})

declare const window: ChatWindow

/** A page with the hook on it, and what the test does with it. */
class ChatPage {
  constructor(readonly page: Page) {}

  state(): Promise<Pick<ChatWindow['chat'], 'messages' | 'status' | 'error'>> {
    return this.page.evaluate(() => {
      const { messages, status, error } = window.chat
      return { messages, status, error }
    })
  }

  async last(): Promise<UIMessage | undefined> {
    return (await this.state()).messages.at(-1)
  }

  /** Says something and waits for the answer, or for the error. */
  async send(text: string): Promise<void> {
    const before = await this.page.evaluate(words => {
      window.chat.send(words)
      return window.chat.messages.length
    }, text)
    await this.page.waitForFunction(count => {
      const { status, messages } = window.chat
      return status === 'error' || (status === 'ready' && messages.length >= count)
    }, before + 2)
  }

  /** Waits until the last message says this and nothing is under way. */
  async says(text: string): Promise<void> {
    await this.page.waitForFunction(words => {
      const { status, messages } = window.chat
      return status === 'ready' && JSON.stringify(messages.at(-1)).includes(words)
    }, text)
  }

  /** Waits for an answer that is not the one with this id. */
  async answersAnew(id: string | undefined): Promise<void> {
    await this.page.waitForFunction(old => {
      const last = window.chat.messages.at(-1)
      return window.chat.status === 'ready' && last?.role === 'assistant' && last.id !== old
    }, id)
  }
}

async function open({ url }: ProtocolServer, hash: string, door?: string): Promise<ChatPage> {
  const context = await browser.newContext()
  onTestFinished(() => context.close())
  const page = await context.newPage()
  if (door) await page.goto(`${url}${door}`)
  await page.goto(`${url}/?#${hash}`)
  await page.waitForFunction(() => window.chat !== undefined)
  return new ChatPage(page)
}

function start(options: ProtocolServerOptions = {}): Promise<ProtocolServer> {
  return startProtocolServer({ script: searchThenTell, ...options, serve: { webRoot, ...options.serve } })
}

function textOf(message: UIMessage | undefined): string {
  return (message?.parts ?? []).flatMap(part => (part.type === 'text' ? [part.text] : [])).join('|')
}

function typesOf(message: UIMessage | undefined): string[] {
  return (message?.parts ?? []).map(({ type }) => type)
}

describe('useChat', () => {
  test('runs a streamed conversation of several turns, with tools that the agent runs', async () => {
    const server = await start()
    const chat = await open(server, 'fruit')
    for (const words of ['apples', 'pears', 'plums']) await chat.send(words)
    const { messages, error } = await chat.state()
    expect(error).toBeUndefined()
    expect(messages.map(({ role }) => role)).toEqual(Array(3).fill(['user', 'assistant']).flat())
    const answer = messages.at(-1)
    expect(typesOf(answer)).toEqual([
      'step-start',
      'text',
      'data-usage',
      'dynamic-tool',
      'step-start',
      'text',
      'data-usage',
    ])
    expect(answer?.parts[3]).toMatchObject({
      toolName: 'search',
      state: 'output-available',
      input: { query: 'plums' },
      output: { found: 'plums' },
    })
    expect(answer?.parts.at(-2)).toMatchObject({ text: 'I found plums.', state: 'done' })
    expect(answer?.metadata).toMatchObject({
      lango: { sessionId: 'fruit', finishReason: 'stop', usage: { totalTokens: 38 } },
    })
    expect(server.provider.violations).toEqual([])
    expect(await sessionIds(server.runtime)).toEqual(['fruit'])
  })

  test('shows reasoning, and the error of a tool', async () => {
    const script = [
      { thinking: 'Hm.', toolCalls: [{ name: 'search', args: { query: 'x' } }] },
      { text: 'It failed.' },
    ]
    const tool = { ...searchTool, execute: () => Promise.reject(new TypeError('The net is torn.')) }
    const server = await start({ script, tools: [tool], profile: 'deepseek-thinking' })
    const chat = await open(server, 'c')
    await chat.send('look')
    const answer = await chat.last()
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

  test('sends files', async () => {
    const server = await start({ script: [{ text: 'A dot.' }] })
    const chat = await open(server, 'c')
    const pixel = 'data:image/png;base64,iVBORw0KGgo='
    await chat.page.evaluate(url => window.chat.sendFile('look', url), pixel)
    await chat.says('A dot.')
    expect(JSON.stringify(server.provider.requests[0]?.body)).toContain(pixel)
  })

  test('requests approval, sends the answers automatically, and continues in the same message', async () => {
    const script: ProtocolServerOptions['script'] = ({ messages }) =>
      messages.at(-1)?.role === 'tool'
        ? { text: 'Done with it.' }
        : { text: 'May I?', toolCalls: [{ name: 'danger' }, { name: 'search', args: { query: 'x' } }] }
    const server = await start({ script })
    const chat = await open(server, 'c')
    for (const [turn, approved] of [true, false].entries()) {
      await chat.send('go')
      const asking = await chat.last()
      const asked = asking?.parts.filter(part => 'state' in part && part.state === 'approval-requested')
      expect(asked).toMatchObject([{ toolName: 'danger' }])
      const [{ approval }] = asked as unknown as [{ approval: { id: string } }]
      const answer = { id: approval.id, approved }
      await chat.page.evaluate(said => window.chat.approve(said.id, said.approved), answer)
      await chat.says('Done with it.')
      const { messages, error } = await chat.state()
      expect(error).toBeUndefined()
      expect(messages).toHaveLength(2 * (turn + 1))
      expect(messages.at(-1)?.id).toBe(asking?.id)
      expect(textOf(messages.at(-1))).toBe('May I?|Done with it.')
      expect(statesOf(messages.at(-1))).toEqual({
        danger: approved ? 'output-available' : 'output-denied',
        search: 'output-available',
      })
    }
    expect(server.provider.violations).toEqual([])
  })

  test('regenerates a turn and replaces a message without losing the earlier ones', async () => {
    const server = await start()
    const chat = await open(server, 'c')
    for (const words of ['apples', 'pears']) await chat.send(words)
    const first = await chat.last()
    await chat.page.evaluate(() => window.chat.regenerate())
    await chat.answersAnew(first?.id)
    await chat.send('plums')
    const users = (await chat.state()).messages.filter(({ role }) => role === 'user')
    expect(users.map(textOf)).toEqual(['apples', 'pears', 'plums'])

    const before = await chat.last()
    await chat.page.evaluate(id => window.chat.edit(id, 'figs'), users[1]?.id ?? '')
    await chat.answersAnew(before?.id)
    const { messages, error } = await chat.state()
    expect(error).toBeUndefined()
    expect(messages.filter(({ role }) => role === 'user').map(textOf)).toEqual(['apples', 'figs'])
    expect(textOf(messages.at(-1))).toBe('Let me look.|I found figs.')

    const histories = await Promise.all((await sessionIds(server.runtime)).map(id => usersSaid(server, id)))
    expect(histories.map(said => said.join(' ')).sort()).toEqual([
      'apples figs',
      'apples pears',
      'apples pears plums',
    ])
    expect(server.provider.violations).toEqual([])
  })

  test('a reloaded page resumes the active run; without one it does nothing', async () => {
    const { tool, called, letGo } = heldTool()
    const server = await start({ tools: [tool] })
    const chat = await open(server, 'c')
    await chat.page.evaluate(() => window.chat.send('apples'))
    await called
    await chat.page.close()
    const again = await open(server, 'c/resume')
    await again.page.waitForFunction(() => window.chat.status === 'streaming')
    letGo()
    await again.says('I found apples.')
    expect(statesOf(await again.last())).toEqual({ search: 'output-available' })
    const later = await open(server, 'c/resume')
    expect(await later.state()).toMatchObject({ messages: [], status: 'ready' })
    expect((await fetch(`${server.url}/api/chat/c/stream`)).status).toBe(204)
  })

  test('a reopened chat starts with its earlier messages, as they were shown', async () => {
    const server = await start()
    const chat = await open(server, 'c')
    for (const words of ['apples', 'pears']) await chat.send(words)
    const { messages } = await chat.state()
    const stored = await fetch(`${server.url}/api/chat/c`)
    const { messages: again } = (await stored.json()) as { messages: UIMessage[] }
    expect(again.map(({ role, parts }) => ({ role, parts: parts.map(shown) }))).toEqual(
      messages.map(({ role, parts }) => ({
        role,
        parts: parts.filter(({ type }) => type !== 'data-usage').map(shown),
      })),
    )
  })

  test('regenerating an active turn replaces the run', async () => {
    const { tool, called, letGo } = heldTool()
    const server = await start({ tools: [tool] })
    const chat = await open(server, 'c')
    await chat.page.evaluate(() => window.chat.send('apples'))
    await called
    await chat.page.evaluate(() => window.chat.stop())
    await chat.page.waitForFunction(() => window.chat.status === 'ready')
    await chat.page.evaluate(() => window.chat.regenerate())
    const key = { appName: 'lango', userId: 'user', sessionId: 'c' }
    await until(async () => (await server.runtime.store.runs.listRuns(key))[0]?.finishReason === 'aborted')
    letGo()
    await chat.says('I found apples.')
    expect((await chat.state()).messages).toHaveLength(2)
    expect(server.provider.violations).toEqual([])
  })

  test('disconnecting does not stop the run; the stop request does', async () => {
    const { tool, called, letGo } = heldTool()
    const server = await start({ tools: [tool] })
    const chat = await open(server, 'c')
    await chat.page.evaluate(() => window.chat.send('apples'))
    await called
    await chat.page.evaluate(() => window.chat.stop())
    await chat.page.waitForFunction(() => window.chat.status === 'ready')
    const key = { appName: 'lango', userId: 'user', sessionId: 'c' }
    expect(await server.runtime.store.runs.listRuns(key)).toMatchObject([{ finished: false }])
    const stopped = await fetch(`${server.url}/api/chat/c/stream`, { method: 'DELETE' })
    expect(stopped.status).toBe(204)
    await until(async () => (await server.runtime.store.runs.listRuns(key))[0]?.finished === true)
    expect(await server.runtime.store.runs.listRuns(key)).toMatchObject([{ finishReason: 'aborted' }])
    letGo()
  })

  test('an error before or in the stream has a readable message, and the next message works', async () => {
    const server = await start({ faults: [{ kind: 'auth', at: 0 }] })
    const chat = await open(server, 'c')
    await chat.send('apples')
    expect(await chat.state()).toMatchObject({ status: 'error', error: expect.stringMatching(/key/) })
    await chat.send('pears')
    expect(await chat.state()).toMatchObject({ status: 'ready', error: undefined })
    expect(textOf(await chat.last())).toBe('Let me look.|I found pears.')
    await chat.send('')
    const { error } = await chat.state()
    expect(error).toBe('The last message is empty: it needs text or a file.')
  })

  test('a login link is sufficient, and users with the same chat id have separate chats', async () => {
    const tokens = { 'token-of-ann': 'ann', 'token-of-bob': 'bob' }
    const server = await start({ serve: { tokens } })
    for (const [token, user] of Object.entries(tokens)) {
      const chat = await open(server, 'c', `/login?token=${token}`)
      await chat.send(user)
      expect(textOf(await chat.last())).toBe(`Let me look.|I found ${user}.`)
      expect(await usersSaid(server, 'c', user)).toEqual([user])
    }
    const stranger = await open(server, 'c')
    await stranger.send('eve')
    expect((await stranger.state()).error).toContain('token')
  })
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
