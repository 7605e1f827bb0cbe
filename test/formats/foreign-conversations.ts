/** One conversation as each program writes it: a picture, thoughts, two calls of which one fails, and an answer. */
import type { ProviderMessage } from '../../src/provider/provider.js'

export const PICTURE = 'iVBORw0KGgo='
export const SIGNATURE = 'c2lnbmVk'

/** What every reader finds, apart from where thoughts come from. */
export const CONVERSATION: readonly ProviderMessage[] = [
  { role: 'user', parts: [text('What is this?'), { type: 'media', mimeType: 'image/png', data: PICTURE }] },
  {
    role: 'assistant',
    parts: [
      { type: 'reasoning', text: 'A picture.', signature: SIGNATURE, origin: { vendor: 'anthropic' } },
      text('I look.'),
      { type: 'tool-call', id: 'call_1', name: 'look', args: { at: 'left' } },
      { type: 'tool-call', id: 'call_2', name: 'look', args: { at: 'right' } },
    ],
  },
  {
    role: 'tool',
    parts: [
      { type: 'tool-result', id: 'call_1', name: 'look', result: 'a cat' },
      { type: 'tool-result', id: 'call_2', name: 'look', result: 'too dark', isError: true },
    ],
  },
  { role: 'assistant', parts: [text('A cat.')] },
]

function text(words: string) {
  return { type: 'text' as const, text: words }
}

const signed = { anthropic: { signature: SIGNATURE } }

export const UI_MESSAGES = [
  {
    id: 'm1',
    role: 'user',
    parts: [
      { type: 'text', text: 'What is this?' },
      { type: 'file', mediaType: 'image/png', url: `data:image/png;base64,${PICTURE}` },
    ],
  },
  {
    id: 'm2',
    role: 'assistant',
    parts: [
      { type: 'step-start' },
      { type: 'reasoning', text: 'A picture.', state: 'done', providerMetadata: signed },
      { type: 'text', text: 'I look.', state: 'done' },
      {
        type: 'tool-look',
        toolCallId: 'call_1',
        state: 'output-available',
        input: { at: 'left' },
        output: 'a cat',
      },
      {
        type: 'dynamic-tool',
        toolName: 'look',
        toolCallId: 'call_2',
        state: 'output-error',
        input: { at: 'right' },
        errorText: 'too dark',
      },
      { type: 'step-start' },
      { type: 'text', text: 'A cat.' },
    ],
  },
]

export const MODEL_MESSAGES = [
  {
    role: 'user',
    content: [
      { type: 'text', text: 'What is this?' },
      { type: 'file', data: PICTURE, mediaType: 'image/png' },
    ],
  },
  {
    role: 'assistant',
    content: [
      { type: 'reasoning', text: 'A picture.', providerOptions: signed },
      { type: 'text', text: 'I look.' },
      { type: 'tool-call', toolCallId: 'call_1', toolName: 'look', input: { at: 'left' } },
      { type: 'tool-call', toolCallId: 'call_2', toolName: 'look', input: { at: 'right' } },
    ],
  },
  {
    role: 'tool',
    content: [
      {
        type: 'tool-result',
        toolCallId: 'call_1',
        toolName: 'look',
        output: { type: 'text', value: 'a cat' },
      },
      {
        type: 'tool-result',
        toolCallId: 'call_2',
        toolName: 'look',
        output: { type: 'error-text', value: 'too dark' },
      },
    ],
  },
  { role: 'assistant', content: [{ type: 'text', text: 'A cat.' }] },
]

const blocks = [
  { type: 'thinking', thinking: 'A picture.', signature: SIGNATURE },
  { type: 'text', text: 'I look.' },
]
const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PICTURE } }
const toolUse = (id: string, at: string) => ({ type: 'tool_use', id, name: 'look', input: { at } })
const uses = [toolUse('call_1', 'left'), toolUse('call_2', 'right')]
const toolResults = [
  { type: 'tool_result', tool_use_id: 'call_1', content: [{ type: 'text', text: 'a cat' }] },
  { type: 'tool_result', tool_use_id: 'call_2', content: 'too dark', is_error: true },
]

export const ANTHROPIC_BODY = {
  messages: [
    { role: 'user', content: [{ type: 'text', text: 'What is this?' }, image] },
    { role: 'assistant', content: [...blocks, ...uses] },
    { role: 'user', content: toolResults },
    { role: 'assistant', content: [{ type: 'text', text: 'A cat.' }] },
  ],
}

const langChainCalls = [
  { name: 'look', args: { at: 'left' }, id: 'call_1', type: 'tool_call' },
  { name: 'look', args: { at: 'right' }, id: 'call_2', type: 'tool_call' },
]
const langChain: [string, Record<string, unknown>][] = [
  ['human', { content: [{ type: 'text', text: 'What is this?' }, image] }],
  ['ai', { content: [...blocks, ...uses], tool_calls: langChainCalls, invalid_tool_calls: [] }],
  ['tool', { content: 'a cat', tool_call_id: 'call_1', name: 'look', status: 'success' }],
  ['tool', { content: 'too dark', tool_call_id: 'call_2', name: 'look', status: 'error' }],
  ['ai', { content: 'A cat.', tool_calls: [] }],
]
const CLASSES: Readonly<Record<string, string>> = {
  human: 'HumanMessage',
  ai: 'AIMessage',
  tool: 'ToolMessage',
}

/** `messages.map(message => message.toJSON())`, `mapChatMessagesToStoredMessages`, and Python's `model_dump`. */
export const LANGCHAIN_MESSAGES = {
  serialized: langChain.map(([type, kwargs]) => ({
    lc: 1,
    type: 'constructor',
    id: ['langchain_core', 'messages', CLASSES[type]],
    kwargs,
  })),
  stored: langChain.map(([type, data]) => ({ type, data })),
  plain: { values: { messages: langChain.map(([type, fields]) => ({ type, ...fields })) } },
}

const invocation = (toolCallId: string, at: string, result: string) => ({
  type: 'tool-invocation',
  toolInvocation: { state: 'result', step: 0, toolCallId, toolName: 'look', args: { at }, result },
})

export const MASTRA_MESSAGES = [
  {
    id: 'm1',
    role: 'user',
    createdAt: '2026-03-01T10:00:00.000Z',
    threadId: 't1',
    resourceId: 'ann',
    content: {
      format: 2,
      parts: [
        { type: 'text', text: 'What is this?' },
        { type: 'file', mimeType: 'image/png', data: PICTURE },
      ],
    },
  },
  {
    id: 'm2',
    role: 'assistant',
    createdAt: '2026-03-01T10:00:05.000Z',
    threadId: 't1',
    resourceId: 'ann',
    content: {
      format: 2,
      parts: [
        { type: 'step-start' },
        {
          type: 'reasoning',
          reasoning: '',
          details: [{ type: 'text', text: 'A picture.', signature: SIGNATURE }],
        },
        { type: 'text', text: 'I look.' },
        invocation('call_1', 'left', 'a cat'),
        invocation('call_2', 'right', 'too dark'),
        { type: 'step-start' },
        { type: 'text', text: 'A cat.' },
      ],
    },
  },
]

export const AGENTS_ITEMS = [
  {
    type: 'message',
    role: 'user',
    content: [
      { type: 'input_text', text: 'What is this?' },
      { type: 'input_image', image: `data:image/png;base64,${PICTURE}` },
    ],
  },
  {
    type: 'reasoning',
    id: 'rs_1',
    content: [{ type: 'input_text', text: 'A picture.' }],
    providerData: { encrypted_content: SIGNATURE },
  },
  {
    type: 'message',
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text: 'I look.' }],
  },
  { type: 'function_call', callId: 'call_1', name: 'look', arguments: '{"at":"left"}', status: 'completed' },
  { type: 'function_call', callId: 'call_2', name: 'look', arguments: '{"at":"right"}', status: 'completed' },
  {
    type: 'function_call_result',
    callId: 'call_1',
    name: 'look',
    status: 'completed',
    output: { type: 'text', text: 'a cat' },
  },
  { type: 'function_call_result', callId: 'call_2', name: 'look', status: 'completed', output: 'too dark' },
  {
    type: 'message',
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text: 'A cat.' }],
  },
]

const claudeLine = (uuid: string, parentUuid: string | null, message: Record<string, unknown>) => ({
  type: message.role,
  uuid,
  parentUuid,
  sessionId: 'cc1',
  isSidechain: false,
  timestamp: '2026-03-01T10:00:00.000Z',
  message,
})

/** Each block has a line of its own; a line of a branch that was left is among them. */
export const CLAUDE_CODE_LINES = [
  { type: 'summary', summary: 'A picture', leafUuid: 'u8' },
  claudeLine('u1', null, { role: 'user', content: [{ type: 'text', text: 'What is this?' }, image] }),
  claudeLine('u0', 'u1', {
    role: 'assistant',
    id: 'a0',
    content: [{ type: 'text', text: 'An answer left.' }],
  }),
  ...[...blocks, ...uses].map((block, index) =>
    claudeLine(`u${index + 2}`, `u${index + 1}`, { role: 'assistant', id: 'a1', content: [block] }),
  ),
  ...toolResults.map((block, index) =>
    claudeLine(`u${index + 6}`, `u${index + 5}`, { role: 'user', content: [block] }),
  ),
  claudeLine('u8', 'u7', { role: 'assistant', id: 'a2', content: [{ type: 'text', text: 'A cat.' }] }),
]

const codexItem = (payload: Record<string, unknown>) => ({
  timestamp: '2026-03-01T10:00:00.000Z',
  type: 'response_item',
  payload,
})

export const CODEX_LINES = [
  { timestamp: '2026-03-01T10:00:00.000Z', type: 'session_meta', payload: { id: 'cx1', cwd: '/tmp' } },
  codexItem({
    type: 'message',
    role: 'user',
    content: [
      { type: 'input_text', text: 'What is this?' },
      { type: 'input_image', image_url: `data:image/png;base64,${PICTURE}` },
    ],
  }),
  {
    timestamp: '2026-03-01T10:00:01.000Z',
    type: 'event_msg',
    payload: { type: 'agent_message', message: 'x' },
  },
  codexItem({
    type: 'reasoning',
    summary: [{ type: 'summary_text', text: 'A picture.' }],
    encrypted_content: SIGNATURE,
  }),
  codexItem({ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'I look.' }] }),
  codexItem({ type: 'function_call', name: 'look', arguments: '{"at":"left"}', call_id: 'call_1' }),
  codexItem({ type: 'function_call', name: 'look', arguments: '{"at":"right"}', call_id: 'call_2' }),
  codexItem({ type: 'function_call_output', call_id: 'call_1', output: 'a cat' }),
  codexItem({ type: 'function_call_output', call_id: 'call_2', output: 'too dark' }),
  codexItem({ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'A cat.' }] }),
]

const piLine = (id: string, parentId: string | null, message: Record<string, unknown>) => ({
  type: 'message',
  id,
  parentId,
  timestamp: '2026-03-01T10:00:00.000Z',
  message,
})

export const PI_LINES = [
  { type: 'session', version: 3, id: 'pi1', timestamp: '2026-03-01T10:00:00.000Z', cwd: '/tmp' },
  piLine('e1', null, {
    role: 'user',
    content: [
      { type: 'text', text: 'What is this?' },
      { type: 'image', data: PICTURE, mimeType: 'image/png' },
    ],
  }),
  { type: 'model_change', id: 'e2', parentId: 'e1', provider: 'anthropic', modelId: 'claude-sonnet-4-6' },
  piLine('e3', 'e2', {
    role: 'assistant',
    api: 'anthropic-messages',
    provider: 'anthropic',
    model: 'claude-sonnet-4-6',
    content: [
      { type: 'thinking', thinking: 'A picture.', thinkingSignature: SIGNATURE },
      { type: 'text', text: 'I look.' },
      { type: 'toolCall', id: 'call_1', name: 'look', arguments: { at: 'left' } },
      { type: 'toolCall', id: 'call_2', name: 'look', arguments: { at: 'right' } },
    ],
  }),
  piLine('e4', 'e3', {
    role: 'toolResult',
    toolCallId: 'call_1',
    toolName: 'look',
    content: [{ type: 'text', text: 'a cat' }],
    isError: false,
  }),
  piLine('e5', 'e4', {
    role: 'toolResult',
    toolCallId: 'call_2',
    toolName: 'look',
    content: [{ type: 'text', text: 'too dark' }],
    isError: true,
  }),
  piLine('e6', 'e5', { role: 'assistant', content: [{ type: 'text', text: 'A cat.' }] }),
]
