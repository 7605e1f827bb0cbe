/**
 * Takes the pictures of the README and the documentation: `npx tsx test/support/take-pictures.ts [folder]`, by
 * default into docs/images. A journey is planned with one model and continued with another; the providers are the
 * strict servers, so everything that is shown really happened.
 */
import { fileURLToPath } from 'node:url'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { silentLogger } from '../../src/logger.js'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import { serve } from '../../src/server/serve.js'
import { type StrictProviderOptions, startStrictProvider } from '../../src/testing/start-strict-provider.js'
import { defineTool } from '../../src/tool.js'
import { builtWeb, launchBrowser } from './browser.js'

const GEMINI = 'gemini/gemini-3-pro-preview'
const CLAUDE = 'anthropic/claude-sonnet-4-6'
const KEY = { appName: 'lango', userId: 'ann', sessionId: 'kyoto' }
const HOUR_MS = 3_600_000
const DESKTOP = { width: 1280, height: 940 }

const TRAINS = `Three trains arrive before noon on Friday:

| Train | 東京 Tokyo | 京都 Kyoto | Seats |
|---|---|---|---|
| のぞみ Nozomi 11 | 07:21 | 09:33 | many |
| のぞみ Nozomi 23 | 08:51 | 11:06 | few |
| ひかり Hikari 637 | 09:03 | 11:41 | many |

**Nozomi 11** is the one to take: it is the fastest, and both of you can sit together.`

const WALK = `From 京都駅 everything of the first day is within a short walk:

1. **東寺 Tō-ji**, the five-storey pagoda, open until 17:00
2. **錦市場 Nishiki**, five blocks of small kitchens, for a late lunch
3. The roof of the station itself, at dusk`

const EARLIER: readonly [string, string][] = [
  [
    'We have a week in Japan in November, the two of us. We like gardens, small inns and trains, and we would rather see three places well than ten in a hurry. Where should we go?',
    'Tokyo for two nights, Kyoto for four, and one night in the mountains on the way back. In the second half of November the maples are at their best, so book the inns now; the trains can wait until a month before.',
  ],
  [
    'How cold does it get, and what should we pack for the mountains? One of us is always cold, and neither wants to carry more than a small case.',
    'Between 5 and 14 degrees in the cities, close to freezing at night in the hills. A warm layer, a light coat that keeps the rain out and shoes that are easily taken off: you will do that ten times a day.',
  ],
  [
    'Is the rail pass worth its money for that route, or do we pay less with single tickets?',
    'Single tickets. The pass has become dear: you would need a third long leg within the seven days to make up for it. Reserve seats on the right-hand side on the way to Kyoto, for a look at Mount Fuji.',
  ],
  [
    'We found an inn by the Kamo river, 鴨川. Is that a good place to stay, or too far from everything?',
    'It is a good one: ten minutes on foot to the old streets of Gion, five to the bus for the temples in the north, and the river path is the best walk of the city in the morning.',
  ],
  ['Please look for one more inn there, in case it is full.', 'I look around the river.'],
]

const GEMINI_PLAY: NonNullable<StrictProviderOptions['script']> = [
  {
    toolCalls: [{ name: 'search_trains', args: { from: 'Tokyo', to: '京都', day: 'Friday' } }],
    usage: { input: 1412, output: 38 },
  },
  { text: TRAINS, usage: { input: 1690, output: 164 } },
]

const CLAUDE_PLAY: NonNullable<StrictProviderOptions['script']> = [
  {
    toolCalls: [{ name: 'find_places', args: { near: '京都駅', hours: 5 } }],
    usage: { input: 1720, output: 41 },
  },
  { text: WALK, usage: { input: 1893, output: 118 } },
  {
    text: 'Two seats on Nozomi 11, then. I need your word for that.',
    toolCalls: [{ name: 'book_seats', args: { train: 'Nozomi 11', seats: 2, price: '¥28,340' } }],
    usage: { input: 2104, output: 64 },
  },
]

const folder = process.argv[2] ?? fileURLToPath(new URL('../../docs/images', import.meta.url))
await takePictures()
process.exit(0)

async function takePictures(): Promise<void> {
  const runtime = await openRuntime()
  const webRoot = await builtWeb()
  const tokens = { 'token-of-ann': 'ann' }
  const server = await serve({
    runtime,
    port: 0,
    host: '127.0.0.1',
    webRoot,
    logger: silentLogger,
    version: '0.0.0',
    tokens,
  })
  await fillList(runtime)
  await talk(runtime)
  const browser = await launchBrowser()
  const light = await openChat(browser, server.url, { colorScheme: 'light', viewport: DESKTOP })
  await picture(light, 'chat-light')
  const dark = await openChat(browser, server.url, { colorScheme: 'dark', viewport: DESKTOP })
  await picture(dark, 'chat-dark')
  await say(light, 'Take Nozomi 11, for the two of us.')
  await light.getByRole('button', { name: 'Allow once' }).waitFor()
  const phone = await openChat(browser, server.url, {
    colorScheme: 'light',
    viewport: { width: 390, height: 780 },
    isMobile: true,
    hasTouch: true,
    deviceScaleFactor: 2,
  })
  await picture(phone, 'chat-phone')
  const wide = { width: 1440, height: 900 }
  const inspected = await openChat(browser, server.url, {
    colorScheme: 'light',
    viewport: wide,
    deviceScaleFactor: 1,
  })
  await inspected.getByRole('button', { name: 'Inspect what the model was sent' }).last().click()
  await inspected.locator('.inspect-compare-row').first().waitFor()
  await inspected.getByLabel(/^Only what differs/).check()
  await picture(inspected, 'inspector')
  await browser.close()
}

async function openRuntime(): Promise<Runtime> {
  const gemini = await startStrictProvider({ profile: 'gemini-3', script: GEMINI_PLAY })
  const anthropic = await startStrictProvider({ profile: 'anthropic-4.6', script: CLAUDE_PLAY })
  return createRuntime({
    store: 'memory:',
    providers: {
      gemini: { type: 'gemini', apiKey: 'a-key', baseUrl: gemini.baseUrl },
      anthropic: { type: 'anthropic', apiKey: 'a-key', baseUrl: anthropic.baseUrl },
    },
    agent: {
      name: 'guide',
      model: GEMINI,
      instruction: 'You plan journeys. Answer briefly, and book nothing without a word.',
      tools: [
        tool('search_trains', { trains: ['Nozomi 11', 'Nozomi 23', 'Hikari 637'], day: 'Friday' }),
        tool('find_places', { places: ['東寺', '錦市場', '京都駅ビル'], within: '2 km' }),
        tool('book_seats', { booked: true }, true),
      ],
    },
    history: { maxMessageTokenBudget: 520 },
  })
}

function tool(name: string, result: object, needsApproval = false) {
  const parameters = { type: 'object' as const, properties: {} }
  return defineTool({ name, description: `Does ${name}.`, parameters, needsApproval, execute: () => result })
}

/** What was said days ago: too much for the budget, and with a call whose answer got lost. */
async function talk(runtime: Runtime): Promise<void> {
  const { store } = runtime
  await store.createSession(KEY, {}, { title: 'Kyoto in November · 京都の秋' })
  for (const [question, answer] of EARLIER) {
    const timestamp = Date.now()
    await store.appendMessage(KEY, { role: 'user', author: 'user', content: question, timestamp })
    await store.appendMessage(KEY, { role: 'assistant', author: 'guide', content: answer, timestamp })
  }
  const call = { id: 'call 7/ryokan', name: 'find_places', input: '{"near":"the river"}' }
  const lost = { role: 'assistant' as const, author: 'guide', content: '', toolCalls: [call] }
  await store.appendMessage(KEY, { ...lost, timestamp: Date.now() })
  const { sessionId, userId } = KEY
  const first = 'Which Shinkansen gets us from 東京 to 京都 before noon on Friday?'
  await runtime.runAndCollect({ sessionId, userId, text: first, model: GEMINI })
  const second = 'And what is there to see around 京都駅 on the first day?'
  await runtime.runAndCollect({ sessionId, userId, text: second, model: CLAUDE })
}

/** Chats of some days, oldest first. */
async function fillList(runtime: Runtime): Promise<void> {
  const titles: [string, number][] = [
    ['Release notes for 2.4', 150],
    ['رحلة إلى القاهرة', 122],
    ['Why is the nightly build red?', 97],
    ['Letter to the landlord', 71],
    ['Invoices of October as a table', 52],
    ['Migrate the queue to PostgreSQL', 47],
    ['把会议记录整理成待办事项', 28],
    ['A name for the new service', 25],
    ['Fix the flaky login test', 6],
    ['Compare three summarisers', 3],
  ]
  const now = Date.now
  for (const [title, hours] of titles) {
    Date.now = () => now() - hours * HOUR_MS
    await runtime.store.createSession({ ...KEY, sessionId: title }, {}, { title })
  }
  Date.now = now
}

async function openChat(browser: Browser, url: string, options: BrowserContextOptions): Promise<Page> {
  const context = await browser.newContext({ deviceScaleFactor: 1.2, reducedMotion: 'reduce', ...options })
  await context.addInitScript("sessionStorage.setItem('lango-token', 'token-of-ann')")
  await context.addInitScript(`localStorage.setItem('lango-model:${KEY.sessionId}', '${CLAUDE}')`)
  const page = await context.newPage()
  await page.goto(`${url}/s/${KEY.sessionId}`)
  await page.locator('.thread').getByText('at dusk').waitFor()
  await page.locator('.mark-line[data-mark=repair]').last().waitFor()
  return page
}

async function say(page: Page, text: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Message', exact: true }).fill(text)
  await page.keyboard.press('Enter')
}

async function picture(page: Page, name: string): Promise<void> {
  await page.evaluate('document.activeElement?.blur()')
  await page.mouse.move(0, 0)
  // Colours of links and edges change gently; the picture waits for them.
  await page.evaluate('Promise.all(document.getAnimations().map(animation => animation.finished))')
  await page.screenshot({ path: `${folder}/${name}.png` })
}
