/** How runs are dispatched by DBOS. */
export interface DbosOptions {
  name: 'dbos'
  /** The PostgreSQL database of DBOS' tables. Default: that of the store. */
  url?: string | undefined
  /** The schema of DBOS' tables. Default `dbos`. */
  schema?: string | undefined
  /** Whether a process that starts creates and migrates DBOS' tables. `false`: they must be there. Default true. */
  migrate?: boolean | undefined
  /**
   * The version of your code. A run that has begun is continued by processes of the same version, as long as there are
   * any. Default: made from the names of the agents, their models and their tools.
   */
  version?: string | undefined
  /**
   * What happens to a run that has begun, when no process of its version is left: another version continues it (the
   * default; where its record does not fit the new code, it ends as interrupted), or it waits for its version.
   */
  oldVersions?: 'continue' | 'wait' | undefined
  /** How many runs may work at once, over all processes. Default: no limit but `runs.maxRunning` of each process. */
  queues?: DbosQueues | undefined
  /** How often a process looks for runs in the queues, in milliseconds. Default 200. */
  pollMs?: number | undefined
  /** How long DBOS keeps the record of a workflow that has ended, in hours. Default 24. */
  keepHours?: number | undefined
}

export interface DbosQueues {
  /** Runs of all users and models. */
  fleet?: number | undefined
  /** Runs of one user. */
  perUser?: number | undefined
  /** Runs that ask one model first. */
  perModel?: number | undefined
}

/** `leases`: every process executes what is free. `dbos`: DBOS dispatches. */
export type EngineOption = 'leases' | 'dbos' | DbosOptions

/** The options of DBOS, if it was chosen. */
export function dbosOptions(engine: EngineOption | undefined): DbosOptions | undefined {
  if (engine === 'dbos') return { name: 'dbos' }
  return engine === 'leases' ? undefined : engine
}
