// The page shows where an answer comes from: while it is streamed, and after the page is loaded again.
import { BuiltInCodeExecutor, GOOGLE_SEARCH, LlmAgent } from '@google/adk'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { silentLogger } from '../../src/logger.js'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import { serve } from '../../src/server/serve.js'
import { type StrictProvider, startStrictProvider } from '../../src/testing/start-strict-provider.js'
import { builtWeb, keepPicture, openCleanPage } from '../support/browser.js'

const SOURCES = [
  { url: 'https://www.example.com/orbits', title: 'How planets keep their orbits', text: 'Mars' },
  {
    url: 'https://example.org/mars/a-rather-long-address',
    title: 'Mars: a year of 687 days on the red planet',
  },
  { url: 'gs://library/mars.pdf', title: 'Internal notes' },
]

let model: StrictProvider
let runtime: Runtime
let server: Awaited<ReturnType<typeof serve>>

beforeAll(async () => {
  const text = 'A year on **Mars** has 687 days, or 1.88 years of the Earth.'
  const code = { code: 'print(round(687 / 365.25, 2))', output: '1.88\n' }
  model = await startStrictProvider({ profile: 'gemini-2', script: [{ text, sources: SOURCES, code }] })
  const rootAgent = new LlmAgent({
    name: 'astronomer',
    model: 'gemini/gemini-2.5-flash',
    tools: [GOOGLE_SEARCH],
    codeExecutor: new BuiltInCodeExecutor(),
  })
  runtime = await createRuntime({
    store: 'memory:',
    rootAgent,
    logger: silentLogger,
    providers: { gemini: { apiKey: 'key', baseUrl: model.baseUrl } },
  })
  const webRoot = await builtWeb()
  const place = { port: 0, host: '127.0.0.1' }
  server = await serve({ runtime, ...place, webRoot, logger: silentLogger, version: '0.0.0' })
})

afterAll(async () => {
  await server?.close()
  await runtime?.close()
  await model?.close()
})

test('an answer with sources shows its code and numbered links, live and after a reload', async () => {
  const page = await openCleanPage({ url: server.url })
  await page.waitForSelector('.composer')
  await page.locator('.composer textarea').fill('How long is a year on Mars?')
  await page.keyboard.press('Enter')
  for (const load of ['live', 'again']) {
    if (load === 'again') await page.reload()
    const links = page.locator('.sources a')
    await links.nth(1).waitFor()
    expect(await links.evaluateAll(all => all.map(link => link.getAttribute('href')))).toEqual([
      'https://www.example.com/orbits',
      'https://example.org/mars/a-rather-long-address',
    ])
    expect(await links.first().getAttribute('rel')).toBe('noreferrer noopener')
    expect(await links.first().innerText()).toContain('How planets keep their orbits')
    // An address that a browser should not open is no link.
    expect(await page.locator('.sources span.source').innerText()).toContain('Internal notes')
    await page.getByText('print(round(687 / 365.25, 2))').waitFor()
    await keepPicture(page, `sources-${load}`)
  }
})
