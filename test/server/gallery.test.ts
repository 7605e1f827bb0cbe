import { expect, onTestFinished, test, vi } from 'vitest'
import { silentLogger } from '../../src/logger.js'
import type { RunEvent } from '../../src/run/run-event.js'
import { startServer } from '../support/start-server.js'

test('a broken history is opened, refused as it is, and answered through Lango', async () => {
  const { client } = await startServer()
  const { histories } = await client.brokenHistories()
  expect(histories.length).toBeGreaterThanOrEqual(6)
  const { sessionId } = await client.openBroken('two-answers-for-one-call')
  expect(await client.session(sessionId)).toMatchObject({
    title: 'Two answers for one call',
    totalMessages: 4,
  })
  expect(await client.sendBroken('two-answers-for-one-call')).toMatchObject({
    profile: 'anthropic-4.6',
    status: 400,
    message: expect.stringContaining('each tool_use must have a single result'),
  })
  const { runId } = await client.healBroken(sessionId)
  const events: RunEvent[] = []
  for await (const event of client.follow(runId)) events.push(event)
  expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop' })
  expect(events.flatMap(event => (event.type === 'repair' ? event.repairs : []))).toMatchObject([
    { kind: 'note-duplicate' },
  ])
  // The answer of a script, behind the name of a real model, is not spent.
  expect((await client.usage()).lines).toEqual([])
  expect((await client.session(sessionId)).usage).toMatchObject({ totalTokens: 0 })
  const { steps } = await client.inspect(runId)
  expect(steps[0]).toMatchObject({ profile: 'anthropic-4.6' })
  // The session is one like any other now: the server's own model goes on with it.
  const next = await client.start(sessionId, { text: 'say 2' })
  for await (const event of client.follow(next.runId)) events.push(event)
  expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop' })
  expect((await client.usage()).lines).toMatchObject([{ model: 'play/model', calls: 1 }])
})

/** Anthropic refuses the key of every request. */
function refuseKeys(): void {
  const send = globalThis.fetch
  const error = { type: 'authentication_error', message: 'invalid x-api-key' }
  const spy = vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
    const isModelCall = String(input).endsWith('/v1/messages')
    return isModelCall ? Response.json({ type: 'error', error }, { status: 401 }) : send(input, init)
  })
  onTestFinished(() => spy.mockRestore())
}

test('a gallery provider that refuses every request: its status is returned, and the failed run is logged', async () => {
  refuseKeys()
  const lines: { message: string; fields: unknown }[] = []
  const error = (message: string, fields?: unknown) => void lines.push({ message, fields })
  const { client } = await startServer({ logger: { ...silentLogger, error } })
  const { sessionId } = await client.openBroken('lost-ids')
  expect(await client.sendBroken('lost-ids')).toMatchObject({
    status: 401,
    message: expect.stringContaining('invalid x-api-key'),
  })
  const { runId } = await client.healBroken(sessionId)
  const events: RunEvent[] = []
  for await (const event of client.follow(runId)) events.push(event)
  expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'error' })
  expect(lines).toMatchObject([
    { message: 'Run failed', fields: { sessionId, runId, code: 'provider-auth' } },
  ])
})

test('unknown gallery histories and sessions that are not of the gallery are refused, and nothing is stored', async () => {
  const { client } = await startServer()
  for (const attempt of [() => client.openBroken('nope'), () => client.sendBroken('nope')])
    await expect(attempt()).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining('lost-ids'),
    })
  await client.createSession({ sessionId: 'mine' })
  await expect(client.healBroken('mine')).rejects.toMatchObject({ status: 400 })
  await expect(client.healBroken('gallery-lost-ids-00000000')).rejects.toMatchObject({ status: 404 })
  expect((await client.sessions()).sessions).toHaveLength(1)
})

const CLAUDE = {
  model: 'claude-sonnet-4-6',
  max_tokens: 100,
  system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }],
  tools: [{ name: 'f', input_schema: { type: 'object' } }],
  messages: [
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'f', input: {} }] },
    { role: 'user', content: 'and?' },
  ],
}

const CHAT = {
  model: 'gpt-4.1',
  temperature: 0.2,
  messages: [
    { role: 'user', content: 'hi' },
    { role: 'tool', tool_call_id: 'lost', content: 'ok' },
  ],
}

const RESPONSES = {
  model: 'gpt-5.6',
  instructions: 'Be brief.',
  input: [
    { role: 'user', content: 'x' },
    { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{}' },
    { role: 'user', content: 'y' },
  ],
}

const GEMINI = {
  systemInstruction: { parts: [{ text: 'Be brief.' }] },
  contents: [
    { role: 'user', parts: [{ text: 'hi' }] },
    { role: 'model', parts: [{ functionCall: { name: 'f', args: {} } }] },
    { role: 'user', parts: [{ text: 'go' }] },
  ],
}

test('a pasted request is explained with the provider’s words and healed on its own wire', async () => {
  const { client } = await startServer()
  const bodies = { anthropic: CLAUDE, 'openai-chat': CHAT, 'openai-responses': RESPONSES, gemini: GEMINI }
  for (const [format, body] of Object.entries(bodies)) {
    const checked = await client.check({ text: JSON.stringify(body) })
    expect(checked.format?.format).toBe(format)
    const [history] = checked.histories
    expect(history?.problems[0]?.refusals[0]?.words).toMatch(/^[A-Z]\d+: “/)
    expect(history?.healed).toMatchObject({ fileName: 'healed.json', left: [] })
    const healed = JSON.parse(history?.healed?.text ?? '')
    const {
      messages: _messages,
      contents: _contents,
      input: _input,
      ...beside
    } = body as Record<string, unknown>
    expect(healed).toMatchObject(beside)
    // The healed file is accepted, so there is nothing to heal.
    const [again] = (await client.check({ text: JSON.stringify(healed) })).histories
    expect(again?.problems).toEqual([])
    expect(again?.healed).toBeUndefined()
  }
})

test('a pasted transcript is healed to an export; one that fits several formats is returned with the candidates', async () => {
  const { client } = await startServer()
  const call = { type: 'tool-call', toolCallId: 'a', toolName: 'f', input: {} }
  const transcript = [
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: [call] },
    { role: 'user', content: 'x' },
  ]
  const checked = await client.check({ text: JSON.stringify(transcript) })
  expect(checked.format?.name).toBe('AI SDK model messages')
  const healed = checked.histories[0]?.healed
  expect(healed?.fileName).toBe('healed.jsonl')
  const again = await client.check({ text: healed?.text ?? '' })
  expect(again.format?.format).toBe('lango')
  expect(again.histories[0]?.problems).toEqual([])
  expect(healed?.text).toContain('"hi"')
  const unsure = await client.check({ text: JSON.stringify([{ role: 'user', content: 'hi' }]) })
  expect(unsure.format).toBeUndefined()
  expect(unsure.candidates.length).toBeGreaterThan(1)
})

test('a pasted text that is no history, too deep or of an unknown format is refused with what to do', async () => {
  const { client } = await startServer()
  const refused = (request: { text: string; format?: string }) =>
    client.check(request).then(
      () => 'accepted',
      error => `${error.status} ${error.message}`,
    )
  expect(await refused({ text: 'hello' })).toMatch(/^400 The text is not JSON/)
  expect(await refused({ text: '{"a":1}' })).toMatch(/^400 The text has an unknown format. Expected/)
  expect(await refused({ text: '[]', format: 'opnai-chat' })).toMatch(/Did you mean openai-chat/)
  expect(await refused({ text: `${'['.repeat(200)}${']'.repeat(200)}` })).toMatch(/^422 .*nested/)
  expect(await refused({ text: '   ' })).toMatch(/^400 The text is empty/)
})
