import { expect, test } from 'vitest'
import { heal } from '../../src/runtime/heal/heal.js'
import { lintMessages } from '../../src/runtime/lint.js'
import type { Message } from '../../src/session/message.js'
import { assistant, call, MALFORMED_HISTORIES, result, tool, user } from '../fixtures/malformed-histories.js'
import { malformedHistory } from '../properties/malformed-histories.js'
import { LONG } from '../support/tiers.js'
import { storedHistory } from './doctor-stored-history.js'

/** A stored session is judged as if a user message followed: then these are legal as they stand. */
const LEGAL_BEFORE_A_USER = new Set([33, 34, 53, 54])

function breaks(messages: readonly Message[]): string[] {
  return lintMessages(messages).flatMap(({ profile, findings }) =>
    findings.filter(finding => finding.severity === 'breaks').map(finding => `${profile}: ${finding.code}`),
  )
}

function codes(messages: readonly Message[]): Set<string> {
  const found = lintMessages(messages).flatMap(({ findings }) => findings.map(({ code }) => code as string))
  return new Set([...found, ...heal(messages).changes.map(({ code }) => code)])
}

for (const { row, title, history, code } of MALFORMED_HISTORIES) {
  const stored = storedHistory(history)
  const given = structuredClone(stored)
  const healed = heal(stored)
  const name = `row ${row} (${title})`
  const isLegal = LEGAL_BEFORE_A_USER.has(row)

  test(`lint and heal report ${isLegal ? 'nothing' : code} in a stored session with ${name}`, () => {
    if (isLegal) expect(codes(stored)).not.toContain(code)
    else expect(codes(stored)).toContain(code)
  })

  test(`a stored session with ${name} is healed for every profile, and healing again changes nothing`, () => {
    expect(breaks(healed.messages)).toEqual([])
    expect(stored).toEqual(given)
    const again = heal(healed.messages)
    expect(again.changes).toEqual([])
    expect(again.messages).toBe(healed.messages)
  })

  test(`healing a session with ${name} keeps every signature, and every id that no other call has`, () => {
    const calls = (messages: readonly Message[]) =>
      messages.flatMap(({ toolCalls = [] }) => toolCalls.filter(entry => entry.kind === 'call'))
    const [before, after] = [calls(stored), calls(healed.messages)]
    expect(after.map(({ signature }) => signature)).toEqual(before.map(({ signature }) => signature))
    const seen = new Set<string>()
    for (const [place, { id }] of before.entries()) {
      if (id !== '' && !seen.has(id)) expect(after[place]?.id).toBe(id)
      seen.add(id)
    }
  })
}

const at = (messages: Message[], index: number, more: Partial<Message>) =>
  messages.map((message, place) => (place === index ? { ...message, ...more } : message))

test('healing a history without problems returns the same list', () => {
  const stored = storedHistory([
    user('hi'),
    assistant({ type: 'reasoning', text: 'hm', signature: 'c2ln', origin: { vendor: 'gemini' } }, call('a')),
    tool(result('a')),
    assistant('done', { type: 'text', text: '', signature: 'c2ln', origin: { vendor: 'gemini' } }),
  ])
  expect(heal(stored)).toEqual({ messages: stored, changes: [] })
  expect(heal(stored).messages).toBe(stored)
})

test('healing does not join consecutive messages of two agents', () => {
  const stored = at(storedHistory([user('hi'), assistant('one'), assistant('two')]), 2, { author: 'other' })
  expect(heal(stored).messages).toBe(stored)
})

test('healing keeps what a message has besides its text', () => {
  const usage = { usageMetadata: { promptTokenCount: 7 } }
  const stored = at(storedHistory([user('hi'), assistant('one'), assistant('two')]), 2, { extra: usage })
  const { messages } = heal(stored)
  expect(messages).toHaveLength(3)
  expect(messages[1]).toMatchObject({ role: 'assistant', content: 'onetwo', extra: { parts: [3, 3] } })
  expect(messages[2]).toMatchObject({ id: 'event-3', content: '', extra: { ...usage, content: false } })
  expect(heal(messages).changes).toEqual([])
})

test('healing leaves messages that are never sent in their places', () => {
  const silent: Message = {
    role: 'assistant',
    author: 'root',
    content: '',
    timestamp: 1,
    extra: { content: false, errorCode: 'X' },
  }
  const question: Message = {
    role: 'assistant',
    author: 'root',
    content: '',
    timestamp: 1,
    toolCalls: [{ id: 'q', name: 'adk_request_confirmation', input: '{}', kind: 'call' }],
  }
  const [hi, asked] = storedHistory([user('hi'), assistant(call('a'))]) as [Message, Message]
  const { messages } = heal([silent, hi, asked, question])
  expect(messages.map(({ toolCalls, content }) => toolCalls?.[0]?.name ?? content)).toEqual([
    '',
    'hi',
    'search',
    'search',
    'adk_request_confirmation',
  ])
  expect(messages[0]).toBe(silent)
  expect(messages[4]).toBe(question)
})

test('healing keeps the results of parallel agents that use the same ids', () => {
  const [asked, other, answer, late] = storedHistory([
    assistant(call('a')),
    assistant(call('a', { args: { q: 'y' } })),
    tool(result('a', { result: { output: 'left' } })),
    tool(result('a', { result: { output: 'right' } })),
  ]) as [Message, Message, Message, Message]
  const [hi] = storedHistory([user('hi')]) as [Message]
  const { messages } = heal([
    hi,
    { ...asked, branch: 'left' },
    { ...other, branch: 'right' },
    { ...answer, branch: 'left' },
    { ...late, branch: 'right' },
  ])
  expect(
    messages.map(({ branch, toolCalls }) => [branch, toolCalls?.[0]?.id, toolCalls?.[0]?.output]),
  ).toEqual([
    [undefined, undefined, undefined],
    ['left', 'a', undefined],
    ['left', 'a', '{"output":"left"}'],
    ['right', 'a_2', undefined],
    ['right', 'a_2', '{"output":"right"}'],
  ])
})

function expectHealed(seeds: { from: number; to: number }): void {
  for (let seed = seeds.from; seed < seeds.to; seed++) {
    const { messages } = heal(malformedHistory(seed))
    // Neighbours that different agents said stay apart; nothing else may be left.
    const left = breaks(messages).filter(found => !found.endsWith('repeated-role'))
    expect(left, `seed ${seed}`).toEqual([])
    expect(heal(messages).changes, `seed ${seed}`).toEqual([])
  }
}

test('100 random histories are healed, and healing again changes nothing', () => {
  expectHealed({ from: 0, to: 100 })
})

test('500 more random histories are healed, and healing again changes nothing', LONG, () => {
  expectHealed({ from: 100, to: 600 })
})
