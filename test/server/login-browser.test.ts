// The login link in a real browser: only the browser decides which headers a foreign link and a form send.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { sharedBrowser } from '../support/browser.js'
import { startServer } from '../support/start-server.js'

const TOKEN = 'token-of-mallory-0123456789'

/** A page of another site, with a link. */
async function foreignPage(link: string): Promise<string> {
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html')
    response.end(`<a href="${link}">Free holidays</a>`)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', () => resolve()))
  onTestFinished(() => void server.close())
  return `http://localhost:${(server.address() as AddressInfo).port}/`
}

async function openContext() {
  const context = await (await sharedBrowser()).newContext()
  onTestFinished(() => context.close())
  return { context, page: await context.newPage() }
}

test('a login link on a page of another site signs nobody in until the visitor agrees', async () => {
  const { url } = await startServer({ tokens: { [TOKEN]: 'mallory' } })
  const { context, page } = await openContext()
  await page.goto(await foreignPage(`${url}/login?token=${TOKEN}`))
  await page.getByText('Free holidays').click()
  await page.getByText('Sign in to Lango?').waitFor()
  expect(await context.cookies()).toEqual([])
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.waitForURL(`${url}/`)
  expect((await context.cookies()).map(({ name, httpOnly }) => [name, httpOnly])).toEqual([['lango', true]])
})

test('a login link that is pasted into the address bar signs in at once', async () => {
  const { url } = await startServer({ tokens: { [TOKEN]: 'mallory' } })
  const { context, page } = await openContext()
  await page.goto(`${url}/login?token=${TOKEN}`)
  expect(page.url()).toBe(`${url}/`)
  expect(await context.cookies()).toHaveLength(1)
})
