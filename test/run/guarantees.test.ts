// The table "What is guaranteed" of docs/reliability.md, row by row. One process with a run for each row is killed with
// SIGKILL, and another one continues. The same again with a process that breaks every guarantee: each check must name the
// breach that was planted. What that process does not break is broken in the evidence of the first one.
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import type { StoredMessage } from '../../src/session/message.js'
import type { RunEventRecord, RunSummary } from '../../src/session/run-store.js'
import type { SessionStore } from '../../src/session/session-store.js'
import { openStore } from '../../src/store/open-store.js'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'
import { runScript } from '../support/child.js'
import { gapsIn } from '../support/event-numbers.js'
import { startEveryProfile } from '../support/every-profile.js'
import { createGuaranteeRuntime, firstRunOf } from '../support/guarantee-agent.js'
import { makeFolder, removeFolder } from '../support/temporary-folder.js'

const SESSIONS = [
  'accepted',
  'once',
  'ordered',
  'survives',
  'later',
  'waits',
  'ends',
  'keyed',
  'blind',
] as const
type SessionName = (typeof SESSIONS)[number]

const keyOf = (sessionId: string) => ({ appName: 'lango', userId: 'user', sessionId })

/** State of the stores and of the outside world after the kill, when all runs have ended. */
interface Evidence {
  /** A copy of the store as the killed process has left it. */
  killedUrl: string
  messages: Record<SessionName, StoredMessage[]>
  /** The first run of each session, and its events. */
  runs: Record<SessionName, RunSummary | undefined>
  events: Record<SessionName, RunEventRecord[]>
  /** Requests to models and effects of tools, in both processes. */
  log: string[]
}

async function killAndContinue(mode: 'sound' | 'broken'): Promise<Evidence> {
  const folder = await makeFolder()
  folders.push(folder)
  const [live, killed] = [join(folder, 'live'), join(folder, 'killed')]
  await mkdir(live)
  const log = join(folder, 'log')
  await writeFile(log, '')
  const url = `sqlite:${join(live, 'lango.db')}`
  const child = runScript('guarantee-child.ts', [url, log, mode])
  await child.untilLines(1)
  expect(child.lines, child.errors()).toEqual(['ready'])
  child.process.kill('SIGKILL')
  expect((await child.ended).signal).toBe('SIGKILL')
  await cp(live, killed, { recursive: true })
  makeDue(url)
  const store = await openStore(url)
  await continueAll(store, log)
  const evidence = { ...(await evidenceIn(store)), log: (await readFile(log, 'utf8')).split('\n') }
  await store.close()
  return { ...evidence, killedUrl: `sqlite:${join(killed, 'lango.db')}` }
}

/** The hour passes until the run that was accepted for later. */
function makeDue(url: string): void {
  const database = new DatabaseSync(url.slice('sqlite:'.length))
  database.exec("UPDATE lango_runs SET due_at = 1 WHERE state = 'scheduled'")
  database.close()
}

/** Another process ends everything that does not wait for a person. The client of `once` repeats its request. */
async function continueAll(store: SessionStore, log: string): Promise<void> {
  const runtime = await createGuaranteeRuntime({ store, log, hangs: false })
  await runtime.ready()
  await runtime.start({ sessionId: 'once', text: 'once first', runId: firstRunOf('once') })
  const isSettled = async () => {
    const later = await store.runs.listUnfinished({ appName: 'lango', scheduled: 'only' })
    const left = await store.runs.listUnfinished({ appName: 'lango' })
    return later.length === 0 && left.every(({ state }) => state === 'waiting')
  }
  await vi.waitUntil(isSettled, { timeout: 60_000 })
  await runtime.close()
}

async function evidenceIn(store: SessionStore): Promise<Pick<Evidence, 'messages' | 'runs' | 'events'>> {
  const read = async <Value>(reader: (session: SessionName) => Promise<Value>) =>
    Object.fromEntries(await Promise.all(SESSIONS.map(async name => [name, await reader(name)]))) as Record<
      SessionName,
      Value
    >
  return {
    messages: await read(async name =>
      (await store.describeSession(keyOf(name))) ? store.readMessages(keyOf(name)) : [],
    ),
    runs: await read(name => store.runs.findRun(firstRunOf(name))),
    events: await read(name => store.runs.readEvents(firstRunOf(name))),
  }
}

function asked({ messages }: Evidence, session: SessionName): string[] {
  return messages[session].filter(({ role }) => role === 'user').map(({ content }) => content)
}

const count = ({ log }: Evidence, beginning: string) => log.filter(line => line.startsWith(beginning)).length

/** Predicates by the name of the breach: true if the evidence has it. */
type Breaches = Readonly<Record<string, (evidence: Evidence) => boolean>>

const ACCEPTED = ['accepted first', 'accepted second']
const ORDERED = ['ordered first', 'ordered second', 'ordered third']

/** The breaches of each guarantee, by its name in the documentation. A guarantee without a breach was kept. */
const GUARANTEES: Readonly<Record<string, Breaches>> = {
  'Accepted means kept': {
    'a message is lost': evidence => ACCEPTED.some(text => !asked(evidence, 'accepted').includes(text)),
    'a message is stored twice': evidence => hasDuplicates(asked(evidence, 'accepted')),
  },
  'One request, one run': {
    'the message is lost': evidence => asked(evidence, 'once').length === 0,
    'the repeated request is another run': evidence => asked(evidence, 'once').length > 1,
  },
  'In order': {
    'the order is not that of acceptance': evidence => asked(evidence, 'ordered').join() !== ORDERED.join(),
    'messages of two runs are interleaved': ({ messages }) => {
      const turns = messages.ordered.map(({ invocationId }) => invocationId)
      return hasDuplicates(turns.filter((turn, at) => turn !== turns[at - 1]))
    },
  },
  'A run survives its process': {
    'the run has not ended': ({ runs }) => runs.survives?.finishReason !== 'stop',
    'no process has continued the run': ({ events }) => countEvents(events.survives, 'run-resumed') === 0,
    'the numbers of the events have a gap': ({ events }) => gapsIn(events.survives).length > 0,
    'the stored answer is not paid once': evidence => count(evidence, 'asked survives first 0') !== 1,
    'the answered call is not executed once': evidence => count(evidence, 'look') !== 1,
  },
  'Later is stored': {
    'the run has not ended': ({ runs }) => runs.later?.finishReason !== 'stop',
    'the message is lost': evidence => asked(evidence, 'later').length === 0,
    'the message is stored twice': evidence => asked(evidence, 'later').length > 1,
    'the run is not executed once': evidence => count(evidence, 'asked later') !== 1,
  },
  'Waiting is stored': {
    'the run has not ended': ({ runs }) => runs.waits?.finishReason !== 'stop',
    'the question is lost': ({ events }) => countEvents(events.waits, 'approval-request') === 0,
    'the question is asked twice': ({ events }) => countEvents(events.waits, 'approval-request') > 1,
    'the answer is lost': ({ events }) => countEvents(events.waits, 'approval-answer') === 0,
  },
  'Every run ends': {
    'the run has not ended': ({ runs }) => runs.ends?.finished !== true,
    'the run has no run-finish': ({ events }) => countEvents(events.ends, 'run-finish') === 0,
    'the run has two run-finish': ({ events }) => countEvents(events.ends, 'run-finish') > 1,
    'an event follows run-finish': ({ events }) =>
      countEvents(events.ends, 'run-finish') > 0 && events.ends.at(-1)?.type !== 'run-finish',
  },
  'Paid once, with a key': {
    'the interrupted call is not repeated once': evidence => count(evidence, 'pay_keyed') !== 2,
    'the repeated call has another key': ({ log }) =>
      new Set(log.filter(line => line.startsWith('pay_keyed'))).size > 1,
  },
  'Paid once, without a key': {
    'the call is not started': evidence => count(evidence, 'pay_blind') === 0,
    'the call is started again': evidence => count(evidence, 'pay_blind') > 1,
  },
}

/** The breaches that the broken child plants: these and no others are found. */
const PLANTED: Readonly<Record<string, readonly string[]>> = {
  'Accepted means kept': ['a message is lost'],
  'One request, one run': ['the repeated request is another run'],
  'In order': ['the order is not that of acceptance'],
  'A run survives its process': ['the answered call is not executed once'],
  'Later is stored': ['the run has not ended', 'the message is lost', 'the run is not executed once'],
  'Waiting is stored': ['the run has not ended', 'the answer is lost'],
  'Every run ends': ['the run has not ended', 'the run has no run-finish'],
  'Paid once, with a key': ['the repeated call has another key'],
  'Paid once, without a key': ['the call is started again'],
}

/** Breaches that no child plants: each is put into the evidence of the sound one. */
const ALTERED: readonly (readonly [
  guarantee: string,
  breach: string,
  alter: (evidence: Evidence) => unknown,
])[] = [
  [
    'Accepted means kept',
    'a message is stored twice',
    ({ messages }) => messages.accepted.push(...messages.accepted.slice(0, 1)),
  ],
  ['One request, one run', 'the message is lost', ({ messages }) => messages.once.splice(0)],
  [
    'In order',
    'messages of two runs are interleaved',
    // The question of the second run is before the answer of the first one.
    ({ messages }) => messages.ordered.splice(1, 0, ...messages.ordered.splice(2, 1)),
  ],
  [
    'A run survives its process',
    'the run has not ended',
    ({ runs }) => {
      delete runs.survives?.finishReason
    },
  ],
  [
    'A run survives its process',
    'no process has continued the run',
    ({ events }) => {
      events.survives = events.survives.map(event =>
        event.type === 'run-resumed' ? { ...event, type: 'model-wait' } : event,
      )
    },
  ],
  [
    'A run survives its process',
    'the numbers of the events have a gap',
    ({ events }) => events.survives.splice(1, 1),
  ],
  [
    'A run survives its process',
    'the stored answer is not paid once',
    ({ log }) => log.push('asked survives first 0'),
  ],
  [
    'Later is stored',
    'the message is stored twice',
    ({ messages }) => messages.later.push(...messages.later.slice(0, 1)),
  ],
  ['Later is stored', 'the run is not executed once', ({ log }) => log.push('asked later first 0')],
  [
    'Waiting is stored',
    'the question is lost',
    ({ events }) => {
      events.waits = events.waits.filter(({ type }) => type !== 'approval-request')
    },
  ],
  [
    'Waiting is stored',
    'the question is asked twice',
    ({ events }) => events.waits.push(...events.waits.filter(({ type }) => type === 'approval-request')),
  ],
  [
    'Every run ends',
    'the run has two run-finish',
    ({ events }) => events.ends.push(...events.ends.slice(-1)),
  ],
  [
    'Every run ends',
    'an event follows run-finish',
    ({ events }) => events.ends.push(...events.ends.slice(0, 1)),
  ],
  [
    'Paid once, with a key',
    'the interrupted call is not repeated once',
    ({ log }) => log.push(...log.filter(line => line.startsWith('pay_keyed'))),
  ],
  [
    'Paid once, without a key',
    'the call is not started',
    evidence => {
      evidence.log = evidence.log.filter(line => !line.startsWith('pay_blind'))
    },
  ],
]

function breachesOf(guarantee: string, evidence: Evidence): string[] {
  const breaches = Object.entries(GUARANTEES[guarantee] ?? {})
  return breaches.filter(([, isIn]) => isIn(evidence)).map(([breach]) => breach)
}

function hasDuplicates(values: readonly unknown[]): boolean {
  return new Set(values).size < values.length
}

function countEvents(events: readonly RunEventRecord[], type: string): number {
  return events.filter(event => event.type === type).length
}

const folders: string[] = []
let sound: Evidence
let broken: Evidence

beforeAll(async () => {
  ;[sound, broken] = await Promise.all([killAndContinue('sound'), killAndContinue('broken')])
})
afterAll(() => Promise.all(folders.map(removeFolder)))

test.each(Object.keys(GUARANTEES))('"%s" holds when the process is killed with SIGKILL', guarantee => {
  expect(breachesOf(guarantee, sound), JSON.stringify(sound, null, 1)).toEqual([])
})

test.each(Object.keys(GUARANTEES))(
  'the check of "%s" fails for a killed process that breaks it',
  guarantee => {
    expect(breachesOf(guarantee, broken), JSON.stringify(broken, null, 1)).toEqual(PLANTED[guarantee])
  },
)

test.each(ALTERED)('the check of "%s" finds in altered evidence that %s', (guarantee, breach, alter) => {
  const altered = structuredClone(sound)
  alter(altered)
  expect(breachesOf(guarantee, altered)).toEqual([breach])
})

test.each(Object.keys(GUARANTEES))('every breach of "%s" is found in one of the controls', guarantee => {
  const altered = ALTERED.flatMap(([of, breach]) => (of === guarantee ? [breach] : []))
  const controlled = new Set([...(PLANTED[guarantee] ?? []), ...altered])
  expect([...controlled].sort()).toEqual(Object.keys(GUARANTEES[guarantee] ?? {}).sort())
})

test('"The next message works" holds on every model when the process is killed with SIGKILL', async () => {
  const everyProfile = await startEveryProfile()
  onTestFinished(() => everyProfile.close())
  const store = await openStore(sound.killedUrl)
  // Cut off in an answer, and in a tool call.
  await everyProfile.expectNextMessageWorks(store, keyOf('ends'))
  await everyProfile.expectNextMessageWorks(store, keyOf('blind'))
  onTestFinished(() => store.close())
})

test('a strict server refuses the next message after a killed tool call when the history is sent as it is stored', async () => {
  const store = await openStore(sound.killedUrl)
  const stored = await store.readMessages(keyOf('blind'))
  await store.close()
  const server = await startStrictProvider({ profile: 'openai-chat', script: () => ({ text: 'Done.' }) })
  onTestFinished(() => server.close())
  const messages = stored.map(({ role, content, toolCalls }) => ({
    role,
    content,
    ...(toolCalls
      ? {
          tool_calls: toolCalls.map(({ id, name, input }) => ({
            ...{ id, type: 'function', function: { name, arguments: input } },
          })),
        }
      : {}),
  }))
  expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant'])
  const response = await fetch(`${server.baseUrl}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer test-key' },
    body: JSON.stringify({
      model: 'gpt-4.1',
      messages: [...messages, { role: 'user', content: 'And now?' }],
    }),
  })
  expect(response.status).toBe(400)
  expect(server.violations).toMatchObject([
    { message: expect.stringContaining('must be followed by tool messages') },
  ])
})

test('every row of the table "What is guaranteed" is tested here', async () => {
  const documented = await readFile(new URL('../../docs/reliability.md', import.meta.url), 'utf8')
  const [, table = ''] = documented.split('## What is guaranteed')
  const rows = [...(table.split('\n## ')[0] ?? '').matchAll(/^\| ([A-Z][^|]*?) \|/gm)].map(([, name]) => name)
  expect(rows).toEqual([...Object.keys(GUARANTEES), 'The next message works'])
})
