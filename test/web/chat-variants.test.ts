import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkAccessible, keepPicture, openCleanPage, openPage } from '../support/browser.js'
import { eventually } from '../support/eventually.js'
import { type PacedModel, startPacedModel } from '../support/paced-model.js'
import { makeFolder, removeFolder } from '../support/temporary-folder.js'
import { LONG, longUnless } from '../support/tiers.js'
import { startWebServer, type WebServer } from '../support/web-server.js'

let model: PacedModel
let server: WebServer
let folder: string
/** How often each text was answered. */
const asked = new Map<string, number>()

beforeAll(async () => {
  folder = await makeFolder()
  model = await startPacedModel(({ text }) => {
    asked.set(text, (asked.get(text) ?? 0) + 1)
    if (text.includes('fails the second time') && asked.get(text) === 2)
      return [{ status: 401, message: 'Incorrect API key provided' }]
    return [`Answer ${asked.get(text)} to ${text}`]
  })
  server = await startWebServer({ store: `sqlite:${folder}/chat.db`, modelUrl: model.baseUrl })
})

afterAll(async () => {
  await server?.close()
  await model?.close()
  await removeFolder(folder)
})

async function visit(options = {}): Promise<Page> {
  const page = await openCleanPage({ url: server.url, ...options })
  await page.waitForSelector('.composer')
  return page
}

async function say(page: Page, text: string): Promise<void> {
  const before = await page.locator('.answer-footer').count()
  await page.getByRole('textbox', { name: 'Message' }).fill(text)
  await page.keyboard.press('Enter')
  await eventually(() => page.locator('.answer-footer').count()).toBe(before + 1)
}

const messages = (page: Page) => page.getByRole('region', { name: 'Messages' })
const again = (page: Page) => page.getByRole('button', { name: 'Answer again' }).last()
const switcher = (page: Page) => page.getByRole('group', { name: 'Versions of this message' })
const rows = (page: Page, name: string) =>
  page.getByRole('navigation', { name: 'Chats' }).getByRole('link', { name: new RegExp(`^${name}`) })

test('Answer again adds a version of an answer, and each version stays reachable', async () => {
  const page = await visit({ colorScheme: 'light' })
  await say(page, 'Alpha')
  await say(page, 'Beta')
  await again(page).click()
  await messages(page).getByText('Answer 2 to Beta').waitFor()
  await eventually(() => switcher(page).textContent()).toBe('2 / 2')
  expect(await messages(page).getByText('Answer 1 to Alpha').count()).toBe(1)
  expect(await messages(page).getByText('Answer 1 to Beta').count()).toBe(0)
  await eventually(() => rows(page, 'Alpha').count()).toBe(1)
  await checkAccessible(page)

  await switcher(page).getByRole('button', { name: 'Previous version' }).click()
  await messages(page).getByText('Answer 1 to Beta').waitFor()
  await eventually(() => switcher(page).textContent()).toBe('1 / 2')
  expect(await switcher(page).getByRole('button', { name: 'Previous version' }).isDisabled()).toBe(true)
  expect(await rows(page, 'Alpha').count()).toBe(1)
  await say(page, 'Gamma')
  expect(await messages(page).getByText('Answer 1 to Beta').count()).toBe(1)

  // What was chosen is chosen for every page, and after a restart of it.
  const second = await page.context().newPage()
  await second.goto(server.url)
  await rows(second, 'Alpha').click()
  await messages(second).getByText('Answer 1 to Gamma').waitFor()
  await eventually(() => switcher(second).textContent()).toBe('1 / 2')
  await second.close()

  // An earlier answer parts from both.
  await page.getByRole('button', { name: 'Answer again' }).first().click()
  await messages(page).getByText('Answer 2 to Alpha').waitFor()
  await eventually(() => switcher(page).textContent()).toBe('3 / 3')
  expect(await rows(page, 'Alpha').count()).toBe(1)
})

async function edit(page: Page, from: string, to: string): Promise<void> {
  const row = page.locator('.thread-row[data-kind=user]', { hasText: from })
  await row.hover()
  await row.getByRole('button', { name: 'Edit and send again' }).click()
  await page.getByRole('textbox', { name: 'Edit your message' }).fill(to)
  await page.keyboard.press('Enter')
}

for (const { name, options, tier } of [
  { name: 'light', options: {}, tier: longUnless(true) },
  { name: 'dark', options: { colorScheme: 'dark' }, tier: LONG },
  { name: 'phone', options: { viewport: { width: 390, height: 844 } }, tier: LONG },
] as const)
  test(
    `an edited first message gives the chat its title, and the version before is one click away, in ${name}`,
    tier,
    async () => {
      const page = await visit(options)
      const title = page.locator('.chat-title')
      await say(page, `Hotels ${name}`)
      await edit(page, `Hotels ${name}`, `Hostels ${name}`)
      await messages(page).getByText(`Answer 1 to Hostels ${name}`).waitFor()
      await eventually(() => switcher(page).textContent()).toBe('2 / 2')
      await eventually(() => title.textContent()).toBe(`Hostels ${name}`)
      await page.locator('.answer-footer').waitFor()
      await checkAccessible(page)
      await keepPicture(page, `edited-${name}`)

      await switcher(page).getByRole('button', { name: 'Previous version' }).click()
      await messages(page).getByText(`Answer 1 to Hotels ${name}`).waitFor()
      await eventually(() => title.textContent()).toBe(`Hotels ${name}`)
      await eventually(() => switcher(page).textContent()).toBe('1 / 2')
      if (name === 'phone') return
      expect(await rows(page, `Hotels ${name}`).count()).toBe(1)
      expect(await rows(page, `Hostels ${name}`).count()).toBe(0)
    },
  )

test(
  'an edited message that cannot be sent is kept as a draft, and the chat stays as it was',
  LONG,
  async () => {
    const { page } = await openPage({ url: server.url })
    await page.waitForSelector('.composer')
    await say(page, 'Trains')
    const address = page.url()
    await page.route('**/api/sessions/*/runs', route =>
      route.request().method() === 'POST' ? route.abort() : route.continue(),
    )
    await edit(page, 'Trains', 'Slow trains')
    const field = page.getByRole('textbox', { name: 'Message' })
    await eventually(() => field.inputValue()).toBe('Slow trains')
    await messages(page).getByText('Answer 1 to Trains').waitFor()
    expect(page.url()).toBe(address)
    expect(await switcher(page).count()).toBe(0)
  },
)

test('an exported variant is numbered, and deleting the chat deletes all variants', LONG, async () => {
  const page = await visit()
  await say(page, 'Delta')
  const first = page.url()
  await again(page).click()
  await messages(page).getByText('Answer 2 to Delta').waitFor()
  await eventually(() => switcher(page).textContent()).toBe('2 / 2')
  await page.locator('.answer-footer').waitFor()
  await page.getByRole('button', { name: 'Share or export' }).click()
  const downloading = page.waitForEvent('download')
  await page.getByRole('menuitem', { name: 'Web page, to share' }).click()
  const download = await downloading
  expect(download.suggestedFilename()).toBe('Delta-variant-2-of-2.html')
  expect(await readFile(await download.path(), 'utf8')).toContain('(variant 2 of 2)')

  const row = page.locator('.session-row[data-current]')
  await row.hover()
  await row.getByRole('button', { name: /^Actions/ }).click()
  await page.getByRole('menuitem', { name: 'Delete' }).click()
  await page.getByRole('button', { name: 'Delete' }).click()
  await eventually(() => rows(page, 'Delta').count()).toBe(0)
  await page.goto(first)
  await page.getByRole('heading', { name: 'This chat is not here' }).waitFor()
})

test(
  'Answer again that fails leaves the earlier answer reachable, on a phone in the dark',
  LONG,
  async () => {
    const page = await visit({
      colorScheme: 'dark',
      viewport: { width: 390, height: 844 },
      hasTouch: true,
      isMobile: true,
    })
    await say(page, 'This fails the second time')
    await again(page).tap()
    await page.getByRole('alert').getByText('provider-auth').waitFor()
    await eventually(() => switcher(page).textContent()).toBe('2 / 2')
    await checkAccessible(page)
    await switcher(page).getByRole('button', { name: 'Previous version' }).tap()
    await messages(page).getByText('Answer 1 to This fails the second time').waitFor()
  },
)

test('Answer again that does not reach the server leaves the chat as it was', LONG, async () => {
  const { page } = await openPage({ url: server.url })
  await page.waitForSelector('.composer')
  await say(page, 'Epsilon')
  const before = page.url()
  await page.route('**/runs', route =>
    route.request().method() === 'POST' ? route.abort() : route.continue(),
  )
  await again(page).click()
  await page.waitForURL(url => url.href !== before)
  await page.waitForURL(before)
  await messages(page).getByText('Answer 1 to Epsilon').waitFor()
  await eventually(() => rows(page, 'Epsilon').count()).toBe(1)
  expect(await switcher(page).count()).toBe(0)
})
