// A new message in a chat whose last run has not ended: the run is stopped when the client has left it, and only then.
import { expect, onTestFinished, test } from 'vitest'
import { heldTool, type ProtocolServer, searchThenTell, startProtocolServer, until } from './support.js'

const KEY = { appName: 'lango', userId: 'user', sessionId: 'c' }

interface Message {
  id: string
  role: 'user' | 'assistant'
  parts: object[]
  metadata?: object
}

function userMessage(text: string): Message {
  return { id: `id of ${text}`, role: 'user', parts: [{ type: 'text', text }] }
}

function post(
  { url }: ProtocolServer,
  messages: readonly Message[],
  options: { signal?: AbortSignal; headers?: Record<string, string> } = {},
): Promise<Response> {
  return fetch(`${url}/api/chat`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...options.headers },
    body: JSON.stringify({ id: 'c', messages, trigger: 'submit-message' }),
    ...(options.signal ? { signal: options.signal } : {}),
  })
}

async function reasons({ runtime }: ProtocolServer): Promise<(string | undefined)[]> {
  return (await runtime.listRuns(KEY)).map(({ finishReason }) => finishReason)
}

/** Looks for the first message, and answers those after it at once. */
function startHeld() {
  const { tool, called, letGo } = heldTool()
  onTestFinished(letGo)
  const server = startProtocolServer({
    tools: [tool],
    script: (request, index) =>
      index === 0 ? searchThenTell(request) : { text: `Fine: ${request.lastUserText}.` },
  })
  return { server, called, letGo }
}

test('an AI SDK client that left before the first chunk: its next message stops the run', async () => {
  const { server: starting, called } = startHeld()
  const server = await starting
  const leaving = new AbortController()
  const first = await post(server, [userMessage('apples')], { signal: leaving.signal })
  await called
  leaving.abort()
  await first.body?.cancel().catch(() => {})
  const second = await post(server, [userMessage('apples'), userMessage('pears')])
  expect(await second.text()).toContain('Fine: pears.')
  expect(await reasons(server)).toEqual(['stop', 'aborted'])
})

test('an AI SDK message is queued while another client reads the answer, and the run continues', async () => {
  const { server: starting, called, letGo } = startHeld()
  const server = await starting
  const first = await post(server, [userMessage('apples')])
  await called
  const runId = first.headers.get('x-lango-run') ?? ''
  const answer: Message = {
    id: runId,
    role: 'assistant',
    parts: [],
    metadata: { lango: { runId, seq: 0 } },
  }
  const second = post(server, [userMessage('apples'), answer, userMessage('pears')])
  await until(async () => (await server.runtime.listRuns(KEY)).length === 2)
  letGo()
  expect(await first.text()).toContain('Fine: apples.')
  expect(await (await second).text()).toMatch(/data-run-queued[\s\S]*Fine: pears\./)
  expect(await reasons(server)).toEqual(['stop', 'stop'])
})

test('a message of an AI SDK client that does not know of the active run is queued, though nobody reads the run', async () => {
  const { server: starting, called, letGo } = startHeld()
  const server = await starting
  const leaving = new AbortController()
  const first = await post(server, [userMessage('apples')], { signal: leaving.signal })
  await called
  leaving.abort()
  await first.body?.cancel().catch(() => {})
  const second = post(server, [userMessage('pears')])
  await until(async () => (await server.runtime.listRuns(KEY)).length === 2)
  letGo()
  expect(await (await second).text()).toContain('Fine: pears.')
  expect(await reasons(server)).toEqual(['stop', 'stop'])
})

test('an AI SDK message instead of an approval stops the waiting run, and its tool does not run', async () => {
  const server = await startProtocolServer({
    script: ({ lastUserText, messages }) =>
      lastUserText === 'go' && messages.at(-1)?.role !== 'tool'
        ? { text: 'May I?', toolCalls: [{ name: 'danger' }] }
        : { text: 'As you wish.' },
  })
  const first = await post(server, [userMessage('go')])
  const said = await first.text()
  expect(said).toContain('tool-approval-request')
  const runId = first.headers.get('x-lango-run') ?? ''
  const answer: Message = { id: runId, role: 'assistant', parts: [], metadata: { lango: { runId, seq: 4 } } }
  const second = await post(server, [userMessage('go'), answer, userMessage('no, rather not')])
  expect(await second.text()).toContain('As you wish.')
  expect(await reasons(server)).toEqual(['stop', 'aborted'])
  const stored = JSON.stringify(await server.runtime.messages(KEY))
  expect(stored).not.toContain('"done":true')
  expect(server.provider.violations).toEqual([])
})

test('an AI SDK request with an unknown kind of approvals is refused before anything is stored', async () => {
  const server = await startProtocolServer({ script: [{ text: 'Hm.' }] })
  const answer = await post(server, [userMessage('go')], { headers: { 'x-lango-approvals': 'maybe' } })
  expect([answer.status, await answer.text()]).toEqual([
    400,
    'The header x-lango-approvals is "native" or "data", not "maybe".',
  ])
  expect(await server.runtime.listRuns(KEY)).toEqual([])
})
