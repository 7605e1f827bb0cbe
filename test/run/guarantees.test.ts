// The table "What is guaranteed" of docs/reliability.md, row by row. One process with a run for each row is killed with
// SIGKILL, and another one continues. The same again with a process that breaks every guarantee: each check must notice.
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

/** What the stores and the world outside know after the kill, when everything has come to its end. */
interface Evidence {
  /** A copy of the store as the killed process has left it. */
  killedUrl: string
  messages: Record<SessionName, StoredMessage[]>
  /** The first run of each session, and its events. */
  runs: Record<SessionName, RunSummary | undefined>
  events: Record<SessionName, RunEventRecord[]>
  /** What models were asked and tools did, in both processes. */
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
    const later = await store.runs.listUnfinished?.({ appName: 'lango', scheduled: 'only' })
    const left = (await store.runs.listUnfinished?.({ appName: 'lango' })) ?? []
    return later?.length === 0 && left.every(({ state }) => state === 'waiting')
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

/** Whether a guarantee was kept, by its name in the documentation. */
const KEPT: Readonly<Record<string, (evidence: Evidence) => boolean>> = {
  'Accepted means kept': evidence => asked(evidence, 'accepted').join() === 'accepted first,accepted second',
  'One request, one run': evidence => asked(evidence, 'once').length === 1,
  'In order': evidence => {
    const turns = evidence.messages.ordered.map(({ invocationId }) => invocationId)
    const isContiguous = turns.every((turn, at) => turns.indexOf(turn) >= at - 1)
    return isContiguous && asked(evidence, 'ordered').join() === 'ordered first,ordered second,ordered third'
  },
  'A run survives its process': evidence => {
    const { runs, events } = evidence
    const isNumbered = events.survives.every(({ seq }, index) => seq === index + 1)
    const isResumed = events.survives.some(({ type }) => type === 'run-resumed')
    const isPaidOnce = count(evidence, 'asked survives first 0') === 1 && count(evidence, 'look') === 1
    return runs.survives?.finishReason === 'stop' && isNumbered && isResumed && isPaidOnce
  },
  'Later is stored': evidence =>
    evidence.runs.later?.finishReason === 'stop' && count(evidence, 'asked later') === 1,
  'Waiting is stored': ({ runs, events }) =>
    runs.waits?.finishReason === 'stop' &&
    events.waits.filter(({ type }) => type === 'approval-request').length === 1,
  'Every run ends': ({ runs, events }) =>
    runs.ends?.finished === true &&
    events.ends.findIndex(({ type }) => type === 'run-finish') === events.ends.length - 1,
  'Paid once, with a key': ({ log }) => {
    const keys = log.filter(line => line.startsWith('pay_keyed'))
    return keys.length === 2 && new Set(keys).size === 1
  },
  'Paid once, without a key': evidence => count(evidence, 'pay_blind') === 1,
}

const folders: string[] = []
let sound: Evidence
let broken: Evidence

beforeAll(async () => {
  ;[sound, broken] = await Promise.all([killAndContinue('sound'), killAndContinue('broken')])
})
afterAll(() => Promise.all(folders.map(removeFolder)))

test.each(Object.keys(KEPT))('"%s" holds when the process is killed with SIGKILL', name => {
  expect(KEPT[name]?.(sound), JSON.stringify(sound, null, 1)).toBe(true)
})

test.each(Object.keys(KEPT))('the check of "%s" fails for a killed process that breaks it', name => {
  expect(KEPT[name]?.(broken), JSON.stringify(broken, null, 1)).toBe(false)
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
  expect(rows).toEqual([...Object.keys(KEPT), 'The next message works'])
})
