/** `lango schedules`: messages that are sent by a calendar. */

import { silentLogger } from '../logger.js'
import { type ScheduleState, Schedules } from '../runtime/schedules.js'
import { openStore } from '../store/open-store.js'
import type { Flags } from './command.js'
import type { Io } from './io.js'
import { isAbsentFile } from './open-command-store.js'
import { loadSettings } from './open-runtime.js'
import { type Column, lineWidth, note, print, printJson, stylesOf, tableLines } from './output.js'
import { plainLine } from './plain-text.js'
import { followHere } from './runs.js'
import { localTime } from './wording.js'

/** `lango schedules list`. Loads no agent. */
export async function listSchedules(io: Io, flags: Flags): Promise<number> {
  const { config } = await loadSettings(io, flags, { runs: false })
  const { app: appName, schedules = [] } = config
  const store = await openStore((await isAbsentFile(config.store)) ? 'memory:' : config.store)
  try {
    const start = () => Promise.reject(new TypeError('Nothing is started by a list.'))
    const states = await new Schedules({ appName, store, schedules, start, logger: silentLogger }).list()
    if (flags.json) await printJson(io, { schedules: states })
    else if (states.length === 0)
      note(io, 'No schedules are configured: add `schedules` to the configuration.')
    else {
      const [titles = '', ...lines] = scheduleTable(io, states)
      await print(io, `${[stylesOf(io, io.stdout).bold(titles), ...lines].join('\n')}\n`)
    }
    return 0
  } finally {
    await store.close()
  }
}

function scheduleTable(io: Io, states: readonly ScheduleState[]): string[] {
  const columns: Column[] = [
    { title: 'SCHEDULE', least: 8 },
    { title: 'CRON' },
    { title: 'NEXT' },
    { title: 'LAST RUN' },
    { title: 'SESSION', flexible: true, least: 8 },
  ]
  const rows = states.map(({ name, cron, timeZone, session, next: [next], lastRun }) => [
    name,
    plainLine(`${cron} ${timeZone}`),
    next === undefined ? 'never' : localTime(next),
    lastRun === undefined ? '-' : `${lastRun.runId} ${lastRun.finishReason ?? lastRun.state}`,
    plainLine(session),
  ])
  return tableLines(columns, rows, lineWidth(io))
}

/** `lango schedules run`: sends the message of a schedule now, in this process, and prints the answer. */
export function runSchedule(io: Io, [name = '']: readonly string[], flags: Flags): Promise<number> {
  return followHere(io, flags, async ({ runtime }) => ({
    ...(await (await runtime.schedules()).runNow(name)),
    lastSeq: 0,
  }))
}
