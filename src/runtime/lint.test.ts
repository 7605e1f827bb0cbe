import { expect, test } from 'vitest'
import { PROFILES } from '../provider/repair/profile.js'
import type { Message } from '../session/message.js'
import type { SessionStore } from '../session/session-store.js'
import { openStore } from '../store/open-store.js'
import { lintMessages, lintSession } from './lint.js'

const key = { appName: 'app', userId: 'ann', sessionId: 's1' }
const said = (role: string, content: string): Message => ({ role, content, timestamp: 1 })
const asked = (id: string): Message => ({
  role: 'assistant',
  content: '',
  timestamp: 1,
  toolCalls: [{ id, name: 'search', input: '{}', kind: 'call' }],
})
const answered = (id: string): Message => ({
  role: 'tool',
  content: '{}',
  timestamp: 1,
  toolCalls: [{ id, name: 'search', output: '{}', kind: 'response' }],
})

async function storeWith(messages: readonly Message[]): Promise<SessionStore> {
  const store = await openStore('memory:')
  await store.createSession(key)
  for (const message of messages) await store.appendMessage(key, message)
  return store
}

test('every profile gives its verdict, and findings name the stored message', async () => {
  const silent: Message = { ...said('assistant', ''), extra: { content: false, errorCode: 'X' } }
  const store = await storeWith([said('user', 'hi'), silent, asked('a'), said('user', 'well?')])
  const lint = await lintSession(store, key)
  expect(lint).toMatchObject({ key, messages: 4 })
  expect(lint).not.toHaveProperty('truncated')
  expect(lint.profiles.map(({ profile }) => profile)).toEqual(Object.keys(PROFILES))
  expect(lint.profiles.find(({ profile }) => profile === 'openai-chat')).toMatchObject({
    refused: true,
    breaks: 1,
    findings: [{ code: 'call-without-result', at: 1, seq: 3 }],
  })
  expect(lint.profiles.find(({ profile }) => profile === 'ollama')).toMatchObject({
    refused: false,
    breaks: 0,
  })
})

test('a session longer than the bound is judged from a turn of its user on, and says so', async () => {
  const turns = Array.from({ length: 8 }, (_, turn) => [
    said('user', `question ${turn}`),
    asked(`c${turn}`),
    answered(`c${turn}`),
    said('assistant', 'done'),
  ]).flat()
  const lint = await lintSession(await storeWith([answered('lost'), ...turns]), key, {
    profiles: ['openai-chat'],
    maxMessages: 10,
  })
  expect(lint).toMatchObject({ messages: 33, truncated: { skipped: 25 }, profiles: [{ breaks: 0 }] })
})

test('of many findings two hundred are listed and all are counted, those that break first', () => {
  const calls = Array.from({ length: 150 }, (_, index) => [asked(`a:${index}`), said('user', 'go on')]).flat()
  const [lint] = lintMessages([said('user', 'hi'), ...calls], ['anthropic-4.6'])
  expect(lint).toMatchObject({ breaks: 150, mapped: 150 })
  expect(lint?.findings).toHaveLength(200)
  expect(lint?.findings.slice(0, 150).every(({ severity }) => severity === 'breaks')).toBe(true)
})

test('questions to a person are never sent and so are not judged', () => {
  const question = { ...asked('q'), toolCalls: [{ id: 'q', name: 'adk_request_confirmation', input: '{}' }] }
  expect(lintMessages([said('user', 'hi'), question]).every(({ refused }) => !refused)).toBe(true)
})

test('a session that is not there and a profile that nobody has are refused', async () => {
  const store = await storeWith([])
  await expect(lintSession(store, { ...key, sessionId: 'no' })).rejects.toMatchObject({
    code: 'session-not-found',
  })
  await expect(lintSession(store, key, { profiles: ['gpt'] })).rejects.toMatchObject({
    code: 'invalid-argument',
  })
})
