// A result that failed is shown as failed while the run works and after a reload, in the page and in the terminal.
import { expect, onTestFinished, test } from 'vitest'
import { emptyChat, reduceChat } from '../../src/cli/chat/chat-state.js'
import { itemsOf } from '../../src/cli/chat/open-session.js'
import type { RunEvent } from '../../src/run/run-event.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { isToolError } from '../../src/session/message.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { defineTool } from '../../src/tool.js'
import { fromMessages } from '../../src/transcript/from-messages.js'
import type { Entry } from '../../web/src/state/entry.js'
import { applyLiveEvent, liveEntries, newLiveRun } from '../../web/src/state/live-run.js'

const KEY = { appName: 'lango', userId: 'user', sessionId: 's' }

const RESULTS: readonly Record<string, unknown>[] = [
  { rows: [1], error: null },
  { error: null },
  { error: '' },
  { error: false },
  { error: 'x' },
  { rows: [], error: 'timeout' },
  { error: { code: 404 } },
  { content: [], isError: true },
  { nested: { error: 'x' } },
  {},
]

const answerTool = defineTool({
  name: 'answer',
  description: 'Answers with one of the results.',
  parameters: { type: 'object', properties: { index: { type: 'number' } } },
  effect: 'read',
  execute: ({ index }) => RESULTS[Number(index)],
})

async function playAll() {
  const provider = new ScriptedProvider(
    [{ toolCalls: RESULTS.map((_, index) => ({ name: 'answer', args: { index } })) }, { text: 'done' }],
    { id: 'play' },
  )
  const agent = { name: 'root', model: 'play/m', tools: [answerTool] }
  const runtime = await createRuntime({ store: 'memory:', providers: { play: provider }, agent })
  onTestFinished(() => runtime.close())
  const events: RunEvent[] = []
  for await (const event of runtime.run({ sessionId: 's', text: 'go' })) events.push(event)
  return { runtime, events, provider }
}

const statuses = (entries: readonly (Entry | { kind: string; status?: string })[]) =>
  entries.flatMap(entry => (entry.kind === 'tool' && 'status' in entry ? [entry.status] : []))

test('page, terminal and the model agree on which results failed, live and stored', async () => {
  const { runtime, events, provider } = await playAll()
  const expected = RESULTS.map(result => (isToolError(result) ? 'failed' : 'done'))
  expect(new Set(expected).size).toBe(2)

  const runId = events[0]?.runId ?? ''
  const live = events.reduce(
    (run, event) => applyLiveEvent(run, JSON.parse(JSON.stringify(event)) as RunEvent),
    newLiveRun({ runId, afterSeq: 0 }),
  )
  expect(statuses(liveEntries(live))).toEqual(expected)
  expect(statuses(fromMessages(await runtime.messages(KEY), []))).toEqual(expected)

  const chat = events.reduce(
    (state, event) => reduceChat(state, { type: 'event', event, at: 0 }),
    emptyChat('s', 'play/m'),
  )
  expect(statuses(chat.items)).toEqual(expected)
  expect(statuses(itemsOf(await runtime.store.readMessages(KEY)))).toEqual(expected)

  const sent = provider.requests[1]?.messages.flatMap(({ parts }) => parts) ?? []
  const flags = sent.flatMap(part => (part.type === 'tool-result' ? [part.isError === true] : []))
  expect(flags).toEqual(expected.map(status => status === 'failed'))
})
