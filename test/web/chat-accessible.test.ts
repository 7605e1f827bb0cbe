import type { BrowserContextOptions } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkAccessible, openCleanPage, openPage, say } from '../support/browser.js'
import { eventually } from '../support/eventually.js'
import { type PacedModel, startPacedModel } from '../support/paced-model.js'
import { makeFolder, removeFolder } from '../support/temporary-folder.js'
import { LONG } from '../support/tiers.js'
import { startWebServer, type WebServer } from '../support/web-server.js'

let model: PacedModel
let server: WebServer
let folder: string

beforeAll(async () => {
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
  server = await startWebServer({ store: `sqlite:${folder}/chat.db`, modelUrl: model.baseUrl })
})

afterAll(async () => {
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

test('axe finds nothing in the states of the chat, light and 1280 pixels wide', () =>
  checkStates({ colorScheme: 'light' }))

test('axe finds nothing in the states of the chat, dark and 390 pixels wide', LONG, () =>
  checkStates({ colorScheme: 'dark', viewport: { width: 390, height: 844 } }),
)

async function checkStates(screen: BrowserContextOptions): Promise<void> {
  const page = await openCleanPage({ url: server.url, ...screen })
  const isPhone = screen.viewport !== undefined
  await page.getByRole('button', { name: /^Killed in mid-tool/ }).waitFor()
  await checkAccessible(page, 'empty, with the gallery')

  await say(page, 'Show me everything')
  await page.locator('.answer-footer').waitFor()
  await page.locator('.hljs-keyword').first().waitFor()
  await page.getByRole('button', { name: /^get_weather/ }).click()
  await page.getByRole('button', { name: 'Reasoned' }).click()
  await checkAccessible(page, 'an answer')

  await say(page, 'Now a letter')
  await page.getByRole('button', { name: 'Allow once' }).waitFor()
  await checkAccessible(page, 'a question')
  await page.keyboard.press('Escape')
  await page.locator('.mark-line', { hasText: 'Stopped' }).waitFor()

  await say(page, 'Please fail')
  await page.getByText('provider-auth').waitFor()
  await checkAccessible(page, 'an error')

  if (isPhone) await page.getByRole('button', { name: 'Show the chats' }).click()
  await page
    .getByRole('button', { name: /^Actions/ })
    .first()
    .click()
  await checkAccessible(page, 'a menu')
  await page.getByRole('menuitem', { name: 'Delete' }).click()
  await checkAccessible(page, 'a question before deleting')
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'Keyboard shortcuts' }).click()
  await page.getByRole('heading', { name: 'Keyboard shortcuts' }).waitFor()
  await checkAccessible(page, 'the list of keys')
  await page.goto(`${server.url}/s/nowhere`)
  await page.getByRole('heading', { name: 'This chat is not here' }).waitFor()
  await checkAccessible(page, 'a chat that is not there')
}

test('every shortcut in the list of keyboard shortcuts works', LONG, async () => {
  const { page } = await openPage({ url: server.url })
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
