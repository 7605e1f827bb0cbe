// The table of malformed histories as rows of a store: through the store, the session, the request of a run and repair, to
// the rules of every strict server.
import { expect, onTestFinished, test } from 'vitest'
import type { ProviderMessage, ProviderPart } from '../../src/provider/provider.js'
import { PROFILES, type ProfileName } from '../../src/provider/repair/profile.js'
import { repairHistory } from '../../src/provider/repair/repair-history.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import type { Message, SessionKey, ToolCall } from '../../src/session/message.js'
import type { SessionStore } from '../../src/session/session-store.js'
import { openStore } from '../../src/store/open-store.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { MALFORMED_HISTORIES } from '../fixtures/malformed-histories.js'
import { strictJudge } from '../properties/repair-judge.js'
import { startEveryProfile } from '../support/every-profile.js'
import { LONG } from '../support/tiers.js'
import { searchTool } from '../support/tools.js'

const PROFILE_NAMES = Object.keys(PROFILES) as ProfileName[]

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

const ROWS = MALFORMED_HISTORIES.filter(row =>
  row.history.every(message => message.parts.every(isStorable)),
).map((row, index) => ({ ...row, name: `row ${row.row}: ${row.title}`, sessionId: `row-${index}` }))

/** A store with one session per row. */
async function storedRows(): Promise<{ store: SessionStore; keyOf(sessionId: string): SessionKey }> {
  const store = await openStore('memory:')
  onTestFinished(() => store.close())
  const keyOf = (sessionId: string) => ({ appName: 'lango', userId: 'user', sessionId })
  for (const { sessionId, history } of ROWS) {
    const key = keyOf(sessionId)
    await store.createSession(key)
    for (const [at, message] of history.entries()) await store.appendMessage(key, toStored(message, at))
  }
  return { store, keyOf }
}

test('most rows of the table of malformed histories can be stored', () => {
  expect(new Set(ROWS.map(row => row.row)).size).toBeGreaterThan(35)
})

test('the next request of each stored malformed history is refused by strict servers as it is, and by none after repair', async () => {
  const { store, keyOf } = await storedRows()
  const script = new ScriptedProvider(() => ({ text: 'Fine.' }))
  const runtime = await createRuntime({
    store,
    providers: { script },
    agent: { name: 'root', model: 'script/any', tools: [searchTool] },
  })
  onTestFinished(() => runtime.close())
  const refusals: string[] = []
  const refusedUnrepaired = new Set<string>()
  for (const { name, sessionId } of ROWS) {
    const result = await runtime.runAndCollect({ ...keyOf(sessionId), text: 'And now?' })
    expect(result, name).toMatchObject({ text: 'Fine.', finishReason: 'stop' })
    const messages = script.requests.at(-1)?.messages ?? []
    expect(JSON.stringify(messages), name).toContain('And now?')
    for (const profile of PROFILE_NAMES) {
      if (!refusedUnrepaired.has(name) && strictJudge(messages, profile).length > 0)
        refusedUnrepaired.add(name)
      const repaired = repairHistory(messages, profile).messages
      for (const refusal of strictJudge(repaired, profile)) refusals.push(`${name}, ${profile}: ${refusal}`)
    }
  }
  expect(script.requests).toHaveLength(ROWS.length)
  expect(refusals).toEqual([])
  expect(refusedUnrepaired.size).toBeGreaterThan(35)
})

test('a run on each stored malformed history is accepted over HTTP by the strict server of every profile', {
  ...LONG,
  timeout: 600_000,
}, async () => {
  const { store, keyOf } = await storedRows()
  const everyProfile = await startEveryProfile()
  onTestFinished(() => everyProfile.close())
  for (const { name, sessionId } of ROWS) {
    await everyProfile.expectNextMessageWorks(store, keyOf(sessionId)).catch(cause => {
      throw new Error(`${name}: ${cause.message}`, { cause })
    })
  }
})
