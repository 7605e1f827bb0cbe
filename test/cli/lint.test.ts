import { chmod, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { lint } from '../../src/cli/lint.js'
import { openStore } from '../../src/store/open-store.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { captured } from './doctor-output.js'
import { BRICKED, writeAdkDatabase } from './import-adk-database.js'
import { memoryIo } from './memory-io.js'

async function lintJson(content: unknown, flags: { profile?: string } = {}) {
  const file = join(await temporaryFolder(), 'history.json')
  await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content))
  const { code, text } = await captured(io => lint(io, file, { ...flags, json: true }))
  const read = JSON.parse(text)
  const findings = read.histories[0].profiles.flatMap(
    ({ findings: each }: { findings: { code: string }[] }) => each.map(finding => finding.code),
  )
  return {
    code,
    format: read.format,
    profiles: read.histories[0].profiles.map(({ profile }: { profile: string }) => profile),
    found: [...new Set(findings)].sort(),
  }
}

const chatCall = (id: string, text = '{}') => ({
  id,
  type: 'function',
  function: { name: 'f', arguments: text },
})
const claudeCall = { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} }
const claudeResult = { type: 'tool_result', tool_use_id: 'toolu_1', content: [{ type: 'text', text: 'ok' }] }
const GEMINI = ['gemini-2', 'gemini-3', 'gemini-3-strict']

test.each([
  {
    name: 'a sound Gemini body',
    body: {
      systemInstruction: { parts: [{ text: 'be brief' }] },
      contents: [
        { role: 'user', parts: [{ text: 'hi' }] },
        { role: 'model', parts: [{ functionCall: { name: 'f', args: {} }, thoughtSignature: 'c2ln' }] },
        { role: 'user', parts: [{ functionResponse: { name: 'f', response: {} } }] },
      ],
    },
    expected: { code: 0, format: 'gemini', profiles: GEMINI, found: [] },
  },
  {
    name: 'a Gemini body with the role that results had',
    body: {
      model: 'gemini-3.8-flash',
      contents: [
        { role: 'user', parts: [{ text: 'hi' }] },
        { role: 'model', parts: [{ functionCall: { name: 'f', args: {} }, thoughtSignature: 'c2ln' }] },
        { role: 'function', parts: [{ functionResponse: { name: 'f', response: {} } }] },
      ],
    },
    expected: { code: 3, format: 'gemini', profiles: ['gemini-3-strict'], found: ['unknown-role'] },
  },
  {
    name: 'a body for Gemini 3 behind an API like OpenAI’s whose call lost its signature',
    body: {
      model: 'google/gemini-3.5-flash',
      messages: [
        { role: 'user', content: 'hi' },
        { role: 'assistant', content: null, tool_calls: [chatCall('call_1')] },
        { role: 'tool', tool_call_id: 'call_1', content: 'ok' },
      ],
    },
    expected: {
      code: 3,
      format: 'openai-chat',
      profiles: ['compatible-gemini'],
      found: ['missing-signature'],
    },
  },
  {
    name: 'the same body with the signature',
    body: {
      model: 'google/gemini-3.5-flash',
      messages: [
        { role: 'user', content: 'hi' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [
            { ...chatCall('call_1'), extra_content: { google: { thought_signature: 'Co0Cabcd' } } },
          ],
        },
        { role: 'tool', tool_call_id: 'call_1', content: 'ok' },
      ],
    },
    expected: { code: 0, format: 'openai-chat', profiles: ['compatible-gemini'], found: [] },
  },
  {
    name: 'a Gemini body with OpenAI’s roles, in snake case',
    body: {
      contents: [
        { role: 'user', parts: [{ text: 'hi' }] },
        { role: 'assistant', parts: [{ function_call: { name: 'f', args: {} }, thought_signature: 'c2ln' }] },
        { role: 'tool', parts: [{ function_response: { name: 'f', response: {} } }] },
      ],
    },
    expected: { code: 3, format: 'gemini', profiles: GEMINI, found: ['unknown-role'] },
  },
  {
    name: 'an OpenAI chat body whose call nobody answered',
    body: {
      model: 'gpt-5.2',
      messages: [
        { role: 'developer', content: 'be brief' },
        { role: 'user', content: [{ type: 'text', text: 'hi' }] },
        { role: 'assistant', content: null, tool_calls: [chatCall('a'), chatCall('b')] },
        { role: 'tool', tool_call_id: 'a', content: 'ok' },
      ],
    },
    expected: {
      code: 3,
      format: 'openai-chat',
      profiles: ['openai-chat'],
      found: ['call-without-result'],
    },
  },
  {
    name: 'a chat body for Mistral, with arguments that were cut off',
    body: {
      model: 'mistral-large-latest',
      messages: [
        { role: 'user', content: 'hi' },
        { role: 'assistant', content: '', tool_calls: [chatCall('abcdefgh1', '{"q')] },
        { role: 'tool', tool_call_id: 'abcdefgh1', content: 'ok' },
      ],
    },
    expected: {
      code: 3,
      format: 'openai-chat',
      profiles: ['mistral'],
      found: ['empty-part', 'malformed-arguments'],
    },
  },
  {
    name: 'a sound Responses body with parallel calls',
    body: {
      model: 'gpt-5.2',
      instructions: 'be brief',
      input: [
        { role: 'user', content: 'hi' },
        { type: 'reasoning', summary: [], encrypted_content: 'x' },
        { type: 'function_call', call_id: 'a', name: 'f', arguments: '{}' },
        { type: 'function_call', call_id: 'b', name: 'f', arguments: '{}' },
        { type: 'function_call_output', call_id: 'b', output: 'ok' },
        { type: 'function_call_output', call_id: 'a', output: 'ok' },
      ],
    },
    expected: { code: 0, format: 'openai-responses', profiles: ['openai-responses'], found: [] },
  },
  {
    name: 'a Responses body with an output for no call',
    body: {
      input: [
        { role: 'user', content: 'hi' },
        { type: 'function_call_output', call_id: 'a', output: 'ok' },
      ],
    },
    expected: {
      code: 3,
      format: 'openai-responses',
      profiles: ['openai-responses'],
      found: ['orphan-result'],
    },
  },
  {
    name: 'a sound Anthropic body',
    body: {
      model: 'claude-sonnet-4-5',
      system: [{ type: 'text', text: 'be brief' }],
      messages: [
        { role: 'user', content: 'hi' },
        { role: 'assistant', content: [{ type: 'thinking', thinking: 'hm', signature: 's' }, claudeCall] },
        { role: 'user', content: [claudeResult, { type: 'text', text: 'and?' }] },
      ],
    },
    expected: { code: 0, format: 'anthropic', profiles: ['anthropic-4.5'], found: [] },
  },
  {
    name: 'an Anthropic body without a model, with text before a result and a system message inside',
    body: {
      messages: [
        { role: 'user', content: 'hi' },
        { role: 'assistant', content: [claudeCall] },
        { role: 'user', content: [{ type: 'text', text: 'and?' }, claudeResult] },
        { role: 'system', content: 'be brief' },
      ],
    },
    expected: {
      code: 3,
      format: 'anthropic',
      profiles: ['anthropic-4.5', 'anthropic-4.6', 'anthropic-5.1'],
      found: ['misplaced-part', 'unknown-role'],
    },
  },
  {
    name: 'a bare list of messages',
    body: [{ role: 'tool', tool_call_id: 'a', content: 'ok' }],
    expected: { code: 3, format: 'openai-chat', profiles: ['openai-chat'], found: ['orphan-result'] },
  },
  {
    name: 'a session of ADK',
    body: {
      id: 's',
      appName: 'a',
      userId: 'u',
      events: [
        {
          id: '1',
          author: 'root',
          content: { role: 'user', parts: [{ functionResponse: { id: 'x', name: 'f', response: {} } }] },
        },
      ],
    },
    flags: { profile: 'openai-chat' },
    expected: { code: 3, format: 'adk', profiles: ['openai-chat'], found: ['orphan-result'] },
  },
  {
    name: 'an export of Lango',
    body: '{"lango":"session","version":1,"key":{"appName":"a","userId":"u","sessionId":"s"},"state":{},"createdAt":1}\n{"role":"user","content":"hi","timestamp":1,"seq":1,"tokens":3}\n',
    flags: { profile: 'mistral' },
    expected: { code: 0, format: 'lango', profiles: ['mistral'], found: [] },
  },
])('lango lint recognizes and judges $name', async ({ body, flags, expected }) => {
  expect(await lintJson(body, flags)).toEqual(expected)
})

test('what Lango would rewrite is a refusal in a request of the vendor’s own, and not in another’s', async () => {
  const unsigned = {
    contents: [
      { role: 'user', parts: [{ text: 'hi' }] },
      { role: 'model', parts: [{ functionCall: { name: 'f', args: {} } }] },
      { role: 'user', parts: [{ functionResponse: { name: 'f', response: { a: 1 } } }] },
    ],
  }
  expect(await lintJson(unsigned, { profile: 'gemini-2' })).toMatchObject({ code: 0, found: [] })
  expect(await lintJson(unsigned, { profile: 'gemini-3' })).toMatchObject({
    code: 3,
    found: ['missing-signature'],
  })
  const chat = {
    model: 'gpt-4.1',
    messages: [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: null, tool_calls: [chatCall('c1')] },
      { role: 'tool', tool_call_id: 'c1', content: '{}' },
    ],
  }
  const file = join(await temporaryFolder(), 'chat.json')
  await writeFile(file, JSON.stringify(chat))
  const { text } = await captured(io => lint(io, file, { profile: 'gemini-3' }))
  expect(text).toContain('Rewritten on every send, harmless: missing-signature.')
})

test('a report of lango lint names the place in the request, the error of the provider and the repair', async () => {
  const file = join(await temporaryFolder(), 'request.json')
  const messages = [
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: [claudeCall] },
  ]
  await writeFile(file, JSON.stringify({ model: 'claude-sonnet-4-6', system: 'be brief', messages }))
  const { code, text } = await captured(io => lint(io, file, {}))
  expect(code).toBe(3)
  expect(text).toContain('is an Anthropic request: 3 messages.')
  expect(text).toMatch(/anthropic-4\.6 +rejected, 1 finding/)
  expect(text).toContain('messages[1]: A call has no result.')
  expect(text).toContain(
    'A1: “messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1.',
  )
  expect(text).toContain('repair: The call of f had no result: one was added that says so.')
})

test('lango lint judges every session of an ADK database', async () => {
  const file = join(await temporaryFolder(), 'adk.db')
  writeAdkDatabase(file, 'typescript', BRICKED)
  const { code, text } = await captured(io => lint(io, file, { profile: 'all' }))
  expect(code).toBe(3)
  expect(text).toMatch(/ollama +accepted/)
  expect(text).toContain('Message 2: A call has no result.')
})

test('lango lint judges a stored session, and only rejections count for the exit code', async () => {
  const url = `sqlite:${join(await temporaryFolder(), 'lango.db')}`
  const store = await openStore(url)
  const key = { appName: 'lango', userId: 'user', sessionId: 's1' }
  await store.createSession(key)
  await store.appendMessage(key, { role: 'user', content: 'hi', timestamp: 1 })
  const calls = [{ id: 'a:b', name: 'f', input: '{}', output: '{}' }]
  await store.appendMessage(key, { role: 'assistant', content: '', toolCalls: calls, timestamp: 2 })
  await store.close()
  const { code, text } = await captured(io => lint(io, undefined, { store: url, session: 's1' }))
  expect(code).toBe(0)
  expect(text).toMatch(/anthropic-4\.6 +accepted, 1 rewritten on every send/)
  expect(text).toMatch(/Rewritten on every send, harmless: .*id-form/)
})

test.each([
  ['{"a":1}', {}, /has an unknown format\. Expected a Lango export, an ADK session/],
  ['not json', {}, /is not JSON/],
  ['', {}, /is empty/],
  ['{"lango":"session","version":2}', {}, /version/],
  ['[]', { profile: 'gpt' }, /There is no repair profile named "gpt"/],
])('lango lint refuses a file that it cannot judge in one sentence: %s', async (content, flags, message) => {
  const file = join(await temporaryFolder(), 'x')
  await writeFile(file, content)
  await expect(lint(memoryIo(), file, flags)).rejects.toThrow(message)
})

test('lango lint refuses a file together with a session, and neither of them', async () => {
  await expect(lint(memoryIo(), undefined, {})).rejects.toThrow(/Pass either a file/)
  await expect(lint(memoryIo(), 'x', { session: 's' })).rejects.toThrow(/Pass either a file/)
  await expect(lint(memoryIo(), '/no/such/file', {})).rejects.toThrow(/does not exist/)
})

const SIGNATURE = 'EqQBCgIYAhIkMWM0ZjYxZTAtYjRhMy00ZjU2LTk2YzEtN2Y4ZGI0ZTJhYzNk'
const thought = { type: 'thinking', thinking: 'hm', signature: SIGNATURE }
const answered = (...content: object[]) => ({ role: 'assistant', content })
const said = (content: string) => ({ role: 'user', content })
const hello = { type: 'text', text: 'hello' }

function claudeBody(messages: object[], more: object = {}) {
  return { model: 'claude-opus-5-5', max_tokens: 100, system: 'be brief', messages, ...more }
}

const FIRST = claudeBody([said('hi')])
const second = { ...thought, signature: `${SIGNATURE}2` }

test.each([
  // The changed instruction of opencode#48637.
  {
    name: 'another system prompt',
    requests: [
      FIRST,
      claudeBody([said('hi'), answered(thought, hello), said('more')], { system: 'be polite' }),
    ],
    changed: 'The `system` prompt differs from that of the request before.',
    at: 'messages.1.content.0',
  },
  {
    name: 'another list of tools',
    requests: [
      FIRST,
      claudeBody([said('hi'), answered(thought, hello), said('more')], {
        tools: [{ name: 'clock', input_schema: { type: 'object' } }],
      }),
    ],
    changed: 'The list of `tools` differs',
    at: 'messages.1.content.0',
  },
  // What a summary does to a history: deepagents#6300, pydantic-ai#7989.
  {
    name: 'older turns that were summarized',
    requests: [
      claudeBody([said('hi'), answered(hello), said('more')]),
      claudeBody([said('They greeted.'), answered(thought, hello), said('and?')]),
    ],
    changed: 'messages.0.content.0 of the request before was changed, moved or left out.',
    at: 'messages.1.content.0',
  },
  // KiroCrew#11513.
  {
    name: 'a missing block between others',
    requests: [
      claudeBody([said('hi'), answered(thought, hello), said('more')]),
      claudeBody([said('hi'), answered(hello), said('more'), answered(second, hello), said('and?')]),
    ],
    changed: 'The reasoning at messages.1.content.0 of the request before is missing.',
    at: 'messages.3.content.0',
  },
])('thinking is bound to its prefix: $name', async ({ requests, changed, at }) => {
  const folder = await temporaryFolder()
  const files = requests.map((_, index) => join(folder, `turn${index + 1}.json`))
  for (const [index, request] of requests.entries())
    await writeFile(files[index] ?? '', JSON.stringify(request))
  const { code, text } = await captured(io => lint(io, files, { json: true }))
  expect(code).toBe(3)
  const [, { histories }] = JSON.parse(text)
  const [finding, ...more] = histories[0].profiles[0].findings
  expect(more).toEqual([])
  expect(finding).toMatchObject({ code: 'unbound-reasoning', severity: 'breaks' })
  expect(finding.message).toContain(changed)
  expect(finding.message).toContain(`${at}: Invalid \`signature\` in \`thinking\` block.`)
  // A list in one file, and lines, are read as the same sequence.
  for (const written of [JSON.stringify(requests), requests.map(each => JSON.stringify(each)).join('\n')]) {
    const file = join(folder, 'all')
    await writeFile(file, written)
    const all = await captured(io => lint(io, file, { json: true }))
    expect(
      JSON.parse(all.text).histories.map(
        (each: { profiles: { refused: boolean }[] }) => each.profiles[0]?.refused,
      ),
    ).toEqual([false, true])
  }
})

test('thinking that stays before a change, or that the API may drop, is no alarm; a lost cache is a note', async () => {
  const folder = await temporaryFolder()
  const sequence = async (requests: object[]) => {
    const file = join(folder, 'all.json')
    await writeFile(file, JSON.stringify(requests))
    const { code, text } = await captured(io => lint(io, file, { json: true }))
    return { code, last: JSON.parse(text).histories.at(-1) }
  }
  const kept = claudeBody([said('hi'), answered(thought, hello), said('more')])
  const marked = {
    ...kept,
    system: [{ type: 'text', text: 'be brief', cache_control: { type: 'ephemeral' } }],
  }
  expect(await sequence([FIRST, marked])).toMatchObject({ code: 0 })
  const dropping = { type: 'adaptive', block_binding: { prefix_mismatch_behavior: 'drop_block' } }
  expect(await sequence([FIRST, { ...kept, system: 'x', thinking: dropping }])).toMatchObject({ code: 0 })
  const older = (system: string) => ({ ...kept, model: 'claude-opus-4-6', system })
  const { code, last } = await sequence([older('a'), older('b')])
  expect(code).toBe(0)
  expect(last.notes).toEqual([
    'The `system` prompt differs from that of the request before. The prompt cache does not hold from there on.',
  ])
})

test('lango lint finds a request body in a log or an error', async () => {
  const body = { model: 'gpt-4.1', messages: [{ role: 'tool', tool_call_id: 'a', content: 'ok' }] }
  for (const wrapped of [
    { body },
    { request: { body: JSON.stringify(body) } },
    { requestBodyValues: body },
  ]) {
    expect(await lintJson(wrapped)).toMatchObject({ code: 3, found: ['orphan-result'] })
  }
})

const REFUSED = {
  model: 'gpt-4.1',
  temperature: 0.2,
  messages: [
    { role: 'user', content: 'Pay.' },
    { role: 'assistant', content: null, tool_calls: [chatCall('a')] },
    { role: 'user', content: 'Well?' },
  ],
}

async function written(content: unknown, name = 'request.json'): Promise<string> {
  const file = join(await temporaryFolder(), name)
  await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content))
  return file
}

test('lango lint --output writes the repaired request to another file, which is accepted', async () => {
  const file = await written(REFUSED)
  const output = `${file}.healed`
  const { code, text } = await captured(io => lint(io, file, { output }))
  expect(code).toBe(0)
  expect(text).toContain('repair: The call of f had no result: one was added that says so.')
  expect(text).toContain(`Wrote ${output}. The same request with its messages repaired for openai-chat.`)
  expect(JSON.parse(await readFile(file, 'utf8'))).toEqual(REFUSED)
  expect(JSON.parse(await readFile(output, 'utf8'))).toMatchObject({
    model: 'gpt-4.1',
    temperature: 0.2,
    messages: [
      { role: 'user' },
      { role: 'assistant' },
      { role: 'tool', tool_call_id: 'a' },
      { role: 'user' },
    ],
  })
  expect((await captured(io => lint(io, output, {}))).code).toBe(0)
})

test('lango lint --fix repairs a request in its own file, keeps its mode, and writes nothing the second time', async () => {
  const file = await written(REFUSED)
  // More than a usual umask leaves to a new file.
  await chmod(file, 0o666)
  expect(await captured(io => lint(io, file, { fix: true }))).toMatchObject({
    code: 0,
    text: expect.stringContaining(`Wrote ${file}.`),
  })
  const repaired = await readFile(file, 'utf8')
  expect(JSON.parse(repaired).messages).toHaveLength(4)
  expect((await stat(file)).mode & 0o777).toBe(0o666)
  expect(await captured(io => lint(io, file, { fix: true }))).toMatchObject({
    code: 0,
    text: expect.stringContaining(`Nothing to repair: ${file} was not written.`),
  })
  expect(await readFile(file, 'utf8')).toBe(repaired)
})

test('lango lint --output writes the history of another framework as a Lango export', async () => {
  const file = join(await temporaryFolder(), 'adk.db')
  writeAdkDatabase(file, 'typescript', BRICKED)
  const output = join(await temporaryFolder(), 'healed.jsonl')
  const { code, text } = await captured(io => lint(io, file, { output, json: true }))
  expect(code).toBe(0)
  expect(JSON.parse(text).healed).toEqual({
    file: output,
    note: `A Lango export. Take it over with: lango sessions import ${output}`,
    left: [],
  })
  expect((await captured(io => lint(io, output, {}))).code).toBe(0)
})

test('lango lint --output names what repair cannot change, with exit code 3', async () => {
  const file = await written({ ...REFUSED, tool_choice: 'required' })
  const { code, text } = await captured(io => lint(io, file, { fix: true }))
  expect(code).toBe(3)
  expect(text.slice(text.indexOf('Wrote'))).toContain('Still rejected, because it is not in the messages:')
})

test('lango lint names the command that writes the repaired history', async () => {
  const file = await written(REFUSED)
  const { text } = await captured(io => lint(io, file, {}))
  expect(text).toContain(`To write the repaired history: lango lint ${file} --output healed.json\n`)
})

test.each([
  ['a stored session', [], { session: 's1', fix: true }, 'lango doctor --session ID --fix'],
  ['several files', ['a.json', 'b.json'], { fix: true }, 'one file at a time'],
  ['standard input in place', ['-'], { fix: true }, 'use --output FILE'],
  ['both flags', ['a.json'], { fix: true, output: 'b.json' }, 'cannot be combined'],
  ['the same file', ['a.json'], { output: './a.json' }, '--fix rewrites a.json'],
  ['to standard output', ['a.json'], { output: '-' }, 'Name a file after --output'],
])('lango lint refuses to repair %s', async (_name, files, flags, message) => {
  await expect(lint(memoryIo(), files, flags)).rejects.toMatchObject({
    code: 'invalid-argument',
    message: expect.stringContaining(message),
  })
})

test.each([
  ['a request inside a log entry', { at: 1, body: REFUSED }, {}, '--fix would change the form'],
  ['several requests', [REFUSED, REFUSED], {}, 'holds 2 histories'],
  ['a request for another vendor', REFUSED, { profile: 'gemini-3' }, 'is not a request for gemini-3'],
])('lango lint --fix leaves the file of %s as it is', async (_name, content, flags, message) => {
  const file = await written(content)
  await expect(lint(memoryIo(), file, { ...flags, fix: true })).rejects.toMatchObject({
    code: 'invalid-argument',
    message: expect.stringContaining(message),
  })
  expect(JSON.parse(await readFile(file, 'utf8'))).toEqual(content)
})

test.each([
  ['a field', '"seed":12345678901234567890', '12345678901234567890'],
  ['the arguments of a call', '"seed":1', '98765432109876543210'],
])(
  'lango lint --fix refuses a request with a number in %s that it would change',
  async (_name, seed, number) => {
    const call = chatCall('a', `{"n":${number}}`)
    const messages = [
      { role: 'user', content: 'order 1111111111111111111111' },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'user', content: 'and' },
    ]
    const text = `{"model":"gpt-5.2",${seed},"messages":${JSON.stringify(messages)}}`
    const file = join(await temporaryFolder(), 'request.json')
    await writeFile(file, text)
    await expect(lint(memoryIo(), file, { fix: true })).rejects.toMatchObject({
      code: 'invalid-argument',
      message: expect.stringContaining('has more digits than'),
    })
    expect(await readFile(file, 'utf8')).toBe(text)
  },
)

test('lango lint --fix repairs a request whose texts have long rows of digits', async () => {
  const messages = [
    { role: 'user', content: 'order 1111111111111111111111, é1234567890123456789' },
    { role: 'assistant', content: null, tool_calls: [chatCall('a', '{"n":"22222222222222222222"}')] },
    { role: 'user', content: 'and' },
  ]
  const file = await written({ model: 'gpt-5.2', messages })
  await writeFile(file, (await readFile(file, 'utf8')).replace('é', '\\u00e9'))
  expect((await captured(io => lint(io, file, { fix: true }))).code).toBe(0)
  expect(JSON.parse(await readFile(file, 'utf8')).messages[0]).toEqual(messages[0])
})

test('lango lint --fix adds no cache mark to a request for Claude, which may have four of its own', async () => {
  const mark = { cache_control: { type: 'ephemeral' } }
  const system = ['one', 'two', 'three', 'four'].map(text => ({ type: 'text', text, ...mark }))
  const tools = [{ name: 'f', input_schema: { type: 'object', properties: {} } }]
  const messages = [
    { role: 'user', content: 'Pay.' },
    { role: 'assistant', content: [{ ...claudeCall, input: mark }] },
    { role: 'user', content: 'Well?' },
  ]
  const file = await written({ model: 'claude-sonnet-4-6', max_tokens: 100, system, tools, messages })
  expect((await captured(io => lint(io, file, { fix: true }))).code).toBe(0)
  const repaired = JSON.parse(await readFile(file, 'utf8'))
  expect(repaired).toMatchObject({ system, tools })
  expect(repaired.messages[1].content[0].input).toEqual(mark)
  expect(JSON.stringify(repaired.messages).split('cache_control')).toHaveLength(2)
})

test('lango lint --output refuses a link to the file itself', async () => {
  const file = await written(REFUSED)
  const link = join(await temporaryFolder(), 'link.json')
  await symlink(file, link)
  await expect(lint(memoryIo(), link, { output: file })).rejects.toMatchObject({
    message: expect.stringContaining('--output names the file itself'),
  })
  expect(JSON.parse(await readFile(file, 'utf8'))).toEqual(REFUSED)
})

test('an empty file name is refused as a file that does not exist', async () => {
  const io = memoryIo({ cwd: await temporaryFolder() })
  await expect(lint(io, '', {})).rejects.toThrow(/^ does not exist\. Pass a Lango export/)
})

test('lint names the message of DeepSeek V4 that came without its reasoning', async () => {
  const file = join(await temporaryFolder(), 'history.json')
  const call = { role: 'assistant', content: null, reasoning_content: 'x', tool_calls: [chatCall('call_1')] }
  const messages = [
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: 'hello' },
    { role: 'user', content: 'go' },
    call,
    { role: 'tool', tool_call_id: 'call_1', content: 'ok' },
  ]
  const tools = [
    { type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } },
  ]
  await writeFile(file, JSON.stringify({ model: 'deepseek-v4-flash', messages, tools }))
  const { text } = await captured(io => lint(io, file, { json: true }))
  expect(JSON.parse(text).histories[0].profiles).toMatchObject([
    { profile: 'deepseek-v4', findings: [{ code: 'missing-reasoning', at: 1 }] },
  ])
})
