// `useChat` of the AI SDK 5, 6 and 7, rendered by React in a real browser, against the server and a strict provider.
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { UIMessage } from 'ai'
import type { Browser, Page } from 'playwright-core'
import { build } from 'vite'
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest'
import type { Message } from '../../src/session/message.js'
import {
  heldTool,
  type ProtocolServerOptions,
  searchThenTell,
  startProtocolServer,
} from '../server/protocols/support.js'
import { launchBrowser } from '../support/browser.js'
import { makeFolder, removeFolder } from '../support/temporary-folder.js'
import { can, clientSuite } from './support/client-suite.js'
import { startCuttableProxy } from './support/cuttable-proxy.js'
import {
  askingAgent,
  askThenTell,
  countedTool,
  dangerous,
  dangerThenTell,
  lookOnce,
} from './support/scenes.js'
import type { ChatWindow } from './use-chat-page/chat-window.js'

declare const window: ChatWindow

const VERSIONS = [
  { major: 5, ai: 'ai-5', react: 'ai-react-5' },
  { major: 6, ai: 'ai', react: 'ai-react-6' },
  { major: 7, ai: 'ai-7', react: 'ai-react-7' },
]

let browser: Browser
const webRoots = new Map<number, string>()

beforeAll(async () => {
  browser = await launchBrowser()
  for (const { major, ai, react } of VERSIONS) {
    const webRoot = await makeFolder()
    webRoots.set(major, webRoot)
    await build({
      configFile: false,
      root: new URL('./use-chat-page', import.meta.url).pathname,
      logLevel: 'error',
      resolve: { alias: { ai: folderOf(ai), 'ai-react-6': folderOf(react) } },
      build: { outDir: webRoot, emptyOutDir: true, chunkSizeWarningLimit: 10_000 },
    })
  }
})

afterAll(async () => {
  await browser?.close()
  for (const folder of webRoots.values()) await removeFolder(folder)
})

function folderOf(name: string): string {
  return dirname(createRequire(import.meta.url).resolve(join(name, 'package.json')))
}

const KEY = { appName: 'lango', userId: 'user', sessionId: 'c' }

for (const { major, ai } of VERSIONS) {
  const without = {
    'structured output':
      'The chat protocol has no field for a schema: an answer follows the agent’s own output schema.',
  }
  clientSuite({ client: 'useChat of `ai`', package: ai, without }, store => {
    const start = async (options: ProtocolServerOptions = {}) => {
      const webRoot = webRoots.get(major)
      const serve = { webRoot, ...options.serve }
      return startProtocolServer({ script: searchThenTell, store: await store.url(), ...options, serve })
    }

    can('several turns', 'three messages, three answers, one session', async () => {
      const server = await start()
      const page = await open(server.url)
      for (const words of ['apples', 'pears', 'plums']) await send(page, words)
      const { messages, error } = await stateOf(page)
      expect(error).toBeUndefined()
      expect(messages.map(textOf)).toEqual(
        ['apples', 'pears', 'plums'].flatMap(words => [words, `Let me look.|I found ${words}.`]),
      )
      expect(messages.at(-1)?.metadata).toMatchObject({ lango: { sessionId: 'c', finishReason: 'stop' } })
      expect(server.provider.violations).toEqual([])
    })

    can('agent tools', 'what was repaired and cut before the model got it is a data part', async () => {
      const server = await start({ history: { maxMessageTokenBudget: 400 } })
      await server.runtime.store.createSession(KEY)
      for (const message of brokenHistory()) await server.runtime.store.appendMessage(KEY, message)
      const page = await open(server.url)
      await send(page, 'apples')
      const { messages, data } = await stateOf(page)
      expect(textOf(messages.at(-1))).toBe('Let me look.|I found apples.')
      const parts = (type: string) => data.filter(part => part.type === type).map(part => part.data)
      expect(parts('data-history-cut')).toContainEqual({
        cut: expect.objectContaining({ reason: 'token-budget', budgetTokens: 400 }),
      })
      expect(parts('data-repair')).toContainEqual({
        ...{ model: 'strict/gpt-4.1', profile: 'openai-chat' },
        repairs: [expect.objectContaining({ step: 'pair-calls', kind: 'synthesize-result' })],
      })
      expect(server.provider.violations).toEqual([])
    })

    can('agent tools', 'calls and results are parts, and the cost is a data part', async () => {
      const server = await start()
      const page = await open(server.url)
      await send(page, 'apples')
      const { messages, data } = await stateOf(page)
      expect(toolsOf(messages.at(-1))).toMatchObject([
        {
          toolName: 'search',
          state: 'output-available',
          input: { query: 'apples' },
          output: { found: 'apples' },
        },
      ])
      const used = data.filter(({ type }) => type === 'data-usage')
      expect(used).toMatchObject([
        {
          data: {
            model: 'strict/gpt-4.1',
            usage: { inputTokens: 10, outputTokens: 3, cost: expect.any(Number) },
          },
        },
        { data: { usage: { inputTokens: 20, outputTokens: 5 } } },
      ])
    })

    can('streaming', 'the text before a tool is shown while the tool runs', async () => {
      const { tool, called, letGo } = heldTool()
      const server = await start({ tools: [tool] })
      const page = await open(server.url)
      await page.evaluate(() => window.chat.send('apples'))
      await called
      await page.waitForFunction(() => {
        const { status, messages } = window.chat
        return status === 'streaming' && JSON.stringify(messages).includes('Let me look.')
      })
      letGo()
      await says(page, 'I found apples.')
    })

    can(
      'client tools',
      'the client gives the result of a long-running tool, and the run goes on',
      async () => {
        const server = await start({ rootAgent: askingAgent, script: askThenTell })
        const page = await open(server.url)
        await page.evaluate(() => window.chat.send('my name'))
        await page.waitForFunction(() => {
          const part = window.chat.messages.at(-1)?.parts.find(({ type }) => type === 'dynamic-tool')
          return window.chat.status === 'ready' && part !== undefined
        })
        const [call] = toolsOf((await stateOf(page)).messages.at(-1))
        expect(call).toMatchObject({ toolName: 'ask_page', state: 'input-available' })
        await page.evaluate(id => window.chat.addOutput(id, { value: 'Ada' }), String(call?.toolCallId))
        await says(page, 'You are Ada.')
        const { messages, error } = await stateOf(page)
        expect(error).toBeUndefined()
        expect(messages).toHaveLength(2)
        expect(toolsOf(messages[1])).toMatchObject([{ state: 'output-available', output: { value: 'Ada' } }])
        expect(server.provider.violations).toEqual([])
      },
    )

    for (const mode of major === 5 ? ['data'] : ['native', 'data']) {
      can(
        'approval',
        `allowed and refused, ${mode === 'data' ? 'as data parts' : 'by the hook'}`,
        async () => {
          const executed: string[] = []
          const server = await start({ script: dangerThenTell, tools: [dangerous(executed)] })
          const page = await open(server.url, `c/${mode}`)
          for (const [turn, approved] of [true, false].entries()) {
            await page.evaluate(() => window.chat.send('go'))
            const [approvalId, toolCallId] = await askedFor(page, turn)
            await page.evaluate(([approval, call, yes]) => window.chat.approve(approval, call, yes), [
              approvalId,
              toolCallId,
              approved,
            ] as const)
            await says(page, approved ? 'Done with it.' : 'As you wish.')
            const { messages, error } = await stateOf(page)
            expect(error).toBeUndefined()
            expect(messages).toHaveLength(2 * (turn + 1))
            const denied = mode === 'data' ? 'output-error' : 'output-denied'
            expect(toolsOf(messages.at(-1))[0]?.state).toBe(approved ? 'output-available' : denied)
          }
          expect(executed).toEqual(['danger'])
          expect(server.provider.violations).toEqual([])
        },
      )
    }

    can('error', 'one readable sentence, and the next message works', async () => {
      const server = await start({ faults: [{ kind: 'auth', at: 0 }] })
      const page = await open(server.url)
      await send(page, 'apples')
      expect(await stateOf(page)).toMatchObject({ status: 'error', error: expect.stringMatching(/key/) })
      await send(page, 'pears')
      expect(await stateOf(page)).toMatchObject({ status: 'ready', error: undefined })
      expect(textOf((await stateOf(page)).messages.at(-1))).toBe('Let me look.|I found pears.')
    })

    can(
      'abort',
      'stop() and the next message: the first run ends as aborted, the second answers',
      async () => {
        const { tool, called, letGo } = heldTool()
        onTestFinished(letGo)
        const server = await start({ tools: [tool], script: lookOnce })
        const page = await open(server.url)
        await page.evaluate(() => window.chat.send('apples'))
        await called
        await page.waitForFunction(() => JSON.stringify(window.chat.messages).includes('Let me look.'))
        await page.evaluate(async () => {
          await window.chat.stop()
          window.chat.send('never mind')
        })
        await says(page, 'Fine: never mind.')
        expect((await stateOf(page)).error).toBeUndefined()
        const runs = await server.runtime.listRuns(KEY)
        expect(runs.map(({ finishReason }) => finishReason)).toEqual(['stop', 'aborted'])
        expect(server.provider.violations).toEqual([])
      },
    )

    can('reconnect', 'a reloaded page resumes the answer', async () => {
      const { tool, called, letGo } = heldTool()
      const server = await start({ tools: [tool] })
      const page = await open(server.url)
      await page.evaluate(() => window.chat.send('apples'))
      await called
      await page.close()
      const again = await open(server.url, 'c/resume')
      await again.waitForFunction(() => JSON.stringify(window.chat.messages).includes('Let me look.'))
      letGo()
      await says(again, 'I found apples.')
      expect(textOf((await stateOf(again)).messages.at(-1))).toBe('Let me look.|I found apples.')
    })

    // The hooks of 5 and 6 add a stream that begins again to what they have.
    for (const way of major === 7 ? (['resume', 'reopen'] as const) : (['reopen'] as const)) {
      const words = way === 'resume' ? 'resumeStream()' : 'the chat that is opened anew with its messages'
      can(
        'reconnect',
        `after a lost connection on an open page: ${words} gets the answer, once`,
        async () => {
          const { tool, called, letGo } = heldTool()
          const server = await start({ tools: [tool] })
          const proxy = await startCuttableProxy(server.url)
          const page = await open(proxy.url)
          await page.evaluate(() => window.chat.send('apples'))
          await called
          await page.waitForFunction(() => JSON.stringify(window.chat.messages).includes('Let me look.'))
          proxy.cut()
          await page.waitForFunction(() => window.chat.status === 'error')
          await page.evaluate(name => void window.chat[name](), way)
          await page.waitForFunction(() => window.chat.status === 'streaming')
          letGo()
          await says(page, 'I found apples.')
          const { messages } = await stateOf(page)
          expect(messages.map(textOf)).toEqual(['apples', 'Let me look.|I found apples.'])
          expect(await server.runtime.listRuns(KEY)).toHaveLength(1)
        },
      )
    }

    can(
      'once',
      'a request that is sent again, during the run and after a cut, executes the tool once',
      async () => {
        const { tool, called, letGo, count } = countedTool()
        const server = await start({ tools: [tool] })
        const proxy = await startCuttableProxy(server.url)
        const page = await open(proxy.url)
        const sent = page.waitForRequest(request => request.method() === 'POST')
        await page.evaluate(() => window.chat.send('apples'))
        const body = (await sent).postData() ?? ''
        await called
        const repeat = () =>
          fetch(`${server.url}/api/chat`, {
            method: 'POST',
            body,
            headers: { 'content-type': 'application/json' },
          })
        const during = await repeat()
        proxy.cut()
        const after = await repeat()
        letGo()
        expect(await during.text()).toContain('I found ')
        expect(await after.text()).toContain('I found ')
        expect(count()).toBe(1)
        expect(await server.runtime.listRuns(KEY)).toHaveLength(1)
      },
    )
  })
}

/** Longer than the budget, and with a call that was never answered. */
function brokenHistory(): Message[] {
  const long = Array.from({ length: 20 }, (_, index): Message => {
    const role = index % 2 === 0 ? 'user' : 'assistant'
    return { role, content: `${index} ${'words '.repeat(40)}`, timestamp: index }
  })
  const call = { id: 'lost', name: 'search', input: '{"query":"x"}', kind: 'call' as const }
  const open: Message = { role: 'assistant', content: '', toolCalls: [call], timestamp: 30 }
  return [...long, { role: 'user', content: 'and then?', timestamp: 29 }, open]
}

async function open(url: string, hash = 'c'): Promise<Page> {
  const context = await browser.newContext()
  onTestFinished(() => context.close())
  const page = await context.newPage()
  page.setDefaultTimeout(60_000)
  await page.goto(`${url}/?#${hash}`)
  await page.waitForFunction(() => window.chat !== undefined)
  return page
}

type ChatState = Pick<ChatWindow['chat'], 'messages' | 'status' | 'error' | 'data'>

function stateOf(page: Page): Promise<ChatState> {
  return page.evaluate(() => {
    const { messages, status, error, data } = window.chat
    return { messages, status, error, data }
  })
}

/** Says something and waits for the answer, or for the error. */
async function send(page: Page, text: string): Promise<void> {
  const before = await page.evaluate(words => {
    window.chat.send(words)
    return window.chat.messages.length
  }, text)
  await page.waitForFunction(count => {
    const { status, messages } = window.chat
    return (
      messages.length > count && (status === 'error' || (status === 'ready' && messages.length >= count + 2))
    )
  }, before)
}

/** Waits until the last message says this and nothing is under way. */
async function says(page: Page, text: string): Promise<void> {
  await page.waitForFunction(words => {
    const { status, messages } = window.chat
    return status === 'ready' && JSON.stringify(messages.at(-1)).includes(words)
  }, text)
}

/** Waits for the approval of this turn: its id, and that of the call. */
async function askedFor(page: Page, turn: number): Promise<[approvalId: string, toolCallId: string]> {
  const found = await page.waitForFunction(
    count => {
      const { status, messages } = window.chat
      if (status !== 'ready' || messages.length !== count) return undefined
      for (const part of messages.at(-1)?.parts ?? []) {
        if (part.type === 'dynamic-tool' && part.state === 'approval-requested')
          return [part.approval.id, part.toolCallId]
        if (part.type === 'data-approval-request' && 'data' in part) {
          const asked = part.data as { approvalId: string; toolCallId: string }
          return [asked.approvalId, asked.toolCallId]
        }
      }
      return undefined
    },
    2 * (turn + 1),
  )
  return (await found.jsonValue()) as [string, string]
}

type ToolPart = Extract<UIMessage['parts'][number], { type: 'dynamic-tool' }>

function toolsOf(message: UIMessage | undefined): ToolPart[] {
  return (message?.parts ?? []).filter((part): part is ToolPart => part.type === 'dynamic-tool')
}

function textOf(message: UIMessage | undefined): string {
  return (message?.parts ?? []).flatMap(part => (part.type === 'text' ? [part.text] : [])).join('|')
}
