import { expect, test, vi } from 'vitest'
import type { ProviderMessage } from '../provider/provider.js'
import type { Message } from '../session/message.js'
import { messagesToProvider } from './messages-to-provider.js'

// Linting a history must not cost the second that loading ADK takes.
vi.mock('@google/adk', () => expect.unreachable('ADK was loaded'))

const row = (fields: Partial<Message> & Pick<Message, 'role'>): Message => ({
  content: '',
  timestamp: 1,
  ...fields,
})

test.each<[string, Message[], ProviderMessage[]]>([
  [
    'texts keep their side',
    [
      row({ role: 'system', content: 's' }),
      row({ role: 'user', content: 'q' }),
      row({ role: 'model', content: 'a' }),
    ],
    [
      { role: 'system', parts: [{ type: 'text', text: 's' }] },
      { role: 'user', parts: [{ type: 'text', text: 'q' }] },
      { role: 'assistant', parts: [{ type: 'text', text: 'a' }] },
    ],
  ],
  [
    'an unknown role stays visible',
    [row({ role: 'narrator', content: 'x' })],
    [{ role: 'narrator', parts: [{ type: 'text', text: 'x' }] }],
  ],
  [
    'doubled ids stay doubled, and arguments are what they are',
    [
      row({ role: 'assistant', toolCalls: [{ id: 'x', name: 't', input: '[1]' }] }),
      row({ role: 'tool', toolCalls: [{ id: 'x', name: 't', output: 'plain' }] }),
      row({ role: 'assistant', toolCalls: [{ id: 'x', name: 't', input: '{broken' }] }),
    ],
    [
      { role: 'assistant', parts: [{ type: 'tool-call', id: 'x', name: 't', args: [1] }] },
      { role: 'tool', parts: [{ type: 'tool-result', id: 'x', name: 't', result: 'plain' }] },
      { role: 'assistant', parts: [{ type: 'tool-call', id: 'x', name: 't', args: '{broken' }] },
    ],
  ],
  [
    'a bare result finds its call by position',
    [
      row({ role: 'assistant', toolCalls: [{ id: '', name: 't', input: '{}' }] }),
      row({ role: 'tool', content: '{"a":1}' }),
    ],
    [
      { role: 'assistant', parts: [{ type: 'tool-call', id: 'call_t', name: 't', args: {} }] },
      { role: 'tool', parts: [{ type: 'tool-result', id: 'call_t', name: 't', result: { a: 1 } }] },
    ],
  ],
  [
    'a result without its call stays one',
    [row({ role: 'tool', toolCalls: [{ id: 'x', name: 't', output: '{}' }] })],
    [{ role: 'tool', parts: [{ type: 'tool-result', id: 'x', name: 't', result: {} }] }],
  ],
  [
    'a call that holds its answer becomes both',
    [
      row({
        role: 'assistant',
        content: 'so',
        toolCalls: [{ id: 'x', name: 't', input: '{}', output: '{"r":1}' }],
      }),
    ],
    [
      {
        role: 'assistant',
        parts: [
          { type: 'text', text: 'so' },
          { type: 'tool-call', id: 'x', name: 't', args: {} },
        ],
      },
      { role: 'tool', parts: [{ type: 'tool-result', id: 'x', name: 't', result: { r: 1 } }] },
    ],
  ],
  [
    'a result that has its output in the content takes it from there',
    [
      row({ role: 'assistant', toolCalls: [{ id: 'x', name: 't', input: '{}' }] }),
      row({ role: 'tool', content: '{"r":1}', toolCalls: [{ id: 'x', name: 't' }] }),
    ],
    [
      { role: 'assistant', parts: [{ type: 'tool-call', id: 'x', name: 't', args: {} }] },
      { role: 'tool', parts: [{ type: 'tool-result', id: 'x', name: 't', result: { r: 1 } }] },
    ],
  ],
  [
    'an event without content says nothing',
    [row({ role: 'assistant', extra: { content: false, errorCode: 'X' } })],
    [],
  ],
])('messagesToProvider: %s', (_, messages, expected) => {
  expect(messagesToProvider(messages)).toEqual(expected)
})
