import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { builtWeb, openCleanPage } from '../support/browser.js'
import { eventually } from '../support/eventually.js'
import { makeFolder, removeFolder } from '../support/temporary-folder.js'
import { LONG } from '../support/tiers.js'
import { startWebServer, type WebServer } from '../support/web-server.js'

let server: WebServer
let folder: string

beforeAll(async () => {
  folder = await makeFolder()
  server = await startWebServer({ store: `sqlite:${folder}/chat.db`, workspace: folder })
})

afterAll(async () => {
  await server?.close()
  await removeFolder(folder)
})

function visit(url = server.url): Promise<Page> {
  return openCleanPage({ url })
}

test('with no key the page says that it is a demo and how to set a key', async () => {
  const page = await visit()
  const note = page.getByRole('note')
  await note.getByText('Demo model').waitFor()
  expect(await note.textContent()).toContain('export OPENAI_API_KEY=')
})

test.each([
  ['What time is it?', 'current_time'],
  ['Look around', 'list_files'],
])('the example "%s" is answered with a call of %s', LONG, async (title, tool) => {
  const page = await visit()
  await page.getByRole('button', { name: title }).click()
  const card = page.getByRole('article', { name: `Tool ${tool}` })
  await page.locator('.answer-footer').waitFor()
  expect(await card.getAttribute('data-status')).toBe('done')
})

test('the example of a command asks first, and says that the command runs without a sandbox', async () => {
  const page = await visit()
  await page.getByRole('button', { name: 'Ask me first' }).click()
  const card = page.getByRole('article', { name: 'Tool run_command' })
  await card.getByText('The command runs without a sandbox on this machine').waitFor()
  await card.getByRole('button', { name: 'Refuse' }).click()
  await page.locator('.answer-footer').waitFor()
  expect(await card.getAttribute('data-status')).toBe('failed')
})

test('the inspector and the lint open next to a chat of the demo', LONG, async () => {
  const page = await visit()
  await page.getByRole('button', { name: 'What time is it?' }).click()
  await page.locator('.answer-footer').waitFor()
  await page.getByRole('button', { name: 'Inspect what the model was sent' }).click()
  await page.getByRole('heading', { name: 'What the model was sent' }).waitFor()
  await page.keyboard.press('Escape')
  await eventually(() => page.getByRole('heading', { name: 'What the model was sent' }).count()).toBe(0)
  await page.getByRole('button', { name: 'Check on every model' }).click()
  await page
    .locator('.inspect-frame')
    .getByText(/claude/i)
    .first()
    .waitFor()
})

test('a server with tokens refuses a wrong one in the page and accepts the right one', async () => {
  const guarded = await startWebServer({ store: 'memory:', tokens: { 'a-token-of-ann': 'ann' } })
  onTestFinished(() => guarded.close())
  const page = await visit(guarded.url)
  await page.getByLabel('Token').fill('not-the-token')
  await page.keyboard.press('Enter')
  await page.getByText('That token was not accepted.').waitFor()
  await page.getByLabel('Token').fill('a-token-of-ann')
  await page.keyboard.press('Enter')
  await page.locator('.user-name', { hasText: 'ann' }).waitFor()
})

test('the first load is at most 300 KB, compressed, and has nothing inline', async () => {
  const page = await visit()
  await page.waitForSelector('.composer')
  const loaded = (await page.evaluate(
    "performance.getEntriesByType('resource').filter(e => !e.name.includes('/api/')).map(e => [e.name, e.encodedBodySize])",
  )) as [string, number][]
  expect(loaded.length).toBeGreaterThan(2)
  const bytes = loaded.reduce((sum, [, size]) => sum + size, 0)
  expect(bytes).toBeGreaterThan(50 * 1024)
  expect(bytes).toBeLessThan(300 * 1024)
  const root = await builtWeb()
  const html = await readFile(join(root, 'index.html'), 'utf8')
  expect(html).not.toMatch(/<style|<script>|style=|\son\w+=/)
  const scripts = (await readdir(join(root, 'assets'))).filter(name => name.endsWith('.js'))
  for (const name of scripts) {
    const [plain, small] = await Promise.all([
      stat(join(root, 'assets', name)),
      stat(join(root, 'assets', `${name}.br`)),
    ])
    expect(small.size).toBeLessThan(plain.size)
  }
})
