/** The newest tick of each schedule, in a table; input is validated first. */
import type { ScheduleRecord, ScheduleStore } from '../session/schedule-store.js'
import { checkInteger, checkName } from './check-input.js'
import { checked } from './checked-runs.js'
import { numberIn, type SqlDatabase, sql, textIn } from './sql-database.js'

type SavedTick = Parameters<ScheduleStore['save']>[0]

export class CheckedSchedules implements ScheduleStore {
  readonly #schedules: ScheduleStore

  constructor(schedules: ScheduleStore) {
    this.#schedules = schedules
  }

  read(appName: string): Promise<ScheduleRecord[]> {
    return checked(
      () => checkName('appName', appName),
      () => this.#schedules.read(appName),
    )
  }

  save(record: SavedTick): Promise<void> {
    const check = () => {
      for (const field of ['appName', 'name', 'rule'] as const) checkName(field, record[field])
      checkInteger('tick', record.tick, 0)
      if (record.runId !== undefined) checkName('runId', record.runId)
    }
    return checked(check, () => this.#schedules.save(record))
  }

  keep(appName: string, names: readonly string[]): Promise<void> {
    const check = () => {
      checkName('appName', appName)
      for (const name of names) checkName('name', name)
    }
    return checked(check, () => this.#schedules.keep(appName, names))
  }
}

export class SqlSchedules implements ScheduleStore {
  readonly #database: SqlDatabase

  constructor(database: SqlDatabase) {
    this.#database = database
  }

  async read(appName: string): Promise<ScheduleRecord[]> {
    const rows = await this.#database.run(
      sql('SELECT name, rule, tick, run_id FROM lango_schedules WHERE app_name = ? ORDER BY name', appName),
    )
    return rows.map(row => ({
      name: textIn(row, 'name'),
      rule: textIn(row, 'rule'),
      tick: numberIn(row, 'tick'),
      ...(row.run_id === null ? {} : { runId: textIn(row, 'run_id') }),
    }))
  }

  async save({ appName, name, rule, tick, runId }: SavedTick): Promise<void> {
    await this.#database.run(
      sql(
        `INSERT INTO lango_schedules (app_name, name, rule, tick, run_id) VALUES (?, ?, ?, ?, ?)
          ON CONFLICT (app_name, name) DO UPDATE SET rule = excluded.rule, tick = excluded.tick,
            run_id = COALESCE(excluded.run_id, lango_schedules.run_id)
          WHERE lango_schedules.rule <> excluded.rule OR lango_schedules.tick <= excluded.tick`,
        ...[appName, name, rule, tick, runId ?? null],
      ),
    )
  }

  async keep(appName: string, names: readonly string[]): Promise<void> {
    const { eachValue } = this.#database.dialect
    await this.#database.run(
      sql(
        `DELETE FROM lango_schedules WHERE app_name = ? AND name NOT IN (SELECT value FROM ${eachValue})`,
        appName,
        JSON.stringify(names),
      ),
    )
  }
}
