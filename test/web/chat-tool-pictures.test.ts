/**
 * A picture that a tool returns, in its card: a real MCP server, the ledger, the store and the page.
 *
 * @module-tag long
 */
import { fileURLToPath } from 'node:url'
import type { Locator } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { checkAccessible, keepPicture, openCleanPage, say } from '../support/browser.js'
import { eventually } from '../support/eventually.js'
import { makeFolder, removeFolder } from '../support/temporary-folder.js'
import { startWebServer, type WebServer } from '../support/web-server.js'

const FIXTURE = fileURLToPath(new URL('../tools/mcp-fixture.mjs', import.meta.url))
const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }

let server: WebServer
let folder: string

beforeAll(async () => {
  folder = await makeFolder()
  server = await startWebServer({
    store: `sqlite:${folder}/chat.db`,
    runtime: {
      providers: {
        play: new ScriptedProvider(({ messages }) =>
          messages.at(-1)?.parts.some(part => part.type === 'tool-result')
            ? { text: 'I see a dot.' }
            : { toolCalls: [{ name: 'fix_picture', args: {} }] },
        ),
      },
      agent: { model: 'play/m' },
      mcpServers: { fix: { command: process.execPath, args: [FIXTURE] } },
    },
  })
})

afterAll(async () => {
  await server?.close()
  await removeFolder(folder)
})

/** Whether the browser has decoded a picture, and the width of it. */
function widthOf(picture: Locator): Promise<number> {
  return picture.evaluate(image =>
    (image as HTMLImageElement).complete ? (image as HTMLImageElement).naturalWidth : 0,
  )
}

test.each([
  ['light', { colorScheme: 'light' }],
  ['dark on a phone', { colorScheme: 'dark', ...PHONE }],
] as const)(
  'a picture that a tool returns is shown in its card, also after a reload, in %s',
  async (name, screen) => {
    const page = await openCleanPage({ url: server.url, ...screen })
    await say(page, 'Look.')
    await page.locator('.answer-footer').waitFor()
    const card = page.getByRole('article', { name: 'Tool fix_picture' })
    const picture = card.getByRole('img', { name: 'Attached picture' })
    for (const visit of ['chat', 'reload']) {
      if (visit === 'reload') {
        await page.reload()
        await page.locator('.answer-footer').waitFor()
      }
      if ((await card.getByRole('button').first().getAttribute('aria-expanded')) !== 'true')
        await card.getByRole('button').first().click()
      await picture.waitFor()
      await eventually(() => widthOf(picture)).toBe(1)
      // With its border, it is as large as it is.
      expect(await picture.boundingBox()).toMatchObject({ width: 3, height: 3 })
      expect(await picture.getAttribute('src')).toMatch(/^data:image\/png;base64,/)
      await checkAccessible(page)
    }
    await keepPicture(page, `tool-picture-${name.replaceAll(' ', '-')}`)
  },
)
