// AG-UI over plain HTTP: what its client hides. The conversations of the real client are in test/clients/ag-ui.test.ts.
import { join } from 'node:path'
import { EventSchemas } from '@ag-ui/core/schemas'
import { expect, test } from 'vitest'
import type { RequestSummary, ScriptStep } from '../../../src/testing/strict/script.js'
import { defineTool, type Tool } from '../../../src/tool.js'
import { makeFolder, removeFolder, temporaryFolder } from '../../support/temporary-folder.js'
import { searchThenTell, startProtocolServer } from './support.js'

interface Sent {
  type: string
  [field: string]: unknown
}

async function post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${url}/agui`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
}

/** The events of an answer, each checked with the schemas of the protocol. */
async function eventsOf(response: Response): Promise<Sent[]> {
  expect(response.status).toBe(200)
  const frames = (await response.text()).split('\n\n').filter(frame => frame.startsWith('data: '))
  return frames.map(frame => {
    const event = JSON.parse(frame.slice(6)) as Sent
    expect(EventSchemas.safeParse(event).error).toBeUndefined()
    return event
  })
}

let count = 0
const user = (content: unknown) => ({ id: `u${++count}`, role: 'user', content })
const input = (more: object = {}) => ({
  ...{ threadId: 't', runId: crypto.randomUUID(), state: {}, tools: [], context: [], forwardedProps: {} },
  ...{ messages: [user('apples')], ...more },
})

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

const dangerScript = ({ messages, lastUserText }: RequestSummary): ScriptStep =>
  messages.at(-1)?.role === 'tool' || !lastUserText.includes('danger')
    ? { text: `Said: ${lastUserText}.` }
    : { text: 'May I?', toolCalls: [{ name: 'danger' }] }

const interruptsOf = (events: readonly Sent[]) =>
  (events.at(-1)?.outcome as { interrupts?: { id: string }[] } | undefined)?.interrupts ?? []

test('every AG-UI event satisfies the schema of the protocol', async () => {
  const { url } = await startProtocolServer({ script: searchThenTell })
  const response = await post(url, input({ state: { mood: 'good' } }))
  const runId = response.headers.get('x-lango-run')
  const events = await eventsOf(response)
  const types = events.map(({ type }) => type)
  expect(types[0]).toBe('RUN_STARTED')
  expect(types.at(-1)).toBe('RUN_FINISHED')
  expect(types).toEqual(expect.arrayContaining(['TOOL_CALL_ARGS', 'TOOL_CALL_RESULT', 'CUSTOM']))
  expect(events.at(-1)).toMatchObject({ runId, outcome: { type: 'success' } })
})

test.each([
  ['no JSON', '{', 400],
  ['no thread', { runId: 'r', messages: [] }, 400],
  ['a thread id that is too long', input({ threadId: 'x'.repeat(300) }), 400],
  ['a message of an unknown role', input({ messages: [{ id: '1', role: 'robot' }] }), 400],
  ['a picture that is not base64', input({ messages: [user([picture('data', '§')])] }), 400],
  ['a picture of another scheme', input({ messages: [user([picture('url', 'file:///etc/passwd')])] }), 400],
  ['a state that is a list', input({ state: [1] }), 400],
  ['a state key of the server', input({ state: { 'lango:approvals': ['danger'] } }), 400],
  ['a tool with a bad name', input({ tools: [{ name: 'a b', description: '' }] }), 400],
  [
    'a tool that has the name of one of the agent’s',
    input({ tools: [{ name: 'search', description: '' }] }),
    400,
  ],
  ['nothing new', input({ messages: [] }), 400],
  [
    'a result without a call',
    input({ messages: [{ id: '1', role: 'tool', toolCallId: 'c', content: '' }] }),
    400,
  ],
  ['an unknown model', input({ forwardedProps: { lango: { model: 'none/such' } } }), 400],
  ['a bad resume entry', input({ resume: [{ interruptId: 'i', status: 'maybe' }] }), 400],
])('an AG-UI request with %s is refused with RUN_ERROR', async (_name, body, status) => {
  const { url } = await startProtocolServer({ script: searchThenTell })
  const response = await post(url, body)
  expect(response.status).toBe(status)
  expect(response.headers.get('content-type')).toContain('application/json')
  const error: unknown = await response.json()
  expect(EventSchemas.safeParse(error).error).toBeUndefined()
  expect(error).toMatchObject({ type: 'RUN_ERROR', code: 'invalid-argument', message: expect.any(String) })
})

test('AG-UI refuses a wrong token and a wrong method with RUN_ERROR', async () => {
  const tokens = { 'a-long-enough-token-of-ann': 'ann' }
  const { url } = await startProtocolServer({ script: searchThenTell, serve: { tokens } })
  const refused = await post(url, input(), { authorization: 'Bearer wrong-wrong-wrong-wrong' })
  expect(refused.status).toBe(401)
  expect(await refused.json()).toMatchObject({ type: 'RUN_ERROR', code: 'unauthorized' })
  const read = await fetch(`${url}/agui`, { headers: { authorization: 'Bearer a-long-enough-token-of-ann' } })
  expect(read.status).toBe(405)
  expect(await read.json()).toMatchObject({ type: 'RUN_ERROR', code: 'wrong-method' })
})

test('AG-UI refuses an approval of another user’s run, and its run id', async () => {
  const executed: string[] = []
  const tokens = { 'a-long-enough-token-of-ann': 'ann', 'a-long-enough-token-of-bob': 'bob' }
  const { url } = await startProtocolServer({
    script: dangerScript,
    tools: [danger(executed)],
    serve: { tokens },
  })
  const as = (name: string) => ({ authorization: `Bearer a-long-enough-token-of-${name}` })
  const runId = crypto.randomUUID()
  const asked = await eventsOf(await post(url, input({ runId, messages: [user('danger')] }), as('ann')))
  const resume = interruptsOf(asked).map(({ id }) => ({
    ...{ interruptId: id, status: 'resolved', payload: { approved: true } },
  }))
  expect(resume).toHaveLength(1)
  const foreign = await post(url, input({ messages: [], resume }), as('bob'))
  expect(foreign.status).toBe(400)
  expect((await post(url, input({ runId }), as('bob'))).status).toBe(400)
  expect(executed).toEqual([])
})

test('an AG-UI message while an interrupt is open is refused; with the answer, both are done in order', async () => {
  const executed: string[] = []
  const { url, provider } = await startProtocolServer({ script: dangerScript, tools: [danger(executed)] })
  const asked = await eventsOf(await post(url, input({ messages: [user('danger')] })))
  const [{ id: interruptId } = { id: '' }] = interruptsOf(asked)
  const messages = [user('danger'), { id: 'a', role: 'assistant', content: 'May I?' }, user('thanks')]
  const early = await post(url, input({ messages }))
  expect(early.status).toBe(400)
  expect(await early.json()).toMatchObject({ message: expect.stringContaining(interruptId) })
  const wrong = await post(
    url,
    input({ messages, resume: [{ interruptId, status: 'resolved', payload: 7 }] }),
  )
  expect(wrong.status).toBe(400)
  expect(executed).toEqual([])
  const resume = [{ interruptId, status: 'resolved', payload: { approved: true } }]
  const both = await eventsOf(await post(url, input({ messages, resume })))
  expect(executed).toEqual(['danger'])
  const text = both.flatMap(({ delta, type }) => (type === 'TEXT_MESSAGE_CONTENT' ? [delta] : [])).join('')
  expect(text).toBe('Said: danger.Said: thanks.')
  expect(both.filter(({ type }) => type === 'RUN_FINISHED')).toHaveLength(1)
  expect(provider.violations).toEqual([])
})

test('an AG-UI message that is sent again is one run: at once, after its answer, in another process; unless another answer is requested', async () => {
  const store = `sqlite:${join(await temporaryFolder(), 'lango.db')}`
  const [one, other] = [
    await startProtocolServer({ store, script: searchThenTell }),
    await startProtocolServer({ store, script: searchThenTell }),
  ]
  const messages = [user('apples')]
  const send = async (url: string, more: object = {}) => {
    const response = await post(url, input({ messages, ...more }))
    const text = (await eventsOf(response)).flatMap(({ type, delta, messages: shown }) =>
      type === 'TEXT_MESSAGE_CONTENT'
        ? [String(delta)]
        : type === 'MESSAGES_SNAPSHOT'
          ? [JSON.stringify(shown)]
          : [],
    )
    return { runId: response.headers.get('x-lango-run'), text: text.join('') }
  }
  const answers = [
    ...(await Promise.all([send(one.url), send(one.url), send(one.url)])),
    await send(one.url),
    await send(other.url),
  ]
  expect(new Set(answers.map(({ runId }) => runId)).size).toBe(1)
  for (const { text } of answers) expect(text).toContain('apples')
  const key = { appName: 'lango', userId: 'user', sessionId: 't' }
  expect(await one.runtime.listRuns(key, { limit: 10 })).toHaveLength(1)
  const stored = await one.runtime.store.readMessages(key)
  expect(stored.filter(({ role }) => role === 'user')).toHaveLength(1)
  const again = await send(other.url, { forwardedProps: { lango: { regenerate: true } } })
  expect(again.runId).not.toBe(answers[0]?.runId)
  expect(await one.runtime.listRuns(key, { limit: 10 })).toHaveLength(2)
  const wrong = await post(one.url, input({ forwardedProps: { lango: { regenerate: 'yes' } } }))
  expect(wrong.status).toBe(400)
})

test('an AG-UI interrupt is answered in another process than the one that asked', async () => {
  const folder = await makeFolder()
  const executed: string[] = []
  const store = `sqlite:${folder}/a.db`
  const first = await startProtocolServer({ script: dangerScript, tools: [danger(executed)], store })
  const asked = await eventsOf(await post(first.url, input({ messages: [user('danger')] })))
  await first.server.close()
  await first.runtime.close()
  const second = await startProtocolServer({ script: dangerScript, tools: [danger(executed)], store })
  const resume = interruptsOf(asked).map(({ id }) => ({
    ...{ interruptId: id, status: 'resolved', payload: { approved: true } },
  }))
  const rest = await eventsOf(await post(second.url, input({ messages: [], resume })))
  expect(executed).toEqual(['danger'])
  expect(rest.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'success' } })
  await second.server.close()
  await second.runtime.close()
  await removeFolder(folder)
})

test('the history of an AG-UI thread that is new to the server is stored, with pictures', async () => {
  const { url, runtime, provider } = await startProtocolServer({ script: searchThenTell })
  const messages = [
    { id: 's', role: 'system', content: 'Be brief.' },
    user([{ type: 'text', text: 'Look.' }, picture('data', 'iVBORw0KGgo=')]),
    { id: 'r', role: 'reasoning', content: 'Hm.' },
    { id: 'a', role: 'assistant', content: 'A fruit.' },
    user('apples'),
  ]
  await eventsOf(await post(url, input({ messages })))
  const key = { appName: 'lango', userId: 'user', sessionId: 't' }
  const stored = await runtime.store.readMessages(key)
  expect(stored.map(({ content }) => content).slice(0, 4)).toEqual([
    ...['[System: Be brief.]', 'Look.', 'A fruit.', 'apples'],
  ])
  expect(JSON.stringify(provider.requests[0]?.body)).toContain('iVBORw0KGgo=')
  expect(provider.violations).toEqual([])
})

test('an AG-UI run that is stopped has the outcome cancelled', async () => {
  const { url } = await startProtocolServer({ script: dangerScript, tools: [danger([])] })
  const runId = crypto.randomUUID()
  await eventsOf(await post(url, input({ runId, messages: [user('danger')] })))
  await fetch(`${url}/api/runs/${runId}/stop`, { method: 'POST' })
  await expect
    .poll(async () => (await eventsOf(await post(url, input({ messages: [] })))).at(-1)?.outcome)
    .toEqual({ type: 'cancelled' })
})

function picture(type: 'data' | 'url', value: string) {
  return { type: 'image', source: { type, value, mimeType: 'image/png' } }
}
