// Sources and code of an answer: the same in a run's events, in the stored chat and in the AI SDK's stream.
import { BuiltInCodeExecutor, GOOGLE_SEARCH, LlmAgent } from '@google/adk'
import { expect, test } from 'vitest'
import type { RunEvent } from '../../src/run/run-event.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'
import { applyRunEvent, newRunTranscript } from '../../src/transcript/from-events.js'
import { fromMessages } from '../../src/transcript/from-messages.js'
import type { TranscriptItem } from '../../src/transcript/item.js'

const SOURCES = [
  { url: 'https://example.com/a', title: 'Page A' },
  { url: 'https://example.com/b', title: 'Page B' },
]

const shown = (items: readonly TranscriptItem[]) =>
  items.flatMap((item): (string | string[])[] => {
    if (item.kind === 'sources') return [item.sources.map(({ url }) => url)]
    return item.kind === 'text' ? [item.text] : []
  })

test('live and stored items of a searched and computed answer are the same', async () => {
  const server = await startStrictProvider({
    profile: 'gemini-2',
    script: [{ text: 'It is 42.', sources: SOURCES, code: { code: 'print(6 * 7)', output: '42\n' } }],
  })
  const rootAgent = new LlmAgent({
    name: 'root',
    model: 'gemini/gemini-2.5-flash',
    tools: [GOOGLE_SEARCH],
    codeExecutor: new BuiltInCodeExecutor(),
  })
  const providers = { gemini: { apiKey: 'key', baseUrl: server.baseUrl } }
  const runtime = await createRuntime({ store: 'memory:', rootAgent, providers })
  const events: RunEvent[] = []
  for await (const event of runtime.run({ sessionId: 's', text: 'What is 6 * 7?' })) events.push(event)
  const chat = await runtime.messages({ appName: 'lango', userId: 'user', sessionId: 's' })
  await runtime.close()
  await server.close()

  expect(events.flatMap(event => (event.type === 'code' ? [event.code ?? event.output] : []))).toEqual([
    'print(6 * 7)',
    '42\n',
  ])
  // ADK's own label, which it takes out of requests to the Gemini API itself, is no option that anybody set.
  expect(events.filter(event => event.type === 'repair')).toEqual([])
  expect(events.find(event => event.type === 'sources')).toMatchObject({ author: 'root', sources: SOURCES })
  // Code is no part of the answer.
  expect(events.at(-1)).toMatchObject({ type: 'run-finish', text: 'It is 42.' })

  const expected = [
    '```python\nprint(6 * 7)\n```',
    '```text\n42\n```',
    'It is 42.',
    ['https://example.com/a', 'https://example.com/b'],
  ]
  const start = newRunTranscript({ runId: events[0]?.runId ?? '', afterSeq: 0 })
  const live = events.reduce((run, event) => applyRunEvent(run, event), start)
  expect(shown(live.items)).toEqual(expected)
  expect(shown(fromMessages(chat))).toEqual(expected)
})
