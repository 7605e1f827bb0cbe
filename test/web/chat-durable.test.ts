import type { Page } from 'playwright-core'
import { expect, onTestFinished, test } from 'vitest'
import { builtWeb, checkAccessible, openPage, say } from '../support/browser.js'
import { type Child, runScript } from '../support/child.js'
import { eventually } from '../support/eventually.js'
import { gate, startPacedModel } from '../support/paced-model.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { LONG } from '../support/tiers.js'
import { startWebServer } from '../support/web-server.js'

/** A server in a process of its own, which can be killed and started again at the same address. */
async function startChild(options: object): Promise<{ child: Child; url: string }> {
  const child = runScript('serve-web.ts', [JSON.stringify({ webRoot: await builtWeb(), ...options })])
  await child.untilLines(1)
  const url = child.lines[0]
  if (url === undefined) throw new TypeError(`The server did not start: ${child.errors()}`)
  return { child, url }
}

test('a server that is killed in mid-answer and comes back continues the run, and the page shows one answer', async () => {
  const folder = await temporaryFolder()
  const held = gate()
  const model = await startPacedModel(async function* () {
    if (model.requests.length > 1) return yield 'The whole answer.'
    yield 'Words before the end '
    await held.passed
  })
  onTestFinished(async () => {
    held.open()
    await model.close()
  })
  const settings = { store: `sqlite:${folder}/chat.db`, modelUrl: model.baseUrl }
  const first = await startChild(settings)
  const { page } = await openPage({ url: first.url })
  const count = (text: string) => page.locator('.thread').getByText(text).count()
  await page.getByRole('textbox', { name: 'Message' }).fill('Be careful')
  await page.keyboard.press('Enter')
  await page.locator('.thread').getByText('Words before the end').waitFor()
  first.child.process.kill('SIGKILL')
  await first.child.ended
  await page.getByText('does not answer').waitFor()
  expect(await count('Words before the end')).toBe(1)

  const second = await startChild({ ...settings, port: Number(new URL(first.url).port) })
  onTestFinished(async () => {
    second.child.process.kill('SIGKILL')
    await second.child.ended
  })
  await page.locator('.thread').getByText('The whole answer.').waitFor()
  await eventually(() => page.getByText('does not answer').count()).toBe(0)
  expect(await count('The run was resumed')).toBe(1)
  await page.reload()
  await page.locator('.thread').getByText('The whole answer.').waitFor()
  expect(await count('Be careful')).toBe(1)
  expect(await count('Words before the end')).toBe(0)
  expect(await count('The answer was interrupted')).toBe(0)
})

test(
  'a server that is lost while nothing runs is reported, and the page recovers when it is back',
  LONG,
  async () => {
    const store = `sqlite:${await temporaryFolder()}/chat.db`
    const first = await startWebServer({ store })
    const { page, problems } = await openPage({ url: first.url })
    const thread = page.locator('.thread')
    const lost = page.getByText('The server does not answer; trying again')
    await say(page, 'First words')
    await page.locator('.answer-footer').waitFor()
    await first.close()
    await lost.waitFor()
    // A message that cannot be sent stays in its field.
    await say(page, 'Second words')
    const field = page.getByRole('textbox', { name: 'Message' })
    await eventually(() => field.inputValue()).toBe('Second words')
    expect(await page.getByRole('alert').count()).toBe(0)
    await checkAccessible(page)
    const address = page.url()
    const second = await startWebServer({ store, port: first.port })
    onTestFinished(() => second.close())
    await eventually(() => lost.count()).toBe(0)
    await field.press('Enter')
    await eventually(() => page.locator('.answer-footer').count()).toBe(2)
    expect(await thread.getByText('Second words', { exact: true }).count()).toBe(1)
    expect(page.url()).toBe(address)
    expect(problems).toEqual([])
  },
)

test('a chat that is opened while the server is lost opens when the server is back', LONG, async () => {
  const store = `sqlite:${await temporaryFolder()}/chat.db`
  const first = await startWebServer({ store })
  const key = { appName: 'lango', userId: 'user', sessionId: 'kept' }
  await first.runtime.store.createSession(key, {}, { title: 'Kept' })
  await first.runtime.store.appendMessage(key, { role: 'user', content: 'Stored words', timestamp: 1 })
  const { page } = await openPage({ url: first.url })
  await page.getByRole('link', { name: /Kept/ }).waitFor()
  await first.close()
  await page.getByRole('link', { name: /Kept/ }).click()
  await page.getByRole('heading', { name: 'The server does not answer; trying again' }).waitFor()
  const second = await startWebServer({ store, port: first.port })
  onTestFinished(() => second.close())
  await page.locator('.thread').getByText('Stored words').waitFor()
})

const TOTAL = 10_000
const KEY = { appName: 'lango', userId: 'user', sessionId: 'long' }

test(
  'a session of 10,000 messages opens at its end and scrolls to its beginning with a hundred rows at most',
  LONG,
  async () => {
    const server = await startWebServer({ store: 'memory:' })
    onTestFinished(() => server.close())
    const { store } = server.runtime
    await store.createSession(KEY)
    for (let index = 0; index < TOTAL; index += 1) {
      const role = index % 2 === 0 ? ('user' as const) : ('assistant' as const)
      const content = `Message ${index + 1}. ${'Some words to fill the line. '.repeat(1 + (index % 7))}`
      await store.appendMessage(KEY, { role, author: role, content, timestamp: index })
    }
    const { page, problems } = await openPage({ url: server.url })
    await page.waitForSelector('.composer')
    const opened = await openLong(page)
    await page.locator('.thread').getByText(`Message ${TOTAL}.`).waitFor()
    const scrolled = await scrollToTop(page)
    expect(scrolled.first).toContain('Message 1.')
    expect(scrolled.rows).toBeLessThan(100)
    await page.getByRole('button', { name: 'To the newest' }).click()
    await page.locator('.thread').getByText(`Message ${TOTAL}.`).waitFor()
    expect(problems).toEqual([])
    const longest = Math.max(opened.longestFrameMs, scrolled.longestFrameMs)
    console.log(
      `10,000 messages: open ${Math.round(opened.openedMs)} ms, longest frame ${Math.round(longest)} ms`,
    )
  },
)

/** From the click in the list to the newest message on the screen, by the page's own clock. */
function openLong(page: Page): Promise<{ openedMs: number; longestFrameMs: number }> {
  return page.evaluate(`(async () => {
    const from = performance.now()
    let longestFrameMs = 0
    let before = from
    document.querySelector('a[href="/s/long"]').click()
    for (let frame = 0; frame < 600; frame += 1) {
      await new Promise(requestAnimationFrame)
      const now = performance.now()
      longestFrameMs = Math.max(longestFrameMs, now - before)
      before = now
      if (document.querySelector('.thread')?.textContent.includes('Message ${TOTAL}.')) break
    }
    return { openedMs: before - from, longestFrameMs }
  })()`)
}

/**
 * Goes up as fast as older messages come, then through the middle screen by screen, and measures the longest
 * time between two frames.
 */
function scrollToTop(page: Page): Promise<{ longestFrameMs: number; first: string; rows: number }> {
  return page.evaluate(`(async () => {
    const thread = document.querySelector('.thread')
    let longestFrameMs = 0
    let rows = 0
    let before = performance.now()
    const frame = async () => {
      await new Promise(requestAnimationFrame)
      const now = performance.now()
      longestFrameMs = Math.max(longestFrameMs, now - before)
      before = now
      rows = Math.max(rows, document.querySelectorAll('.thread-row').length)
    }
    const isFirst = () => document.querySelector('.thread-row')?.textContent.includes('Message 1.')
    for (let count = 0; count < 20000 && !(thread.scrollTop === 0 && isFirst()); count += 1) {
      await frame()
      thread.scrollTop = 0
    }
    const first = document.querySelector('.thread-row').textContent
    thread.scrollTop = thread.scrollHeight / 2
    for (let count = 0; count < 60; count += 1) {
      await frame()
      thread.scrollTop += thread.clientHeight
    }
    return { longestFrameMs, rows, first }
  })()`)
}
