import { expect, test } from 'vitest'
import type { RequestSummary } from './script.js'
import { defaultModel } from './strict-server.js'

const parameters = {
  type: 'OBJECT',
  properties: {
    city: { type: 'STRING' },
    unit: { type: 'string', enum: ['C', 'F'] },
    days: { type: 'integer', minimum: 2 },
    note: { type: 'string' },
  },
  required: ['city', 'unit', 'days'],
}

function request(text: string, change: Partial<RequestSummary> = {}): RequestSummary {
  return {
    model: 'm',
    stream: false,
    system: '',
    messages: [{ role: 'user', text, toolCalls: [], toolResults: [] }],
    lastUserText: text,
    tools: [
      { name: 'get_weather', parameters },
      { name: 'add', parameters: {} },
    ],
    toolChoice: 'auto',
    body: {},
    ...change,
  }
}

test('the default model repeats the user’s text', () => {
  expect(defaultModel(request('good morning'))).toEqual({ text: 'You said: good morning' })
})

test('the default model calls the named tool, otherwise the first, with arguments that match its schema', () => {
  expect(defaultModel(request('please add this'))).toEqual({ toolCalls: [{ name: 'add', args: {} }] })
  expect(defaultModel(request('use a tool'))).toEqual({
    toolCalls: [{ name: 'get_weather', args: { city: 'use a tool', unit: 'C', days: 2 } }],
  })
})

test('the default model follows the tool choice', () => {
  expect(defaultModel(request('use a tool', { toolChoice: 'none' }))).toHaveProperty('text')
  expect(defaultModel(request('hello', { toolChoice: 'required' }))).toHaveProperty('toolCalls')
  expect(defaultModel(request('hello', { toolChoice: { name: 'add' } }))).toMatchObject({
    toolCalls: [{ name: 'add' }],
  })
})

test('the default model reports a tool’s result instead of calling it again', () => {
  const answered = {
    role: 'tool',
    text: '',
    toolCalls: [],
    toolResults: [{ name: 'add', content: '3' }],
  } as const
  const { messages } = request('use add')
  expect(defaultModel(request('use add', { messages: [...messages, answered] }))).toEqual({
    text: 'The tool add returned: 3',
  })
})
