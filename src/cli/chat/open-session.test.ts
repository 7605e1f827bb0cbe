import { expect, test } from 'vitest'
import type { Message, SessionKey } from '../../session/message.js'
import type { SessionStore } from '../../session/session-store.js'
import { openStore } from '../../store/open-store.js'
import { openSession } from './open-session.js'

const key: SessionKey = { appName: 'lango', userId: 'user', sessionId: 's' }
const free = () => ({ input: 1_000_000, output: 0 })

async function stored(messages: readonly Partial<Message>[]): Promise<SessionStore> {
  const store = await openStore('memory:')
  await store.createSession(key)
  for (const message of messages) {
    await store.appendMessage(key, { role: 'user', content: '', timestamp: 1, ...message })
  }
  return store
}

const user = (content: string): Partial<Message> => ({ role: 'user', author: 'user', content })
const model = (content: string): Partial<Message> => ({ role: 'assistant', author: 'root', content })
const calls: Partial<Message> = {
  ...model('Looking.'),
  toolCalls: [{ id: 'c1', name: 'search', input: '{"q":"x"}', kind: 'call' }],
}
const answers: Partial<Message> = {
  role: 'tool',
  author: 'root',
  toolCalls: [{ id: 'c1', name: 'search', output: '{"result":"found"}', kind: 'response' }],
}
const stopped: Partial<Message> = {
  ...model('[The user stopped this answer before it was complete.]'),
  extra: { customMetadata: { lango: { synthetic: true } } },
}
const interrupted = {
  kind: 'notice',
  tone: 'warning',
  text: 'the last run was interrupted; your next message continues from here',
}

test('opening a session that does not exist gives a new one', async () => {
  const found = await openSession(await openStore('memory:'), key, free)
  expect(found).toMatchObject({ exists: false, totalMessages: 0, items: [], prompts: [], usage: { cost: 0 } })
})

test('a stored call and its result become one item of the chat', async () => {
  const found = await openSession(await stored([user('hi'), calls, answers, model('Done.')]), key, free)
  expect(found.items).toEqual([
    { kind: 'user', text: 'hi' },
    { kind: 'text', author: 'root', text: 'Looking.' },
    {
      kind: 'tool',
      callId: 'c1',
      author: 'root',
      name: 'search',
      args: { q: 'x' },
      status: 'done',
      result: { result: 'found' },
      durationMs: 0,
    },
    { kind: 'text', author: 'root', text: 'Done.' },
  ])
  expect(found.prompts).toEqual(['hi'])
})

test.each([
  ['before the model answered', [user('hi')], true],
  ['while a tool ran', [user('hi'), calls], true],
  ['before the model saw the result', [user('hi'), calls, answers], true],
  ['not at all', [user('hi'), model('Hello.')], false],
  ['by its user', [user('hi'), stopped], false],
])('an opened session says whether its run was interrupted: %s', async (_, messages, expected) => {
  const { items } = await openSession(await stored(messages), key, free)
  if (expected) expect(items.at(-1)).toEqual(interrupted)
  else expect(items).not.toContainEqual(interrupted)
})

test('an opened session whose last run failed says so', async () => {
  const store = await stored([user('hi'), model('Hel')])
  const finish = { type: 'run-finish', finishReason: 'error', seq: 2 }
  await store.runs.appendEvents(key, 'r1', [{ type: 'run-start', seq: 1 }, finish])
  const found = await openSession(store, key, free)
  expect(found.runId).toBe('r1')
  expect(found.items.at(-1)).toEqual({
    kind: 'notice',
    tone: 'warning',
    text: 'the last run failed · /inspect',
  })
})

test('a run that has not ended is named, and the items end before what it wrote', async () => {
  const store = await stored([user('before')])
  const message = { role: 'user' as const, author: 'user', content: 'hi', timestamp: 1 }
  const opened = await store.openRun({ key, runId: 'r1', message, events: [{ type: 'run-start', seq: 1 }] })
  const fence = 'lease' in opened ? opened.lease.fence : 0
  await store.appendMessage(
    key,
    { role: 'assistant', author: 'root', content: 'Hel', timestamp: 2 },
    { fence },
  )
  const found = await openSession(store, key, free)
  expect(found.openRun).toMatchObject({ runId: 'r1', afterSeq: 1, state: 'running' })
  expect(found.items).toEqual([
    { kind: 'user', text: 'before' },
    { kind: 'user', text: 'hi' },
  ])
})

test('a long session shows its end, from a message of the user on, and counts all of it', async () => {
  const usageMetadata = { promptTokenCount: 2, candidatesTokenCount: 1, totalTokenCount: 3 }
  const turn = (index: number) => [
    user(`question ${index}`),
    { ...model(`answer ${index}`), extra: { usageMetadata, modelVersion: 'openai/gpt-5.2' } },
  ]
  const store = await stored(Array.from({ length: 40 }, (_, index) => turn(index)).flat())
  const found = await openSession(store, key, free)
  expect(found.items[0]).toEqual({ kind: 'notice', tone: 'quiet', text: '56 earlier messages not shown' })
  expect(found.items[1]).toEqual({ kind: 'user', text: 'question 28' })
  expect(found.prompts).toHaveLength(40)
  expect(found.usage).toMatchObject({ inputTokens: 80, outputTokens: 40, cost: 80 })
  expect(found.usageIsPartial).toBe(false)
})
