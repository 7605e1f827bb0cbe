import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../support/temporary-folder.js'
import { lango } from './lango.js'

const CONFIG = `agent:
  model: demo/demo
schedules:
  - name: report
    cron: 0 9 * * MON-FRI
    timeZone: Europe/Berlin
    session: report
    text: Hello from a schedule
`

test('lango schedules lists next ticks and runs one now; an unknown name is an error', async () => {
  const cwd = await temporaryFolder()
  expect(await lango(['schedules'], { cwd })).toMatchObject({ code: 0, stdout: '' })
  await writeFile(join(cwd, 'lango.config.yaml'), CONFIG)
  const listed = await lango(['schedules', 'list', '--json', '--trust'], { cwd })
  const { schedules } = JSON.parse(listed.stdout) as { schedules: { next: number[] }[] }
  expect(schedules).toMatchObject([{ name: 'report', timeZone: 'Europe/Berlin', missed: 'skip' }])
  const hours = schedules[0]?.next.map(tick =>
    new Intl.DateTimeFormat('en-GB', { timeZone: 'Europe/Berlin', timeStyle: 'short' }).format(tick),
  )
  expect(hours).toEqual(['09:00', '09:00', '09:00'])
  const run = await lango(['schedules', 'run', 'report', '--trust'], { cwd })
  expect(run, run.stderr).toMatchObject({ code: 0, stdout: expect.stringContaining('Hello from a schedule') })
  const table = await lango(['schedules', '--trust'], { cwd })
  expect(table.stdout).toContain('0 9 * * MON-FRI Europe/Berlin')
  const unknown = await lango(['schedules', 'run', 'reprot', '--trust'], { cwd })
  expect(unknown).toMatchObject({ code: 1, stderr: expect.stringContaining('Known: report') })
})

test('lango run --at stores a run that lango runs lists and stops', async () => {
  const cwd = await temporaryFolder()
  const at = '2037-03-01T09:00:00+01:00'
  const run = await lango(['run', '--session', 's', '--at', at, 'Hello', '-m', 'demo/demo'], { cwd })
  expect(run, run.stderr).toMatchObject({ code: 0 })
  const runId = run.stdout.trim()
  expect((await lango(['runs'], { cwd })).stdout).toContain('scheduled (2037-03-01')
  const shown = await lango(['runs', 'show', runId, '--json'], { cwd })
  expect(JSON.parse(shown.stdout)).toMatchObject({ state: 'scheduled', dueAt: Date.parse(at) })
  expect((await lango(['runs', 'stop', runId], { cwd })).stdout).toContain('it was scheduled, and ended')
  const wrong = await lango(['run', '--at', 'tomorrow', 'Hello', '-m', 'demo/demo'], { cwd })
  expect(wrong).toMatchObject({ code: 1, stderr: expect.stringContaining('offset from UTC') })
})
