// A session that ADK's compactor has summarized, in Lango's store: it continues after a restart, lints, forks and exports.
import { type Event, LlmAgent, LogLevel, setLogLevel, TokenBasedContextCompactor } from '@google/adk'
import { beforeAll, expect, test } from 'vitest'
import { headerLine, messageLine, readSessionLines } from '../../src/formats/session-lines.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { openTestStore, STORES } from '../support/adk-run.js'
import { summaryOf } from './cases-history.js'

beforeAll(() => setLogLevel(LogLevel.ERROR))

const KEY = { appName: 'lango', userId: 'user', sessionId: 's' }

function agent(): LlmAgent {
  const summarizer = {
    summarize: async (events: Parameters<typeof summaryOf>[0]) => summaryOf(events, 'They counted.'),
  }
  const compactor = new TokenBasedContextCompactor({ tokenThreshold: 1, eventRetentionSize: 2, summarizer })
  return new LlmAgent({ name: 'root', model: 'play/m', contextCompactors: [compactor] })
}

test.each(STORES)('a session on %s that ADK compacts is sent with its summary', async kind => {
  const store = await openTestStore(kind)
  const provider = new ScriptedProvider((_, index) => ({ text: `Answer ${index}.` }), { id: 'play' })
  const ask = async (sessionId: string, text: string) => {
    const runtime = await createRuntime({ store, providers: { play: provider }, rootAgent: agent() })
    await runtime.runAndCollect({ sessionId, text })
    const sent = JSON.stringify(provider.requests.at(-1)?.messages)
    const [lint, events] = [
      await runtime.lint({ ...KEY, sessionId }),
      await runtime.events({ ...KEY, sessionId }),
    ]
    await runtime.close()
    return { sent, lint, events }
  }
  for (const text of ['one', 'two', 'three', 'four']) await ask('s', text)
  const { sent, lint, events } = await ask('s', 'five')
  expect(sent).toContain('They counted.')
  expect(sent).not.toContain('"one"')
  expect(events.filter(event => 'isCompacted' in event).length).toBeGreaterThan(0)
  // A summary stands next to an answer of the same role; repair joins them.
  const codes = new Set(lint.profiles.flatMap(({ findings }) => findings.map(({ code }) => code)))
  expect([...codes]).toEqual(['repeated-role'])
  // A fork has the summaries too, and continues.
  await store.forkSession(KEY, 'fork')
  const forked = await ask('fork', 'six')
  expect(forked.sent).toContain('They counted.')
  expect(forked.events.slice(0, events.length)).toEqual(events)
  // An export has them as well: read again as a session of its own, it restores the same events.
  const session = await store.loadSession(KEY, { budgetTokens: 'off', maxMessages: 1 })
  const exported = [session ? headerLine(session) : '', ...(await store.readMessages(KEY)).map(messageLine)]
  await store.createSession({ ...KEY, sessionId: 'import' })
  for await (const line of readSessionLines(bytesOf(exported), 'test'))
    if ('message' in line) await store.appendMessage({ ...KEY, sessionId: 'import' }, line.message)
  const imported = await ask('import', 'seven')
  expect(imported.sent).toContain('They counted.')
  expect(withoutTimes(imported.events).slice(0, events.length)).toEqual(withoutTimes(events))
  await store.close()
})

async function* bytesOf(lines: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const line of lines) yield Buffer.from(line)
}

function withoutTimes(events: readonly Event[]): unknown[] {
  return events.map(({ timestamp: _when, ...event }) => event)
}
