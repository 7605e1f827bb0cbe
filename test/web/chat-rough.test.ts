// What readers, networks and other tabs do to a page that is only meant to be read.
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { openCleanPage, openPage, sharedBrowser } from '../support/browser.js'
import { eventually } from '../support/eventually.js'
import { gate, type PacedModel, type Piece, startPacedModel } from '../support/paced-model.js'
import { LONG } from '../support/tiers.js'
import { startWebServer, type WebServer } from '../support/web-server.js'

let model: PacedModel
let server: WebServer
/** What the model says to the words of the user; tests add to it. */
const plays = new Map<string, (results: number) => AsyncIterable<Piece> | Iterable<Piece>>()

beforeAll(async () => {
  model = await startPacedModel(({ text, results }) => {
    const name = [...plays.keys()].find(words => text.includes(words))
    return name === undefined ? [`You said ${text.slice(0, 80)}`] : (plays.get(name)?.(results) ?? [])
  })
  server = await startWebServer({ store: 'memory:', modelUrl: model.baseUrl })
})

afterAll(async () => {
  await server?.close()
  await model?.close()
})

/** A page that is closed with the test. */
async function visit(path = '/'): Promise<Page> {
  const page = await openCleanPage({ url: server.url + path })
  await page.waitForSelector('.composer')
  return page
}

async function say(page: Page, text: string): Promise<void> {
  await field(page).fill(text)
  await page.keyboard.press('Enter')
}

/** An answer that stops in the middle until its door is opened. */
function heldAnswer(name: string, first = 'Begun, ', rest = 'and done.') {
  const door = gate()
  onTestFinished(door.open)
  plays.set(name, async function* () {
    yield first
    await door.passed
    yield rest
  })
  return door
}

const field = (page: Page) => page.getByRole('textbox', { name: 'Message', exact: true })
const thread = (page: Page) => page.locator('.thread')
const footers = (page: Page) => page.locator('.answer-footer')
const list = (page: Page) => page.getByRole('navigation', { name: 'Chats' })

async function secondTab(page: Page): Promise<Page> {
  const tab = await page.context().newPage()
  await tab.goto(page.url())
  await tab.locator('.thread').waitFor()
  return tab
}

async function askToDelete(page: Page): Promise<void> {
  const row = list(page).locator('.session-row[data-current]')
  await row.hover()
  await row.getByRole('button', { name: /^Actions/ }).press('Enter')
  await list(page).getByRole('menuitem', { name: 'Delete' }).press('Enter')
}

/** Gives files to the composer as the clipboard or a pointer does. */
function give(page: Page, how: 'paste' | 'drop', name: string, content: string): Promise<void> {
  return page.evaluate(`(() => {
    const transfer = new DataTransfer()
    transfer.items.add(new File([${JSON.stringify(content)}], ${JSON.stringify(name)}, { type: 'text/plain' }))
    const options = { bubbles: true, cancelable: true }
    const event = ${JSON.stringify(how)} === 'paste'
      ? new ClipboardEvent('paste', { ...options, clipboardData: transfer })
      : new DragEvent('drop', { ...options, dataTransfer: transfer })
    document.querySelector('.composer textarea').dispatchEvent(event)
  })()`)
}

test('text files that are pasted or dropped reach the model as text', LONG, async () => {
  const page = await visit()
  await give(page, 'paste', 'notes.txt', 'The key is under the mat.')
  await page.getByRole('button', { name: 'Remove notes.txt' }).waitFor()
  await give(page, 'drop', 'list.csv', 'a,b\n1,2')
  await page.getByRole('button', { name: 'Remove list.csv' }).waitFor()
  await say(page, 'Where is it?')
  await footers(page).waitFor()
  const sent = JSON.stringify(model.requests.at(-1)?.body.messages.at(-1))
  expect(sent).toContain('The key is under the mat.')
  expect(sent).toContain('a,b\\n1,2')
  expect(await page.getByRole('list', { name: 'Attached files' }).count()).toBe(0)
})

test('a paste of megabytes is attached, and shown in part once it is sent', LONG, async () => {
  const page = await visit()
  await page.evaluate(`(() => {
    const clipboardData = new DataTransfer()
    clipboardData.setData('text/plain', 'lorem ipsum '.repeat(100000))
    const event = new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true })
    document.querySelector('.composer textarea').dispatchEvent(event)
  })()`)
  await page.getByRole('button', { name: 'Remove pasted.txt' }).waitFor()
  await say(page, 'Sum it up')
  await footers(page).waitFor()
  await thread(page)
    .getByRole('button', { name: /^Show all 1,2\d\d,\d+ characters/ })
    .waitFor()
  expect((await thread(page).innerText()).length).toBeLessThan(3000)
})

test('the scroll position stays while an answer grows below it', async () => {
  const lines = (word: string) => Array.from({ length: 60 }, (_, index) => `${word} ${index}\n\n`).join('')
  const door = heldAnswer('grow', lines('first'), lines('second'))
  const page = await visit()
  await say(page, 'Please grow')
  await thread(page).getByText('first 59').waitFor()
  await thread(page).hover()
  await page.mouse.wheel(0, -900)
  await page.getByRole('button', { name: 'To the newest' }).waitFor()
  const place = () => page.evaluate("document.querySelector('.thread').scrollTop") as Promise<number>
  await eventually(async () => {
    const before = await place()
    return (await place()) === before
  }).toBe(true)
  const before = await place()
  door.open()
  // The run is over and stored once the header knows what it cost.
  await page.locator('.chat-usage').waitFor()
  expect(await place()).toBe(before)
  await page.getByRole('button', { name: 'To the newest' }).click()
  await thread(page).getByText('second 59').waitFor()
})

test('the scroll position stays when a card is unfolded at the end of the chat', LONG, async () => {
  plays.set('tall', () => ['x\n\n'.repeat(30)])
  plays.set('weather', results =>
    results === 0 ? [{ call: 'get_weather', args: { city: 'Oslo' } }] : ['Cold.'],
  )
  const page = await visit()
  await say(page, 'a tall answer')
  await footers(page).waitFor()
  await say(page, 'weather')
  await thread(page).getByText('Cold.').waitFor()
  await page.getByRole('button', { name: 'Send', exact: true }).waitFor()
  const card = page.getByRole('button', { name: /^get_weather/ }).last()
  const top = async () => Math.round((await card.boundingBox())?.y ?? -1)
  const before = await top()
  await card.click()
  await thread(page).getByText('"degrees": 7').waitFor()
  expect(await top()).toBe(before)
})

test('a chat keeps its draft when another chat is opened and after a reload', async () => {
  const page = await visit()
  await say(page, 'A chat with a draft')
  await footers(page).waitFor()
  await field(page).fill('half a thought')
  await page.keyboard.press('Control+Shift+O')
  await eventually(() => field(page).inputValue()).toBe('')
  await field(page).fill('something new')
  await page.goBack()
  await eventually(() => field(page).inputValue()).toBe('half a thought')
  await page.reload()
  await eventually(() => field(page).inputValue()).toBe('half a thought')
  await page.keyboard.press('Control+Shift+O')
  await eventually(() => field(page).inputValue()).toBe('something new')
})

test('each chat with a run in progress has a dot in the list', LONG, async () => {
  const door = heldAnswer('dotted')
  const page = await visit()
  for (const name of ['dotted one', 'dotted two']) {
    await say(page, name)
    await thread(page).getByText('Begun,').waitFor()
    await page.keyboard.press('Control+Shift+O')
  }
  const dots = list(page).getByRole('img', { name: 'An answer is being written' })
  await eventually(() => dots.count()).toBe(2)
  door.open()
  await eventually(() => dots.count()).toBe(0)
})

test(
  'a chat is deleted by keyboard only after confirmation, and other tabs show that it is gone',
  LONG,
  async () => {
    const door = heldAnswer('doomed')
    const page = await visit()
    await say(page, 'doomed chat')
    await thread(page).getByText('Begun,').waitFor()
    const second = await secondTab(page)
    await askToDelete(page)
    await page.keyboard.press('Escape')
    expect(await page.getByRole('button', { name: 'Stop' }).isVisible()).toBe(true)
    expect(await page.evaluate("document.activeElement.getAttribute('aria-label')")).toMatch(/^Actions/)
    await askToDelete(page)
    await page.keyboard.press('Enter')
    expect(await list(page).getByRole('link', { name: 'doomed chat' }).count()).toBe(1)
    await askToDelete(page)
    await page.keyboard.press('Shift+Tab')
    await page.keyboard.press('Enter')
    await page.waitForURL(url => url.pathname === '/')
    await eventually(() => list(page).getByRole('link', { name: 'doomed chat' }).count()).toBe(0)
    await second.getByRole('heading', { name: 'This chat is not here' }).waitFor()
    door.open()
  },
)

test('one chat in two tabs takes one message at a time and keeps the other as a draft', LONG, async () => {
  const page = await visit()
  await say(page, 'For two')
  await footers(page).waitFor()
  const second = await secondTab(page)
  const door = heldAnswer('at once')
  await Promise.all([field(page).fill('at once, one'), field(second).fill('at once, two')])
  await Promise.all([field(page).press('Enter'), field(second).press('Enter')])
  for (const tab of [page, second]) await thread(tab).getByText('Begun,').waitFor()
  const drafts = await Promise.all([field(page).inputValue(), field(second).inputValue()])
  expect(drafts.filter(draft => draft.startsWith('at once'))).toHaveLength(1)
  door.open()
  for (const tab of [page, second]) await eventually(() => footers(tab).count()).toBe(2)
  expect(await thread(page).innerText()).toBe(await thread(second).innerText())
})

test('an answer that ends while the network is away is shown when it is back', LONG, async () => {
  const door = heldAnswer('network')
  const page = await visit()
  await say(page, 'network test')
  await thread(page).getByText('Begun,').waitFor()
  await page.context().setOffline(true)
  door.open()
  await page.getByText('does not answer').waitFor()
  await page.context().setOffline(false)
  await footers(page).waitFor()
  expect(await thread(page).getByText('Begun, and done.').count()).toBe(1)
  await eventually(() => page.getByText('does not answer').count()).toBe(0)
})

test(
  'a part of the page that is missing on the server is reported with advice, and the chat works',
  LONG,
  async () => {
    const { page } = await openPage({ url: server.url })
    await say(page, 'hello')
    await footers(page).waitFor()
    await page.route(/assets\/.*panel/, route => route.fulfill({ status: 404, body: 'gone' }))
    await page.getByRole('button', { name: 'Check on every model' }).click()
    await page.getByRole('button', { name: 'Reload the page' }).waitFor()
    await page.getByRole('button', { name: 'Close the panel' }).click()
    await say(page, 'still here')
    await thread(page).getByText('You said still here').waitFor()
  },
)

test('the page works without localStorage and sessionStorage', LONG, async () => {
  const context = await (await sharedBrowser()).newContext()
  onTestFinished(() => context.close())
  const page = await context.newPage()
  const errors: string[] = []
  page.on('pageerror', error => errors.push(error.message))
  await page.addInitScript(`for (const name of ['localStorage', 'sessionStorage'])
    Object.defineProperty(window, name, { get() { throw new DOMException('closed', 'SecurityError') } })`)
  await page.goto(server.url)
  await page.getByRole('button', { name: 'Theme: system' }).click()
  await page.getByRole('button', { name: 'Theme: light' }).click()
  expect(await page.evaluate('document.documentElement.dataset.theme')).toBe('dark')
  await say(page, 'hello')
  await footers(page).waitFor()
  expect(errors).toEqual([])
})

test('scripts in an answer are shown as text, and foreign pictures as links', async () => {
  plays.set('evil', () => [
    '<img src=x onerror=alert(1)> [run](javascript:alert(1)) ![far](https://example.com/p.png)',
  ])
  const page = await visit()
  await say(page, 'evil')
  await footers(page).waitFor()
  expect(await thread(page).locator('img').count()).toBe(0)
  const targets = await thread(page)
    .locator('a')
    .evaluateAll(links => links.map(link => link.outerHTML))
  expect(targets).toHaveLength(1)
  expect(targets[0]).toContain('https://example.com/p.png')
  expect(await thread(page).innerText()).toContain('run')
})
