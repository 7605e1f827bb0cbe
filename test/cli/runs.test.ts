import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { openStore } from '../../src/store/open-store.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { storeWaitingRun } from '../support/waiting-run.js'
import { lango } from './lango.js'

// Starting processes takes long on a busy machine.
vi.setConfig({ testTimeout: 120_000 })

/** A store with a run that has ended, and one that is queued. */
async function storeWithRuns() {
  const folder = await temporaryFolder()
  const url = `sqlite:${join(folder, 'lango.db')}`
  const call = (...words: string[]) => lango([...words, '--store', url], { cwd: folder })
  const first = await call('run', 'Hello', '--session', 's1', '--json')
  const ended = JSON.parse(first.stdout.split('\n')[0] ?? '').runId as string
  const queued = randomUUID()
  const store = await openStore(url)
  await store.queueRun({
    key: { appName: 'lango', userId: 'user', sessionId: 's1' },
    runId: queued,
    message: { role: 'user', author: 'user', content: 'Later', timestamp: Date.now() },
    events: [],
    orQueue: {
      events: [{ type: 'run-queued', userId: 'user', place: 1, sessionId: 's1', runId: queued, seq: 1 }],
    },
  })
  await store.close()
  return { ended, queued, call }
}

test('lango runs lists, shows and stops runs', async () => {
  const { ended, queued, call } = await storeWithRuns()
  const list = await call('runs')
  expect(list.stdout).toContain(queued)
  expect(list.stdout).toContain('queued (1)')
  expect(list.stdout).not.toContain(ended)
  const all = await call('runs', 'list', '--session', 's1', '--json')
  expect(JSON.parse(all.stdout).runs).toMatchObject([
    { runId: queued, state: 'queued', place: 1 },
    { runId: ended, state: 'finished', finishReason: 'stop' },
  ])
  const shown = await call('runs', 'show', ended)
  expect(shown.stdout).toContain('finished (stop)')
  expect(JSON.parse((await call('runs', 'show', queued, '--json')).stdout).events).toMatchObject([
    { type: 'run-queued', place: 1 },
  ])
  expect((await call('runs', 'stop', queued, ended)).stdout).toBe(
    `${queued}: it was queued, and ended\n${ended}: it has ended already, finished (stop)\n`,
  )
  expect((await call('runs')).stderr).toContain(
    'No run of the app "lango" is scheduled, queued, running or waiting',
  )
})

test('lango runs --all lists ended runs too, newest first, with --limit, --user and --json', async () => {
  const { ended, queued, call } = await storeWithRuns()
  const table = (await call('runs', '--all')).stdout.trimEnd().split('\n')
  expect(table.slice(1).map(line => line.split(' ')[0])).toEqual([queued, ended])
  expect(table[2]).toContain('finished (stop)')
  const json = await call('runs', '--all', '--limit', '1', '--json')
  expect(JSON.parse(json.stdout).runs).toMatchObject([{ runId: queued, state: 'queued' }])
  expect((await call('runs', '--all', '--user', 'bob')).stderr).toBe('The app "lango" has no runs.\n')
  expect(await call('runs', '--all', '--session', 's1')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('--session and --all cannot be combined'),
  })
})

test('lango runs show says what a waiting run waits for, and runs answer passes the answer on', async () => {
  const folder = await temporaryFolder()
  const url = `sqlite:${join(folder, 'lango.db')}`
  const runId = await storeWaitingRun(url)
  const call = (...words: string[]) => lango([...words, '--store', url], { cwd: folder })
  expect((await call('runs', 'list', '--session', 's1')).stdout).toContain('waiting')
  const shown = await call('runs', 'show', runId)
  expect(shown.stdout).toContain('send_letter needs approval (once, always or no): {"to":"Ada"}')
  expect(shown.stdout).toContain(`lango runs answer ${runId} call-1`)
  expect(JSON.parse((await call('runs', 'show', runId, '--json')).stdout)).toMatchObject({
    state: 'waiting',
    waitsFor: [{ callId: 'call-1', tool: 'send_letter', asks: 'approval' }],
  })
  const answered = await call('runs', 'answer', runId, 'call-1', 'once')
  expect(answered.stdout).toBe('The answer was passed on: once.\n')
  expect(answered.stderr).toContain(`lango runs resume ${runId}`)
  const store = await openStore(url)
  expect(await store.runs.takeSignals(runId)).toEqual([
    { type: 'approval', callId: 'call-1', answer: 'once' },
  ])
  await store.close()
})

test('lango runs resume refuses a run that does not exist or has ended', async () => {
  const { ended, call } = await storeWithRuns()
  const missing = await call('runs', 'resume', randomUUID())
  expect(missing).toMatchObject({ code: 1, stderr: expect.stringContaining('There is no run') })
  const over = await call('runs', 'resume', ended)
  expect(over).toMatchObject({ code: 1, stderr: expect.stringContaining('has ended') })
})

test('lango runs show says how often a run was resumed', async () => {
  const folder = await temporaryFolder()
  const url = `sqlite:${join(folder, 'lango.db')}`
  const runId = await storeWaitingRun(url, {
    state: 'running',
    events: [{ type: 'run-resumed', attempt: 2, replayedSteps: 3 }],
  })
  const shown = await lango(['runs', 'show', runId, '--store', url], { cwd: folder })
  expect(shown.stdout).toContain('resumed 1 time, 3 steps replayed')
})

test('lango runs refuses unknown runs, sessions and answers, and says what to do', async () => {
  const { ended, call } = await storeWithRuns()
  const unknown = await call('runs', 'show', randomUUID())
  expect(unknown).toMatchObject({ code: 1, stderr: expect.stringContaining('lango runs list') })
  const answer = await call('runs', 'answer', ended, 'call-1', 'perhaps')
  expect(answer).toMatchObject({ code: 1, stderr: expect.stringContaining('happened, run, leave') })
  const late = await call('runs', 'answer', ended, 'call-1', 'once')
  expect(late).toMatchObject({ code: 1, stderr: expect.stringContaining('waits for an answer') })
})
