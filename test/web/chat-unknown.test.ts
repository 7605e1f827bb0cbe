// A process is killed while its tool pays: the page says that the outcome is unknown, and a person's answer counts.
import { join } from 'node:path'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { expect, onTestFinished, test } from 'vitest'
import { createClient } from '../../src/client/create-client.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { type Bank, openBank, payment } from '../support/bank.js'
import { checkAccessible, openCleanPage, say } from '../support/browser.js'
import { runScript } from '../support/child.js'
import { eventually } from '../support/eventually.js'
import { expireLeases } from '../support/expire-leases.js'
import { gate, startPacedModel } from '../support/paced-model.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { LONG } from '../support/tiers.js'
import { startWebServer, type WebServer } from '../support/web-server.js'

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

function open(server: WebServer, options: BrowserContextOptions = {}): Promise<Page> {
  return openCleanPage({ url: `${server.url}/s/s`, ...options })
}

const card = (page: Page) => page.getByRole('article', { name: 'Tool pay' })

test('a tool call with unknown outcome is answered with "it happened", and the repeated call is not run', async () => {
  const { server, bank } = await afterTheKill()
  const page = await open(server)
  await card(page).getByText('it is not known whether it took effect').waitFor()
  await card(page).getByText('Outcome unknown').waitFor()
  await checkAccessible(page, 'a question about an ended run')
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
  await checkAccessible(page, 'the ledger in the inspector')
})

test(
  'a repeated call with unknown outcome is asked about in a new run, and runs with the same key on request',
  LONG,
  async () => {
    const { server, bank } = await afterTheKill()
    const page = await open(server, { colorScheme: 'dark', viewport: { width: 360, height: 740 } })
    await card(page).getByText('Outcome unknown').waitFor()
    await say(page, 'Did you pay?')
    const asked = card(page).last()
    await asked.getByText('Did it take effect?', { exact: true }).waitFor()
    await checkAccessible(page, 'a question of a run')
    await page.reload()
    await asked.getByRole('button', { name: 'It did not, run it' }).click()
    await page.locator('.thread').getByText('All is paid.').waitFor()
    await asked.getByText('Answered: it did not, run it.').waitFor()
    expect(bank.requests).toHaveLength(2)
    expect(bank.payments).toBe(1)
  },
)

test('a continued run asks about its interrupted call, and runs it on request', LONG, async () => {
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
  await checkAccessible(page, 'a queue')
  await page.getByRole('button', { name: 'Stop the run at place 2' }).click()
  await eventually(() => page.getByText('Waits: place 2').count()).toBe(0)
  await page.getByText('Waits: place 1 in the queue of this chat').waitFor()
  first.open()
  await page.locator('.thread').getByText('Answer to Two.').waitFor()
  await eventually(() => page.locator('[data-mark=queued]').count()).toBe(0)
  expect(await page.locator('.thread').getByText('Answer to One.').count()).toBe(1)
  expect(model.requests.map(({ text }) => text)).toEqual(['One', 'Two'])
})
