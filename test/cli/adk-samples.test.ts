// Agents in the forms of ADK's documentation, unchanged, by the real command line against a strict Gemini server.
import { copyFile, readdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openStore } from '../../src/store/open-store.js'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'
import type { Script } from '../../src/testing/strict/script.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { lango, langoProcess, type Outcome } from './lango.js'

const ROOT = join(import.meta.dirname, '../..')
const SAMPLES = join(ROOT, 'test/fixtures/adk-samples')

interface Sample {
  /** What the model answers; absent: the sample needs no model. */
  script?: Script
  text?: string
  /** The whole standard output. */
  out: string
  /** Part of what standard error says. */
  says?: string[]
}

const SIMPLE: Record<string, Sample> = {
  'weather-and-time': {
    script: [
      {
        toolCalls: [
          { name: 'weather', args: { city: 'Lisbon' } },
          { name: 'time', args: { city: 'Lisbon' } },
        ],
      },
      { text: 'Sunny at noon.' },
    ],
    out: 'Sunny at noon.\n',
    says: ['Sunny, 24 degrees.', 'It is noon in Lisbon.'],
  },
  'writer-and-critic': {
    script: [
      { text: 'Draft one.' },
      { text: 'More colour.' },
      { text: 'Draft two.' },
      { text: 'Fine.' },
      { toolCalls: [{ name: 'exit_loop' }] },
      { text: 'It is done.' },
    ],
    out: 'Draft two.\n\nIt is done.\n',
    says: ['Writer: Draft one.', 'Critic: More colour.', 'Critic: Fine.', '→ exit_loop'],
  },
  'research-in-parallel': {
    script: ({ system }) => ({
      text: /Combine: (Wind|Sun)/.test(system)
        ? 'Both grow.'
        : system.includes('wind')
          ? 'Wind grows.'
          : 'Sun grows.',
    }),
    out: 'Both grow.\n',
    says: ['Wind: Wind grows.', 'Sun: Sun grows.'],
  },
  'story-flow': {
    script: [{ text: 'Once.' }, { text: 'Upon.' }, { text: 'Too sad.' }, { text: 'A happy time.' }],
    // All that the last speaker said.
    out: 'Once.\n\nA happy time.\n',
  },
  guarded: {
    script: [{ toolCalls: [{ name: 'capital', args: { country: 'Kanada' } }] }, { text: 'Ottawa.' }],
    out: 'Ottawa.\n',
    says: ['{"result":"Ottawa","note":"checked"}'],
  },
  'calculator-toolset': {
    script: [{ toolCalls: [{ name: 'calculator_add', args: { a: 5, b: 3 } }] }, { text: 'It is 8.' }],
    out: 'It is 8.\n',
    says: ['{"result":8}'],
  },
  'urgent-support': {
    script: ({ system }) =>
      system.includes('support agent')
        ? { text: 'Support here.' }
        : { toolCalls: [{ name: 'triage', args: { query: 'urgent' } }] },
    out: 'Support here.\n',
    says: ['transferred from desk to support'],
  },
  'summary-tool': {
    script: [
      { toolCalls: [{ name: 'summarizer', args: { request: 'a long text' } }] },
      { text: 'Five words and no more.' },
      { text: 'It is short.' },
    ],
    out: 'It is short.\n',
    says: ['Five words and no more.'],
  },
  modes: {
    script: [{ toolCalls: [{ name: 'look', args: { path: 'a.txt' } }] }, { text: 'I plan.' }],
    out: 'I plan.\n',
    says: ['Contents of a.txt'],
  },
  'graph-loop': { out: 'tides: 3 points\n' },
  'graph-join': { out: 'TIDES has 5\n' },
  'graph-routes': {
    script: [{ text: 'BUG, SUPPORT' }],
    out: 'Support is on it.\n',
    says: ['A bug is handled.'],
  },
  'graph-nested': { out: '[upper] TIDES\n' },
  'graph-state': { out: 'tides: 1, only now\n' },
  'graph-messages': { out: 'Done with 2 sources.\n', says: ['Looking into tides.', 'Gathering sources.'] },
  'graph-orders': { out: 'a: 2, b: 1\n' },
  'graph-fields': {
    script: ({ system }) => ({ text: system.includes('it is 10:10 in Rome') ? '10:10 in Rome.' : 'Rome' }),
    out: '10:10 in Rome.\n',
  },
  'graph-fixes': {
    script: ({ system }) => ({ text: system.includes('Fix code') ? '/** Ok. */' : 'code' }),
    out: '/** Ok. */\n',
  },
}

/** These ask a person, or are run twice; each has a test of its own below. */
const MORE = ['reimburse', 'approval-ticket', 'asking-tool', 'graph-question', 'graph-approval', 'documents']

test('every sample is tested here', async () => {
  const names = (await readdir(SAMPLES)).filter(name => name.endsWith('.ts')).map(name => name.slice(0, -3))
  expect(names.sort()).toEqual([...Object.keys(SIMPLE), ...MORE].sort())
})

interface Project {
  run(...args: string[]): Promise<Outcome>
  violations(): readonly unknown[]
  file: string
  store: string
}

/** A folder as ADK's quick start makes it, with one agent file. */
async function sampleFolder(name: string, type = 'module'): Promise<string> {
  const cwd = await temporaryFolder()
  await symlink(join(ROOT, 'node_modules'), join(cwd, 'node_modules'))
  await writeFile(join(cwd, 'package.json'), JSON.stringify({ type, main: `${name}.ts` }))
  await copyFile(join(SAMPLES, `${name}.ts`), join(cwd, `${name}.ts`))
  return cwd
}

/** Such a folder with a configuration: a command in this process finds no key in its environment. */
async function project(name: string, script: Script = [], type = 'module'): Promise<Project> {
  const cwd = await sampleFolder(name, type)
  const server = await startStrictProvider({ profile: 'gemini-2', script })
  onTestFinished(() => server.close())
  const providers = { gemini: { apiKey: 'key', baseUrl: server.baseUrl } }
  await writeFile(join(cwd, 'lango.config.json'), JSON.stringify({ providers }))
  return {
    run: (...args) => lango(args, { cwd }),
    violations: () => server.violations,
    file: `./${name}.ts`,
    store: `sqlite:${join(cwd, 'lango.db')}`,
  }
}

test.each(Object.entries(SIMPLE))(
  'the ADK sample %s runs unchanged',
  async (name, { script, out, says = [], text = 'tides' }) => {
    const { run, violations, file } = await project(name, script)
    const outcome = await run('run', '--agent', file, text)
    expect(outcome, outcome.stderr).toMatchObject({ code: 0, stdout: out })
    for (const words of says) expect(outcome.stderr).toContain(words)
    expect(violations()).toEqual([])
  },
)

test('a process with the key and the address in .env and the environment runs weather-and-time unchanged', async () => {
  const { script = [], out } = SIMPLE['weather-and-time'] ?? expect.unreachable()
  const cwd = await sampleFolder('weather-and-time')
  const server = await startStrictProvider({ profile: 'gemini-2', script })
  onTestFinished(() => server.close())
  await writeFile(join(cwd, '.env'), 'GEMINI_API_KEY=key\n')
  const env = { GOOGLE_GEMINI_BASE_URL: server.baseUrl, LANGO_STORE: 'sqlite:./lango.db' }
  const outcome = await langoProcess(['run', '--agent', './weather-and-time.ts', 'tides'], { cwd, env })
  expect(outcome, outcome.stderr).toMatchObject({ code: 0, stdout: out })
  expect(server.violations).toEqual([])
})

test('an agent file in a folder of CommonJS uses the same ADK', async () => {
  const { run, file } = await project('graph-nested', [], 'commonjs')
  expect(await run('run', '--agent', file, 'TIDES')).toMatchObject({ code: 0, stdout: '[lower] tides\n' })
})

test('a CommonJS agent without an ADK of its own, and a file that it requires, get Lango’s', async () => {
  const cwd = await temporaryFolder()
  const env = { LANGO_STORE: 'memory:' }
  const step =
    "exports.step = require('@google/adk').node((_context, text) => text.toUpperCase(), { name: 'up' })"
  await writeFile(join(cwd, 'step.cjs'), step)
  const agent = `const { Workflow } = require('@google/adk')
const edges = [['START', require('./step.cjs').step]]
exports.rootAgent = new Workflow({ name: 'w', edges })`
  await writeFile(join(cwd, 'agent.cjs'), agent)
  const outcome = await lango(['run', '--agent', './agent.cjs', 'tides'], { cwd, env })
  expect(outcome, outcome.stderr).toMatchObject({ code: 0, stdout: 'TIDES\n' })
  await writeFile(join(cwd, 'other.cjs'), "require('@google/nothing')")
  const other = await lango(['run', '--agent', './other.cjs', 'tides'], { cwd, env })
  expect(other.code).toBe(1)
  expect(other.stderr).toContain("Cannot find module '@google/nothing'")
})

/** The run and the call that a run waits for, from what the command says. */
function waiting({ stderr }: Outcome): [runId: string, callId: string] {
  const [, runId = '', callId = ''] = /runs answer (\S+) (\S+)/.exec(stderr) ?? []
  expect(callId, stderr).not.toBe('')
  return [runId, callId]
}

test('reimburse: the confirmation that the tool asks for is given by another command', async () => {
  const call = { toolCalls: [{ name: 'reimburse', args: { amount: '600' } }] }
  const { run, violations, file } = await project('reimburse', [call, { text: 'Paid.' }])
  const asked = await run('run', '--agent', file, '--wait', 'Pay 600')
  expect(asked.code).toBe(0)
  const [runId, callId] = waiting(asked)
  expect(await run('runs', 'answer', runId, callId, 'once')).toMatchObject({ code: 0 })
  const done = await run('runs', 'resume', runId, '--agent', file)
  expect(done, done.stderr).toMatchObject({ code: 0, stdout: 'Paid.\n' })
  expect(done.stderr).toContain('Paid 600.')
  expect(violations()).toEqual([])
})

test('approval-ticket: the result of the long-running tool is given by another command', async () => {
  const call = { toolCalls: [{ name: 'ask_for_approval', args: { purpose: 'meals', amount: 200 } }] }
  const pay = { toolCalls: [{ name: 'pay', args: { purpose: 'meals', amount: 200 } }] }
  const script = [call, { text: 'I have asked.' }, pay, { text: 'Paid.' }]
  const { run, violations, file } = await project('approval-ticket', script)
  const asked = await run('run', '--agent', file, 'Pay 200')
  expect(asked, asked.stderr).toMatchObject({ code: 0, stdout: 'I have asked.\n' })
  expect(asked.stderr).toContain('ticket-1')
  const next = await run('run', '--agent', file, '--session', sessionOf(asked), 'It is approved.')
  expect(next, next.stderr).toMatchObject({ code: 0, stdout: 'Paid.\n' })
  expect(violations()).toEqual([])
})

function sessionOf({ stderr }: Outcome): string {
  return /--session (\S+)/.exec(stderr)?.[1] ?? ''
}

test.each([
  ['graph-question', '{"result":"21"}', 'Twice: 42\n', 'the workflow asks: Enter a number:'],
  ['graph-approval', '{"result":"Yes"}', 'Approved\n', 'the workflow asks: Approve this request (Yes/No)'],
])('%s: the question is answered by another command', async (name, answer, out, question) => {
  const { run, file } = await project(name)
  const asked = await run('run', '--agent', file, 'go')
  expect(asked.code).toBe(0)
  expect(asked.stderr).toContain(question)
  const [runId, callId] = waiting(asked)
  expect(await run('runs', 'answer', runId, callId, answer)).toMatchObject({ code: 0 })
  const done = await run('runs', 'resume', runId, '--agent', file)
  expect(done, done.stderr).toMatchObject({ code: 0, stdout: out })
})

test('asking-tool: a node as a tool asks one question, and its call is not one of its own', async () => {
  const call = { toolCalls: [{ name: 'refund', args: { amount: 20 } }] }
  const { run, violations, file } = await project('asking-tool', [call, { text: 'It is done.' }])
  const asked = await run('run', '--agent', file, '--wait', 'Refund 20')
  expect(asked.code).toBe(0)
  expect(asked.stderr.match(/runs answer/g)).toHaveLength(1)
  const [runId, callId] = waiting(asked)
  expect(callId).toBe('may_refund')
  expect(await run('runs', 'answer', runId, callId, '{"result":"yes"}')).toMatchObject({ code: 0 })
  const done = await run('runs', 'resume', runId, '--agent', file)
  expect(done, done.stderr).toMatchObject({ code: 0, stdout: 'It is done.\n' })
  expect(done.stderr).toContain('Refunded 20.')
  expect(violations()).toEqual([])
})

test('documents: artifacts and memory work without a setting, and are kept for the next run', async () => {
  const call = { toolCalls: [{ name: 'analyze', args: { name: 'plan', query: 'roof' } }] }
  const { run, violations, file, store } = await project('documents', [
    call,
    { text: 'One.' },
    call,
    { text: 'Two.' },
  ])
  const first = await run('run', '--agent', file, 'Analyze')
  expect(first, first.stderr).toMatchObject({ code: 0, stdout: 'One.\n' })
  const sessionId = sessionOf(first)
  const second = await run('run', '--agent', file, '--session', sessionId, 'Again')
  expect(second.stderr).toContain('"before":["plan"]')
  const opened = await openStore(store)
  const key = { appName: 'lango', userId: 'user', sessionId }
  expect(await opened.artifacts.versions({ ...key, name: 'plan' })).toHaveLength(2)
  await opened.close()
  expect(violations()).toEqual([])
})
