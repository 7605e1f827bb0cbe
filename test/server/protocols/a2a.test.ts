// A2A over plain HTTP, and ADK's own remote agent. The SDK's clients are in test/clients/a2a.test.ts.
import { join } from 'node:path'
import { InMemoryRunner } from '@google/adk'
import { RemoteA2AAgent } from '@google/adk/a2a'
import { expect, test } from 'vitest'
import type { RequestSummary, ScriptStep } from '../../../src/testing/strict/script.js'
import { defineTool, type Tool } from '../../../src/tool.js'
import { makeFolder, removeFolder, temporaryFolder } from '../../support/temporary-folder.js'
import { heldTool, searchThenTell, sessionIds, startProtocolServer } from './support.js'

const dangerScript = ({ messages, lastUserText }: RequestSummary): ScriptStep =>
  messages.at(-1)?.role === 'tool'
    ? { text: JSON.stringify(messages.at(-1)).includes('done') ? 'Done with it.' : 'As you wish.' }
    : lastUserText.includes('danger')
      ? { text: 'May I?', toolCalls: [{ name: 'danger' }] }
      : { text: `Said: ${lastUserText}.` }

/** Calls the tool twice, one call after the other. */
const twoDangers = ({ messages }: RequestSummary): ScriptStep =>
  messages.filter(({ role }) => role === 'tool').length < 2
    ? { text: 'May I?', toolCalls: [{ name: 'danger' }] }
    : { text: 'Done twice.' }

const danger = (executed: string[]): Tool =>
  defineTool({
    name: 'danger',
    description: 'Needs approval.',
    parameters: { type: 'object', properties: {} },
    needsApproval: true,
    execute: () => {
      executed.push('danger')
      return { done: true }
    },
  })

interface RpcAnswer {
  id: unknown
  result?: { task?: WireTask }
  error?: { code: number; message: string }
}

interface WireTask {
  id: string
  contextId: string
  status: { state: string; message?: { parts: { data?: { questions?: { id: string }[] } }[] } }
}

const questionsOf = ({ status }: WireTask) =>
  (status.message?.parts ?? []).flatMap(({ data }) => data?.questions ?? [])

const ANN = 'a-long-enough-token-of-ann'
const BOB = 'a-long-enough-token-of-bob'

async function post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: text,
  })
}

const user = (text: string, more: object = {}) => ({
  ...{ messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text }], ...more },
})
const rpc = (method: string, params: unknown) => ({ jsonrpc: '2.0', id: 7, method, params })
const sending = (message: unknown, more: object = {}) => rpc('SendMessage', { message, ...more })

async function taskOf(response: Response): Promise<WireTask> {
  expect(response.status).toBe(200)
  const { result } = (await response.json()) as RpcAnswer
  if (!result?.task) throw new TypeError('no task')
  return result.task
}

test('the agent card of A2A names both versions, and may be read without a token', async () => {
  const { url } = await startProtocolServer({ serve: { tokens: { [ANN]: 'ann' } } })
  const response = await fetch(`${url}/.well-known/agent-card.json`)
  expect(response.status).toBe(200)
  expect(await response.json()).toMatchObject({
    name: 'root',
    supportedInterfaces: [
      { url: `${url}/a2a`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
      { url: `${url}/a2a`, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
      { url: `${url}/a2a`, protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
    ],
    ...{ protocolVersion: '0.3.0', url: `${url}/a2a`, preferredTransport: 'JSONRPC' },
    security: [{ bearer: [] }],
  })
})

test.each([
  ['no JSON', '{', -32700],
  ['no request', {}, -32600],
  ['a batch', [rpc('GetTask', { id: 'x' })], -32600],
  ['an unknown method', rpc('Nothing', {}), -32601],
  ['the name of an inherited method', rpc('constructor', {}), -32601],
  ['no message', rpc('SendMessage', {}), -32602],
  ['a message of the agent', sending({ ...user('x'), role: 'ROLE_AGENT' }), -32602],
  ['no parts', sending({ ...user('x'), parts: [] }), -32602],
  ['an empty part', sending({ ...user('x'), parts: [{}] }), -32602],
  ['a file of this machine', sending({ ...user('x'), parts: [{ url: 'file:///etc/passwd' }] }), -32602],
  ['a context id that is too long', sending(user('x', { contextId: 'x'.repeat(300) })), -32602],
  ['a task that does not exist', sending(user('x', { taskId: crypto.randomUUID() })), -32001],
  ['an invalid task id', rpc('GetTask', { id: '../x' }), -32001],
  ['push notifications', rpc('CreateTaskPushNotificationConfig', {}), -32003],
  [
    'push notifications with a message',
    sending(user('x'), { configuration: { taskPushNotificationConfig: {} } }),
    -32003,
  ],
  ['a tenant', sending(user('x'), { tenant: 'other' }), -32004],
  ['ListTasks without a context', rpc('ListTasks', {}), -32004],
])('an A2A request with %s is refused with an error of JSON-RPC', async (_name, body, code) => {
  const { url } = await startProtocolServer({ script: searchThenTell })
  const response = await post(`${url}/a2a`, body)
  expect(response.status).toBeGreaterThanOrEqual(400)
  expect(response.status).toBeLessThan(500)
  expect(await response.json()).toMatchObject({
    jsonrpc: '2.0',
    error: { code, message: expect.any(String) },
  })
})

test('A2A over REST has the errors of Google’s APIs, and an unsupported version is refused', async () => {
  const { url } = await startProtocolServer({ script: searchThenTell })
  const unknown = await fetch(`${url}/a2a/tasks/${crypto.randomUUID()}`)
  expect(unknown.status).toBe(404)
  const info = { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'TASK_NOT_FOUND' }
  expect(await unknown.json()).toMatchObject({ error: { code: 404, status: 'NOT_FOUND', details: [info] } })
  const empty = await post(`${url}/a2a/message:send`, {})
  expect(empty.status).toBe(400)
  expect(await empty.json()).toMatchObject({ error: { code: 400, status: 'INVALID_ARGUMENT' } })
  const version = await post(`${url}/a2a`, sending(user('x')), { 'a2a-version': '2.0' })
  expect(await version.json()).toMatchObject({ id: 7, error: { code: -32009 } })
})

test('A2A refuses a missing token with an error of JSON-RPC, and reports tasks of other users as not found', async () => {
  const { url } = await startProtocolServer({ serve: { tokens: { [ANN]: 'ann', [BOB]: 'bob' } } })
  const refused = await post(`${url}/a2a`, sending(user('x')))
  expect(refused.status).toBe(401)
  expect(await refused.json()).toMatchObject({ jsonrpc: '2.0', id: 7, error: { code: -32000 } })
  const ann = { authorization: `Bearer ${ANN}` }
  const bob = { authorization: `Bearer ${BOB}` }
  const message = user('danger')
  const { id } = await taskOf(await post(`${url}/a2a`, sending(message), ann))
  for (const method of ['GetTask', 'CancelTask', 'SubscribeToTask']) {
    const response = await post(`${url}/a2a`, rpc(method, { id }), bob)
    expect(await response.json()).toMatchObject({ error: { code: -32001 } })
  }
  // The same message id of another user is another message.
  expect((await taskOf(await post(`${url}/a2a`, sending(message), bob))).id).not.toBe(id)
})

test('an approval over A2A is answered in another process than the one that asked', async () => {
  const folder = await makeFolder()
  const store = `sqlite:${folder}/a.db`
  const first = await startProtocolServer({ script: dangerScript, store })
  const { id: taskId, status } = await taskOf(await post(`${first.url}/a2a`, sending(user('danger'))))
  expect(status.state).toBe('TASK_STATE_INPUT_REQUIRED')
  await first.server.close()
  await first.runtime.close()
  const second = await startProtocolServer({ script: dangerScript, store })
  const done = await taskOf(await post(`${second.url}/a2a`, sending(user('yes', { taskId }))))
  expect(done).toMatchObject({ id: taskId, status: { state: 'TASK_STATE_COMPLETED' } })
  const listed = await fetch(`${second.url}/a2a/tasks?contextId=${done.contextId}`)
  expect(await listed.json()).toMatchObject({ tasks: [{ id: taskId }], totalSize: 1 })
  await second.server.close()
  await second.runtime.close()
  await removeFolder(folder)
})

test('an approval that is sent again over A2A has the same outcome, by its id and by its question, in any process', async () => {
  const executed: string[] = []
  const store = `sqlite:${join(await temporaryFolder(), 'lango.db')}`
  const options = { store, script: twoDangers, tools: [danger(executed)] }
  const [one, other] = [await startProtocolServer(options), await startProtocolServer(options)]
  const { id: taskId, contextId } = await taskOf(await post(`${one.url}/a2a`, sending(user('danger'))))
  const yes = user('yes', { taskId, contextId })
  const first = await taskOf(await post(`${one.url}/a2a`, sending(yes)))
  expect([first.status.state, executed]).toEqual(['TASK_STATE_INPUT_REQUIRED', ['danger']])
  // The same message does not answer the second question.
  const { status: same } = await taskOf(await post(`${one.url}/a2a`, sending(yes)))
  expect(same).toEqual({ ...first.status, timestamp: expect.any(String) })
  expect(executed).toHaveLength(1)
  const [question] = questionsOf(first)
  const named = { parts: [{ data: { answers: { [question?.id ?? '']: { approved: true } } } }] }
  const last = await taskOf(
    await post(`${other.url}/a2a`, sending(user('', { taskId, contextId, ...named }))),
  )
  expect([last.status.state, executed]).toEqual(['TASK_STATE_COMPLETED', ['danger', 'danger']])
  // Repeated: with its id; with another id in another process; without the task; in words; and streamed.
  for (const [{ url }, message] of [
    [other, user('', { taskId, contextId, ...named })],
    [one, user('', { taskId, contextId, ...named })],
    [one, user('', { contextId, ...named })],
    [other, user('yes', { taskId, contextId })],
    [one, yes],
  ] as const) {
    const { status, id } = await taskOf(await post(`${url}/a2a`, sending(message)))
    expect([id, status.state]).toEqual([taskId, 'TASK_STATE_COMPLETED'])
  }
  const streamed = await post(`${other.url}/a2a`, rpc('SendStreamingMessage', { message: yes }))
  expect(await streamed.text()).toContain('TASK_STATE_COMPLETED')
  expect(executed).toHaveLength(2)
  const refusal = await post(`${one.url}/a2a`, sending(user('no', { taskId, contextId })))
  expect(await refusal.json()).toMatchObject({ error: { code: -32004 } })
  const key = { appName: 'lango', userId: 'user', sessionId: contextId }
  expect(await one.runtime.listRuns(key, { limit: 10 })).toHaveLength(1)
})

test('an A2A message with returnImmediately returns before the answer', async () => {
  const { url } = await startProtocolServer({ script: searchThenTell })
  const configuration = { returnImmediately: true }
  const { id } = await taskOf(await post(`${url}/a2a`, sending(user('apples'), { configuration })))
  await expect
    .poll(async () => ((await (await fetch(`${url}/a2a/tasks/${id}`)).json()) as WireTask).status.state)
    .toBe('TASK_STATE_COMPLETED')
})

test('A2A over REST sends a message and returns its completed task with the answer', async () => {
  const { url } = await startProtocolServer({ script: searchThenTell })
  const sent = await post(`${url}/a2a/message:send`, { message: user('apples') })
  expect(sent.status).toBe(200)
  const { task } = (await sent.json()) as { task: WireTask }
  expect(task.status.state).toBe('TASK_STATE_COMPLETED')
  expect(JSON.stringify(task)).toContain('I found apples.')
  const read = (await (await fetch(`${url}/a2a/tasks/${task.id}`)).json()) as WireTask
  expect(read).toMatchObject({ id: task.id, contextId: task.contextId })
})

test('A2A over REST streams a message, subscribes to its task and cancels it', async () => {
  const { tool, called } = heldTool()
  const { url, runtime } = await startProtocolServer({ script: searchThenTell, tools: [tool] })
  const streamed = await post(`${url}/a2a/message:stream`, { message: user('apples') })
  expect(streamed.headers.get('content-type')).toContain('text/event-stream')
  await called
  const listed = await fetch(`${url}/a2a/tasks?contextId=${await sessionIds(runtime)}`)
  const { tasks } = (await listed.json()) as { tasks: WireTask[] }
  const id = tasks[0]?.id ?? 'none'
  const followed = await post(`${url}/a2a/tasks/${id}:subscribe`, {})
  const cancelled = await post(`${url}/a2a/tasks/${id}:cancel`, {})
  expect(await cancelled.json()).toMatchObject({ id, status: { state: 'TASK_STATE_CANCELED' } })
  for (const stream of [streamed, followed]) {
    const text = await stream.text()
    expect(text).toContain(id)
    expect(text).toContain('TASK_STATE_CANCELED')
  }
})

test('RemoteA2AAgent of ADK holds a conversation with tools and an approval, in one context', async () => {
  const { url, provider, runtime } = await startProtocolServer({ script: dangerScript })
  const agent = new RemoteA2AAgent({ name: 'remote', agentCard: url })
  const runner = new InMemoryRunner({ agent, appName: 'caller' })
  const session = await runner.sessionService.createSession({ appName: 'caller', userId: 'u' })
  const say = async (text: string) => {
    const newMessage = { role: 'user', parts: [{ text }] }
    const said: string[] = []
    for await (const event of runner.runAsync({ userId: 'u', sessionId: session.id, newMessage })) {
      expect(event.errorMessage).toBeUndefined()
      said.push(...(event.content?.parts ?? []).flatMap(part => (part.text ? [part.text] : [])))
    }
    return said.join('\n')
  }
  expect(await say('apples')).toContain('Said: apples.')
  expect(await say('danger')).toContain('danger needs approval')
  expect(await say('yes')).toContain('Done with it.')
  const { sessions } = await runtime.store.listSessions({ appName: 'lango', userId: 'user' })
  expect(sessions).toHaveLength(1)
  expect(provider.violations).toEqual([])
})
