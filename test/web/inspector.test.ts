// The inspector and the lint, opened from the real page in a real Chromium, on a session whose history was cut
// and repaired and that has been through four families of providers.
import type { BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { silentLogger } from '../../src/logger.js'
import { type RunningServer, serve } from '../../src/server/serve.js'
import { builtWeb, checkAccessible, openCleanPage } from '../support/browser.js'
import { openScene, runLongSession, type Scene } from '../support/inspector-scene.js'
import { LONG } from '../support/tiers.js'

const DESKTOP = { width: 1280, height: 800 }
const PHONE = { width: 390, height: 844 }

let scene: Scene
let server: RunningServer

beforeAll(async () => {
  scene = await openScene()
  server = await serveScene(scene)
})

afterAll(async () => {
  await server?.close()
  await scene?.close()
})

async function serveScene({ runtime }: Scene): Promise<RunningServer> {
  const webRoot = await builtWeb()
  return serve({ runtime, port: 0, host: '127.0.0.1', webRoot, logger: silentLogger, version: '0.0.0' })
}

function openChat(options: BrowserContextOptions = {}): Promise<Page> {
  return openCleanPage({ url: `${server.url}/s/scene`, colorScheme: 'light', ...options })
}

async function openInspector(page: Page) {
  await page.getByRole('button', { name: 'Inspect what the model was sent' }).last().click()
  await page.getByRole('tab', { name: 'Stored and sent' }).waitFor()
  await page.locator('.inspect-compare-row').first().waitFor()
}

/** What was left out when the session was opened, and of the request. */
function allCuts(cuts: readonly { messages: number; tokens: number }[] = []) {
  return {
    messages: cuts.reduce((all, cut) => all + cut.messages, 0),
    tokens: cuts.reduce((all, cut) => all + cut.tokens, 0),
  }
}

test('the inspector shows the cut, the repairs and the renamed id of a request, leads from a repair to its message, and closes with Escape', async () => {
  const page = await openChat()
  await openInspector(page)
  const panel = page.getByRole('complementary', { name: 'What the model was sent' })
  await panel.getByText('anthropic/claude-sonnet-4-6', { exact: true }).waitFor()
  await checkAccessible(page, 'stored and sent')
  expect(await panel.getByText(/^guide · finished · 2 requests/).count()).toBe(1)

  const inspection = await scene.runtime.inspect(scene.runs.anthropic)
  const step = inspection?.steps[1]
  const cut = allCuts(step?.cuts)
  await panel.getByText(`${cut.messages} messages left out would have cost`, { exact: false }).waitFor()
  const fold = panel.getByRole('button', { name: /^not sent/ })
  expect(await fold.innerText()).toContain(
    `${cut.messages} messages, ${cut.tokens.toLocaleString('en')} tokens`,
  )
  await fold.click()
  await panel.getByText('Cut by the budget', { exact: false }).first().waitFor()

  await panel.getByRole('tab', { name: /^Repairs/ }).click()
  const wire = step?.mappedIds['lost call/1'] ?? ''
  expect(await panel.getByRole('row', { name: 'lost call/1' }).innerText()).toContain(wire)
  await panel.getByRole('heading', { name: /^Results without a call/ }).waitFor()
  await checkAccessible(page, 'repairs')

  await page.getByRole('listitem').filter({ hasText: 'became a text note' }).getByRole('button').click()
  const target = page.locator('.inspect-compare-row.is-target')
  await target.waitFor()
  await expect.poll(() => target.isVisible()).toBe(true)
  expect(await target.innerText()).toContain('[result of search, whose call is not in this history]')
  await page.locator('.inspect-fate-added').first().getByText('Added by repair', { exact: false }).waitFor()

  await page.keyboard.press('Escape')
  await page.getByRole('complementary', { name: 'What the model was sent' }).waitFor({ state: 'detached' })
  const label = await page.evaluate(() => document.activeElement?.getAttribute('aria-label'))
  expect(label).toBe('Inspect what the model was sent')
})

test('the inspector shows each request with instruction and tools, and finds a word in its body', async () => {
  const page = await openChat()
  await openInspector(page)
  await page.getByRole('button', { name: /^Request 1/ }).click()
  await page.getByRole('tab', { name: /^Instruction and tools/ }).click()
  await page.getByText('You plan journeys.', { exact: false }).waitFor()
  await page.getByText('1 tool declared').waitFor()
  await checkAccessible(page, 'instruction and tools')

  await page.getByRole('tab', { name: 'Raw' }).click()
  await checkAccessible(page, 'raw')
  await page.getByRole('searchbox', { name: 'Search the request' }).fill('old timetable')
  await page.getByText('1 of 1').waitFor()
  expect(await page.locator('.is-found').innerText()).toContain('an old timetable')
  // The second request holds the calls that the first was answered with.
  expect(await page.locator('.inspect-json-row').count()).toBeGreaterThan(10)
})

test('the inspector counts the signatures that are sent back', LONG, async () => {
  const page = await openChat()
  const footer = page.locator('.answer-footer', { hasText: 'gemini-3-pro-preview' })
  await page.locator('.thread').hover()
  await page.mouse.wheel(0, -600)
  await footer.getByRole('button', { name: 'Inspect what the model was sent' }).click()
  await page.locator('.inspect-frame').getByText('gemini/gemini-3-pro-preview').waitFor()
  await page.getByRole('tab', { name: /^Repairs/ }).click()
  await page.getByText('1 signature of this provider is sent back as received.').waitFor()
})

test('the inspector reports a request that fails, and Try again reads it', LONG, async () => {
  const page = await openChat()
  await page.route('**/inspect', route => route.abort())
  await page.getByRole('button', { name: 'Inspect what the model was sent' }).last().click()
  const failure = page.getByRole('alert').filter({ hasText: 'could not be read' })
  await failure.waitFor()
  await page.unroute('**/inspect')
  await failure.getByRole('button', { name: 'Try again' }).click()
  await page.locator('.inspect-compare-row').first().waitFor()
})

test('the inspector is resized with the keyboard, and keeps its width after a reload', LONG, async () => {
  const page = await openChat()
  await openInspector(page)
  const edge = page.getByRole('separator', { name: 'Width of the panel' })
  const before = Number(await edge.getAttribute('aria-valuenow'))
  await edge.press('ArrowLeft')
  await expect.poll(async () => Number(await edge.getAttribute('aria-valuenow'))).toBe(before + 32)
  await page.reload()
  await openInspector(page)
  expect(Number(await edge.getAttribute('aria-valuenow'))).toBe(before + 32)
})

test(
  'the inspector is a sheet on a phone that shows repairs, keeps the focus and is no wider than the screen',
  LONG,
  async () => {
    const page = await openChat({ viewport: PHONE })
    await openInspector(page)
    const sheet = page.getByRole('dialog', { name: 'What the model was sent' })
    // The badges of the requests are not left out on a narrow screen.
    expect(
      await sheet
        .getByText(/^\d+ repaired$/)
        .first()
        .isVisible(),
    ).toBe(true)
    const stops = 40
    for (let press = 0; press < stops; press++) {
      await page.keyboard.press('Tab')
      expect(await sheet.evaluate(element => element.contains(document.activeElement))).toBe(true)
    }
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(PHONE.width)
    const wide = await sheet.evaluate(
      element =>
        [...element.querySelectorAll('.inspect-card, .inspect-note, .inspect-compare-row')].filter(
          one => one.getBoundingClientRect().right > innerWidth,
        ).length,
    )
    expect(wide).toBe(0)
  },
)

test.each([
  ['desktop', DESKTOP],
  ['phone', PHONE],
])('axe finds nothing in the tabs of the inspector in the dark (%s)', LONG, async (_, viewport) => {
  const page = await openChat({ viewport, colorScheme: 'dark' })
  await openInspector(page)
  for (const tab of [/^Stored and sent/, /^Repairs/, /^Instruction/, /^Raw/]) {
    await page.getByRole('tab', { name: tab }).click()
    await checkAccessible(page)
  }
})

test('every visible answer says what was cut and repaired for it, not only the newest', async () => {
  const page = await openChat()
  await page.locator('.thread').getByText('The night train reaches Lisbon first.').waitFor()
  const cuts = page.locator('.mark-line[data-mark=history-cut]')
  await cuts.last().waitFor()
  const cut = allCuts((await scene.runtime.inspect(scene.runs.anthropic))?.steps[0]?.cuts)
  expect(await cuts.last().innerText()).toContain(`${cut.messages} older messages left out`)
  await expect.poll(() => cuts.count()).toBeGreaterThan(1)
  expect(await page.locator('.mark-line[data-mark=repair]').count()).toBeGreaterThan(1)
  // The marks came after the chat was at its end, and it still is.
  const rest =
    "(() => { const t = document.querySelector('.thread'); return t.scrollHeight - t.scrollTop - t.clientHeight })()"
  await expect.poll(() => page.evaluate(rest)).toBeLessThan(2)
  await cuts.last().getByRole('button').click()
  await page.getByRole('complementary', { name: 'What the model was sent' }).waitFor()
})

test('with an open inspector the chat is in view at 1280 and 1600 pixels', LONG, async () => {
  for (const width of [1280, 1600]) {
    const page = await openChat({ viewport: { width, height: 1000 }, reducedMotion: 'no-preference' })
    await openInspector(page)
    const placeOf = async (selector: string) => {
      const box = await page.locator(selector).boundingBox()
      return { start: Math.round(box?.x ?? 0), end: Math.round((box?.x ?? 0) + (box?.width ?? 0)) }
    }
    // The panel slides in.
    await expect.poll(async () => (await placeOf('.inspect-frame')).end).toBe(width)
    const [chat, panel] = [await placeOf('.chat'), await placeOf('.inspect-frame')]
    expect(chat.end - chat.start).toBeGreaterThan(360)
    expect(chat.end).toBeLessThanOrEqual(panel.start + 1)
  }
})

test('the lint says per provider whether the session can switch, and which messages prevent it', async () => {
  const page = await openChat()
  await page.getByRole('button', { name: 'Check on every model' }).click()
  const panel = page.getByRole('complementary', { name: 'Can this session switch models?' })
  await panel.getByText('Yes, to any of them.').waitFor()
  const claude = panel.getByRole('button', { name: /^.?\s*Claude from 4\.6/ })
  expect(await claude.innerText()).toMatch(/as stored: refused/)
  expect(await claude.innerText()).toMatch(/with Lango: continues/)
  await claude.click()
  await panel.getByText('call-without-result').waitFor()
  await panel.getByRole('button', { name: 'message 26' }).first().click()
  await panel.getByText('lost call/1').first().waitFor()
  await checkAccessible(page)
  await panel.getByRole('button', { name: 'Show it in the chat' }).click()
  const shown = page.locator('.thread-row[data-revealed]')
  await shown.waitFor()
  expect(await shown.innerText()).toContain('search')
})

test('the lint is a sheet on a phone, in the dark', LONG, async () => {
  const page = await openChat({ viewport: PHONE, colorScheme: 'dark' })
  await page.locator('.lint-button').click()
  const sheet = page.getByRole('dialog', { name: 'Can this session switch models?' })
  await sheet.locator('.inspect-lint-row').first().waitFor()
  await checkAccessible(page)
  await page.keyboard.press('Escape')
  await sheet.waitFor({ state: 'detached' })
})

test('a request of two thousand messages is on the page only where it is looked at', LONG, async () => {
  const large = await openScene(900_000)
  const longServer = await serveScene(large)
  onTestFinished(async () => {
    await longServer.close()
    await large.close()
  })
  const runId = await runLongSession(large)
  const bytes = (await large.runtime.inspect(runId))?.steps[0]?.sent.bytes ?? 0
  expect(bytes).toBeGreaterThan(900_000)
  const page = await openCleanPage({ url: `${longServer.url}/s/long` })
  await openInspector(page)
  await page.getByText('Only what differs (0 of 2,001)').waitFor()
  await page.getByText('Q1 All of this', { exact: false }).first().waitFor()
  const scroller = page.locator('.inspect-step-view')
  await expect
    .poll(async () => {
      await scroller.evaluate(element => element.scrollTo(0, element.scrollHeight))
      return page.locator('.inspect-compare-row').getByText('And now?').count()
    })
    .toBeGreaterThan(0)
  expect(await page.locator('.inspect-compare-row').count()).toBeLessThan(80)

  await page.getByRole('tab', { name: 'Raw' }).click()
  await page.getByRole('searchbox', { name: 'Search the request' }).fill('A777 all')
  await page.getByText('1 of 1').waitFor()
  await page.locator('.is-found').waitFor()
  expect(await page.locator('.inspect-json-row').count()).toBeLessThan(200)
})
