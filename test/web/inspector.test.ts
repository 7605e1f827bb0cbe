// The inspector and the lint, opened from the real page in a real Chromium, on a session whose history was cut
// and repaired and that has been through four families of providers.
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { silentLogger } from '../../src/logger.js'
import { type RunningServer, serve } from '../../src/server/serve.js'
import { builtWeb, launchBrowser, openPage, type WatchedPage } from '../support/browser.js'
import { openScene, runLongSession, type Scene } from '../support/inspector-scene.js'

const DESKTOP = { width: 1280, height: 800 }
const PHONE = { width: 390, height: 844 }

let scene: Scene
let server: RunningServer
let browser: Browser
let opened: WatchedPage | undefined

beforeAll(async () => {
  const [webRoot, chromium, built] = await Promise.all([builtWeb(), launchBrowser(), openScene()])
  browser = chromium
  scene = built
  server = await serveScene(scene, webRoot)
})

afterEach(async () => {
  await opened?.page.context().close()
  expect(opened?.problems ?? []).toEqual([])
  opened = undefined
})

afterAll(async () => {
  await browser?.close()
  await server?.close()
  await scene?.close()
})

async function serveScene({ runtime }: Scene, webRoot: string): Promise<RunningServer> {
  return serve({ runtime, port: 0, host: '127.0.0.1', webRoot, logger: silentLogger, version: '0.0.0' })
}

async function openChat(
  options: { viewport?: typeof DESKTOP; colorScheme?: 'light' | 'dark'; path?: string } = {},
) {
  const { viewport = DESKTOP, colorScheme = 'light', path = '/s/scene' } = options
  opened = await openPage(browser, { url: `${server.url}${path}`, viewport, colorScheme })
  return opened.page
}

async function openInspector(page: Page) {
  await page.getByRole('button', { name: 'Inspect what the model was sent' }).last().click()
  await page.getByRole('tab', { name: 'Stored and sent' }).waitFor()
  await page.locator('.inspect-compare-row').first().waitFor()
}

/** Every rule that axe knows, on the whole page with its open panel. */
async function violations(page: Page): Promise<string[]> {
  const source = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
  await page.evaluate(source)
  return page.evaluate(async () => {
    const { axe } = globalThis as unknown as {
      axe: { run(context: Document): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> }
    }
    const { violations: found } = await axe.run(document)
    return found.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`)
  })
}

/** What was left out when the session was opened, and of the request. */
function allCuts(cuts: readonly { messages: number; tokens: number }[] = []) {
  return {
    messages: cuts.reduce((all, cut) => all + cut.messages, 0),
    tokens: cuts.reduce((all, cut) => all + cut.tokens, 0),
  }
}

describe('the inspector', () => {
  test('shows the cut, the repairs and the renamed id of the request of an answer', async () => {
    const page = await openChat()
    await openInspector(page)
    const panel = page.getByRole('complementary', { name: 'What the model was sent' })
    await panel.getByText('anthropic/claude-sonnet-4-6', { exact: true }).waitFor()
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
  })

  test('leads from a repair to the message that it is about', async () => {
    const page = await openChat()
    await openInspector(page)
    await page.getByRole('tab', { name: /^Repairs/ }).click()
    await page.getByRole('listitem').filter({ hasText: 'became a text note' }).getByRole('button').click()
    const target = page.locator('.inspect-compare-row.is-target')
    await target.waitFor()
    await expect.poll(() => target.isVisible()).toBe(true)
    expect(await target.innerText()).toContain('[result of search, whose call is not in this history]')
    await page.locator('.inspect-fate-added').first().getByText('Added by repair', { exact: false }).waitFor()
  })

  test('shows each request of the run, its instruction and tools, and finds a word in its body', async () => {
    const page = await openChat()
    await openInspector(page)
    await page.getByRole('button', { name: /^Request 1/ }).click()
    await page.getByRole('tab', { name: /^Instruction and tools/ }).click()
    await page.getByText('You plan journeys.', { exact: false }).waitFor()
    await page.getByText('1 tool declared').waitFor()

    await page.getByRole('tab', { name: 'Raw' }).click()
    await page.getByRole('searchbox', { name: 'Search the request' }).fill('old timetable')
    await page.getByText('1 of 1').waitFor()
    expect(await page.locator('.is-found').innerText()).toContain('an old timetable')
    // The second request holds the calls that the first was answered with.
    expect(await page.locator('.inspect-json-row').count()).toBeGreaterThan(10)
  })

  test('says where signatures were kept', async () => {
    const page = await openChat()
    const footer = page.locator('.answer-footer', { hasText: 'gemini-3-pro-preview' })
    await page.locator('.thread').hover()
    await page.mouse.wheel(0, -600)
    await footer.getByRole('button', { name: 'Inspect what the model was sent' }).click()
    await page.locator('.inspect-frame').getByText('gemini/gemini-3-pro-preview').waitFor()
    await page.getByRole('tab', { name: /^Repairs/ }).click()
    await page.getByText('1 signature of this provider is sent back as received.').waitFor()
  })

  test('says what went wrong when the server does not answer, and tries again', async () => {
    const page = await openChat()
    await page.route('**/inspect', route => route.abort())
    await page.getByRole('button', { name: 'Inspect what the model was sent' }).last().click()
    const failure = page.getByRole('alert').filter({ hasText: 'could not be read' })
    await failure.waitFor()
    await page.unroute('**/inspect')
    await failure.getByRole('button', { name: 'Try again' }).click()
    await page.locator('.inspect-compare-row').first().waitFor()
  })

  test('closes with Escape and gives the focus back', async () => {
    const page = await openChat()
    await openInspector(page)
    await page.keyboard.press('Escape')
    await page.getByRole('complementary', { name: 'What the model was sent' }).waitFor({ state: 'detached' })
    const label = await page.evaluate(() => document.activeElement?.getAttribute('aria-label'))
    expect(label).toBe('Inspect what the model was sent')
  })

  test('is moved to another width with the keyboard and stays so', async () => {
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

  test('is a sheet on a phone that shows repairs, keeps the focus and is no wider than the screen', async () => {
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
  })

  test.each([
    ['desktop', 'light', DESKTOP],
    ['desktop', 'dark', DESKTOP],
    ['phone', 'dark', PHONE],
  ] as const)('has nothing that axe objects to (%s, %s)', async (_, colorScheme, viewport) => {
    const page = await openChat({ viewport, colorScheme })
    await openInspector(page)
    for (const tab of [/^Stored and sent/, /^Repairs/, /^Instruction/, /^Raw/]) {
      await page.getByRole('tab', { name: tab }).click()
      expect(await violations(page)).toEqual([])
    }
  })
})

test('every answer in sight says what was cut and repaired for it, not only the newest', async () => {
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

test('with an open panel the chat is in view at every width of the screen', async () => {
  for (const width of [1280, 1600]) {
    const page = await openChat({ viewport: { width, height: 1000 } })
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
    if (width === 1280) await page.context().close()
  }
})

describe('the lint', () => {
  test('answers whether the session can switch, per provider and with the messages it is about', async () => {
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
    expect(await violations(page)).toEqual([])
    await panel.getByRole('button', { name: 'Show it in the chat' }).click()
    const shown = page.locator('.thread-row[data-revealed]')
    await shown.waitFor()
    expect(await shown.innerText()).toContain('search')
  })

  test('is legible on a phone', async () => {
    const page = await openChat({ viewport: PHONE, colorScheme: 'dark' })
    await page.locator('.lint-button').click()
    const sheet = page.getByRole('dialog', { name: 'Can this session switch models?' })
    await sheet.locator('.inspect-lint-row').first().waitFor()
    expect(await violations(page)).toEqual([])
    await page.keyboard.press('Escape')
    await sheet.waitFor({ state: 'detached' })
  })
})

test('a request of two thousand messages is on the page only where it is looked at', async () => {
  const large = await openScene(900_000)
  const longServer = await serveScene(large, await builtWeb())
  try {
    const runId = await runLongSession(large)
    const bytes = (await large.runtime.inspect(runId))?.steps[0]?.sent.bytes ?? 0
    expect(bytes).toBeGreaterThan(900_000)
    opened = await openPage(browser, { url: `${longServer.url}/s/long`, viewport: DESKTOP })
    const { page } = opened
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
  } finally {
    await longServer.close()
    await large.close()
  }
})
