import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkAccessible, openCleanPage, openPage, say } from '../support/browser.js'
import { eventually } from '../support/eventually.js'
import { gate, type PacedModel, type Piece, startPacedModel } from '../support/paced-model.js'
import { makeFolder, removeFolder } from '../support/temporary-folder.js'
import { LONG, longUnless } from '../support/tiers.js'
import { startWebServer, type WebServer } from '../support/web-server.js'

let model: PacedModel
let server: WebServer
let folder: string
const plays = new Map<string, () => AsyncIterable<Piece> | Iterable<Piece>>()

beforeAll(async () => {
  folder = await makeFolder()
  model = await startPacedModel(({ text }) => plays.get(text)?.() ?? [`You said ${text}`])
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

const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }
const SCREENS = [
  { name: 'light', screen: { colorScheme: 'light' }, tier: longUnless(true) },
  { name: 'dark on a phone', screen: { colorScheme: 'dark', ...PHONE }, tier: LONG },
] as const

/** By how much the page and the chat are wider than their boxes. */
function overflow(page: Page): Promise<number[]> {
  return page.evaluate(
    "[document.documentElement, document.querySelector('.thread')].map(e => e.scrollWidth - e.clientWidth)",
  )
}

/** The size of a picture as the browser has decoded it, and its source, which the page's own policy lets no script fetch. */
async function shownPicture(page: Page, picture: Locator): Promise<{ svg: string; naturalWidth: number }> {
  await eventually(() => picture.evaluate(image => (image as HTMLImageElement).complete)).toBe(true)
  const naturalWidth = await picture.evaluate(image => (image as HTMLImageElement).naturalWidth)
  const other = await page.context().newPage()
  await other.goto((await picture.getAttribute('src')) ?? '')
  const svg: string = await other.evaluate('document.documentElement.outerHTML')
  await other.close()
  return { svg, naturalWidth }
}

const FLOW = '```mermaid\nflowchart LR\n  Reader -->|asks| Agent\n  Agent --> Tool\n  Tool --> Agent\n```'
const FORMULAS = `The roots of \\(ax^2 + bx + c\\) are

\\[
x = \\frac{-b \\pm \\sqrt{b^2 - 4ac}}{2a}
\\]

over $$\\mathbb{R}$$, for $5 or $6. In one line:

$$\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix} \\mathbf{v} = \\lambda \\mathbf{v}$$

Not mathematics: \`\\(code\\)\`, and a mistake: \\(\\frac{1}{\\)`

for (const { name, screen, tier } of SCREENS)
  test(`formulas are MathML, in ${name}`, tier, async () => {
    plays.set('formulas', () => [FORMULAS])
    const page = await visit(screen)
    await say(page, 'formulas')
    await page.locator('.answer-footer').waitFor()
    const formulas = page.locator('.markdown math')
    await eventually(() => formulas.count()).toBe(4)
    expect(await formulas.nth(1).getAttribute('display')).toBe('block')
    expect(await formulas.nth(1).locator('mfrac msqrt').count()).toBe(1)
    expect(await formulas.nth(1).locator('annotation').textContent()).toBe(
      'x = \\frac{-b \\pm \\sqrt{b^2 - 4ac}}{2a}',
    )
    expect(await formulas.nth(2).locator('mi').textContent()).toBe('ℝ')
    expect(await formulas.nth(3).locator('mi').first().textContent()).toBe('𝐯')
    const answer = (await page.locator('.markdown').textContent()) ?? ''
    expect(answer).toContain('for $5 or $6')
    expect(await page.locator('.markdown code').textContent()).toBe('\\(code\\)')
    expect(await page.locator('.katex-error').textContent()).toContain('\\frac{1}{')
    expect(await overflow(page)).toEqual([0, 0])
    await checkAccessible(page)
  })

test('a formula that is not closed yet is shown as text', LONG, async () => {
  const door = gate()
  plays.set('slow formula', async function* () {
    yield 'First \\(a\\), then \\[ \\frac{1}'
    await door.passed
    yield '{2} \\] and done.'
  })
  const page = await visit()
  await say(page, 'slow formula')
  await eventually(() => page.locator('.markdown math').count()).toBe(1)
  expect(await page.locator('.markdown').textContent()).toContain('\\frac{1}')
  door.open()
  await eventually(() => page.locator('.markdown math').count()).toBe(2)
})

for (const { name, screen } of SCREENS)
  test(`a diagram is a picture, and its source is one click away, in ${name}`, LONG, async () => {
    plays.set('flow', () => [`Here:\n\n${FLOW}\n\nThat is all.`])
    const page = await visit(screen)
    await say(page, 'flow')
    const picture = page.getByRole('img', { name: 'Diagram (flowchart)' })
    await picture.waitFor()
    const drawn = await shownPicture(page, picture)
    expect(drawn.svg).toContain('Reader')
    expect(drawn.svg).not.toContain('foreignObject')
    expect(drawn.naturalWidth).toBeGreaterThan(100)
    expect(await overflow(page)).toEqual([0, 0])
    await checkAccessible(page)
    await page.getByRole('button', { name: 'Source' }).click()
    expect(await page.locator('.code-block pre').textContent()).toContain('Reader -->|asks| Agent')
    await page.getByRole('button', { name: 'Diagram' }).click()
    await picture.waitFor()
  })

test('a diagram is drawn again when the theme changes', LONG, async () => {
  plays.set('themes', () => [FLOW])
  const page = await visit({ colorScheme: 'light' })
  await say(page, 'themes')
  const picture = page.getByRole('img', { name: 'Diagram (flowchart)' })
  const light = await picture.getAttribute('src')
  await page.emulateMedia({ colorScheme: 'dark' })
  await eventually(async () => (await picture.getAttribute('src')) !== light).toBe(true)
})

test('a diagram is drawn when it is complete, not before', LONG, async () => {
  const door = gate()
  plays.set('slow flow', async function* () {
    yield '```mermaid\nflowchart LR\n  A --> B\n'
    await door.passed
    yield '  B --> C\n```'
  })
  const page = await visit()
  await say(page, 'slow flow')
  await page.locator('.code-block pre', { hasText: 'A --> B' }).waitFor()
  expect(await page.locator('iframe').count()).toBe(0)
  door.open()
  await page.getByRole('img', { name: 'Diagram (flowchart)' }).waitFor()
})

test('a diagram with a mistake shows its source and the error, and the next one is drawn', LONG, async () => {
  plays.set('mistake', () => [
    '```mermaid\nflowchart LR\n  A --> --> B\n```\n\n```mermaid\npie\n  "x" : 1\n  "y" : 2\n```',
  ])
  const page = await visit()
  await say(page, 'mistake')
  await page.getByText(/This diagram cannot be drawn: Parse error on line 2/).waitFor()
  expect(await page.locator('.code-block pre').textContent()).toContain('A --> --> B')
  await page.getByRole('img', { name: 'Diagram (pie)' }).waitFor()
  await checkAccessible(page)
})

test('a malicious diagram runs no script and reaches no address', async () => {
  plays.set('attack', () => [
    '```mermaid\n%%{init: {"securityLevel": "loose", "themeCSS": "svg{background:url(https://example.com/a.png)}"}}%%\nflowchart LR\n  A["<img src=x onerror=alert(1)><script>alert(2)</script>"] --> B\n  click A href "javascript:alert(3)"\n  click B call alert(4)\n```',
  ])
  const { page, problems } = await openPage({ url: server.url })
  page.on('dialog', dialog => {
    problems.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  await say(page, 'attack')
  const picture = page.getByRole('img', { name: 'Diagram (flowchart)' })
  await picture.waitFor()
  const { svg } = await shownPicture(page, picture)
  expect(svg).not.toMatch(/<script|onerror=|javascript:/i)
  expect(problems).toEqual([])
  const frame = await page.locator('iframe.diagram-frame').elementHandle()
  const inside = await frame?.contentFrame()
  expect(await inside?.evaluate('self.origin')).toBe('null')
  const reached = await inside?.evaluate("fetch('/api/info').then(() => 'reached', () => 'refused')")
  expect(reached).toBe('refused')
})

for (const { name, screen } of SCREENS)
  test(`a wide table scrolls in its own box and can be reached by keyboard, in ${name}`, LONG, async () => {
    const columns = Array.from({ length: 12 }, (_, index) => `Column number ${index}`)
    const row = (cells: string[]) => `| ${cells.join(' | ')} |`
    const table = [
      row(columns),
      row(columns.map(() => '---')),
      row(columns.map(name => `${name} has a value`)),
    ]
    plays.set('table', () => [table.join('\n')])
    const page = await visit(screen)
    await say(page, 'table')
    await page.locator('.answer-footer').waitFor()
    const box = page.locator('.table-frame')
    const size = () => box.evaluate(element => element.scrollWidth - element.clientWidth)
    expect(await size()).toBeGreaterThan(100)
    expect(await overflow(page)).toEqual([0, 0])
    await box.focus()
    await page.keyboard.press('ArrowRight')
    await eventually(() => box.evaluate(element => element.scrollLeft)).toBeGreaterThan(0)
    await checkAccessible(page)
  })
