import { expect, test } from 'vitest'
import type { MediaPart, ProviderMessage, ProviderPart } from '../provider.js'
import { repairHistory } from './repair-history.js'

const image: MediaPart = { type: 'media', mimeType: 'image/png', data: 'eA==' }
const text = (words: string): ProviderPart => ({ type: 'text', text: words })
const user: ProviderMessage = { role: 'user', parts: [text('hi')] }
const calls = (...ids: string[]): ProviderMessage => ({
  role: 'assistant',
  parts: ids.map(id => ({ type: 'tool-call', id, name: 'camera', args: {} })),
})
const shot = (id: string, ...media: MediaPart[]): ProviderMessage => ({
  role: 'tool',
  parts: [{ type: 'tool-result', id, name: 'camera', result: 'ok', media }],
})
const plain = (id: string): ProviderMessage => ({
  role: 'tool',
  parts: [{ type: 'tool-result', id, name: 'camera', result: 'ok' }],
})

test('images of several results are placed after the last of them', () => {
  const { messages } = repairHistory(
    [user, calls('a', 'b'), shot('a', image), shot('b', image), { role: 'assistant', parts: [text('nice')] }],
    'openai-chat',
  )
  expect(messages).toEqual([
    user,
    calls('a', 'b'),
    plain('a'),
    plain('b'),
    { role: 'user', parts: [text('[image/png from camera]'), image, text('[image/png from camera]'), image] },
    { role: 'assistant', parts: [text('nice')] },
  ])
})

test('an image at the end becomes a separate user message', () => {
  const { messages } = repairHistory([user, calls('a'), shot('a', image)], 'openai-chat')
  expect(messages.slice(2)).toEqual([
    plain('a'),
    { role: 'user', parts: [text('[image/png from camera]'), image] },
  ])
})

test('an assistant’s image is placed after the results of its calls', () => {
  const drawn: ProviderMessage = { role: 'assistant', parts: [image, ...calls('a').parts] }
  const { messages } = repairHistory([user, drawn, plain('a')], 'openai-chat')
  expect(messages.map(message => message.role)).toEqual(['user', 'assistant', 'tool', 'user'])
})

test('a result keeps only media types that the model accepts', () => {
  const sound: MediaPart = { type: 'media', mimeType: 'audio/wav', data: 'eA==', name: 'beep.wav' }
  const { messages, repairs } = repairHistory([user, calls('a'), shot('a', image, sound)], 'anthropic-4.6')
  expect(messages[2]?.parts).toMatchObject([{ media: [image] }])
  expect(messages[3]?.parts).toEqual([text('[audio/wav beep.wav, which cannot be shown] from camera')])
  expect(repairs).toMatchObject([{ step: 'move-media', kind: 'stub', at: 2 }])
})

test('an assistant’s image is not placed between reasoning and its answer', () => {
  const thought: ProviderPart = {
    type: 'reasoning',
    text: 'hm',
    signature: 's',
    origin: { vendor: 'openai' },
  }
  const history: ProviderMessage[] = [
    user,
    { role: 'assistant', parts: [image, thought] },
    { role: 'assistant', parts: [text('so')] },
  ]
  const { messages } = repairHistory(history, 'openai-responses')
  expect(messages.map(message => message.role)).toEqual(['user', 'assistant', 'assistant', 'user'])
})
