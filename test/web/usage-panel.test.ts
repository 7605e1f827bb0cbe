// What was spent, as a plot and a table; a run that ended at its budget goes on; how much a model thinks is chosen.
import type { Page } from 'playwright-core'
import { expect, onTestFinished, test } from 'vitest'
import type { GenerateRequest } from '../../src/provider/provider.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { checkAccessible, keepPicture, openCleanPage, say } from '../support/browser.js'
import { eventually } from '../support/eventually.js'
import { LONG } from '../support/tiers.js'
import { startWebServer } from '../support/web-server.js'

async function open() {
  const requests: GenerateRequest[] = []
  const provider = new ScriptedProvider(
    request => {
      requests.push(request)
      return { text: 'Here it is.', usage: { inputTokens: 1000, outputTokens: 500 } }
    },
    { id: 'play', model: { price: { input: 3, output: 15 } } },
  )
  const runtime = { agent: { model: 'play/large' }, providers: { play: provider } }
  const server = await startWebServer({ store: 'memory:', runtime })
  onTestFinished(() => server.close())
  return { ...server, requests }
}

function openChat(url: string, options: object = {}, path = '/s/s1'): Promise<Page> {
  return openCleanPage({ url: url + path, ...options })
}

test('a run that ended at its spending limit continues with a higher one, and the panel shows what was spent', async () => {
  const { url, runtime } = await open()
  const broke = await runtime.runAndCollect({ sessionId: 's1', text: 'Hello', budget: { perRunUsd: 0.0001 } })
  expect(broke.finishReason).toBe('budget')
  const page = await openChat(url)
  const form = page.getByRole('form', { name: 'Go on with another budget' })
  await form.getByText('$0 of $0.0001 spent.').waitFor()
  const limit = form.getByLabel('New limit in $')
  await limit.fill('minus one')
  expect(await form.getByRole('button', { name: 'Go on' }).isDisabled()).toBe(true)
  await checkAccessible(page)
  await limit.fill('1')
  await form.getByRole('button', { name: 'Go on' }).click()
  await page.getByRole('region', { name: 'Messages' }).getByText('Here it is.').waitFor()
  await form.waitFor({ state: 'detached' })

  await page.getByRole('button', { name: 'What was spent' }).click()
  const panel = page.getByRole('complementary', { name: 'What was spent' })
  await panel.getByText('$0.0105', { exact: true }).first().waitFor()
  expect(await panel.getByRole('row').count()).toBe(2)
  expect(await panel.locator('rect').count()).toBe(1)
  await checkAccessible(page)
  await keepPicture(page, 'usage')
  await panel.getByLabel('Period').selectOption('7')
  await panel.getByText('in 7 days').waitFor()
})

test('the panel of what was spent is readable in the dark on a phone', LONG, async () => {
  const { url, runtime } = await open()
  await runtime.runAndCollect({ sessionId: 's1', text: 'Hello' })
  const page = await openChat(url, { viewport: { width: 390, height: 844 }, colorScheme: 'dark' })
  await page.getByRole('button', { name: 'Show the chats' }).click()
  await page.getByRole('button', { name: 'What was spent' }).click()
  await page
    .getByRole('dialog', { name: 'What was spent' })
    .getByRole('cell', { name: 'play/large' })
    .waitFor()
  await checkAccessible(page)
  const [inner, outer] = await page.evaluate(() => [document.body.scrollWidth, window.innerWidth])
  expect(inner).toBeLessThanOrEqual(outer ?? 0)
  await keepPicture(page, 'usage-phone')
})

test('thinking effort, temperature and longest answer are sent with every message, kept, and dropped if invalid', async () => {
  const { url, requests } = await open()
  const page = await openChat(url, {}, '/')
  const thinking = page.getByLabel('Thinking')
  await thinking.selectOption('high')
  await page.getByRole('button', { name: 'Settings' }).click()
  await page.getByLabel('Temperature').fill('0.3')
  await page.getByLabel('Longest answer, in tokens').fill('900')
  await checkAccessible(page)
  await keepPicture(page, 'settings')
  await page.getByRole('button', { name: 'Close' }).click()
  await say(page, 'Hello.')
  await page.locator('.answer-footer').waitFor()
  expect(requests.at(-1)?.options).toMatchObject({
    thinking: { effort: 'high' },
    temperature: 0.3,
    maxOutputTokens: 900,
  })
  await page.reload()
  await page.locator('.answer-footer').waitFor()
  await eventually(() => thinking.inputValue()).toBe('high')
  await thinking.selectOption('')
  await page.getByRole('button', { name: 'Settings' }).click()
  // What no server accepts is not kept.
  await page.getByLabel('Temperature').fill('7')
  await page.getByLabel('Longest answer, in tokens').fill('')
  await page.getByRole('button', { name: 'Close' }).click()
  await say(page, 'Again.')
  await eventually(() => requests.length).toBe(2)
  expect(requests.at(-1)?.options?.thinking).toBeUndefined()
  expect(requests.at(-1)?.options?.temperature).toBeUndefined()
  expect(requests.at(-1)?.options?.maxOutputTokens).not.toBe(900)
})
