/** The part of the contract of stores that concerns schedules. */

/** How far a schedule has got. */
export interface ScheduleRecord {
  name: string
  /** The times that its ticks come from. */
  rule: string
  /** The newest tick that was dealt with, in milliseconds since 1970. */
  tick: number
  /** The newest run. */
  runId?: string
}

export interface ScheduleStore {
  read(appName: string): Promise<ScheduleRecord[]>
  /**
   * Stores a tick. With the same rule, an older tick than the stored one changes nothing; with another rule it replaces
   * what is stored. Without `runId` the newest run stays.
   */
  save(record: ScheduleRecord & { appName: string }): Promise<void>
  /** Deletes what is stored of schedules with other names. */
  keep(appName: string, names: readonly string[]): Promise<void>
}
