// Claude's code execution waits for a tool of the client: what the API wants back, and what another model reads of it.
import { afterEach, expect, test } from 'vitest'
import type { ProviderMessage, ProviderPart } from '../../src/provider/provider.js'
import { repairHistory } from '../../src/provider/repair/repair-history.js'
import { type StrictProvider, startStrictProvider } from '../../src/testing/start-strict-provider.js'
import { collect, testProvider, toMessage, user } from './collect.js'

const tools = [
  { name: 'weather', description: 'Tells the weather.', parameters: { type: 'object', properties: {} } },
]
const serverTools = [{ name: 'codeExecution', config: {} }]
const model = 'claude-sonnet-4-6'

const SCRIPT = [
  {
    serverTool: { name: 'code_execution', input: { code: 'print(weather())' } },
    toolCalls: [{ name: 'weather' }],
  },
  {
    serverTool: {
      name: 'code_execution',
      result: { type: 'code_execution_result', stdout: 'rain', stderr: '', return_code: 0, content: [] },
    },
    text: 'It rains.',
  },
  { text: 'You are welcome.' },
]

const opened: StrictProvider[] = []
afterEach(async () => {
  for (const server of opened.splice(0)) await server.close()
})

async function start() {
  const server = await startStrictProvider({ profile: 'anthropic-4.6', script: SCRIPT })
  opened.push(server)
  return { server, provider: testProvider({ type: 'anthropic', baseUrl: server.baseUrl }) }
}

const result = (message: ProviderMessage): ProviderMessage => ({
  role: 'tool',
  parts: message.parts.flatMap(part =>
    part.type === 'tool-call'
      ? [{ type: 'tool-result' as const, id: part.id, name: part.name, result: 'rain' }]
      : [],
  ),
})

test('code that waits for a tool gets its result, in the same container, and is sent back with what it found', async () => {
  const { server, provider } = await start()
  const messages = [user('How is the weather?')]
  for (let step = 0; step < SCRIPT.length; step += 1) {
    const events = await collect(provider, { model, messages, tools, serverTools })
    expect(events.at(-1)).toMatchObject({ type: 'done' })
    const answer = toMessage(events)
    messages.push(answer, step === 0 ? result(answer) : user('Thank you.'))
  }
  expect(server.violations).toEqual([])
  const bodies = server.requests.map(
    ({ body }) => body as { container?: string; messages: { content: object[] }[] },
  )
  expect(bodies.map(({ container }) => container)).toEqual([
    undefined,
    expect.any(String),
    bodies[1]?.container,
  ])
  expect(bodies[1]?.messages[1]?.content).toMatchObject([{ type: 'server_tool_use' }, { type: 'tool_use' }])
  expect(bodies[2]?.messages[3]?.content).toMatchObject([
    { type: 'code_execution_tool_result' },
    { type: 'text' },
  ])
})

async function pending(expires?: string): Promise<ProviderMessage[]> {
  const { provider } = await start()
  const asked = user('How is the weather?')
  const answer = toMessage(await collect(provider, { model, messages: [asked], tools, serverTools }))
  const parts = answer.parts.map(
    (part): ProviderPart =>
      part.type === 'vendor' && expires !== undefined && 'expires_at' in (part.value as object)
        ? { ...part, value: { ...(part.value as object), expires_at: expires } }
        : part,
  )
  return [asked, { ...answer, parts }, result(answer)]
}

test('code whose container has expired reads as code that did not run', async () => {
  const { messages } = repairHistory(await pending('2020-01-01T00:00:00Z'), 'anthropic-4.6')
  expect(messages[1]?.parts[0]).toMatchObject({
    type: 'text',
    text: expect.stringMatching(/^\[This did not run\.\]/),
  })
})

test('another model gets neither the container nor its id', async () => {
  const history = await pending()
  const { messages } = repairHistory(history, 'openai-chat')
  expect(JSON.stringify(messages)).not.toContain('container_')
  expect(JSON.stringify(messages)).not.toContain('sandbox')
  expect(repairHistory(history, 'anthropic-4.6').messages).toBe(history)
})
