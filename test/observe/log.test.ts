// The log of a run says what happened and not what was said.
import { expect, test } from 'vitest'
import { AgentError } from '../../src/errors.js'
import { type Logger, silentLogger } from '../../src/logger.js'
import { createLogger, joinObservers, logRuns } from '../../src/observe/log.js'

import type { RunEvent, RunEventBody } from '../../src/run/run-event.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'
import { defineTool } from '../../src/tool.js'

const KEY = 'sk-live-0123456789abcdef'
const WORDS = ['violets', 'marigold', 'hydrangea', 'chrysanthemum', 'snapdragon']

const brokenTool = defineTool({
  name: 'search',
  description: 'Fails.',
  parameters: { type: 'object', properties: { query: { type: 'string' } } },
  execute: () => {
    throw new TypeError('snapdragon')
  },
})

/** Runs a tool that fails, then lets the server refuse; returns the lines of the log. */
async function logOfRuns(content: boolean): Promise<string[]> {
  const lines: string[] = []
  const logger = await createLogger({
    level: 'debug',
    content,
    destination: { write: line => lines.push(line) },
  })
  const server = await startStrictProvider({
    profile: 'openai-chat',
    apiKey: KEY,
    script: [
      { toolCalls: [{ name: 'search', args: { query: 'marigold' } }], usage: { input: 100, output: 10 } },
      { text: 'hydrangea', usage: { input: 120, output: 5 } },
    ],
    faults: [{ kind: '500', at: 2 }],
  })
  const runtime = await createRuntime({
    store: 'memory:',
    logger,
    providers: {
      openai: {
        type: 'openai',
        api: 'chat',
        apiKey: KEY,
        baseUrl: server.baseUrl,
        retry: { maxAttempts: 1 },
      },
    },
    agent: { name: 'florist', model: 'openai/gpt-4.1', instruction: 'chrysanthemum', tools: [brokenTool] },
  })
  const observe = logRuns(logger)
  for (let turn = 0; turn < 2; turn++) {
    for await (const event of runtime.run({ sessionId: 's', text: 'violets' })) observe(event)
  }
  await runtime.close()
  await server.close()
  return lines
}

test.each([false, true])(
  'a log (content: %s) holds the course of a run and neither key nor words',
  async content => {
    const lines = await logOfRuns(content)
    const messages = lines.map(line => (JSON.parse(line) as { message: string }).message)
    for (const expected of [
      'Run started',
      'Tool called',
      'Tool failed',
      'Model answered',
      'Run failed',
      'Run finished',
    ]) {
      expect(messages).toContain(expected)
    }
    for (const secret of [KEY, ...WORDS]) expect(lines.join()).not.toContain(secret)
  },
)

test('each log line of a run names its session and run, and a failure its code', () => {
  const written: [string, string, unknown][] = []
  const write = (level: string) => (message: string, fields?: unknown) =>
    void written.push([level, message, fields])
  const logger: Logger = {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
  }
  const ids = { sessionId: 's', runId: 'r' }
  const observe = logRuns(logger)
  const body: RunEventBody = {
    type: 'error',
    error: { code: 'internal', message: 'a defect', retryable: false, details: {} },
  }
  observe({ ...body, sessionId: 's', runId: 'r', seq: 1 })
  observe({ type: 'text-delta', author: 'a', text: 'snapdragon', sessionId: 's', runId: 'r', seq: 2 })
  expect(written).toEqual([
    ['error', 'Run failed', { ...ids, code: 'internal', retryable: false, reason: 'a defect' }],
  ])
})

test('an internal error is logged with its message and the stacks of its causes', () => {
  const fields: Record<string, unknown>[] = []
  const logger: Logger = { ...silentLogger, error: (_message, written = {}) => void fields.push(written) }
  const error = new AgentError('internal', 'The run failed inside ADK: no such key', {
    cause: new TypeError('no such key'),
  })
  logRuns(logger)({ type: 'error', error, sessionId: 's', runId: 'r', seq: 1 })
  expect(fields[0]).toMatchObject({ code: 'internal', reason: 'The run failed inside ADK: no such key' })
  expect(fields[0]?.stack).toMatch(
    /AgentError: The run failed[\s\S]+log\.test\.ts[\s\S]+Caused by: TypeError: no such key/,
  )
})

test('an observer that fails disturbs neither the run nor the others', () => {
  const seen: number[] = []
  const warnings: string[] = []
  const ignore = () => {}
  const logger = {
    debug: ignore,
    info: ignore,
    error: ignore,
    warn: (text: string) => void warnings.push(text),
  }
  const fail = () => {
    throw new TypeError('broken')
  }
  const observe = joinObservers([fail, event => void seen.push(event.seq)], logger)
  observe({
    type: 'text-delta',
    author: 'a',
    text: '',
    sessionId: 's',
    runId: 'r',
    seq: 7,
  } satisfies RunEvent)
  expect(seen).toEqual([7])
  expect(warnings).toEqual(['An observer of runs failed'])
})
