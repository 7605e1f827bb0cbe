import { expect, test } from 'vitest'
import { AgentError } from '../../errors.js'
import type { ProviderMessage } from '../provider.js'
import { PROFILES, type ProfileName } from './profile.js'
import { repairHistory } from './repair-history.js'

const PROFILE_NAMES = Object.keys(PROFILES) as ProfileName[]

const BROKEN: ProviderMessage[] = [
  { role: 'user', parts: [{ type: 'text', text: 'hi' }] },
  { role: 'assistant', parts: [{ type: 'tool-call', id: 'call-1', name: 'search', args: {} }] },
]

test('strict mode refuses a broken history with its findings', () => {
  expect.assertions(4)
  try {
    repairHistory(BROKEN, 'openai-chat', { mode: 'strict' })
  } catch (error) {
    expect(error).toBeInstanceOf(AgentError)
    const { code, details } = error as AgentError
    expect(code).toBe('history-illegal')
    expect(details.profile).toBe('openai-chat')
    expect(details.findings).toMatchObject([{ code: 'call-without-result', severity: 'breaks', at: 1 }])
  }
})

test('strict mode accepts what is mapped on every send', () => {
  const history: ProviderMessage[] = [
    ...BROKEN,
    { role: 'tool', parts: [{ type: 'tool-result', id: 'call-1', name: 'search', result: 'x' }] },
  ]
  const { messages, repairs, mappedIds } = repairHistory(history, 'mistral', { mode: 'strict' })
  expect(repairs.map(repair => repair.kind)).toEqual(['rename-id'])
  expect(mappedIds).toEqual({ 'call-1': expect.stringMatching(/^[a-zA-Z0-9]{9}$/) })
  expect(repairHistory(messages, 'mistral', { mode: 'strict' }).repairs).toEqual([])
})

test('explain mode reports changes and returns the input', () => {
  const { messages, repairs } = repairHistory(BROKEN, 'openai-chat', { mode: 'explain' })
  expect(messages).toBe(BROKEN)
  expect(repairs).toMatchObject([{ step: 'pair-calls', kind: 'synthesize-result', at: 1 }])
})

test('a valid history is returned as the same list', () => {
  const history: ProviderMessage[] = [
    { role: 'user', parts: [{ type: 'text', text: 'hi' }] },
    { role: 'assistant', parts: [{ type: 'text', text: 'hello' }] },
    { role: 'user', parts: [{ type: 'text', text: 'more' }] },
  ]
  for (const profile of PROFILE_NAMES) {
    const { messages, repairs } = repairHistory(history, profile)
    expect(messages).toBe(history)
    expect(repairs).toEqual([])
  }
})

test('an unchanged message stays the same object when its neighbour changes', () => {
  const { messages } = repairHistory(BROKEN, 'openai-chat')
  expect(messages[0]).toBe(BROKEN[0])
  expect(messages[1]).toBe(BROKEN[1])
})

test('a custom profile is used as given', () => {
  const gateway = { ...PROFILES['openai-chat'], name: 'gateway', last: 'user-or-tool' as const }
  const { messages } = repairHistory([{ role: 'assistant', parts: [{ type: 'text', text: 'a' }] }], gateway)
  expect(messages.at(-1)).toEqual({ role: 'user', parts: [{ type: 'text', text: '[continue]' }] })
})

test('an unknown profile is refused with the names of the known ones', () => {
  expect(() => repairHistory([], 'gpt-2')).toThrow(/no repair profile named "gpt-2".*gemini-3-strict/)
})

test('a history sent to other vendors and back keeps its signatures byte for byte', () => {
  const origin = { vendor: 'gemini', model: 'gemini-3-pro' }
  const history: ProviderMessage[] = [
    { role: 'user', parts: [{ type: 'text', text: 'hi' }] },
    {
      role: 'assistant',
      parts: [
        { type: 'reasoning', text: 'think', signature: 'AbC+/=', origin },
        { type: 'tool-call', id: 'g3id0001', name: 'fs.read', args: {}, signature: 'XyZ==', origin },
      ],
    },
    { role: 'tool', parts: [{ type: 'tool-result', id: 'g3id0001', name: 'fs.read', result: { ok: true } }] },
  ]
  const given = structuredClone(history)
  for (const profile of ['anthropic-4.6', 'openai-responses', 'mistral'] as const) {
    const { messages, mappedNames } = repairHistory(history, profile)
    expect(JSON.stringify(messages)).not.toContain('AbC+/=')
    expect(Object.values(mappedNames)).toEqual(['fs.read'])
  }
  expect(repairHistory(history, 'gemini-3').messages).toBe(history)
  expect(history).toEqual(given)
})

test('appending to a history does not change the prefix that was sent before', () => {
  const turn = (number: number): ProviderMessage[] => [
    { role: 'user', parts: [{ type: 'text', text: `question ${number}` }] },
    { role: 'assistant', parts: [{ type: 'tool-call', id: '', name: 'look up', args: {} }] },
    { role: 'tool', parts: [{ type: 'tool-result', id: '', name: 'look up', result: `answer ${number}` }] },
  ]
  const short = [...turn(1), ...turn(2)]
  for (const profile of ['mistral', 'anthropic-4.6', 'openai-chat', 'openai-responses'] as const) {
    const before = repairHistory(short, profile).messages
    const after = repairHistory([...short, ...turn(3)], profile).messages
    expect(after.slice(0, before.length)).toEqual(before)
  }
})

test('declared tools are known by their wire names', () => {
  const { mappedNames } = repairHistory([], 'openai-chat', { toolNames: ['plain', 'with.dot'] })
  expect(Object.values(mappedNames)).toEqual(['with.dot'])
  expect(Object.keys(mappedNames)[0]).toMatch(/^with_dot_[a-zA-Z0-9]{9}$/)
})

test('a server tool’s question is not whole because another vendor’s part has its answer', () => {
  const question = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} }
  const finding = { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] }
  const history: ProviderMessage[] = [
    { role: 'user', parts: [{ type: 'text', text: 'hi' }] },
    {
      role: 'assistant',
      parts: [
        { type: 'vendor', vendor: 'anthropic', value: question, text: 'asked' },
        { type: 'vendor', vendor: 'openai', value: finding, text: 'found' },
      ],
    },
    { role: 'user', parts: [{ type: 'text', text: 'more' }] },
  ]
  const { messages } = repairHistory(history, 'anthropic-4.6')
  expect(messages[1]?.parts).toEqual([
    { type: 'text', text: 'asked' },
    { type: 'text', text: 'found' },
  ])
})
