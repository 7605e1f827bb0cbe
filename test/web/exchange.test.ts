// Chats are found by their words, taken along as files, and brought along from other programs.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { checkAccessible, keepPicture, openCleanPage, sharedBrowser } from '../support/browser.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { LONG, longUnless } from '../support/tiers.js'
import { startWebServer, type WebServer } from '../support/web-server.js'

let server: WebServer

const LATE = 'A **keeper** of the <b>lighthouse</b> lives in [Porto](https://example.com/porto).'
const TABLE = `| a | b |\n|---|---|\n| ${'wide '.repeat(60)} | 2 |\n\n![pixel](https://tracker.example/p.png)\n\n- [x] done`

beforeAll(async () => {
  server = await startWebServer({ store: 'memory:' })
  const { store } = server.runtime
  const key = (sessionId: string) => ({ appName: 'lango', userId: 'user', sessionId })
  await store.createSession(key('long'), {}, { title: 'A long talk' })
  for (let at = 1; at <= 400; at += 1) {
    const content = at === 7 ? 'Where is the LIGHTHOUSE?' : at === 398 ? LATE : `Line ${at} of the talk.`
    await store.appendMessage(key('long'), {
      role: at % 2 ? 'user' : 'assistant',
      ...(at % 2 ? {} : { author: 'lango-agent' }),
      content,
      timestamp: at,
    })
  }
  await store.createSession(key('short'), {}, { title: '<script>alert(1)</script> & co' })
  const message = (role: string, content: string, toolCalls?: object[]) =>
    store.appendMessage(key('short'), {
      role,
      content,
      timestamp: 1,
      ...(toolCalls ? { toolCalls } : {}),
    } as never)
  await message('user', '<img src=x onerror=alert(1)>')
  await message('assistant', '', [
    { id: 'c1', name: 'get_weather', input: '{"city":"</script><b>Oslo"}', kind: 'call' },
  ])
  await message('tool', '', [{ id: 'c1', name: 'get_weather', output: '{"degrees":7}', kind: 'response' }])
  await message('assistant', `${TABLE}\n\n<script>alert(2)</script>\n\n[bad](javascript:alert(3))`)
})

afterAll(() => server?.close())

function open(path: string, options: BrowserContextOptions = {}): Promise<Page> {
  return openCleanPage({ url: server.url + path, ...options })
}

const PHONE = { viewport: { width: 390, height: 844 }, colorScheme: 'dark' } as const

async function expectNoOverflow(page: Page): Promise<void> {
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
}

test('a search in all chats opens a chat at the found message', async () => {
  const page = await open('/')
  await page.getByLabel('Search chats').fill('lighthouse where')
  const found = page.getByRole('region', { name: 'In messages' })
  const hit = found.getByRole('button', { name: /Where is the LIGHTHOUSE\?/ })
  await hit.waitFor()
  expect(await found.locator('mark').allInnerTexts()).toEqual(['LIGHTHOUSE'])
  await keepPicture(page, 'search-all')
  await checkAccessible(page)
  await hit.click()
  const message = page
    .getByRole('region', { name: 'Messages', exact: true })
    .getByText('Where is the LIGHTHOUSE?')
  await message.waitFor()
  expect(page.url()).toMatch(/\/s\/long$/)
  await page.getByLabel('Search chats').fill('zebra crossing')
  await page.getByText('No message holds these words.').waitFor()
})

test('a search in a chat finds words in all its messages, newest first', async () => {
  const page = await open('/s/long')
  await page.getByText('Line 400 of the talk.').waitFor()
  await page.keyboard.press('Control+f')
  const field = page.getByRole('searchbox', { name: 'Find in this chat' })
  await field.fill('lighthouse')
  await page.getByText('1 of 2', { exact: true }).waitFor()
  await page.getByText('keeper').waitFor()
  await keepPicture(page, 'find-in-chat')
  await checkAccessible(page)
  await field.press('Enter')
  await page.getByText('2 of 2', { exact: true }).waitFor()
  await page.getByText('Where is the LIGHTHOUSE?').waitFor()
  await field.fill('zebra')
  await page.getByText('Not found').waitFor()
  await field.press('Escape')
  await field.waitFor({ state: 'detached' })
})

test('the search in a chat and the export menu fit on a phone, in the dark', LONG, async () => {
  const page = await open('/s/long', PHONE)
  await page.getByRole('button', { name: 'Find in this chat' }).click()
  await page.getByRole('searchbox', { name: 'Find in this chat' }).fill('lighthouse')
  await page.getByText('1 of 2', { exact: true }).waitFor()
  await expectNoOverflow(page)
  await keepPicture(page, 'find-phone-dark')
  await page.getByRole('button', { name: 'Share or export' }).click()
  await page.getByRole('menuitem', { name: 'Web page, to share' }).waitFor()
  await expectNoOverflow(page)
  await checkAccessible(page)
  await keepPicture(page, 'share-menu-phone-dark')
})

async function taken(page: Page, label: string): Promise<{ name: string; text: string }> {
  await page.getByRole('button', { name: 'Share or export' }).click()
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('menuitem', { name: label }).click(),
  ])
  return { name: download.suggestedFilename(), text: await readFile(await download.path(), 'utf8') }
}

const SCREENS = [
  { name: 'light', options: {}, tier: longUnless(true) },
  { name: 'phone-dark', options: PHONE, tier: LONG },
]

for (const { name, options, tier } of SCREENS)
  test(
    `a chat is exported as JSON lines, Markdown and a page without scripts or requests, ${name}`,
    tier,
    async () => {
      const page = await open('/s/short')
      await page.getByRole('heading', { name: '<script>alert(1)</script> & co' }).waitFor()
      const lines = await taken(page, 'JSON lines, to import')
      expect(lines.name).toBe('script-alert-1-script-co.jsonl')
      expect(lines.text).toBe(await (await fetch(`${server.url}/api/sessions/short/export`)).text())
      const markdown = await taken(page, 'Markdown, to read')
      expect(markdown.text).toContain('**You:** <img src=x onerror=alert(1)>')
      expect(markdown.text).toContain('- `get_weather({"city":"</script><b>Oslo"})` → `{"degrees":7}`')
      const shared = await taken(page, 'Web page, to share')
      expect(shared.name).toBe('script-alert-1-script-co.html')
      expect(shared.text).not.toMatch(/<script|javascript:|<link|onerror=alert\(1\)>(?!&)/)
      const file = join(await temporaryFolder(), shared.name)
      await writeFile(file, shared.text)
      const context = await (await sharedBrowser()).newContext(options)
      onTestFinished(() => context.close())
      const requests: string[] = []
      const copy = await context.newPage()
      copy.on('request', request => requests.push(request.url()))
      copy.on('dialog', dialog => requests.push(`dialog ${dialog.message()}`))
      const url = pathToFileURL(file).href
      await copy.goto(url)
      expect(await copy.title()).toBe('<script>alert(1)</script> & co')
      await copy.getByText('<img src=x onerror=alert(1)>').waitFor()
      await copy.getByText('get_weather').click()
      await copy.getByText('</script><b>Oslo').waitFor()
      expect(await copy.getByText('bad').getAttribute('href')).toBe('')
      await expectNoOverflow(copy)
      await checkAccessible(copy)
      await keepPicture(copy, `shared-${name}`)
      expect(requests.filter(request => request !== url)).toEqual([])
    },
  )

for (const { name, options } of SCREENS)
  test(
    `a chat is exported for another framework with a list of what is left out, ${name}`,
    LONG,
    async () => {
      const page = await open('/s/short', options)
      await page.getByRole('button', { name: 'Share or export' }).click()
      await page.getByRole('menuitem', { name: 'For another framework …' }).click()
      const dialog = page.getByRole('dialog', { name: 'Export for another framework' })
      await expectNoOverflow(page)
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        dialog.getByRole('button', { name: 'Messages of LangChain' }).click(),
      ])
      expect(download.suggestedFilename()).toBe('script-alert-1-script-co.langchain.json')
      const text = await readFile(await download.path(), 'utf8')
      expect(text).toBe(
        await (await fetch(`${server.url}/api/sessions/short/export?format=langchain`)).text(),
      )
      await dialog.getByText('Saved as Messages of LangChain.').waitFor()
      await dialog.getByText('Left out: timestamp').waitFor()
      await checkAccessible(page)
      await keepPicture(page, `export-dialog-${name}`)
      await dialog.getByRole('button', { name: 'Close' }).click()
      await dialog.waitFor({ state: 'detached' })
    },
  )

const EVENTS = {
  appName: 'office',
  userId: 'bob',
  state: {},
  events: [
    { id: 'e1', author: 'user', timestamp: 1, content: { role: 'user', parts: [{ text: 'Is it open?' }] } },
    { id: 'e2', author: 'clerk', timestamp: 2, content: { role: 'model', parts: [{ text: 'It is.' }] } },
  ],
}

for (const { name, options, tier } of SCREENS)
  test(
    `a file with an unknown agent is imported under a known one, and an unreadable file is refused, ${name}`,
    tier,
    async () => {
      const key = { appName: 'lango', userId: 'user', sessionId: `clerks-${name}` }
      await server.runtime.store.createSession(key)
      const page = await open('/', options)
      if (name !== 'light') await page.getByRole('button', { name: 'Show the chats' }).click()
      await page.getByRole('button', { name: 'Import chats' }).click()
      const dialog = page.getByRole('dialog', { name: 'Import chats' })
      const give = (file: string, text: string) =>
        dialog
          .locator('input[type=file]')
          .setInputFiles({ name: file, mimeType: 'text/plain', buffer: Buffer.from(text) })
      await give('diary.txt', 'Dear diary')
      await dialog.getByText('diary.txt is not JSON, nor JSON lines').waitFor()
      await checkAccessible(page)
      await keepPicture(page, `import-${name}-error`)
      await give('session.json', JSON.stringify({ ...EVENTS, id: key.sessionId }))
      await dialog.getByText('2 messages').waitFor()
      const select = dialog.getByLabel(/The answers of clerk/)
      await checkAccessible(page)
      await expectNoOverflow(page)
      await keepPicture(page, `import-${name}`)
      await select.selectOption('lango-agent')
      await dialog.getByRole('button', { name: 'Import the chat' }).click()
      await dialog.waitFor({ state: 'detached' })
      await page.getByRole('region', { name: 'Messages', exact: true }).getByText('It is.').waitFor()
      // The id was taken.
      const messages = await server.runtime.store.readMessages({ ...key, sessionId: `${key.sessionId}-2` })
      expect(messages.map(({ author }) => author)).toEqual(['user', 'lango-agent'])
    },
  )
