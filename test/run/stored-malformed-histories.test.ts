// Every reported way in which a history goes bad, as rows of a store: through the store, the bridge, the repair
// and the wire, to strict servers. The session goes on, whatever is in it.
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ProviderMessage, ProviderPart } from '../../src/provider/provider.js'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import type { Message, SessionKey, ToolCall } from '../../src/session/message.js'
import type { SessionStore } from '../../src/session/session-store.js'
import { openStore } from '../../src/store/open-store.js'
import { type StrictProvider, startStrictProvider } from '../../src/testing/start-strict-provider.js'
import { PROFILE_FACTS, type StrictProfile } from '../../src/testing/strict/profile.js'
import { MALFORMED_HISTORIES } from '../fixtures/malformed-histories.js'
import { type EveryProfile, providerFor, startEveryProfile } from '../support/every-profile.js'
import { LONG } from '../support/tiers.js'
import { searchTool } from '../support/tools.js'

/** One profile of each family. */
const FAMILIES: readonly StrictProfile[] = [
  'gemini-3',
  'openai-chat',
  'openai-responses',
  'anthropic-4.6',
  'converse',
]

let store: SessionStore
let servers: (readonly [StrictProfile, StrictProvider])[]
let runtime: Runtime
let everyProfile: EveryProfile | undefined
beforeAll(async () => {
  store = await openStore('memory:')
  servers = await Promise.all(
    FAMILIES.map(async profile => [profile, await startStrictProvider({ profile })] as const),
  )
  runtime = await createRuntime({
    store,
    providers: Object.fromEntries(
      servers.map(([profile, { baseUrl }]) => [profile, providerFor(profile, baseUrl)]),
    ),
    agent: { name: 'root', model: 'openai-chat/gpt-4.1', tools: [searchTool] },
  })
})
afterAll(async () => {
  await everyProfile?.close()
  await runtime.close()
  await Promise.all(servers.map(([, server]) => server.close()))
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

let sessions = 0

async function storeHistory(history: readonly ProviderMessage[]): Promise<SessionKey> {
  const key = { appName: 'lango', userId: 'user', sessionId: `history-${sessions++}` }
  await store.createSession(key)
  for (const [at, message] of history.entries()) await store.appendMessage(key, toStored(message, at))
  return key
}

test.each(rows)(
  'the next message works on one model of every family after row $row: $title',
  async ({ history }) => {
    const key = await storeHistory(history)
    const send = async ([profile, { violations }]: (typeof servers)[number]) => {
      const sessionId = `${key.sessionId}-${profile}`
      await store.forkSession(key, sessionId)
      const model = `${profile}/${PROFILE_FACTS[profile].model}`
      const { finishReason } = await runtime.runAndCollect({ ...key, sessionId, text: 'And now?', model })
      expect(violations, profile).toEqual([])
      expect(finishReason, profile).toBe('stop')
    }
    await Promise.all(servers.map(send))
  },
)

test.each(rows)(
  'the next message works on every profile after row $row: $title',
  LONG,
  async ({ history }) => {
    everyProfile ??= await startEveryProfile()
    await everyProfile.expectNextMessageWorks(store, await storeHistory(history))
  },
)
