// Runs that are continued by another process of the command line: after an answer, a kill, and a shutdown.
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createClient } from '../../src/client/create-client.js'
import type { RunEvent } from '../../src/run/run-event.js'
import { gapsIn } from '../support/event-numbers.js'
import { eventually } from '../support/eventually.js'
import { gate, type Piece, startPacedModel } from '../support/paced-model.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { lango, startLango } from './lango.js'

// Starting processes takes long on a busy machine.
vi.setConfig({ testTimeout: 120_000 })

async function folderWith(config: object): Promise<string> {
  const cwd = await temporaryFolder()
  await writeFile(join(cwd, 'lango.config.json'), JSON.stringify({ store: 'sqlite:./lango.db', ...config }))
  return cwd
}

/** `lango serve`, when it listens. */
async function serve(cwd: string, port = '0') {
  const child = startLango(['serve', '--port', port, '--json'], { cwd })
  onTestFinished(() => void child.kill('SIGKILL'))
  let log = ''
  child.stderr?.on('data', chunk => {
    log += chunk
  })
  const ended = new Promise<number | null>(resolve => child.on('close', resolve))
  const lines = createInterface({ input: child.stdout ?? process.stdin })[Symbol.asyncIterator]()
  const { url } = JSON.parse((await lines.next()).value ?? '{}') as { url: string }
  const end = (signal: NodeJS.Signals) => {
    child.kill(signal)
    return ended
  }
  return { url, client: createClient({ baseUrl: url }), end, log: () => log }
}

/** A run of `lango run --wait` that waits for the approval of `write_file`. */
async function waitingRun() {
  const cwd = await folderWith({ agent: { name: 'writer', tools: ['write_file'] } })
  const args = ['run', '--wait', '--json', '--session', 's1', 'write notes.txt']
  const { code, stdout } = await lango(args, { cwd })
  expect(code).toBe(0)
  const left = JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '')
  expect(left).toMatchObject({ type: 'waiting', sessionId: 's1', waitsFor: [{ tool: 'write_file' }] })
  const { runId, waitsFor } = left as { runId: string; waitsFor: { callId: string }[] }
  const answer = () => lango(['runs', 'answer', runId, waitsFor[0]?.callId ?? '', 'once'], { cwd })
  return { cwd, runId, answer, isWritten: () => existsSync(join(cwd, 'notes.txt')) }
}

async function eventsOf(events: AsyncIterable<RunEvent>): Promise<RunEvent[]> {
  const all: RunEvent[] = []
  for await (const event of events) all.push(event)
  return all
}

test('a run that lango run --wait left waiting is continued by a server when it is answered', async () => {
  const { cwd, runId, answer, isWritten } = await waitingRun()
  const { client } = await serve(cwd)
  expect((await client.sessions()).sessions).toMatchObject([{ sessionId: 's1', waiting: true }])
  expect(await client.run(runId)).toMatchObject({ status: 'waiting', waitsFor: [{ tool: 'write_file' }] })
  expect(isWritten()).toBe(false)
  const followed = eventsOf(client.follow(runId))
  expect(await answer()).toMatchObject({ code: 0 })
  const events = await followed
  expect(events.filter(({ type }) => type === 'run-resumed')).toHaveLength(1)
  expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop' })
  expect(isWritten()).toBe(true)
  expect((await client.sessions()).sessions[0]).not.toHaveProperty('waiting')
})

test('lango runs resume continues a run that was answered, and leaves one that was not waiting', async () => {
  const { cwd, runId, answer, isWritten } = await waitingRun()
  const early = await lango(['runs', 'resume', runId], { cwd })
  expect(early).toMatchObject({ code: 0, stderr: expect.stringContaining(`lango runs answer ${runId}`) })
  expect(isWritten()).toBe(false)
  expect(await answer()).toMatchObject({ code: 0 })
  const resumed = await lango(['runs', 'resume', runId, '--json'], { cwd })
  expect(resumed.code, resumed.stderr).toBe(0)
  const events = resumed.stdout
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line) as RunEvent)
  expect(events.map(({ type }) => type)).toContain('run-resumed')
  expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop' })
  expect(isWritten()).toBe(true)
})

/** A server whose model stops in the middle of its first answer; it completes the second one. */
async function cutOff(more: object) {
  const closed = gate()
  async function* answer(): AsyncGenerator<Piece> {
    yield 'The answer '
    if (model.requests.length === 1) await closed.passed
    yield 'is complete.'
  }
  const model = await startPacedModel(answer)
  onTestFinished(async () => {
    closed.open()
    await model.close()
  })
  const local = { type: 'openai-compatible', baseUrl: model.baseUrl, apiKey: 'none' }
  const agent = { name: 'root', model: 'local/gpt-4.1', tools: [] }
  const cwd = await folderWith({ providers: { local }, agent, ...more })
  const first = await serve(cwd)
  const { runId } = await first.client.start('s1', { text: 'Tell me.' })
  const events: RunEvent[] = []
  const followed = (async () => {
    for await (const event of first.client.follow(runId)) events.push(event)
  })()
  await eventually(() => events.some(({ type }) => type === 'text-delta')).toBe(true)
  return { first, events, followed, restart: () => serve(cwd, new URL(first.url).port), model }
}

function expectContinued(events: readonly RunEvent[]): void {
  const types = events.map(({ type }) => type)
  const at = types.indexOf('run-resumed')
  expect(types.slice(at, at + 2)).toEqual(['run-resumed', 'step-restart'])
  expect(types.filter(type => type === 'run-resumed' || type === 'error')).toHaveLength(1)
  expect(gapsIn(events)).toEqual([])
  expect(events.at(-1)).toMatchObject({ finishReason: 'stop', text: 'The answer is complete.' })
}

test('a client of lango serve follows its run over a kill and a restart to the end', async () => {
  const { first, events, followed, restart, model } = await cutOff({})
  await first.end('SIGKILL')
  await restart()
  await followed
  expectContinued(events)
  expect(events.find(({ type }) => type === 'run-resumed')).toMatchObject({ attempt: 2, replayedSteps: 0 })
  expect(model.requests).toHaveLength(2)
})

test('after SIGTERM, lango serve hands its run over, and the next server continues it', async () => {
  const { first, events, followed, restart, model } = await cutOff({ server: { graceMs: 0 } })
  expect(await first.end('SIGTERM')).toBe(0)
  expect(first.log()).toContain('"runsHandedOver":1')
  await restart()
  await followed
  expectContinued(events)
  expect(events.find(({ type }) => type === 'run-resumed')).toMatchObject({ attempt: 1 })
  expect(model.requests).toHaveLength(2)
})
