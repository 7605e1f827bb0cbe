import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { convertToModelMessages, type UIMessage } from 'ai'
import { expect, test } from 'vitest'
import { messagesToProvider } from '../../src/adk/messages-to-provider.js'
import { lint } from '../../src/cli/lint.js'
import { importSessions } from '../../src/cli/sessions-import.js'
import { type FileHistory, readHistoryFile } from '../../src/formats/history-files.js'
import type { ProviderMessage, ProviderPart } from '../../src/provider/provider.js'
import { openStore } from '../../src/store/open-store.js'
import { captured } from '../cli/doctor-output.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import {
  AGENTS_ITEMS,
  ANTHROPIC_BODY,
  CLAUDE_CODE_LINES,
  CODEX_LINES,
  CONVERSATION,
  LANGCHAIN_MESSAGES,
  MASTRA_MESSAGES,
  MODEL_MESSAGES,
  PI_LINES,
  PICTURE,
  UI_MESSAGES,
} from './foreign-conversations.js'

async function written(content: unknown): Promise<string> {
  const file = join(await temporaryFolder(), 'history.json')
  await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content))
  return file
}

function lines(rows: readonly unknown[]): string {
  return rows.map(row => JSON.stringify(row)).join('\n')
}

/** The messages of a history as a model would get them: answers to one set of calls are together. */
function spoken(history: FileHistory | undefined): ProviderMessage[] {
  const messages: { role: string; parts: ProviderPart[] }[] = []
  for (const { role, parts } of (history?.messages ?? []) as ProviderMessage[]) {
    const onlyResults = parts.length > 0 && parts.every(part => part.type === 'tool-result')
    const own = onlyResults ? 'tool' : role
    const last = messages.at(-1)
    if (own === 'tool' && last?.role === 'tool') last.parts.push(...parts.map(plain))
    else messages.push({ role: own, parts: parts.map(plain) })
  }
  return messages
}

/** The name of a model and who signed differ between the programs. */
function plain(part: ProviderPart): ProviderPart {
  return part.type === 'reasoning' ? { ...part, origin: { vendor: 'anthropic' } } : part
}

/** Some programs do not store whether a call failed. */
function withoutFailure(messages: readonly ProviderMessage[]): unknown {
  return messages.map(({ role, parts }) => ({
    role,
    parts: parts.map(part => {
      if (part.type !== 'tool-result') return part
      const { isError: _isError, ...rest } = part
      return rest
    }),
  }))
}

test.each([
  ['ai-sdk-ui', UI_MESSAGES, true],
  ['ai-sdk-ui', { id: 'chat', messages: UI_MESSAGES, trigger: 'submit-message' }, true],
  ['ai-sdk-model', MODEL_MESSAGES, true],
  ['anthropic', ANTHROPIC_BODY, true],
  ['langchain', LANGCHAIN_MESSAGES.serialized, true],
  ['langchain', LANGCHAIN_MESSAGES.stored, true],
  ['langchain', LANGCHAIN_MESSAGES.plain, true],
  ['mastra', MASTRA_MESSAGES, false],
  ['openai-agents', AGENTS_ITEMS, false],
  ['openai-agents', { history: AGENTS_ITEMS }, false],
  ['claude-code', lines(CLAUDE_CODE_LINES), true],
  ['codex', lines(CODEX_LINES), false],
  ['pi', lines(PI_LINES), true],
])(
  'a conversation of %s is recognized and read without loss (row %#)',
  async (format, content, tellsFailure) => {
    const read = await readHistoryFile(await written(content))
    expect(read.format).toBe(format)
    const found = spoken(read.histories[0])
    if (tellsFailure) expect(found).toEqual(CONVERSATION)
    else expect(withoutFailure(found)).toEqual(withoutFailure(CONVERSATION))
  },
)

test('UI messages are read as the AI SDK itself converts them', async () => {
  const converted = await convertToModelMessages(UI_MESSAGES as UIMessage[])
  const ours = await readHistoryFile(await written(UI_MESSAGES))
  const theirs = await readHistoryFile(await written(converted))
  expect(theirs.format).toBe('ai-sdk-model')
  expect(spoken(ours.histories[0])).toEqual(spoken(theirs.histories[0]))
})

test('the parts of a transcript that are left out are reported', async () => {
  const read = await readHistoryFile(await written(lines(CLAUDE_CODE_LINES)))
  expect(read.histories[0]).toMatchObject({
    name: 'cc1',
    notes: [
      '1 on branches that were left are not read.',
      '1 lines are not messages (settings, snapshots, progress).',
    ],
  })
})

test('sub-agents of a transcript are read as separate conversations', async () => {
  const aside = CLAUDE_CODE_LINES.slice(1, 2).map(line => ({ ...line, isSidechain: true, agentId: 'x7' }))
  const read = await readHistoryFile(await written(lines([...CLAUDE_CODE_LINES, ...aside])))
  expect(read.histories.map(({ name }) => name)).toEqual(['cc1', 'cc1 (x7)'])
})

test('a line that was cut off by a crash is reported, and the lines before it are read', async () => {
  const cut = `${lines(PI_LINES)}\n{"type":"message","id":"e7","mess`
  const read = await readHistoryFile(await written(cut))
  expect(spoken(read.histories[0])).toEqual(CONVERSATION)
  const notes = read.histories[0] && 'notes' in read.histories[0] ? read.histories[0].notes : []
  expect(notes).toContain('Line 8, the last one, is incomplete and is not read.')
})

test.each([
  [
    'openai-chat',
    {
      model: 'gpt-5.2',
      messages: [
        {
          role: 'tool',
          tool_call_id: 'a',
          content: [
            { type: 'text', text: 'seen' },
            { type: 'image_url', image_url: { url: `data:image/png;base64,${PICTURE}` } },
          ],
        },
      ],
    },
  ],
  [
    'anthropic',
    {
      messages: [
        {
          role: 'user',
          content: [
            {
              type: 'tool_result',
              tool_use_id: 'a',
              content: [
                { type: 'text', text: 'seen' },
                { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PICTURE } },
              ],
            },
          ],
        },
      ],
    },
  ],
  [
    'openai-responses',
    {
      input: [
        {
          type: 'function_call_output',
          call_id: 'a',
          output: [
            { type: 'input_text', text: 'seen' },
            { type: 'input_image', image_url: `data:image/png;base64,${PICTURE}` },
          ],
        },
      ],
    },
  ],
])('an image in a tool result of %s is kept', async (format, body) => {
  const read = await readHistoryFile(await written(body))
  expect(read.format).toBe(format)
  expect(read.histories[0]?.messages[0]).toMatchObject({
    parts: [{ result: 'seen', media: [{ type: 'media', mimeType: 'image/png', data: PICTURE }] }],
  })
})

const spokenOnly = [
  { role: 'user', content: 'hi' },
  { role: 'assistant', content: 'hello' },
]

const ITEMS = ['openai-responses', 'openai-agents']

test.each([
  ['texts with roles', spokenOnly, [...ITEMS, 'openai-chat', 'anthropic', 'ai-sdk-model']],
  ['texts in a body', { messages: spokenOnly }, ['openai-chat', 'anthropic', 'ai-sdk-model']],
  ['texts as lines', lines(spokenOnly), [...ITEMS, 'openai-chat', 'anthropic', 'ai-sdk-model']],
  ['one text', spokenOnly.slice(0, 1), [...ITEMS, 'openai-chat', 'anthropic', 'ai-sdk-model']],
  [
    'text parts',
    [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }],
    ['openai-chat', 'anthropic', 'ai-sdk-model'],
  ],
  [
    'a system text first',
    [{ role: 'system', content: 'be brief' }, ...spokenOnly],
    [...ITEMS, 'openai-chat', 'ai-sdk-model'],
  ],
  [
    'typed messages',
    spokenOnly.map(message => ({ type: 'message', ...message })),
    ['openai-responses', 'openai-agents'],
  ],
  ['empty lists of parts', [{ role: 'user', parts: [] }], ['gemini', 'ai-sdk-ui']],
])(
  'a file that fits several formats (%s) is checked for all of them, and they are named',
  async (_, content, candidates) => {
    const file = await written(content)
    const read = await readHistoryFile(file)
    expect(read.format).toBeUndefined()
    expect(read.candidates).toEqual(candidates)
    const { text } = await captured(io => lint(io, file, {}))
    expect(text).toContain('not sure, it could be')
    const { text: json } = await captured(io => lint(io, file, { json: true }))
    expect(JSON.parse(json)).toMatchObject({ format: 'not sure', candidates })
  },
)

const mixed = [
  { role: 'assistant', content: null, tool_calls: [{ id: 'a', function: { name: 'f', arguments: '{}' } }] },
  { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: 'ok' }] },
]

test.each([
  ['calls of OpenAI and results of Anthropic', mixed],
  [
    'parts of Gemini and of the AI SDK',
    [{ role: 'user', parts: [{ text: 'a' }, { type: 'text', text: 'b' }] }],
  ],
  ['lines of two programs', lines([...PI_LINES, ...CODEX_LINES])],
])('a file that fits several formats (%s) is refused until the format is chosen', async (_, content) => {
  const file = await written(content)
  await expect(readHistoryFile(file)).rejects.toThrow(/not sure, it could be .* or .*Choose with --format/)
})

test('a chosen format is used, and an unknown name is refused with a suggestion', async () => {
  const file = await written(mixed)
  expect((await readHistoryFile(file, 'openai-chat')).format).toBe('openai-chat')
  expect((await readHistoryFile(file, 'anthropic')).format).toBe('anthropic')
  await expect(readHistoryFile(file, 'antropic')).rejects.toThrow(/Did you mean anthropic\?/)
})

test('each line of a file that is a request is checked separately', async () => {
  const read = await readHistoryFile(await written(lines([ANTHROPIC_BODY, ANTHROPIC_BODY])))
  expect(read.format).toBe('anthropic')
  expect(read.histories.map(({ name }) => name)).toEqual(['line 1', 'line 2'])
})

test.each([
  ['AI SDK UI messages', JSON.stringify(UI_MESSAGES)],
  ['LangChain messages', JSON.stringify(LANGCHAIN_MESSAGES.stored)],
  ['a Claude Code transcript', lines(CLAUDE_CODE_LINES)],
  ['a pi transcript', lines(PI_LINES)],
])('%s are imported, and the stored messages are those that were read', async (_, content) => {
  const file = await written(content)
  const url = `sqlite:${join(await temporaryFolder(), 'lango.db')}`
  const { code } = await captured(io => importSessions(io, [file], { store: url, as: 'imported' }))
  expect(code).toBe(0)
  const store = await openStore(url)
  const key = { appName: 'lango', userId: 'user', sessionId: 'imported' }
  const stored = messagesToProvider(await store.readMessages(key))
  await store.close()
  const history = { kind: 'transcript' as const, name: '', notes: [], rows: [], messages: [] }
  const found = spoken({ ...history, messages: stored.map(message => ({ ...message, place: '' })) })
  const wrapped = CONVERSATION.map(({ role, parts }) => ({
    role,
    parts: parts.map(part =>
      part.type === 'tool-result'
        ? { ...part, result: part.isError ? { error: part.result } : { result: part.result } }
        : part,
    ),
  }))
  expect(found).toEqual(wrapped)
})

const HEADER = {
  lango: 1,
  key: { appName: 'a', userId: 'u', sessionId: 's' },
  state: {},
  createdAt: 1,
  updatedAt: 1,
  totalMessages: 0,
}

test.each([
  ['a list', '[]', undefined],
  ['messages', '{"messages":[]}', undefined],
  ['messages of Claude', '{"messages":[],"system":"Be brief."}', undefined],
  ['contents', '{"contents":[]}', 'a Gemini request'],
  ['input', '{"input":[]}', 'an OpenAI Responses request'],
  ['messages of Converse', '{"messages":[],"inferenceConfig":{}}', 'a Bedrock Converse request'],
  ['an export', JSON.stringify(HEADER), 'a Lango export'],
  ['a session of ADK', '{"id":"s","appName":"a","userId":"u","state":{},"events":[]}', 'an ADK session'],
  ['a pi transcript', lines(PI_LINES.filter(line => !('message' in line))), undefined],
  [
    'a Codex transcript',
    lines(CODEX_LINES.filter(line => line.type !== 'response_item')),
    'a Codex transcript',
  ],
])('a file without messages (%s) is refused with the reason', async (_, content, what) => {
  const file = await written(content)
  const linted = captured(io => lint(io, file, {}))
  await expect(linted).rejects.toThrow('holds no messages')
  if (what !== undefined) await expect(linted).rejects.toThrow(`It is ${what}`)
})
