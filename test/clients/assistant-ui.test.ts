// assistant-ui on ADK's routes: `@assistant-ui/react-google-adk` on a page of its own parts, in a real browser.
import type { Browser, Page } from 'playwright-core'
import { build } from 'vite'
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest'
import {
  heldTool,
  type ProtocolServer,
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
  savingAgent,
} from './support/scenes.js'

let browser: Browser
let webRoot = ''

beforeAll(async () => {
  browser = await launchBrowser()
  webRoot = await makeFolder()
  await build({
    configFile: false,
    root: new URL('./assistant-ui-page', import.meta.url).pathname,
    logLevel: 'error',
    build: { outDir: webRoot, emptyOutDir: true, minify: false, chunkSizeWarningLimit: 10_000 },
  })
})

afterAll(async () => {
  await browser?.close()
  await removeFolder(webRoot)
})

const without = { 'structured output': 'ADK’s protocol has no field for a schema.' }

clientSuite({ client: '@assistant-ui/react-google-adk', without }, store => {
  const start = async (options: ProtocolServerOptions = {}) =>
    startProtocolServer({
      script: searchThenTell,
      store: await store.url(),
      ...options,
      serve: { webRoot, ...options.serve },
    })

  can('several turns', 'three messages, and the session again after a reload', async () => {
    const server = await start()
    const { page, problems } = await open(server.url)
    const expected: string[] = []
    for (const words of ['apples', 'pears', 'plums']) {
      await say(page, words)
      await shows(page, `I found ${words}.`)
      expected.push(words, 'Let me look.', `I found ${words}.`)
    }
    expect(await page.locator('article p').allTextContents()).toEqual(expected)
    await page.reload()
    await shows(page, 'I found plums.')
    expect(await page.locator('article p').allTextContents()).toEqual(expected)
    expect(problems).toEqual([])
    expect(server.provider.violations).toEqual([])
  })

  can(
    'agent tools',
    'calls and results are shown, and what a tool has saved is listed and loaded',
    async () => {
      const server = await start({ rootAgent: savingAgent })
      const { page, problems } = await open(server.url)
      await say(page, 'apples')
      await shows(page, 'I found apples.')
      const call = page.locator('[data-tool=search]')
      expect(await call.textContent()).toContain('"query":"apples"')
      expect(await call.textContent()).toContain('found')
      await page.getByText('found.txt').waitFor()
      const notes = (await page.locator('aside').textContent()) ?? ''
      expect(JSON.parse((JSON.parse(notes) as { texts: string }).texts)).toEqual({
        listed: ['found.txt'],
        loaded: [{ text: 'apples' }],
        versions: [0],
      })
      expect(problems).toEqual([])
    },
  )

  can('streaming', 'the text before a tool is shown while the tool runs', async () => {
    const { tool, called, letGo } = heldTool()
    const { page } = await open((await start({ tools: [tool] })).url)
    await say(page, 'apples')
    await called
    await shows(page, 'Let me look.')
    expect(await page.getByText('I found').count()).toBe(0)
    letGo()
    await shows(page, 'I found apples.')
  })

  can('client tools', 'a tool of the page gives its result, and the run goes on', async () => {
    const server = await start({ rootAgent: askingAgent, script: askThenTell })
    const { page, problems } = await open(server.url)
    await say(page, 'my name')
    await shows(page, 'You are Ada.')
    await say(page, 'again')
    await expect.poll(() => page.getByText('You are Ada.').count()).toBe(2)
    expect(problems).toEqual([])
    expect(server.provider.violations).toEqual([])
  })

  can('approval', 'a dialog, confirmed and not', async () => {
    const executed: string[] = []
    const server = await start({ script: dangerThenTell, tools: [dangerous(executed)] })
    const { page, problems } = await open(server.url)
    for (const [button, words] of [
      ['Allow', 'Done with it.'],
      ['Refuse', 'As you wish.'],
    ] as const) {
      await say(page, 'go')
      await page.getByText(button, { exact: true }).click()
      await shows(page, words)
      expect(await page.locator('[role=dialog]').count()).toBe(0)
    }
    expect(executed).toEqual(['danger'])
    expect(problems).toEqual([])
    expect(server.provider.violations).toEqual([])
  })

  can(
    'approval',
    'a message instead of an answer: the tool does not run, and the message is answered',
    async () => {
      const executed: string[] = []
      const server = await start({ script: dangerThenTell, tools: [dangerous(executed)] })
      const { page, problems } = await open(server.url)
      await say(page, 'go')
      await page.locator('[role=dialog]').waitFor()
      await say(page, 'rather not')
      await shows(page, 'Then not.')
      expect(executed).toEqual([])
      expect(problems).toEqual([])
      expect(server.provider.violations).toEqual([])
    },
  )

  can('error', 'one readable sentence, and the next message works', async () => {
    const { page, problems } = await open((await start({ faults: [{ kind: 'auth', at: 0 }] })).url)
    await say(page, 'apples')
    await page.locator('#error', { hasText: 'key' }).waitFor()
    await say(page, 'pears')
    await shows(page, 'I found pears.')
    expect(problems).toEqual([])
  })

  can('abort', 'stopped while a tool runs; the next message is answered', async () => {
    const { tool, called, letGo } = heldTool()
    onTestFinished(letGo)
    const server = await start({ tools: [tool], script: lookOnce })
    const { page, problems } = await open(server.url)
    await say(page, 'apples')
    await called
    await shows(page, 'Let me look.')
    await page.getByText('Stop', { exact: true }).click()
    await say(page, 'never mind')
    await shows(page, 'Fine: never mind.')
    expect(problems).toEqual([])
    expect(server.provider.violations).toEqual([])
  })

  can('reconnect', 'a reloaded page has the answer, and a dialog that is still open', async () => {
    const executed: string[] = []
    const server = await start({ script: dangerThenTell, tools: [dangerous(executed)] })
    const { page, problems } = await open(server.url)
    await say(page, 'go')
    await page.locator('[role=dialog]').waitFor()
    await page.reload()
    await page.getByText('Allow', { exact: true }).click()
    await shows(page, 'Done with it.')
    expect(executed).toEqual(['danger'])
    expect(problems).toEqual([])
  })

  can('once', 'a message and an answer that are sent again, during the run and after a cut', async () => {
    const { tool, called, letGo, count } = countedTool()
    const server = await start({ tools: [{ ...tool, needsApproval: true }] })
    const proxy = await startCuttableProxy(server.url)
    const { page } = await open(proxy.url)
    const asked = page.waitForRequest(request => request.url().endsWith('/run_sse'))
    await say(page, 'apples')
    await page.locator('[role=dialog]').waitFor()
    expect(await sendAgain(server, (await asked).postData())).toContain('adk_request_confirmation')
    const allowed = page.waitForRequest(request => request.url().endsWith('/run_sse'))
    await page.getByText('Allow', { exact: true }).click()
    const body = (await allowed).postData()
    await called
    const during = sendAgain(server, body)
    proxy.cut()
    const after = sendAgain(server, body)
    letGo()
    expect(await during).toContain('I found ')
    expect(await after).toContain('I found ')
    expect(count()).toBe(1)
    expect(
      await server.runtime.listRuns({ ...KEY, sessionId: new URL(page.url()).hash.slice(1) }),
    ).toHaveLength(1)
  })
})

const KEY = { appName: 'lango', userId: 'user' }

/** The page, and what its console reports. */
async function open(url: string): Promise<{ page: Page; problems: string[] }> {
  const context = await browser.newContext()
  onTestFinished(() => context.close())
  context.setDefaultTimeout(20_000)
  const page = await context.newPage()
  const problems: string[] = []
  page.on('pageerror', error => problems.push(error.message))
  page.on('console', message => {
    if (message.type() === 'error' || message.type() === 'warning') problems.push(message.text())
  })
  await page.goto(url)
  return { page, problems }
}

async function say(page: Page, text: string): Promise<void> {
  await page.locator('textarea').first().fill(text)
  await page.getByText('Send', { exact: true }).click()
}

async function shows(page: Page, text: string): Promise<void> {
  await page.getByText(text).last().waitFor()
}

async function sendAgain({ url }: ProtocolServer, body: string | null): Promise<string> {
  const headers = { 'content-type': 'application/json' }
  return (await fetch(`${url}/run_sse`, { method: 'POST', headers, body })).text()
}
