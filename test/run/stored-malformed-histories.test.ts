// Every reported way in which a history goes bad, as rows of a store: through the store, the bridge, the repair
// and the wire, to every strict server. The session goes on, whatever is in it.
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ProviderMessage, ProviderPart } from '../../src/provider/provider.js'
import type { Message, ToolCall } from '../../src/session/message.js'
import type { SessionStore } from '../../src/session/session-store.js'
import { openStore } from '../../src/store/open-store.js'
import { MALFORMED_HISTORIES } from '../fixtures/malformed-histories.js'
import { type EveryProfile, startEveryProfile } from '../support/every-profile.js'

let everyProfile: EveryProfile
let store: SessionStore
beforeAll(async () => {
  everyProfile = await startEveryProfile()
  store = await openStore('memory:')
})
afterAll(async () => {
  await everyProfile.close()
  await store.close()
})

/** Text, calls and results are what the fields of a stored message can say. */
const isStorable = (part: ProviderPart) => ['text', 'tool-call', 'tool-result'].includes(part.type)

/** The rows as an older or foreign program would have written them. Signatures are no more than such programs keep. */
function toStored(message: ProviderMessage, index: number): Message {
  const toolCalls = message.parts.flatMap((part): ToolCall[] => {
    if (part.type === 'tool-call')
      return [{ id: part.id, name: part.name, input: asText(part.args), kind: 'call' }]
    if (part.type === 'tool-result')
      return [{ id: part.id, name: part.name, output: asText(part.result), kind: 'response' }]
    return []
  })
  const words = message.parts.flatMap(part => (part.type === 'text' ? [part.text] : [])).join('\n')
  return {
    role: message.role,
    content: words,
    timestamp: index,
    ...(toolCalls.length > 0 ? { toolCalls } : {}),
  }
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}

const rows = MALFORMED_HISTORIES.filter(row => row.history.every(message => message.parts.every(isStorable)))

test('most rows can be stored', () => {
  expect(new Set(rows.map(row => row.row)).size).toBeGreaterThan(35)
})

test.each(rows.map((row, index) => ({ ...row, index })))('row $row: $title', async ({ history, index }) => {
  const key = { appName: 'lango', userId: 'user', sessionId: `row-${index}` }
  await store.createSession(key)
  for (const [at, message] of history.entries()) await store.appendMessage(key, toStored(message, at))
  await everyProfile.expectNextMessageWorks(store, key)
})
