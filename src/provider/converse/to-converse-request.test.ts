import { expect, test } from 'vitest'
import type { ProviderMessage } from '../provider.js'
import { PROFILES } from '../repair/profile.js'
import { toConverseRequest } from './to-converse-request.js'

const pdf = (name?: string): ProviderMessage => ({
  role: 'user',
  parts: [
    { type: 'media', mimeType: 'application/pdf', data: 'JVBERi0=', ...(name === undefined ? {} : { name }) },
  ],
})
const answer: ProviderMessage = { role: 'assistant', parts: [{ type: 'text', text: 'Read.' }] }

function namesIn(messages: ProviderMessage[]): string[] {
  const model = 'us.amazon.nova-pro-v1:0'
  const info = { id: model, contextWindow: 1000, outputLimit: 100, profile: 'converse', known: true }
  const { messages: sent } = toConverseRequest({
    ...{ model, messages, tools: [], options: {}, info, profile: PROFILES.converse },
    report: () => {},
  })
  return sent.flatMap(({ content }) => content.flatMap(({ document }) => document?.name ?? []))
}

test('documents of one request have different names, whatever their case', () => {
  const history = [
    pdf(),
    answer,
    pdf(),
    answer,
    pdf('Report.pdf'),
    answer,
    pdf('REPORT pdf'),
    answer,
    pdf('document 2'),
  ]
  expect(namesIn(history)).toEqual([
    'document 1',
    'document 2',
    'Report pdf',
    'REPORT pdf (2)',
    'document 2 (2)',
  ])
})

test('a document keeps its name while the history grows', () => {
  const history = [pdf('a.pdf'), answer, pdf(), answer, pdf('A pdf')]
  const whole = namesIn(history)
  for (let length = 1; length <= history.length; length += 1) {
    const names = namesIn(history.slice(0, length))
    expect(names).toEqual(whole.slice(0, names.length))
  }
})
