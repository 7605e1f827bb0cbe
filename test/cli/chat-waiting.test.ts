// A run that waits without a process: the terminal chat asks when its session is opened.
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { openStore } from '../../src/store/open-store.js'
import { eventually } from '../support/eventually.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { storeWaitingRun } from '../support/waiting-run.js'
import { start } from './chat-stage.js'

// Starting processes takes long on a busy machine.
vi.setConfig({ testTimeout: 120_000 })

test('the question of a waiting run is asked, answered, and left alone when the user leaves', async () => {
  const folder = await temporaryFolder()
  const url = `sqlite:${join(folder, 'lango.db')}`
  const runId = await storeWaitingRun(url)
  const args = ['chat', '--session', 's1', '--store', url]
  const left = start({ args, cwd: folder })
  await left.waitFor('It leaves the building.')
  expect(left.screen()).toContain('I will write to Ada.')
  left.key('ctrl-d')
  expect(await left.ended()).toBe(0)
  const store = await openStore(url)
  expect(await store.runs.takeSignals(runId)).toEqual([])

  const answered = start({ args, cwd: folder })
  await answered.waitFor('It leaves the building.')
  answered.type('o')
  await eventually(() => store.runs.signalled([runId])).toEqual([runId])
  expect(await store.runs.takeSignals(runId)).toMatchObject([{ callId: 'call-1', answer: 'once' }])
  await store.close()
})
