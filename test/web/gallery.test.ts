import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { launchBrowser, openPage } from '../support/browser.js'
import { makeFolder, removeFolder } from '../support/temporary-folder.js'
import { startWebServer, type WebServer } from '../support/web-server.js'

let browser: Browser
let server: WebServer
let folder: string
let axe: string

beforeAll(async () => {
  axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
  folder = await makeFolder()
  browser = await launchBrowser()
  server = await startWebServer({ store: `sqlite:${folder}/chat.db` })
})

afterAll(async () => {
  await browser?.close()
  await server?.close()
  await removeFolder(folder)
})

async function visit(options = {}): Promise<Page> {
  const { page, problems } = await openPage(browser, { url: server.url, ...options })
  onTestFinished(async () => {
    await page.context().close()
    expect(problems).toEqual([])
  })
  return page
}

/** The rules that axe finds broken. */
async function broken(page: Page): Promise<string[]> {
  await page.evaluate(axe)
  return page.evaluate(async () => {
    const { violations } = await (
      globalThis as unknown as { axe: { run(): Promise<{ violations: { id: string }[] }> } }
    ).axe.run()
    return violations.map(({ id }) => id)
  })
}

async function photograph(page: Page, name: string): Promise<void> {
  const shots = process.env.LANGO_SCREENSHOTS
  if (shots) await page.screenshot({ path: `${shots}/${name}.png` })
}

test('two clicks show the error of the provider, a third heals the history and opens the inspector', async () => {
  const page = await visit()
  await page.getByRole('button', { name: /Killed in mid-tool/ }).waitFor()
  expect(await broken(page)).toEqual([])
  await photograph(page, 'gallery-first')
  await page.getByRole('button', { name: /Killed in mid-tool/ }).click()
  const notice = page.getByRole('region', { name: 'A broken history' })
  await notice.getByRole('button', { name: 'Send it as it is' }).click()
  await notice.getByText(/must be followed by tool messages/).waitFor()
  expect(await broken(page)).toEqual([])
  await photograph(page, 'gallery-refused')
  await notice.getByRole('button', { name: 'Send it through Lango' }).click()
  await page
    .getByText(/interrupted before its result came back/)
    .first()
    .waitFor()
  await notice.getByText('Repaired, sent and answered.').waitFor()
  await page
    .getByRole('complementary', { name: /Request|Inspector|model/i })
    .first()
    .waitFor()
  await page
    .getByText(/one was added that says so/)
    .first()
    .waitFor()
  expect(await broken(page)).toEqual([])
  await photograph(page, 'gallery-healed')
  // After a reload it is a chat like any other.
  await page.reload()
  await page
    .getByText(/interrupted before its result came back/)
    .first()
    .waitFor()
  expect(await notice.count()).toBe(0)
})

test.each([
  ['dark', { colorScheme: 'dark' }],
  ['phone', { viewport: { width: 390, height: 844 } }],
])('the cards and the notice hold in %s', async (name, options) => {
  const page = await visit(options)
  await page.getByRole('button', { name: /Lost ids/ }).waitFor()
  await photograph(page, `gallery-${name}`)
  await page.getByRole('button', { name: /Lost ids/ }).click()
  const notice = page.getByRole('region', { name: 'A broken history' })
  await notice.getByRole('button', { name: 'Send it as it is' }).click()
  await notice.getByText(/tool_use/).waitFor()
  expect(await broken(page)).toEqual([])
  expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true)
  await photograph(page, `gallery-${name}-refused`)
})
