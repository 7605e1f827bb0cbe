// Runs every example in its own process, as a user would: once with the command in its comment, and in all other tests from
// JavaScript, which starts in half the time.
import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { silentLogger } from '../../src/logger.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { serve } from '../../src/server/serve.js'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'
import { builtFile } from '../support/built-lango.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { longUnless } from '../support/tiers.js'

const ROOT = join(import.meta.dirname, '../..')

/** Keys in the environment of the tests are not passed on. */
const { PATH = '', HOME = '' } = process.env

async function runExample(
  name: string,
  env: Record<string, string> = {},
  start: string[] = [builtFile('examples', name)],
): Promise<string> {
  const child = spawn(process.execPath, start, {
    cwd: ROOT,
    env: { PATH, HOME, LANGO_STORE: 'memory:', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  child.stdout.on('data', chunk => {
    output += chunk
  })
  child.stderr.on('data', chunk => {
    output += chunk
  })
  const code = await new Promise(resolve => child.on('close', resolve))
  expect(code, output).toBe(0)
  return output
}

const EXPECTED: Record<string, RegExp> = {
  'quick-start.ts':
    /tool +current_time\(\{"city":"Tokyo"\}\)[\s\S]*"time":"\d\d:\d\d:\d\d"[\s\S]*4 messages in the session/,
  'agent-tree.ts': /clear[\s\S]*1 delegations?, finished: stop/,
  'adk-agent-unchanged.ts': /"sum":42/,
  'adk-session-service.ts': /./,
  'reminder.ts': /^scheduled\n[\s\S]*Remind me to check in/,
}

/** These need a running server. */
const WITH_SERVER = ['follow-a-run.ts']

/** These are rendered in a browser, by test/clients/react-hook.test.ts. */
const IN_BROWSER = ['use-run.ts']

test('every file in examples/ is tested here', () => {
  expect(
    readdirSync(join(ROOT, 'examples'))
      .filter(name => name.endsWith('.ts'))
      .sort(),
  ).toEqual([...Object.keys(EXPECTED), ...WITH_SERVER, ...IN_BROWSER].sort())
})

test('the quick start runs from TypeScript, with the command in its comment', async () => {
  const text = readFileSync(join(ROOT, 'examples/quick-start.ts'), 'utf8')
  const [, words = '', question = ''] = /^\/\/ node (.*) "(.*)"$/m.exec(text) ?? []
  const output = await runExample('quick-start.ts', {}, [...words.split(' '), question])
  expect(output).toMatch(EXPECTED['quick-start.ts'] ?? '')
})

const OTHERS = Object.entries(EXPECTED).filter(([name]) => name !== 'quick-start.ts')

test.each(OTHERS)('%s runs offline', async (name, expected) => {
  expect(await runExample(name)).toMatch(expected)
})

test('follow-a-run.ts receives every event after a disconnect', async () => {
  const runtime = await createRuntime({
    store: 'memory:',
    agent: { model: 'demo/demo' },
    tools: { builtIn: ['current_time'] },
  })
  const settings = { port: 0, host: '127.0.0.1', version: '0.0.0', logger: silentLogger }
  const server = await serve({ runtime, ...settings })
  const output = await runExample('follow-a-run.ts', { LANGO_URL: server.url })
  const numbers = [...output.matchAll(/^ *(\d+) {4}[a-z-]+$/gm)].map(([, number]) => Number(number))
  expect(numbers[0]).toBe(1)
  expect(numbers).toEqual([...new Set(numbers)].sort((one, other) => one - other))
  expect(output.match(/tool-result|run-finish/g)).toEqual(['tool-result', 'run-finish'])
  expect(output).toMatch(/stop: [\s\S]*This is what the tools answered/)
  expect(output).toMatch(/4 messages are stored[\s\S]*request 2: \d messages, 0 repairs/)
  await server.close()
  await runtime.close()
})

test('the quick start resumes its session in another process', async () => {
  const LANGO_STORE = `sqlite:${join(await temporaryFolder(), 'lango.db')}`
  await runExample('quick-start.ts', { LANGO_STORE })
  expect(await runExample('quick-start.ts', { LANGO_STORE })).toContain('8 messages in the session')
})

const SCRIPT = [{ toolCalls: [{ name: 'add', args: { a: 19, b: 23 } }] }, { text: 'It is 42.' }]

for (const [name, profile, model, urlVariable, keyVariable] of [
  ['Claude', 'anthropic-4.6', 'anthropic/claude-sonnet-4-6', 'ANTHROPIC_BASE_URL', 'ANTHROPIC_API_KEY'],
  ['GPT', 'openai-responses', 'openai/gpt-5.2', 'OPENAI_BASE_URL', 'OPENAI_API_KEY'],
  ['a local Ollama', 'ollama', 'ollama/qwen3', 'OLLAMA_HOST', 'UNUSED'],
] as const) {
  test(`an unchanged ADK agent runs on ${name}`, longUnless(name === 'Claude'), async () => {
    const server = await startStrictProvider({ profile, script: SCRIPT })
    const baseUrl = urlVariable === 'OLLAMA_HOST' ? server.baseUrl.replace(/\/v1\/?$/, '') : server.baseUrl
    const output = await runExample('adk-agent-unchanged.ts', {
      LANGO_MODEL: model,
      [urlVariable]: baseUrl,
      [keyVariable]: 'test-key',
    })
    expect(server.violations).toEqual([])
    expect(server.requests).toHaveLength(2)
    expect(JSON.stringify(server.requests[1])).toContain('42')
    expect(output).toContain('It is 42.')
    await server.close()
  })
}
