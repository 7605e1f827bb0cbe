import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { launchBrowser, openPage, say } from '../support/browser.js'
import { eventually } from '../support/eventually.js'
import { type PacedModel, startPacedModel } from '../support/paced-model.js'
import { makeFolder, removeFolder } from '../support/temporary-folder.js'
import { startWebServer, type WebServer } from '../support/web-server.js'

let browser: Browser
let model: PacedModel
let server: WebServer
let folder: string
let axe: string

beforeAll(async () => {
  axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
  folder = await makeFolder()
  model = await startPacedModel(({ text, results }) => {
    if (text.includes('fail')) return [{ status: 401, message: 'Incorrect API key provided' }]
    if (text.includes('letter')) return [{ call: 'send_letter', args: { to: 'Ann' } }]
    if (results > 0) return [ANSWER]
    return [
      { reasoning: 'The user wants everything.' },
      'First the weather.',
      { call: 'get_weather', args: { city: 'Oslo' } },
      { call: 'broken_tool' },
    ]
  })
  browser = await launchBrowser()
  server = await startWebServer({ store: `sqlite:${folder}/chat.db`, modelUrl: model.baseUrl })
})

afterAll(async () => {
  await browser?.close()
  await server?.close()
  await model?.close()
  await removeFolder(folder)
})

const ANSWER = `## Done

See [the map](https://example.com) and \`code\`.

> Quoted.

- [x] one
- two

| City | Degrees |
|---|---|
| Oslo | 7 |

\`\`\`ts
// A comment
const degrees: number = await weather('Oslo')
\`\`\``

/** What axe finds wrong, as rule and place. */
async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe)
  return page.evaluate(`axe.run(document).then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map(node => id + ': ' + node.html.slice(0, 160))))`)
}

const SCREENS = [
  { colorScheme: 'light', viewport: { width: 1280, height: 800 } },
  { colorScheme: 'dark', viewport: { width: 390, height: 844 } },
] as const

test.each(SCREENS)('axe finds nothing in $colorScheme at $viewport.width', async screen => {
  const { page, problems } = await openPage(browser, { url: server.url, reducedMotion: 'reduce', ...screen })
  onTestFinished(() => page.context().close())
  const isPhone = screen.viewport.width < 760
  await page.waitForSelector('.composer')
  expect(await violations(page), 'empty').toEqual([])

  await say(page, 'Show me everything')
  await page.locator('.answer-footer').waitFor()
  await page.locator('.hljs-keyword').first().waitFor()
  await page.getByRole('button', { name: /^get_weather/ }).click()
  await page.getByRole('button', { name: 'Reasoned' }).click()
  expect(await violations(page), 'an answer').toEqual([])

  await say(page, 'Now a letter')
  await page.getByRole('button', { name: 'Allow once' }).waitFor()
  expect(await violations(page), 'a question').toEqual([])
  await page.keyboard.press('Escape')
  await page.locator('.mark-line', { hasText: 'Stopped' }).waitFor()

  await say(page, 'Please fail')
  await page.getByText('provider-auth').waitFor()
  expect(await violations(page), 'an error').toEqual([])

  if (isPhone) await page.getByRole('button', { name: 'Show the chats' }).click()
  await page
    .getByRole('button', { name: /^Actions/ })
    .first()
    .click()
  expect(await violations(page), 'a menu').toEqual([])
  await page.getByRole('menuitem', { name: 'Delete' }).click()
  expect(await violations(page), 'a question before deleting').toEqual([])
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'Keyboard shortcuts' }).click()
  await page.getByRole('heading', { name: 'Keyboard shortcuts' }).waitFor()
  expect(await violations(page), 'the list of keys').toEqual([])
  await page.goto(`${server.url}/s/nowhere`)
  await page.getByRole('heading', { name: 'This chat is not here' }).waitFor()
  expect(await violations(page), 'a chat that is not there').toEqual([])
  expect(problems).toEqual([])
})

test('every shortcut of the list works', async () => {
  const { page } = await openPage(browser, { url: server.url })
  onTestFinished(() => page.context().close())
  await page.waitForSelector('.composer')
  const focused = () => page.evaluate("document.activeElement.getAttribute('aria-label')")
  await page.keyboard.press('/')
  expect(await focused()).toBe('Message')
  await page.keyboard.type('one')
  await page.keyboard.press('Shift+Enter')
  await page.keyboard.type('two')
  expect(await page.getByRole('textbox', { name: 'Message' }).inputValue()).toBe('one\ntwo')
  await page.keyboard.press('Control+k')
  await eventually(focused).toBe('Search chats')
  await page.keyboard.press('Control+b')
  await eventually(() => page.getByRole('navigation', { name: 'Chats' }).count()).toBe(0)
  await page.keyboard.press('Control+b')
  await page.getByRole('navigation', { name: 'Chats' }).getByRole('link').first().click()
  await page.waitForURL(/\/s\//)
  await page.keyboard.press('Control+Shift+O')
  await page.waitForURL(url => url.pathname === '/')
  await eventually(focused).toBe('Message')
  await page.locator('h2').click()
  await page.keyboard.press('?')
  await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor()
  await page.keyboard.press('Escape')
  await eventually(() => page.getByRole('dialog').count()).toBe(0)
})
