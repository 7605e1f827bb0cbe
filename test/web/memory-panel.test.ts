// The page's memory panel, and the questions of ADK's tools: one is answered with a result, the other once only.
import { FunctionTool, LlmAgent, LongRunningFunctionTool } from '@google/adk'
import type { Page } from 'playwright-core'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import type { RuntimeOptions } from '../../src/runtime/options.js'
import { ScriptedProvider, type ScriptStep } from '../../src/testing/scripted-provider.js'
import { checkAccessible, openCleanPage } from '../support/browser.js'
import { eventually } from '../support/eventually.js'
import { LONG } from '../support/tiers.js'
import { startWebServer } from '../support/web-server.js'

const KEY = { appName: 'lango', userId: 'user', sessionId: 's1' }

async function open(runtime: Pick<RuntimeOptions, 'rootAgent' | 'agent' | 'providers' | 'history'>) {
  const server = await startWebServer({ store: 'memory:', runtime })
  onTestFinished(() => server.close())
  const { store } = server.runtime
  await store.createSession(KEY)
  return { ...server, store }
}

function openChat(url: string): Promise<Page> {
  return openCleanPage({ url: `${url}/s/s1` })
}

test('the memory panel shows notes with their sources, edits them and forgets them', async () => {
  const { url, store } = await open({ agent: { model: 'demo/demo' }, history: { memory: {} } })
  for (const content of ['We go to Porto.', 'Noted.', 'I like trains.'])
    await store.appendMessage(KEY, { role: 'user', content, timestamp: Date.UTC(2026, 2, 3) })
  const note = { kind: 'fact' as const, priority: 1 as const, time: Date.UTC(2026, 2, 3), origin: 'digest' }
  await store.memory.observe(KEY, {
    observed: { afterSeq: 0, throughSeq: 3 },
    observations: [
      { ...note, text: 'The trip goes to Porto.', fromSeq: 1, toSeq: 2 },
      { ...note, kind: 'preference', text: 'They like trains.', fromSeq: 3, toSeq: 3 },
    ],
  })
  const page = await openChat(url)
  await page.getByText('I like trains.').first().waitFor()
  // From the settings, as from the header of the chat.
  await page.keyboard.press('Control+,')
  const settings = page.getByRole('dialog', { name: 'Settings' })
  await settings.waitFor()
  await checkAccessible(page)
  await settings.getByRole('button', { name: 'What is noted about this chat' }).click()
  await settings.waitFor({ state: 'detached' })
  const notes = page.getByRole('list', { name: 'Notes' })
  await notes.getByText('The trip goes to Porto.').waitFor()
  await notes.getByRole('button', { name: 'messages 1–2' }).waitFor()
  await checkAccessible(page)
  await notes.getByRole('button', { name: 'Edit note 1' }).click()
  await page.getByLabel('The note in your words').fill('The trip goes to Lisbon.')
  await checkAccessible(page)
  await page.getByRole('button', { name: 'Save' }).click()
  await notes.getByText('The trip goes to Lisbon.').waitFor()
  await notes.getByText('written by a person').waitFor()
  await notes.getByRole('button', { name: 'Forget note 2' }).click()
  await notes.getByText('They like trains.').waitFor({ state: 'detached' })
  const kept = await store.memory.readObservations(KEY, { current: true })
  expect(kept).toMatchObject([{ text: 'The trip goes to Lisbon.', fromSeq: 1, toSeq: 2, origin: 'person' }])
  await notes.getByRole('button', { name: 'messages 1–2' }).click()
  await page.locator('.thread').getByText('We go to Porto.').waitFor()
})

test('the inspector lists the notes of a request with the messages that each stands for', LONG, async () => {
  const play = new ScriptedProvider(() => ({ text: 'Fine.' }), { id: 'play' })
  const { url, store, runtime } = await open({
    agent: { model: 'play/m' },
    providers: { play },
    history: { memory: {}, maxMessageTokenBudget: 2000 },
  })
  for (let index = 0; index < 30; index++)
    await store.appendMessage(KEY, {
      role: index % 2 ? 'assistant' : 'user',
      content: `Sentence ${index} ${'of many words '.repeat(40)}`,
      timestamp: Date.UTC(2026, 2, 3),
    })
  const note = { kind: 'fact' as const, priority: 1 as const, time: Date.UTC(2026, 2, 3), origin: 'digest' }
  await store.memory.observe(KEY, {
    observed: { afterSeq: 0, throughSeq: 20 },
    observations: [
      { ...note, text: 'The trip, "by train": <Porto>.', fromSeq: 1, toSeq: 2 },
      { ...note, text: 'They like trains.', fromSeq: 3, toSeq: 3 },
    ],
  })
  await runtime.runAndCollect({ sessionId: 's1', text: 'Where to?' })
  const page = await openChat(url)
  await page
    .getByRole('button', { name: /Inspect/ })
    .last()
    .click()
  await page.getByRole('tab', { name: /Instruction and tools/ }).click()
  const notes = page.getByRole('list', { name: 'Notes of memory' })
  await notes.getByText('The trip, "by train": <Porto>.').waitFor()
  await page.getByText(/They stand for messages 1 to \d+/).waitFor()
  await checkAccessible(page)
  await notes.getByRole('button', { name: 'message 3', exact: true }).click()
  await page
    .getByText(/Sentence 2 of many words/)
    .first()
    .waitFor()
})

function office(): { rootAgent: LlmAgent; providers: { play: ScriptedProvider } } {
  const order = new LongRunningFunctionTool({
    name: 'order',
    description: 'order',
    parameters: z.object({}),
    execute: async () => null,
  })
  const pay = new FunctionTool({
    name: 'pay',
    description: 'pay',
    parameters: z.object({}),
    requireConfirmation: true,
    execute: () => ({ paid: true }),
  })
  const play = new ScriptedProvider(
    ({ messages }): ScriptStep => {
      const asked = JSON.stringify(messages.findLast(({ role }) => role === 'user'))
      const name = asked.includes('order') ? 'order' : 'pay'
      const isCalled = messages.some(({ parts }) => parts.some(({ type }) => type === 'tool-call'))
      return isCalled ? { text: 'It is done.' } : { toolCalls: [{ id: 'c1', name, args: {} }] }
    },
    { id: 'play' },
  )
  return {
    rootAgent: new LlmAgent({ name: 'root', model: 'play/m', tools: [order, pay] }),
    providers: { play },
  }
}

test('the result of a long-running tool is entered in the page, and the run continues', async () => {
  const { url, store, runtime } = await open(office())
  const { runId } = await runtime.start({ ...KEY, text: 'order it' })
  await eventually(async () => (await store.runs.findRun(runId))?.state).toBe('waiting')
  const page = await openChat(url)
  await page.getByLabel('Result of order').fill('{"delivered": true}')
  await checkAccessible(page)
  await page.getByRole('button', { name: 'Send the result' }).click()
  await page.locator('.thread').getByText('It is done.').waitFor()
  const stored = JSON.stringify(await store.readMessages(KEY))
  expect(stored).toContain('{\\"delivered\\":true}')
})

test("a confirmation of ADK's can be given once, and not for the whole chat", LONG, async () => {
  const { url, store, runtime } = await open(office())
  const { runId } = await runtime.start({ ...KEY, text: 'pay it' })
  await eventually(async () => (await store.runs.findRun(runId))?.state).toBe('waiting')
  const page = await openChat(url)
  const card = page.getByRole('article', { name: 'Tool pay' })
  await card.getByRole('button', { name: 'Allow once' }).waitFor()
  expect(await card.getByRole('button', { name: 'Always in this chat' }).count()).toBe(0)
  await card.getByRole('button', { name: 'Allow once' }).click()
  await page.locator('.thread').getByText('It is done.').waitFor()
})
