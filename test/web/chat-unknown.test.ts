// A process is killed while its tool pays: the page says that the outcome is unknown, and a person's answer counts.
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { createClient } from '../../src/client/create-client.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { type Bank, openBank, payment } from '../support/bank.js'
import { launchBrowser, openCleanPage, say } from '../support/browser.js'
import { runScript } from '../support/child.js'
import { eventually } from '../support/eventually.js'
import { expireLeases } from '../support/expire-leases.js'
import { gate, startPacedModel } from '../support/paced-model.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { startWebServer, type WebServer } from '../support/web-server.js'

let browser: Browser
let axe: string

beforeAll(async () => {
  axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
  browser = await launchBrowser()
})
afterAll(() => browser?.close())

/**
 * A server on the store of a process that was killed in the middle of a payment. It ends the run, and its model repeats
 * the call; or it continues the run.
 */
async function afterTheKill(resume = false): Promise<{ server: WebServer; bank: Bank }> {
  const bank = await openBank()
  onTestFinished(() => bank.close())
  const store = `sqlite:${join(await temporaryFolder(), 'lango.db')}`
  const child = runScript('pay-and-die.ts', [store, 's', bank.url])
  expect((await child.ended).signal, child.errors()).toBe('SIGKILL')
  expireLeases(store)
  const again = { toolCalls: [{ id: 'c2', name: 'pay', args: { amount: 5 } }] }
  const end = { text: 'All is paid.' }
  const play = new ScriptedProvider(resume ? [end] : [again, end], { id: 'play' })
  const agent = { name: 'root', model: 'play/m', tools: [payment(bank.url, { onUnknown: 'ask' })] }
  const server = await startWebServer({ store, runtime: { providers: { play }, agent, runs: { resume } } })
  onTestFinished(() => server.close())
  return { server, bank }
}

async function open(server: WebServer, options: BrowserContextOptions = {}): Promise<Page> {
  const page = await openCleanPage(browser, {
    url: `${server.url}/s/s`,
    reducedMotion: 'reduce',
    ...options,
  })
  return page
}

async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe)
  return page.evaluate(`axe.run(document).then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map(node => id + ': ' + node.html.slice(0, 160))))`)
}

const card = (page: Page) => page.getByRole('article', { name: 'Tool pay' })

test('an answer about a call of an ended run is kept, and the repeated call is not run', async () => {
  const { server, bank } = await afterTheKill()
  const page = await open(server)
  await card(page).getByText('it is not known whether it took effect').waitFor()
  await card(page).getByText('Outcome unknown').waitFor()
  expect(await violations(page), 'a question about an ended run').toEqual([])
  await card(page).getByRole('button', { name: 'It happened', exact: true }).click()
  await card(page).getByText('Answered: it happened.').waitFor()
  await page.reload()
  await card(page).getByText('Answered: it happened.').waitFor()
  expect(await card(page).getByRole('button', { name: 'It happened', exact: true }).count()).toBe(0)

  await say(page, 'Did you pay?')
  await page.locator('.thread').getByText('All is paid.').waitFor()
  expect(bank.requests).toHaveLength(1)
  await card(page).first().getByText('Found out since: it took effect.').waitFor()
  await page.getByRole('button', { name: 'Inspect what the model was sent' }).last().click()
  const panel = page.getByRole('complementary', { name: 'What the model was sent' })
  await panel.getByText('Tool calls').click()
  await panel.getByText('Idempotency key').waitFor()
  expect(await panel.locator('.inspect-calls li').innerText()).toContain(String(bank.requests[0]))
  expect(await violations(page), 'the ledger in the inspector').toEqual([])
})

test('a run asks about the repeated call, and runs it with the same key when a person says so', async () => {
  const { server, bank } = await afterTheKill()
  const page = await open(server, { colorScheme: 'dark', viewport: { width: 360, height: 740 } })
  await card(page).getByText('Outcome unknown').waitFor()
  await say(page, 'Did you pay?')
  const asked = card(page).last()
  await asked.getByText('Did it take effect?', { exact: true }).waitFor()
  expect(await violations(page), 'a question of a run').toEqual([])
  await page.reload()
  await asked.getByRole('button', { name: 'It did not, run it' }).click()
  await page.locator('.thread').getByText('All is paid.').waitFor()
  await asked.getByText('Answered: it did not, run it.').waitFor()
  expect(bank.requests).toHaveLength(2)
  expect(bank.payments).toBe(1)
})

test('a run that is continued asks about the call that was interrupted, and runs it when a person says so', async () => {
  const { server, bank } = await afterTheKill(true)
  const page = await open(server)
  await card(page).getByText('Did it take effect?', { exact: true }).waitFor()
  await page.reload()
  await card(page).getByRole('button', { name: 'It did not, run it' }).click()
  await page.locator('.thread').getByText('All is paid.').waitFor()
  await card(page).getByText('Answered: it did not, run it.').waitFor()
  expect(await card(page).count()).toBe(1)
  expect(bank.requests).toHaveLength(2)
  expect(bank.payments).toBe(1)
})

test('a run that waits in the queue is shown, also after a reload, and can be stopped', async () => {
  const first = gate()
  const model = await startPacedModel(async function* ({ text }) {
    if (text === 'One') await first.passed
    yield `Answer to ${text}.`
  })
  const server = await startWebServer({ store: 'memory:', modelUrl: model.baseUrl })
  onTestFinished(async () => {
    first.open()
    await server.close()
    await model.close()
  })
  const page = await open(server)
  const client = createClient({ baseUrl: server.url })
  await client.start('s', { text: 'One' })
  for (const text of ['Two', 'Three']) await client.start('s', { text, whenBusy: 'queue' })
  await page.reload()
  await page.getByText('Waits: place 2 in the queue of this chat').waitFor()
  expect(await violations(page), 'a queue').toEqual([])
  await page.getByRole('button', { name: 'Stop the run at place 2' }).click()
  await eventually(() => page.getByText('Waits: place 2').count()).toBe(0)
  await page.getByText('Waits: place 1 in the queue of this chat').waitFor()
  first.open()
  await page.locator('.thread').getByText('Answer to Two.').waitFor()
  await eventually(() => page.locator('[data-mark=queued]').count()).toBe(0)
  expect(await page.locator('.thread').getByText('Answer to One.').count()).toBe(1)
  expect(model.requests.map(({ text }) => text)).toEqual(['One', 'Two'])
})
