import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkAccessible, openCleanPage, openPage, say } from '../support/browser.js'
import { eventually } from '../support/eventually.js'
import { gate, type PacedModel, type Piece, startPacedModel } from '../support/paced-model.js'
import { makeFolder, removeFolder } from '../support/temporary-folder.js'
import { LONG } from '../support/tiers.js'
import { startWebServer, type WebServer } from '../support/web-server.js'

let model: PacedModel
let server: WebServer
let folder: string
/** What the model says to the words of the user; tests add to it. */
const plays = new Map<string, (results: number) => AsyncIterable<Piece> | Iterable<Piece>>()

beforeAll(async () => {
  folder = await makeFolder()
  model = await startPacedModel(({ text, results }) => {
    const name = [...plays.keys()].find(words => text.includes(words))
    return name === undefined ? [`You said ${text}`] : plays.get(name)!(results)
  })
  server = await startWebServer({ store: `sqlite:${folder}/chat.db`, modelUrl: model.baseUrl })
})

afterAll(async () => {
  await server?.close()
  await model?.close()
  await removeFolder(folder)
})

/** A page that is closed with the test, and must not have done anything odd. */
async function visit(path = '/', options = {}): Promise<Page> {
  const page = await openCleanPage({ url: server.url + path, ...options })
  await page.waitForSelector('.composer')
  return page
}

/** Two halves of an answer with a door between them. */
function heldAnswer(name: string) {
  const door = gate()
  plays.set(name, async function* () {
    yield 'The first half, '
    await door.passed
    yield 'and the second half.'
  })
  return door
}

const messages = (page: Page) => page.getByRole('region', { name: 'Messages' })
const footers = (page: Page) => page.locator('.answer-footer')

test('a first message gets an address, a streamed answer and its cost', async () => {
  const page = await visit('/', { reducedMotion: 'no-preference' })
  await eventually(() => page.getByRole('heading', { name: 'A history that cannot break' }).isVisible()).toBe(
    true,
  )
  const door = heldAnswer('stream to me')
  await say(page, 'Please stream to me')
  await messages(page).getByText('The first half,').waitFor()
  expect(new URL(page.url()).pathname).toMatch(/^\/s\/[\w-]{36}$/)
  expect(await page.getByRole('button', { name: 'Stop' }).isVisible()).toBe(true)
  expect(await footers(page).count()).toBe(0)
  door.open()
  await footers(page).waitFor()
  expect(await messages(page).getByText('The first half, and the second half.').count()).toBe(1)
  expect(await messages(page).getByText('Please stream to me').count()).toBe(1)
  expect(await footers(page).textContent()).toContain('1,540 tokens')
  await page.getByRole('navigation').getByRole('link', { name: 'Please stream to me' }).waitFor()
})

test('an answer is shown as markdown with coloured code and nothing from other hosts', async () => {
  plays.set('show code', () => [
    '## Title\n\n',
    'A [link](https://example.com) and ![far](https://example.com/a.png)\n\n',
    '```ts\nconst answer: number = 42\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n<script>alert(1)</script>',
  ])
  const page = await visit()
  await say(page, 'show code')
  await footers(page).waitFor()
  await messages(page).getByRole('heading', { name: 'Title' }).waitFor()
  await page.locator('.code-block .hljs-keyword', { hasText: 'const' }).waitFor()
  expect(await messages(page).locator('img').count()).toBe(0)
  expect(await messages(page).getByRole('table').count()).toBe(1)
  await page.locator('.code-block').getByRole('button', { name: 'Copy' }).click()
  await page.locator('.code-block').getByRole('button', { name: 'Copied' }).waitFor()
})

test('a tool call is a card with arguments, result and time, and a failed one gives the reason', async () => {
  plays.set('the weather', results =>
    results === 0
      ? ['I look. ', { call: 'get_weather', args: { city: 'Oslo' } }, { call: 'broken_tool' }]
      : ['Seven degrees.'],
  )
  const page = await visit()
  await say(page, 'Tell me the weather')
  await footers(page).waitFor()
  const card = page.getByRole('article', { name: 'Tool get_weather' })
  expect(await card.textContent()).toMatch(/city: "Oslo".*\d+(\.\d)? (ms|s)/)
  await card.getByRole('button', { name: /get_weather/ }).click()
  expect(await card.textContent()).toContain('"degrees": 7')
  const broken = page.getByRole('article', { name: 'Tool broken_tool' })
  expect(await broken.textContent()).toContain('Failed')
  expect(await broken.textContent()).toContain('The printer is on fire.')
  expect(await broken.textContent()).not.toContain('at ')
})

test('a tool that needs approval runs when allowed and does not when refused', async () => {
  plays.set('a letter', results =>
    results === 0 ? [{ call: 'send_letter', args: { to: 'Ann' } }] : ['It is done.'],
  )
  const page = await visit()
  await say(page, 'Send a letter')
  const card = page.getByRole('article', { name: 'Tool send_letter' })
  await card.getByRole('button', { name: 'Allow once' }).waitFor()
  expect(await card.textContent()).toContain('"to": "Ann"')
  await card.getByRole('button', { name: 'Allow once' }).click()
  await footers(page).waitFor()
  await card.getByRole('button', { name: /send_letter/ }).click()
  expect(await card.textContent()).toContain('"sent": true')
  await say(page, 'Now a letter to somebody else')
  const second = page.getByRole('article', { name: 'Tool send_letter' }).last()
  await second.getByRole('button', { name: 'Refuse' }).click()
  await eventually(() => footers(page).count()).toBe(2)
  expect(await second.textContent()).not.toContain('"sent": true')
})

test('Escape stops an answer, and the next message is answered', async () => {
  heldAnswer('endless story')
  const page = await visit()
  await say(page, 'Tell an endless story')
  await messages(page).getByText('The first half,').waitFor()
  await page.keyboard.press('Escape')
  await page.locator('.mark-line', { hasText: 'Stopped' }).waitFor()
  await page.getByRole('button', { name: 'Send', exact: true }).waitFor()
  await footers(page).waitFor()
  expect(await messages(page).getByText('The first half,').count()).toBe(1)
  await page.reload()
  await messages(page).getByText('The first half,').waitFor()
  expect(await page.locator('.mark-line', { hasText: 'Stopped' }).count()).toBe(1)
  expect(await messages(page).getByText('The user stopped').count()).toBe(0)
  await say(page, 'And now?')
  await messages(page).getByText('You said And now?').waitFor()
})

test('an answer in progress continues after a reload and in a second tab, where the next one appears too', async () => {
  const door = heldAnswer('long poem')
  const page = await visit()
  await say(page, 'A long poem')
  await messages(page).getByText('The first half,').waitFor()
  await page.reload()
  await messages(page).getByText('The first half,').waitFor()
  const second = await page.context().newPage()
  await second.goto(page.url())
  await messages(second).getByText('The first half,').waitFor()
  expect(await messages(page).getByText('A long poem').count()).toBe(1)
  expect(await messages(second).getByText('A long poem').count()).toBe(1)
  door.open()
  for (const tab of [page, second]) {
    await footers(tab).waitFor()
    expect(await messages(tab).getByText('The first half, and the second half.').count()).toBe(1)
    expect(await messages(tab).getByText('A long poem').count()).toBe(1)
    expect(await messages(tab).locator('.thread-row').count()).toBe(3)
  }
  const next = heldAnswer('two tabs')
  await say(page, 'For two tabs')
  await eventually(() => messages(second).getByText('The first half,').count()).toBe(2)
  next.open()
  await eventually(() => footers(second).count()).toBe(2)
  expect(await messages(second).getByText('For two tabs').count()).toBe(1)
})

test('a chat switches its model between two messages', async () => {
  const page = await visit()
  await say(page, 'First question')
  await footers(page).waitFor()
  const picker = page.getByRole('button', { name: /^Model: / })
  await picker.click()
  await page.getByRole('option', { name: /set ANTHROPIC_API_KEY/, disabled: true }).waitFor()
  await checkAccessible(page)
  // Those that can answer come first, and typing finds one.
  const options = page.getByRole('listbox', { name: 'Models' }).getByRole('option')
  expect(await options.first().getAttribute('aria-disabled')).toBe('false')
  await page.keyboard.type('demo')
  await eventually(() => options.count()).toBe(1)
  await page.keyboard.press('Enter')
  await say(page, 'Second question')
  await eventually(() => footers(page).count()).toBe(2)
  expect(await messages(page).getByText('Second question').count()).toBe(2)
  expect(await footers(page).allTextContents()).toEqual([
    expect.stringMatching(/^steady · /),
    expect.stringMatching(/^demo · /),
  ])
  await page.reload()
  await eventually(() => picker.getAttribute('data-model')).toBe('demo/demo')
})

test('editing a message continues the chat in a copy, and the original stays', LONG, async () => {
  const page = await visit()
  await say(page, 'Alpha')
  await footers(page).waitFor()
  await say(page, 'Beta')
  await eventually(() => footers(page).count()).toBe(2)
  const original = page.url()
  const row = page.locator('.thread-row[data-kind=user]', { hasText: 'Beta' })
  await row.hover()
  await row.getByRole('button', { name: /Edit/ }).click()
  await page.getByRole('textbox', { name: 'Edit your message' }).fill('Gamma')
  await page.keyboard.press('Enter')
  await messages(page).getByText('You said Gamma').waitFor()
  expect(page.url()).not.toBe(original)
  expect(await messages(page).getByText('Beta').count()).toBe(0)
  expect(await messages(page).getByText('You said Alpha').count()).toBe(1)
  await page.goto(original)
  await messages(page).getByText('You said Beta').waitFor()
  expect(await messages(page).getByText('Gamma').count()).toBe(0)
})

test('a chat is renamed, found by its name, and deleted after a question', async () => {
  const page = await visit()
  await say(page, 'Something forgettable')
  await footers(page).waitFor()
  const list = page.getByRole('navigation', { name: 'Chats' })
  const row = list.locator('.session-row[data-current]')
  await row.hover()
  await row.getByRole('button', { name: /^Actions/ }).click()
  await list.getByRole('menuitem', { name: 'Rename' }).click()
  await list.getByRole('textbox', { name: 'New name' }).fill('Zanzibar')
  await page.keyboard.press('Enter')
  await page.locator('.chat-title', { hasText: 'Zanzibar' }).waitFor()
  await page.keyboard.press('Control+k')
  await page.keyboard.type('zanzi')
  await eventually(() => list.getByRole('link').count()).toBe(1)
  await row.hover()
  await row.getByRole('button', { name: /^Actions/ }).click()
  await list.getByRole('menuitem', { name: 'Delete' }).click()
  await list.getByRole('button', { name: 'Delete' }).click()
  await list.getByText('No chat is called').waitFor()
  expect(new URL(page.url()).pathname).toBe('/')
})

test('an error of the provider is shown with advice and can be tried again', async () => {
  let refusals = 0
  plays.set('refuse me', () => {
    refusals += 1
    return refusals === 1 ? [{ status: 401, message: 'Incorrect API key provided' }] : ['Now it works.']
  })
  const page = await visit()
  await say(page, 'refuse me')
  const alert = page.getByRole('alert')
  await alert.getByText('provider-auth').waitFor()
  expect(await alert.textContent()).toContain('Set the right key')
  expect(await page.content()).not.toContain('test-key-of-the-paced-model')
  await page.reload()
  await page.getByRole('alert').getByText('provider-auth').waitFor()
  await page.getByRole('button', { name: 'Try again' }).click()
  await messages(page).getByText('Now it works.').waitFor()
})

test('a missing chat and a file that is too large are reported', LONG, async () => {
  const { page, problems } = await openPage({ url: `${server.url}/s/nowhere` })
  await page.getByRole('heading', { name: 'This chat is not here' }).waitFor()
  await page.getByRole('button', { name: 'Start a new chat' }).click()
  await page.getByLabel('Files to attach').setInputFiles({
    name: 'huge.bin',
    mimeType: 'application/octet-stream',
    buffer: Buffer.alloc(9 * 1024 * 1024),
  })
  await page.getByText(/huge\.bin is too large/).waitFor()
  expect(problems).toEqual([])
})

const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

test('an attached picture is shown before and after sending, and reaches the model', async () => {
  const page = await visit()
  await page.getByLabel('Files to attach').setInputFiles([
    { name: 'pixel.png', mimeType: 'image/png', buffer: Buffer.from(PIXEL, 'base64') },
    { name: 'spare.png', mimeType: 'image/png', buffer: Buffer.from(PIXEL, 'base64') },
  ])
  await page.getByRole('button', { name: 'Remove spare.png' }).click()
  await say(page, 'What is in the picture?')
  await footers(page).waitFor()
  expect(await messages(page).locator('img.picture').count()).toBe(1)
  expect(JSON.stringify(model.requests.at(-1)?.body)).toContain(PIXEL)
})

test('on a phone the chats are a drawer, and nothing is wider than the screen', async () => {
  const page = await visit('/', { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true })
  expect(await page.getByRole('navigation', { name: 'Chats' }).count()).toBe(0)
  plays.set('wide things', () => [`${'W'.repeat(300)}\n\n\`\`\`\n${'c'.repeat(300)}\n\`\`\``])
  await say(page, 'wide things')
  await footers(page).waitFor()
  const width = await page.evaluate('document.documentElement.scrollWidth')
  expect(width).toBeLessThanOrEqual(390)
  const overflow = await page.evaluate(
    "(() => { const e = document.querySelector('.thread'); return e.scrollWidth - e.clientWidth })()",
  )
  expect(overflow).toBe(0)
  await page.getByRole('button', { name: 'Show the chats' }).tap()
  await page
    .getByRole('navigation', { name: 'Chats' })
    .getByRole('link', { name: /wide things/ })
    .tap()
  await eventually(() => page.getByRole('navigation', { name: 'Chats' }).count()).toBe(0)
})
