// ADK's own page, adk-web, from `@google/adk-devtools`, in a real browser with an empty console.
import { mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { startLango } from '../../cli/lango.js'
import {
  heldTool,
  type ProtocolServer,
  type ProtocolServerOptions,
  searchThenTell,
  startProtocolServer,
} from '../../server/protocols/support.js'
import { launchBrowser } from '../../support/browser.js'
import { temporaryFolder } from '../../support/temporary-folder.js'
import { can, clientSuite } from '../support/client-suite.js'
import { startCuttableProxy } from '../support/cuttable-proxy.js'
import { countedTool, dangerous, dangerThenTell, savingAgent } from '../support/scenes.js'

const adkWebRoot = join(import.meta.dirname, 'node_modules/@google/adk-devtools/dist/browser')

let browser: Browser

beforeAll(async () => {
  browser = await launchBrowser()
})

afterAll(() => browser?.close())

const without = {
  'client tools': 'The page declares no tools of its own.',
  'structured output': 'The page sends no schema.',
  abort: 'The page has no way to stop an answer: the run is stopped with the native API.',
}

clientSuite({ client: 'adk-web', package: '@google/adk-devtools', without }, store => {
  const start = async (options: ProtocolServerOptions = {}) =>
    startProtocolServer({
      script: searchThenTell,
      store: await store.url(),
      ...options,
      serve: { adkWebRoot, ...options.serve },
    })

  can(
    'several turns',
    'with events, traces, state, graph, artifacts and evaluations, and an empty console',
    async () => {
      const server = await start()
      const { page, problems } = await open(server)
      for (const words of ['apples', 'pears', 'plums']) {
        await say(page, words)
        await shows(page, `I found ${words}.`)
      }
      expect(await page.getByText('Turn Complete').count()).toBe(3)
      for (const tab of ['State', 'Artifacts', 'Evals', 'Info', 'Traces', 'Events'])
        await page.getByText(tab, { exact: true }).first().click()
      await page.locator('svg text', { hasText: 'search' }).first().waitFor()
      await page.getByText('Let me look.').first().click()
      await page.waitForLoadState('networkidle')
      expect(problems).toEqual([])
      expect(server.provider.violations).toEqual([])
    },
  )

  can('agent tools', 'the call and its result are shown, and the artifact that the tool saved', async () => {
    const { page, problems } = await open(await start({ rootAgent: savingAgent }))
    await say(page, 'apples')
    await shows(page, 'I found apples.')
    await page.getByText('search("apples")').waitFor()
    await page.getByText('Artifacts', { exact: true }).first().click()
    await page.locator('app-artifact-tab').getByText('found.txt').first().waitFor()
    expect(problems).toEqual([])
  })

  can('streaming', 'the text before a tool is shown while the tool runs', async () => {
    const { tool, called, letGo } = heldTool()
    const { page } = await open(await start({ tools: [tool] }))
    await say(page, 'apples')
    await called
    await shows(page, 'Let me look.')
    letGo()
    await shows(page, 'I found apples.')
  })

  can('approval', 'its own dialog, confirmed and not', async () => {
    const executed: string[] = []
    const server = await start({ script: dangerThenTell, tools: [dangerous(executed)] })
    const { page, problems } = await open(server)
    for (const [turn, words] of ['Done with it.', 'As you wish.'].entries()) {
      await say(page, 'go')
      const dialog = page.locator('app-long-running-response').last()
      await dialog.getByText('May the agent call danger?').waitFor()
      if (turn === 0) await dialog.locator('input[type=checkbox]').check()
      await dialog.getByText('Submit').click()
      await shows(page, words)
    }
    expect(executed).toEqual(['danger'])
    expect(problems).toEqual([])
    expect(server.provider.violations).toEqual([])
  })

  can('error', 'is shown, and the next message works', async () => {
    const { page } = await open(await start({ faults: [{ kind: 'auth', at: 0 }] }))
    await say(page, 'apples')
    await page
      .getByText(/refused the key/)
      .first()
      .waitFor()
    await say(page, 'pears')
    await shows(page, 'I found pears.')
  })

  can('reconnect', 'a reloaded page shows the answer, and a dialog that is still open', async () => {
    const executed: string[] = []
    const server = await start({ script: dangerThenTell, tools: [dangerous(executed)] })
    const { page, problems } = await open(server)
    await say(page, 'go')
    await page.getByText('May the agent call danger?').waitFor()
    await page.reload()
    const dialog = page.locator('app-long-running-response').first()
    await dialog.locator('input[type=checkbox]').check()
    await dialog.getByText('Submit').click()
    await shows(page, 'Done with it.')
    expect(executed).toEqual(['danger'])
    expect(problems).toEqual([])
  })

  can('once', 'a message and an answer that are sent again execute the tool once', async () => {
    const executed: string[] = []
    const server = await start({ script: dangerThenTell, tools: [dangerous(executed)] })
    const { page } = await open(server)
    const asked = page.waitForRequest(request => request.url().endsWith('/run_sse'))
    await say(page, 'go')
    await page.getByText('May the agent call danger?').waitFor()
    expect(await sendAgain(server, (await asked).postData())).toContain('adk_request_confirmation')
    const answered = page.waitForRequest(request => request.url().endsWith('/run_sse'))
    const dialog = page.locator('app-long-running-response').first()
    await dialog.locator('input[type=checkbox]').check()
    await dialog.getByText('Submit').click()
    await shows(page, 'Done with it.')
    expect(await sendAgain(server, (await answered).postData())).toContain('Done with it.')
    expect(executed).toEqual(['danger'])
  })

  can(
    'once',
    'a message that is sent again during the run and after a cut executes the tool once',
    async () => {
      const { tool, called, letGo, count } = countedTool()
      const server = await start({ tools: [tool] })
      const proxy = await startCuttableProxy(server.url)
      const { page } = await open(proxy)
      const sent = page.waitForRequest(request => request.url().endsWith('/run_sse'))
      await say(page, 'apples')
      const body = (await sent).postData()
      await called
      const during = await send(server, body)
      proxy.cut()
      const after = await send(server, body)
      // Once an answer is delivered, the same message is another one.
      letGo()
      expect(await during.text()).toContain('I found ')
      expect(await after.text()).toContain('I found ')
      expect(count()).toBe(1)
    },
  )
})

describe('lango web --adk', () => {
  test('serves the page of the package in its folder, which talks to the agent with an empty console', async () => {
    const cwd = await temporaryFolder()
    await mkdir(join(cwd, 'node_modules'))
    await symlink(join(import.meta.dirname, 'node_modules/@google'), join(cwd, 'node_modules/@google'))
    const child = startLango(['web', '--adk', '--port', '0', '--store', 'memory:'], { cwd })
    const ended = new Promise(resolve => child.on('close', resolve))
    onTestFinished(async () => {
      child.kill('SIGTERM')
      await ended
    })
    let printed = ''
    child.stdout?.on('data', chunk => {
      printed += chunk
    })
    const place = () => /^ADK’s page: (http:\S+)\/dev-ui\/$/m.exec(printed)?.[1]
    await expect.poll(place).toBeDefined()
    const { page, problems } = await open({ url: place() ?? '' })
    await say(page, 'Hello')
    await page.getByText('Turn Complete').waitFor()
    await page.waitForLoadState('networkidle')
    expect(problems).toEqual([])
  })
})

/** The page, and what its console reports. Its fonts come from another host, which tests do not connect to. */
async function open({ url }: Pick<ProtocolServer, 'url'>): Promise<{ page: Page; problems: string[] }> {
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 } })
  onTestFinished(() => context.close())
  context.setDefaultTimeout(60_000)
  const page = await context.newPage()
  const problems: string[] = []
  page.on('pageerror', error => problems.push(error.message))
  page.on('console', message => {
    if (message.type() === 'error') problems.push(message.text())
  })
  await page.route(/^https:/, route => route.fulfill({ status: 200, body: '' }))
  await page.goto(`${url}/dev-ui/?app=lango`)
  return { page, problems }
}

async function say(page: Page, text: string): Promise<void> {
  const box = page.locator('textarea').first()
  await box.fill(text)
  await box.press('Enter')
}

async function shows(page: Page, text: string): Promise<void> {
  await page.getByText(text).first().waitFor()
}

async function sendAgain(server: ProtocolServer, body: string | null): Promise<string> {
  return (await send(server, body)).text()
}

/** Resolves when the stream has begun. */
function send({ url }: ProtocolServer, body: string | null): Promise<Response> {
  const headers = { 'content-type': 'application/json' }
  return fetch(`${url}/run_sse`, { method: 'POST', headers, body })
}
