import { createEvent, InMemorySessionService, LlmAgent, type LlmRequest } from '@google/adk'
import type { Content } from '@google/genai'
import { expect, test } from 'vitest'
import { type HistoryGuardReport, historyGuard } from '../../src/adk/history-guard.js'
import { ModelAdapter } from '../../src/adk/model/model-adapter.js'
import { AgentError } from '../../src/errors.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { KEY, runTurn } from '../support/adk-run.js'
import { RecordingModel } from '../support/recording-model.js'

const user = (text: string): Content => ({ role: 'user', parts: [{ text }] })
const said = (text: string): Content => ({ role: 'model', parts: [{ text }] })
const asked = (id: string): Content => ({
  role: 'model',
  parts: [{ functionCall: { id, name: 't', args: {} } }],
})
const answered = (id: string, role = 'user'): Content => ({
  role,
  parts: [{ functionResponse: { id, name: 't', response: { v: 1 } } }],
})

async function guarded(contents: Content[], options: Parameters<typeof historyGuard>[0] = {}) {
  const reports: HistoryGuardReport[] = []
  const llmRequest: LlmRequest = { model: 'gemini-2.5-flash', contents, toolsDict: {}, liveConnectConfig: {} }
  const guard = historyGuard({ onGuard: report => reports.push(report), ...options })
  await guard.beforeModelCallback({ llmRequest, callbackContext: undefined as never })
  return { contents: llmRequest.contents, reports }
}

test('the history guard leaves a request alone that is in order', async () => {
  const contents = [user('q'), asked('a'), answered('a'), said('done'), user('next')]
  const result = await guarded(contents)
  expect(result.contents).toBe(contents)
  expect(result.reports).toEqual([])
})

test('the history guard adds a result for every call', async () => {
  const { contents, reports } = await guarded([user('q'), asked('a'), user('next')])
  const results = contents.flatMap(content => content.parts ?? []).filter(part => part.functionResponse)
  expect(results).toHaveLength(1)
  expect(results[0]?.functionResponse?.name).toBe('t')
  expect(reports[0]?.repairs.length).toBeGreaterThan(0)
})

test('the history guard drops a result without its call', async () => {
  const { contents } = await guarded([user('q'), answered('ghost'), said('ok'), user('next')])
  expect(contents.flatMap(content => content.parts ?? []).some(part => part.functionResponse)).toBe(false)
  expect(JSON.stringify(contents)).toContain('q')
})

test('a guarded request begins with the user and never has the role function', async () => {
  const { contents } = await guarded([
    said('welcome'),
    user('q'),
    asked('a'),
    answered('a', 'function'),
    user('next'),
  ])
  expect(contents[0]?.role).toBe('user')
  expect(contents.every(content => content.role === 'user' || content.role === 'model')).toBe(true)
})

test('a guarded request fits its budget', async () => {
  const long = Array.from({ length: 40 }, (_, index) => [
    user(`q${index} ${'word '.repeat(100)}`),
    said(`a${index}`),
  ]).flat()
  const { contents, reports } = await guarded([...long, user('next')], { budgetTokens: 1000 })
  expect(JSON.stringify(contents).length).toBeLessThan(6000)
  expect(contents.at(-1)).toEqual(user('next'))
  expect(reports[0]?.cut?.messages).toBeGreaterThan(50)
})

test('the history guard in strict mode refuses a request that is not in order', async () => {
  const refused = guarded([user('q'), asked('a'), user('next')], { mode: 'strict' })
  await expect(refused).rejects.toBeInstanceOf(AgentError)
})

test('the history guard leaves requests to a model of Lango alone', async () => {
  const reports: HistoryGuardReport[] = []
  const provider = new ScriptedProvider([{ text: 'ok' }])
  const agent = new LlmAgent({ name: 'agent', model: new ModelAdapter({ provider, model: 'm' }) })
  const sessions = new InMemorySessionService()
  const session = await sessions.createSession({ ...KEY })
  await sessions.appendEvent({ session, event: createEvent({ author: 'agent', content: asked('a') }) })
  await runTurn({
    agent,
    sessions,
    message: 'hi',
    plugins: [historyGuard({ onGuard: report => reports.push(report) })],
  })
  expect(reports).toEqual([])
  expect(provider.requests[0]?.messages.find(sent => sent.role === 'assistant')?.parts[0]).toMatchObject({
    type: 'tool-call',
    id: 'a',
  })
})

test('the history guard as a plugin of a bare runner repairs what reaches the model', async () => {
  const model = new RecordingModel(
    (_, index) => (index === 0 ? [{ functionCall: { id: 'a', name: 'gone', args: {} } }] : [{ text: 'ok' }]),
    'gemini-2.5-flash',
  )
  const sessions = new InMemorySessionService()
  const agent = new LlmAgent({ name: 'agent', model })
  await runTurn({ agent, sessions, message: 'hi', plugins: [historyGuard()] })
  const parts = model.last.flatMap(content => content.parts ?? [])
  expect(parts.filter(part => part.functionCall)).toHaveLength(
    parts.filter(part => part.functionResponse).length,
  )
  expect(model.requests[1]).toContain('functionResponse')
})
