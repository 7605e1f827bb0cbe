import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { AgentError } from '../../src/errors.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { checkAccessible, keepPicture, openCleanPage } from '../support/browser.js'
import { makeFolder, removeFolder } from '../support/temporary-folder.js'
import { LONG, longUnless } from '../support/tiers.js'
import { startWebServer, type WebServer } from '../support/web-server.js'

let server: WebServer
let folder: string
const REFUSED = 'messages.2: the model of this test refuses every request.'

beforeAll(async () => {
  folder = await makeFolder()
  const refusing = new ScriptedProvider(() => ({ error: new AgentError('provider-rejected', REFUSED) }), {
    id: 'refusing',
  })
  server = await startWebServer({
    store: `sqlite:${folder}/chat.db`,
    runtime: { agent: { model: 'demo/demo' }, providers: { refusing } },
  })
})

afterAll(async () => {
  await server?.close()
  await removeFolder(folder)
})

async function visit(options = {}): Promise<Page> {
  return openCleanPage({ url: server.url, ...options })
}

test('a broken history of the gallery is refused as it is, and repaired and answered through Lango', async () => {
  const page = await visit()
  await page.getByRole('button', { name: /^Killed in mid-tool/ }).click()
  const notice = page.getByRole('region', { name: 'A broken history' })
  await notice.getByRole('button', { name: 'Send it as it is' }).click()
  await notice.getByText(/must be followed by tool messages/).waitFor()
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
  // The panel was opened while the run went on; its end is there without a click.
  await page.getByText(/lango-agent · finished · 1 request/).waitFor()
  await checkAccessible(page)
  await keepPicture(page, 'gallery-healed')
  // After a reload it is a chat like any other.
  await page.reload()
  await page
    .getByText(/interrupted before its result came back/)
    .first()
    .waitFor()
  expect(await notice.count()).toBe(0)
})

test.each([
  ['light', {}],
  ['dark', { colorScheme: 'dark' }],
  ['phone', { viewport: { width: 390, height: 844 } }],
])(
  'a run of a broken history that fails is shown as failed, with its error, in %s',
  LONG,
  async (name, options) => {
    const page = await visit(options)
    await page.route('**/api/sessions/*/heal', async route => {
      const { runId } = route.request().postDataJSON()
      await route.continue({
        url: route.request().url().replace(/heal$/, 'runs'),
        postData: { runId, text: 'And now?', model: 'refusing/any' },
      })
    })
    await page.getByRole('button', { name: /^Killed in mid-tool/ }).click()
    const notice = page.getByRole('region', { name: 'A broken history' })
    await notice.getByRole('button', { name: 'Send it through Lango' }).click()
    await notice.getByText(`The run failed: ${REFUSED}`).waitFor()
    expect(await notice.getByText(/answered/).count()).toBe(0)
    await checkAccessible(page)
    const close = page.getByRole('button', { name: 'Close' })
    if (name === 'phone' && (await close.count()) > 0) await close.first().click()
    await keepPicture(page, `gallery-failed-${name}`)
  },
)

test.each([
  ['light', {}],
  ['dark', { colorScheme: 'dark' }],
  ['phone', { viewport: { width: 390, height: 844 } }],
])('the gallery shows its cards and the refusal without overflow, in %s', LONG, async (name, options) => {
  const page = await visit(options)
  await page.getByRole('button', { name: /^Lost ids/ }).waitFor()
  await checkAccessible(page)
  await keepPicture(page, `gallery-${name}`)
  await page.getByRole('button', { name: /^Lost ids/ }).click()
  const notice = page.getByRole('region', { name: 'A broken history' })
  await notice.getByRole('button', { name: 'Send it as it is' }).click()
  await notice.getByText(/tool_use/).waitFor()
  await checkAccessible(page)
  expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true)
  await keepPicture(page, `gallery-${name}-refused`)
})

test('a pasted history is explained and repaired, and the downloaded file is accepted', async () => {
  const page = await visit()
  await page.getByRole('button', { name: /Paste yours/ }).click()
  await page.waitForURL(/\/check$/)
  await page.getByRole('button', { name: 'Show me an example' }).click()
  await page.getByRole('button', { name: 'Check it' }).click()
  await page.getByText('Rejected as it is.').waitFor()
  await page.getByText(/`tool_use` ids were found without `tool_result`/).waitFor()
  await page.getByText(/had no result: one was added/).waitFor()
  await checkAccessible(page)
  await keepPicture(page, 'check')
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Download healed.json' }).click(),
  ])
  expect(download.suggestedFilename()).toBe('healed.json')
  const healed = await readFile(await download.path(), 'utf8')
  const field = page.getByRole('textbox', { name: 'History' })
  await field.fill(healed)
  await page.getByRole('button', { name: 'Check it' }).click()
  await page.getByText('Accepted: nothing is wrong.').waitFor()
  // What fits several formats is asked about; what is no history is refused with what to do.
  await field.fill('[{"role":"user","content":"hi"},{"role":"assistant","content":"ho"}]')
  await field.press('Control+Enter')
  await page.getByText('Not sure what this is.').waitFor()
  await page.getByRole('button', { name: 'an Anthropic request' }).click()
  await page.getByText(/An Anthropic request, 2 messages/i).waitFor()
  await field.fill('hello')
  await field.press('Control+Enter')
  await page
    .getByRole('alert')
    .getByText(/is not JSON/)
    .waitFor()
  // The page has an address of its own, and the way back is the browser's.
  await page.goBack()
  await page.getByRole('button', { name: /Paste yours/ }).waitFor()
})

test.each([
  ['dark', { colorScheme: 'dark' }],
  ['phone', { viewport: { width: 390, height: 844 } }],
])('the check of a pasted history has no overflow, in %s', LONG, async (name, options) => {
  const page = await visit({ ...options, url: `${server.url}/check` })
  const call = { type: 'tool-call', toolCallId: 'a', toolName: 'f', input: {} }
  const history = [
    { role: 'user', content: 'x' },
    { role: 'assistant', content: [call] },
  ]
  await page.getByRole('textbox', { name: 'History' }).fill(JSON.stringify(history))
  await page.getByRole('button', { name: 'Check it' }).click()
  await page.getByRole('heading', { name: 'The healed file' }).waitFor()
  await page.getByText('Show it').click()
  await checkAccessible(page)
  expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true)
  await keepPicture(page, `check-${name}`)
})

test('the theme and the model of the settings are kept after a reload', async () => {
  const page = await visit()
  await page.locator('.composer').waitFor()
  await page.keyboard.press('Control+,')
  const dialog = page.getByRole('dialog', { name: 'Settings' })
  await dialog.getByLabel('Theme').selectOption('dark')
  expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe('dark')
  await dialog.getByLabel('Model of new chats').selectOption('demo/demo')
  expect(await dialog.getByRole('link', { name: 'How to turn it on' }).getAttribute('href')).toBe(
    '/docs/memory',
  )
  await checkAccessible(page)
  await keepPicture(page, 'settings')
  await page.reload()
  expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe('dark')
  await page.getByRole('button', { name: 'Settings' }).click()
  expect(await dialog.getByLabel('Model of new chats').inputValue()).toBe('demo/demo')
})

for (const { name, options, tier } of [
  { name: 'light', options: {}, tier: longUnless(true) },
  { name: 'dark', options: { colorScheme: 'dark' }, tier: LONG },
  { name: 'phone', options: { viewport: { width: 390, height: 844 } }, tier: LONG },
])
  test(`the documentation is served, linked and searchable, in ${name}`, tier, async () => {
    const page = await visit({ ...options, url: `${server.url}/docs` })
    await page.getByRole('heading', { name: 'Documentation', level: 1 }).waitFor()
    await checkAccessible(page)
    await page.getByRole('main').getByRole('link', { name: 'Getting started in ten minutes' }).first().click()
    await page.waitForURL(/\/docs\/getting-started$/)
    await page.getByRole('combobox').fill('prompt cache')
    await page.getByRole('option').first().waitFor()
    await checkAccessible(page)
    await keepPicture(page, `docs-${name}`)
    await page.getByRole('combobox').fill('budget')
    await page
      .getByRole('option', { name: /budget/i })
      .first()
      .waitFor()
    await page.keyboard.press('Enter')
    await page.waitForURL(/#/)
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true)
  })
