// The hook of examples/use-run.ts on a page in a real browser.
import type { Page } from 'playwright-core'
import { build } from 'vite'
import { expect, onTestFinished, test } from 'vitest'
import { heldTool, searchThenTell, startProtocolServer } from '../server/protocols/support.js'
import { launchBrowser } from '../support/browser.js'
import { temporaryFolder } from '../support/temporary-folder.js'

const SOURCES = new URL('../../src/entries/', import.meta.url).pathname

test('useRun of the examples: an answer while it is written, a reload, a stop, and a server that is gone', async () => {
  const webRoot = await temporaryFolder()
  await build({
    configFile: false,
    root: new URL('./react-hook-page', import.meta.url).pathname,
    logLevel: 'error',
    resolve: { alias: { 'lango/client': `${SOURCES}client.ts` }, dedupe: ['react', 'react-dom'] },
    build: { outDir: webRoot, emptyOutDir: true, minify: false },
  })
  const browser = await launchBrowser()
  onTestFinished(() => browser.close())
  const { tool, called, letGo } = heldTool()
  const script = searchThenTell
  const { url, server, runtime } = await startProtocolServer({ script, tools: [tool], serve: { webRoot } })
  const page = await browser.newPage()
  await page.goto(url)
  await page.getByText('Send').click()
  await called
  await shows(page, 'running', 'Let me look.')
  await page.reload()
  await shows(page, 'running', 'Let me look.')
  await page.getByText('Stop').click()
  await shows(page, 'idle', 'Let me look.')
  letGo()
  await page.getByText('Send').click()
  await shows(page, 'idle', 'I found apples.')
  const runs = await runtime.listRuns({ appName: 'lango', userId: 'user', sessionId: 's' })
  expect(runs.map(({ finishReason }) => finishReason)).toEqual(['stop', 'aborted'])
  await server.close()
  await page.getByText('Send').click()
  await shows(page, 'failed', '')
  expect(await page.locator('#error').textContent()).toContain('cannot be reached')
})

async function shows(page: Page, status: string, text: string): Promise<void> {
  await expect.poll(() => page.locator('#status').textContent()).toBe(status)
  await expect.poll(() => page.locator('#text').textContent()).toContain(text)
}
