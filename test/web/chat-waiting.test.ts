// A run without a process: the page shows what it waits for after a reload, and what another attempt wrote.
import { join } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'
import type { RunEventBody } from '../../src/run/run-event.js'
import { emptyUsage } from '../../src/session/usage.js'
import { openCleanPage } from '../support/browser.js'
import { eventually } from '../support/eventually.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { LONG } from '../support/tiers.js'
import { continueRun, storeWaitingRun, type WaitingRunOptions } from '../support/waiting-run.js'
import { startWebServer } from '../support/web-server.js'

async function openRun(options: WaitingRunOptions) {
  const store = `sqlite:${join(await temporaryFolder(), 'lango.db')}`
  const runId = await storeWaitingRun(store, options)
  const server = await startWebServer({ store })
  onTestFinished(() => server.close())
  const page = await openCleanPage({ url: `${server.url}/s/s1` })
  return { store, runId, server, page }
}

test('a waiting approval is shown after a reload, and its answer is stored for the process that continues', async () => {
  const { page, runId, server } = await openRun({})
  const card = page.getByRole('article', { name: 'Tool send_letter' })
  await card.getByRole('button', { name: 'Allow once' }).waitFor()
  await page.reload()
  await card.getByRole('button', { name: 'Allow once' }).waitFor()
  await page.getByRole('img', { name: 'An answer waits for you' }).waitFor()
  await card.getByRole('button', { name: 'Allow once' }).click()
  await eventually(() => server.runtime.store.runs.signalled([runId])).toEqual([runId])
})

test('an answer that another attempt writes again is shown once, with a note', LONG, async () => {
  const say = (text: string): RunEventBody => ({ type: 'text-delta', author: 'root', text })
  const usage = emptyUsage()
  const used: RunEventBody = { type: 'usage', author: 'root', model: 'play/model', usage }
  const { page, runId, store } = await openRun({ state: 'running', events: [say('The letter is ha')] })
  const thread = page.locator('.thread')
  await thread.getByText('The letter is ha').waitFor()
  await continueRun(store, runId, [
    { type: 'run-resumed', attempt: 2, replayedSteps: 0 },
    { type: 'step-restart', step: 1 },
    say('The letter is written.'),
    used,
  ])
  await thread.getByText('The letter is written.').waitFor()
  await thread.getByText('The run was resumed (attempt 2)').waitFor()
  expect(await thread.getByText('The letter is ha', { exact: true }).count()).toBe(0)
})

test('a question with a schema is a form that is validated, and its answer is stored', async () => {
  const schema = {
    type: 'object',
    properties: {
      name: { type: 'string', title: 'Your name', description: 'In full.' },
      color: { type: 'string', enum: ['red', 'green'] },
      agreed: { type: 'boolean' },
    },
    required: ['name'],
  }
  const args = { server: 'svc', message: 'Who are you?', schema }
  const reason = 'MCP server "svc" asks: Who are you?'
  const { page, runId, server } = await openRun({
    events: [
      { type: 'tool-call', author: 'root', id: 'call-1', name: 'svc_ask', args: {} },
      { type: 'approval-request', id: 'call-1/question-1', callId: 'call-1', name: 'svc_ask', args, reason },
    ],
  })
  const card = page.getByRole('article', { name: 'Tool svc_ask' })
  await card.getByText('Who are you?').waitFor()
  await card.getByRole('button', { name: 'Send' }).click()
  await card.getByRole('alert').getByText('Your name is needed.').waitFor()
  await card.getByLabel('Your name').fill('Ada')
  await card.getByLabel('color').selectOption('green')
  await card.getByLabel('agreed').check()
  await card.getByRole('button', { name: 'Send' }).click()
  const { runs } = server.runtime.store
  await eventually(async () => (await runs.readSignals(runId)).map(({ signal }) => signal)).toEqual([
    {
      type: 'response',
      callId: 'call-1/question-1',
      response: { action: 'accept', content: { name: 'Ada', color: 'green', agreed: true } },
    },
  ])
})
