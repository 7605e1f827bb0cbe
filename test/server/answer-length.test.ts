// A model that never stops: the answer ends at the longest length, and its finish reason says so.
import { expect, onTestFinished, test } from 'vitest'
import type { Logger } from '../../src/logger.js'
import { silentLogger } from '../../src/logger.js'
import type { RunEvent } from '../../src/run/run-event.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { serve } from '../../src/server/serve.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { rawRequest } from '../support/raw-request.js'

test.each([
  ['in one piece', ['x'.repeat(5000)]],
  ['in many pieces', Array.from({ length: 500 }, () => '0123456789')],
])('an answer beyond maxAnswerLength %s ends there with the finish reason length', async (_, deltas) => {
  const warnings: [string, unknown][] = []
  const logger: Logger = { ...silentLogger, warn: (message, fields) => void warnings.push([message, fields]) }
  const runtime = await createRuntime({
    store: 'memory:',
    logger,
    providers: { play: new ScriptedProvider(() => ({ deltas }), { id: 'play' }) },
    agent: { model: 'play/model' },
    history: { maxAnswerLength: 1234 },
  })
  const options = { port: 0, host: '127.0.0.1', version: 'test', logger: silentLogger, graceMs: 0 }
  const server = await serve({ runtime, ...options })
  onTestFinished(async () => {
    await server.close()
    await runtime.close()
  })
  const reply = await rawRequest(server.url, '/v1/chat/completions', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ messages: [{ role: 'user', content: 'Go' }] }),
  })
  const [choice] = reply.json().choices
  expect(choice.message.content).toBe(deltas.join('').slice(0, 1234))
  expect(choice.finish_reason).toBe('length')
  const events: RunEvent[] = []
  for await (const event of runtime.run({ text: 'Go' })) events.push(event)
  expect(events.at(-1)).toMatchObject({ finishReason: 'length' })
  const receipts = events.flatMap(event => (event.type === 'repair' ? event.repairs : []))
  expect(receipts).toMatchObject([
    { step: 'limit-answer', kind: 'shorten', detail: expect.stringContaining('1234 characters') },
  ])
  const warning = ['An answer was ended at its longest length', { model: 'play/model', length: 1234 }]
  expect(warnings).toEqual([warning, warning])
})

test('an answer of exactly maxAnswerLength characters is complete', async () => {
  const provider = new ScriptedProvider([{ text: 'x'.repeat(1000) }], { id: 'play' })
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { play: provider },
    agent: { model: 'play/model' },
    history: { maxAnswerLength: 1000 },
  })
  onTestFinished(() => runtime.close())
  const { text, sessionId } = await runtime.runAndCollect({ text: 'Go' })
  expect(text).toHaveLength(1000)
  const key = { appName: 'lango', userId: 'user', sessionId }
  const [, answer] = await runtime.store.readMessages(key)
  expect(answer?.extra?.finishReason).toBe('STOP')
})
