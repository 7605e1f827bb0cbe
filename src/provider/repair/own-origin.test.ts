import { expect, test } from 'vitest'
import type { ProviderMessage, ProviderPart } from '../provider.js'
import type { ProfileName } from './profile.js'
import { repairHistory } from './repair-history.js'

const user: ProviderMessage = { role: 'user', parts: [{ type: 'text', text: 'hi' }] }
const origin = (vendor: string, account?: string) => ({ origin: { vendor, ...(account && { account }) } })
const sent = (part: ProviderPart, profile: ProfileName, account?: string) =>
  repairHistory(
    [user, { role: 'assistant', parts: [part, { type: 'text', text: 'so' }] }, user],
    profile,
    account === undefined ? {} : { account },
  ).messages[1]?.parts

const thought = (vendor: string, account?: string): ProviderPart => ({
  type: 'reasoning',
  text: 'hm',
  signature: 'c2ln',
  ...origin(vendor, account),
})

test.each<[ProfileName, string]>([
  ['openai-responses', 'openai'],
  ['anthropic-4.6', 'anthropic'],
])('%s gets reasoning that was sealed for its own account, or for none', (profile, vendor) => {
  const rest = { type: 'text', text: 'so' }
  expect(sent(thought(vendor, 'a'), profile, 'a')).toEqual([thought(vendor, 'a'), rest])
  expect(sent(thought(vendor), profile, 'a')).toEqual([thought(vendor), rest])
  expect(sent(thought(vendor, 'a'), profile)).toEqual([thought(vendor, 'a'), rest])
  expect(sent(thought(vendor, 'a'), profile, 'b')).toEqual([rest])
})

test('Gemini gets the words of another account without their signatures', () => {
  const text: ProviderPart = { type: 'text', text: 'yes', signature: 'c2ln', ...origin('gemini', 'a') }
  expect(sent(text, 'gemini-3', 'a')?.[0]).toBe(text)
  expect(sent(text, 'gemini-3', 'b')?.[0]).toEqual({ type: 'text', text: 'yes', ...origin('gemini', 'a') })
  expect(sent(thought('gemini', 'a'), 'gemini-3', 'b')?.[0]).not.toHaveProperty('signature')
})

test('what a server tool of Claude found for another account is sent as words', () => {
  const part = (value: object, text: string): ProviderPart => ({
    type: 'vendor',
    vendor: 'anthropic',
    value,
    text,
    ...origin('anthropic', 'a'),
  })
  const question = part(
    { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} },
    'It searched.',
  )
  const found = part(
    { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] },
    'It found this.',
  )
  const history: ProviderMessage[] = [user, { role: 'assistant', parts: [question, found] }, user]
  expect(repairHistory(history, 'anthropic-4.6', { account: 'a' }).messages).toBe(history)
  const { messages, repairs } = repairHistory(history, 'anthropic-4.6', { account: 'b' })
  expect(messages[1]?.parts).toEqual([
    { type: 'text', text: 'It searched.' },
    { type: 'text', text: 'It found this.' },
  ])
  expect(repairs).toMatchObject([
    { step: 'translate-vendor-parts', kind: 'translate', at: 1 },
    { step: 'translate-vendor-parts', kind: 'translate', at: 1 },
  ])
})

test('a server tool’s finding whose question another account made is sent as text with it', () => {
  const half = (value: object, account: string): ProviderMessage['parts'][number] => ({
    type: 'vendor',
    vendor: 'anthropic',
    value,
    text: 'words',
    origin: { vendor: 'anthropic', account },
  })
  const history: ProviderMessage[] = [
    { role: 'user', parts: [{ type: 'text', text: 'hi' }] },
    {
      role: 'assistant',
      parts: [
        half({ type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} }, 'b'),
        half({ type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] }, 'a'),
      ],
    },
  ]
  const { messages } = repairHistory(history, 'anthropic-4.6', { account: 'a' })
  expect(messages[1]?.parts.map(({ type }) => type)).toEqual(['text', 'text'])
})
