import { expect, test } from 'vitest'
import type { ProviderMessage } from '../provider.js'
import { lintHistory } from './lint-history.js'
import { PROFILES, type ProfileName } from './profile.js'

const say = (role: string, text: string): ProviderMessage => ({ role, parts: [{ type: 'text', text }] })
const PROFILE_NAMES = Object.keys(PROFILES) as ProfileName[]

test('an answered question is valid for every profile when a user message follows', () => {
  const history = [say('user', 'hi'), say('assistant', 'hello ')]
  for (const profile of PROFILE_NAMES) expect(lintHistory(history, profile)).toEqual([])
})

test('an answer at the end without a user message is refused by profiles that require one', () => {
  const history = [say('user', 'hi'), say('assistant', 'hello')]
  expect(lintHistory(history, 'anthropic-4.6', { next: 'none' })).toEqual([
    {
      code: 'assistant-last',
      severity: 'breaks',
      at: 1,
      message:
        'The history ends with the assistant. anthropic-4.6 answers A8: “This model does not support assistant ' +
        'message prefill. The conversation must end with a user message.”',
      repair: 'The user turn "[continue]" was added at the end.',
    },
  ])
})

test('a pending call breaks even when a user message follows', () => {
  const history: ProviderMessage[] = [
    say('user', 'hi'),
    { role: 'assistant', parts: [{ type: 'tool-call', id: 'a', name: 'search', args: {} }] },
  ]
  expect(lintHistory(history, 'openai-chat')).toMatchObject([
    { code: 'call-without-result', severity: 'breaks', at: 1, message: expect.stringContaining('C1') },
  ])
})

test('an empty history is valid before the first message', () => {
  for (const profile of PROFILE_NAMES) expect(lintHistory([], profile)).toEqual([])
})

test('ids and names that are rewritten on every send are reported as mapped, not as breaking', () => {
  const history: ProviderMessage[] = [
    say('user', 'hi'),
    { role: 'assistant', parts: [{ type: 'tool-call', id: 'toolu_1', name: 'fs.read', args: {} }] },
    { role: 'tool', parts: [{ type: 'tool-result', id: 'toolu_1', name: 'fs.read', result: 'x' }] },
    {
      role: 'assistant',
      parts: [
        { type: 'reasoning', text: 'hm', origin: { vendor: 'x' } },
        { type: 'text', text: 'a' },
      ],
    },
  ]
  const findings = lintHistory(history, 'mistral')
  expect(findings.map(finding => finding.code)).toEqual([
    'foreign-reasoning',
    'id-form',
    'name-form',
    'name-form',
  ])
  expect(new Set(findings.map(finding => finding.severity))).toEqual(new Set(['mapped']))
})
