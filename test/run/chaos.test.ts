// Servers are killed, frozen and terminated while they execute runs; nothing that was acknowledged is lost, and nothing
// is paid twice. `npm run chaos` does the same for as long as one likes.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { PaymentRequest } from '../../chaos/bank.js'
import { check, type Evidence, type FinalRun, MAX_ATTEMPTS } from '../../chaos/check.js'
import { Clients, isAccepted, type Sent } from '../../chaos/clients.js'
import { Failpoints } from '../../chaos/failpoints.js'
import { answerTo } from '../../chaos/model.js'
import { SERVER_HEADER } from '../../chaos/orders.js'
import { Random } from '../../chaos/random.js'
import { type ChaosReport, runChaos } from '../../chaos/run-chaos.js'
import type { RunEvent } from '../../src/run/run-event.js'
import type { StoredMessage } from '../../src/session/message.js'
import type { RequestSummary, SummaryMessage } from '../../src/testing/strict/script.js'
import { eventually } from '../support/eventually.js'
import { removeFolder } from '../support/temporary-folder.js'
import { LONG } from '../support/tiers.js'

/** Ends after these kills; the time is a bound for a machine that is busy with other work. */
const SEVERAL = { processes: 2, sessions: 4, kills: 5, limitMs: 60_000 }

/** The process is killed when the bank has taken the money and has not answered: the outcome is unknown. */
const AFTER_PAYMENT = { points: ['blind-after'], events: ['kill'] } as const

test('of two servers on SQLite one is killed after a payment: nothing is lost, doubled, interleaved or stuck', {
  timeout: 1_200_000,
}, async () => {
  const once = { ...SEVERAL, ...AFTER_PAYMENT, sessions: 2, kills: 1 }
  expectSound(await runChaos({ ...once, store: 'sqlite', seed: 'one kill' }))
})

test.each(['sqlite', 'postgres'])(
  'servers on %s are killed at every kind of moment: nothing is lost, doubled, interleaved or stuck',
  { ...LONG, timeout: 1_200_000 },
  async store => {
    expectSound(await runChaos({ ...SEVERAL, store, seed: 'a minute' }))
  },
)

function expectSound(report: ChaosReport): void {
  expect(report.problems, `evidence in ${report.folder}`).toEqual([])
  expect(report.kills).toBeGreaterThan(0)
  expect(report.acknowledged).toBeGreaterThan(0)
  expect(report.stored + report.stopped).toBeGreaterThanOrEqual(report.acknowledged)
  expect(report.effects).toBeGreaterThan(0)
  expect(report.resumed).toBeGreaterThan(0)
}

test('servers whose runs DBOS dispatches lose and double nothing when one is killed', {
  ...LONG,
  timeout: 1_200_000,
}, async () => {
  const kills = { kills: 2, sessions: 3, events: ['kill'] as const, engine: 'dbos' as const }
  const report = await runChaos({ ...SEVERAL, ...kills, store: 'postgres', seed: 'dispatched' })
  expect(report.problems, `evidence in ${report.folder}`).toEqual([])
  expect(report.kills).toBeGreaterThan(0)
  expect(report.stored + report.stopped).toBeGreaterThanOrEqual(report.acknowledged)
  expect(report.resumed).toBeGreaterThan(0)
})

test('the check finds a server that repeats payments with an unknown outcome', {
  ...LONG,
  timeout: 1_200_000,
}, async () => {
  const kills = { ...AFTER_PAYMENT, sessions: 2, kills: 2, sabotage: true }
  const report = await runChaos({ ...SEVERAL, ...kills, store: 'sqlite', seed: 'sabotage' })
  expect(report.problems.map(({ kind }) => kind)).toContain('doubled')
  if (report.folder) await removeFolder(report.folder)
})

describe('check of the evidence', () => {
  const sent = (mark: string, times: { sentAtMs: number; acknowledgedAtMs?: number }): Sent => ({
    text: mark,
    mark,
    orders: [{ counter: 'blind', order: `${mark}-b` }],
    runId: `run of ${mark}`,
    sessionId: 's',
    followed: new Map(),
    answered: [],
    ...times,
  })
  const first = sent('[message 1]', { sentAtMs: 1, acknowledgedAtMs: 2 })
  const second = sent('[message 2]', { sentAtMs: 3, acknowledgedAtMs: 4 })
  const finish = { finishReason: 'stop', text: '', turns: 1, delegations: 0 }
  const events = (...types: string[]) =>
    types.map((type, index) => ({
      type,
      seq: index + 1,
      ...(type === 'run-finish' ? finish : {}),
    })) as RunEvent[]
  const run = (of: Sent, changes: Partial<FinalRun> = {}): FinalRun => ({
    sent: of,
    isKnown: true,
    isFinished: true,
    finishReason: 'stop',
    events: events('run-start', 'run-finish'),
    calls: [],
    ...changes,
  })
  const message = (seq: number, content: string, invocationId: string): StoredMessage => ({
    seq,
    tokens: 1,
    role: content.startsWith('[message') ? 'user' : 'assistant',
    content,
    timestamp: 0,
    invocationId,
  })
  const HISTORY = [
    message(1, '[message 1]', 'one'),
    message(2, 'answer', 'one'),
    message(3, '[message 2]', 'two'),
    message(4, 'answer', 'two'),
  ]
  const payment: PaymentRequest = { counter: 'blind', order: 'o', key: 'k', slot: 0, atMs: 0, effect: 'made' }
  const kindsOf = (changes: Partial<Evidence> & { history?: StoredMessage[] }) =>
    check({
      runs: [run(first), run(second)],
      effects: new Map(),
      messages: new Map([['s', changes.history ?? HISTORY]]),
      ...changes,
    }).map(({ kind }) => kind)
  const [one, oneAnswer, two, twoAnswer] = HISTORY as [
    StoredMessage,
    StoredMessage,
    StoredMessage,
    StoredMessage,
  ]
  const output = '{"status":"paid","order":"o"}'
  const ANSWERED: StoredMessage = {
    ...oneAnswer,
    toolCalls: [{ id: 'c', name: 'pay_blind', output, kind: 'response' }],
  }
  const renumbered = (...list: StoredMessage[]) => list.map((each, index) => ({ ...each, seq: index + 1 }))

  const CALM = { faulted: new Set<string>(), isDatabaseDisturbed: false }
  const failed = (code: string, attempt?: number) => {
    const types = ['run-start', ...(attempt === undefined ? [] : ['run-resumed']), 'error', 'run-finish']
    const details = { 'run-resumed': { attempt }, error: { error: { code, message: code } } }
    const list = events(...types).map(event => ({ ...event, ...details[event.type as keyof typeof details] }))
    return run(first, { events: list as RunEvent[] })
  }

  test('the check finds nothing in a correct history', () => {
    expect(kindsOf({})).toEqual([])
  })

  test('the check finds nothing where a fault explains how a run ended', () => {
    const faulted = new Set([first.mark])
    expect(kindsOf({ runs: [failed('provider-stream')], ends: { ...CALM, faulted } })).toEqual([])
    expect(kindsOf({ runs: [failed('run-interrupted', MAX_ATTEMPTS)], ends: CALM })).toEqual([])
    const ends = { ...CALM, isDatabaseDisturbed: true }
    expect(kindsOf({ runs: [failed('store-unavailable')], ends })).toEqual([])
  })

  test.each<[string, string[], Parameters<typeof kindsOf>[0]]>([
    ['a message that is not stored', ['lost'], { history: renumbered(one, oneAnswer) }],
    [
      'a run that is not stored',
      ['lost'],
      { runs: [run(first), run(second, { isKnown: false, events: [] })] },
    ],
    [
      'a message that is stored twice',
      ['doubled', 'interleaved'],
      { history: renumbered(one, oneAnswer, two, two) },
    ],
    ['messages of two runs that alternate', ['interleaved'], { history: renumbered(one, two, oneAnswer) }],
    [
      'runs in another order than acknowledged',
      ['interleaved'],
      { history: renumbered(two, twoAnswer, one) },
    ],
    [
      'a run without an end',
      ['stuck'],
      { runs: [run(first, { isFinished: false, events: events('run-start') })] },
    ],
    [
      'two ends',
      ['events'],
      { runs: [run(first, { events: events('run-start', 'run-finish', 'run-finish') })] },
    ],
    ['a refused message that is stored', ['false'], { runs: [run({ ...first, isRefused: true })] }],
    ['an order that was paid twice', ['doubled'], { effects: new Map([['o', [payment, payment]]]) }],
    [
      'a call with two answers',
      ['doubled'],
      {
        history: renumbered(one, ANSWERED, ANSWERED),
        runs: [run(first)],
        effects: new Map([['o', [payment]]]),
      },
    ],
    [
      'a result without a payment',
      ['false'],
      {
        history: renumbered(one, ANSWERED),
        runs: [run(first)],
      },
    ],
    [
      'an order that was refused by a person and is paid',
      ['false'],
      { effects: new Map([['o-r', [{ ...payment, order: 'o-r' }]]]) },
    ],
    ['a run that was not continued', ['not-resumed'], { runs: [failed('run-interrupted', 2)], ends: CALM }],
    [
      'a run that was given up too early',
      ['not-resumed'],
      { runs: [failed('run-interrupted', 9)], ends: CALM },
    ],
    ['an error that nothing explains', ['unexplained'], { runs: [failed('provider-stream')], ends: CALM }],
    ['an error of the store alone', ['unexplained'], { runs: [failed('store-unavailable')], ends: CALM }],
  ])('the check finds %s', (_name, kinds, changes) => {
    expect([...new Set(kindsOf(changes))]).toEqual(kinds)
  })
})

test('a client follows and answers a run whose acceptance was not answered, after a copy of the request was refused', async () => {
  const posts = new Map<string, number>()
  const answered = new Set<string>()
  const runOf = (url = '') => /runs\/([\w-]+)/.exec(url)?.[1] ?? ''
  const frames = (...events: object[]) => events.map(event => `data: ${JSON.stringify(event)}\n\n`).join('')
  const server = createServer(async (request, response) => {
    response.setHeader(SERVER_HEADER, 'token')
    let text = ''
    for await (const chunk of request) text += chunk
    const { runId, whenBusy } = JSON.parse(text || '{}') as { runId?: string; whenBusy?: string }
    if (runId !== undefined && whenBusy === 'reject') {
      posts.set(runId, (posts.get(runId) ?? 0) + 1)
      if (posts.get(runId) === 1) request.socket.destroy()
      else response.writeHead(409).end('{}')
    } else if (runId !== undefined) response.writeHead(202).end('{}')
    else if (request.url?.includes('/approvals/')) {
      answered.add(runOf(request.url))
      response.writeHead(204).end()
    } else if (request.url?.endsWith('?after=0') && posts.has(runOf(request.url)))
      response.end(frames({ seq: 1, type: 'approval-request', id: 'c', args: {} }))
    else response.writeHead(posts.has(runOf(request.url)) ? 404 : 204).end()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const clients = new Clients({
    fleet: { address: () => ({ slot: 0, url }) },
    failpoints: new Failpoints(),
    random: new Random('unacknowledged'),
    sessions: 1,
    hasPeople: true,
    token: 'token',
    slotOf: () => 0,
    wrong: (kind, detail) => expect.unreachable(`${kind}: ${detail}`),
  })
  clients.start()
  await eventually(() => answered.size).toBeGreaterThan(0)
  await clients.stop()
  await clients.finish()
  const unacknowledged = clients.sent.filter(({ runId }) => answered.has(runId))
  expect(unacknowledged.every(sent => !isAccepted(sent) && !sent.isRefused)).toBe(true)
})

describe('answerTo', () => {
  const ask = (messages: readonly Partial<SummaryMessage>[]): RequestSummary => ({
    model: 'm',
    stream: true,
    system: '',
    messages: messages.map(message => ({
      role: 'user',
      text: '',
      toolCalls: [],
      toolResults: [],
      ...message,
    })),
    lastUserText: '',
    tools: [{ name: 'pay_blind', parameters: {} }],
    toolChoice: 'auto',
    body: {},
  })
  const order = { text: '[message 1] Pay 17 at the bank. [blind o-1]' }
  const call = {
    role: 'assistant',
    toolCalls: [{ id: 'c', name: 'pay_blind', args: { order: 'o-1' } }],
  } as const
  const result = (content: string) => ({ role: 'tool', toolResults: [{ id: 'c', content }] }) as const
  const pays = { toolCalls: [{ name: 'pay_blind', args: { order: 'o-1' } }] }

  test('the model pays an order, and stops when it is paid', () => {
    expect(answerTo(ask([order]))).toMatchObject(pays)
    const paid = answerTo(ask([order, call, result('{"status":"paid","order":"o-1"}')]))
    expect(paid.toolCalls).toBeUndefined()
  })

  test('the model repeats a call whose outcome is not known, in the same run and in a later one', () => {
    const unknown = [order, call, result('{"error":"It is not known whether it took effect."}')]
    expect(answerTo(ask(unknown))).toMatchObject(pays)
    expect(answerTo(ask([...unknown, call, result('{"error":"Not known."}')])).toolCalls).toBeUndefined()
    expect(answerTo(ask([...unknown, { text: '[message 2] Just say something.' }]))).toMatchObject(pays)
  })
})

test('equal seeds of chaos make equal choices', () => {
  const choices = (seed: string) => {
    const random = new Random(seed).stream('bank')
    return [random.next(), random.between(1, 100), random.uuid(), random.weighted({ one: 1, two: 2 })]
  }
  expect(choices('s')).toEqual(choices('s'))
  expect(choices('s')).not.toEqual(choices('t'))
  expect(new Random('s').uuid()).toMatch(
    /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
  )
})
