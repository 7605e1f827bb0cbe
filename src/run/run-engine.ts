/** What an engine decides, when and where accepted runs are executed, and what it may ask of the runs. */

/** A run that is to be executed: the first of its session that has not ended. */
export interface DispatchedRun {
  runId: string
  userId: string
  /** Whether a process has worked on it before. */
  isBegun: boolean
}

/** What came of executing a run. `later`: it has not ended, and not because it waits for a person. */
export type Executed = 'ended' | 'waiting' | 'later'

/** The runs of this process, as an engine uses them. */
export interface EngineWork {
  /**
   * Executes a run until it ends or waits for a person. A run that has begun is continued from its record; one that has
   * ended, or that another process executes, is left alone: calling this twice has no effect that calling it once has not.
   */
  execute(runId: string): Promise<Executed>
  /** The reference of the model that a run asks first. */
  modelOf(runId: string): Promise<string>
  /** `undefined`: it has ended, or does not exist. */
  stateOf(runId: string): Promise<'queued' | 'begun' | undefined>
}

/**
 * Executes runs that are in the store. An engine loses nothing that matters: what is stored of a run decides what is done,
 * and a run that the engine does not know is dispatched again.
 */
export interface RunEngine {
  /** Lets this process execute runs. Called once, before anything else. */
  open(work: EngineWork): Promise<void>
  /** Lets runs be executed, here or in another process. A run that the engine has already is not dispatched twice. */
  dispatch(runs: readonly DispatchedRun[]): Promise<void>
  /** Looks for what processes that are gone have left behind. Called from time to time. */
  sweep(): Promise<void>
  /** From now on, runs that this process does not end are left to others. */
  pause(): void
  /** Ends the part of the engine that is in this process. */
  close(): Promise<void>
}
