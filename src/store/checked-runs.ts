/** The part of `checked-store.ts` that concerns runs. */
import type { SessionKey } from '../session/message.js'
import type {
  AppRunsQuery,
  DueQuery,
  PendingSignal,
  PrunedCounts,
  PruneOptions,
  QueuedRun,
  ReleasedRuns,
  ResumableRun,
  RunEventRecord,
  RunResume,
  RunSignal,
  RunStep,
  RunStore,
  RunSummary,
  SavedStep,
  ToolCallRecord,
  UnfinishedQuery,
} from '../session/run-store.js'
import type { CalibrationStore } from '../session/session-store.js'
import {
  checkCalls,
  checkEvents,
  checkFence,
  checkInteger,
  checkKey,
  checkLimit,
  checkMessage,
  checkName,
  checkNames,
  checkObservation,
  checkProgress,
  checkRecord,
  checkRunRange,
  checkSignal,
  checkState,
  invalid,
} from './check-input.js'

export class CheckedRuns implements RunStore {
  readonly #runs: RunStore

  constructor(runs: RunStore) {
    this.#runs = runs
  }

  saveStep(step: RunStep): Promise<SavedStep> {
    const { key, runId, fence, message, stateDelta, events, requests = [], calibration = [] } = step
    const check = () => {
      checkKey(key)
      checkName('runId', runId)
      checkFence(fence)
      if (message !== undefined) checkMessage(message)
      if (stateDelta !== undefined) checkState('stateDelta', stateDelta)
      if (events !== undefined) checkEvents(events)
      if (step.calls !== undefined) checkCalls(step.calls)
      checkProgress(step)
      for (const request of requests) checkRecord(request.step, request.record)
      for (const { model, bytes, tokens } of calibration) checkObservation(model, bytes, tokens)
    }
    return checked(check, () => this.#runs.saveStep(step))
  }

  appendEvents(key: SessionKey, runId: string, events: readonly RunEventRecord[]): Promise<void> {
    const check = () => {
      checkKey(key)
      checkName('runId', runId)
      checkEvents(events)
    }
    return checked(check, () => this.#runs.appendEvents(key, runId, events))
  }

  listUnfinished(query: UnfinishedQuery): Promise<RunSummary[]> {
    const check = () => {
      checkName('appName', query.appName)
      if (query.key !== undefined) checkKey(query.key)
      const { scheduled } = query
      if (scheduled !== undefined && scheduled !== 'also' && scheduled !== 'only')
        throw invalid('scheduled', "must be 'also' or 'only'", scheduled)
      checkLimit(query)
    }
    return checked(check, () => this.#runs.listUnfinished(query))
  }

  listQueued(key: SessionKey, options: { limit?: number } = {}): Promise<QueuedRun[]> {
    const check = () => {
      checkKey(key)
      checkLimit(options)
    }
    return checked(check, () => this.#runs.listQueued(key, options))
  }

  releaseDue(query: DueQuery): Promise<ReleasedRuns> {
    const check = () => {
      checkName('appName', query.appName)
      if (query.runId !== undefined) checkName('runId', query.runId)
      checkLimit(query)
    }
    return checked(check, () => this.#runs.releaseDue(query))
  }

  endQueued(runId: string, events: readonly RunEventRecord[]): Promise<boolean> {
    const check = () => {
      checkName('runId', runId)
      checkEvents(events)
    }
    return checked(check, () => this.#runs.endQueued(runId, events))
  }

  readResumable(runId: string): Promise<ResumableRun | undefined> {
    return checked(
      () => checkName('runId', runId),
      () => this.#runs.readResumable(runId),
    )
  }

  resumeRun(resume: RunResume): Promise<{ attempt: number } | undefined> {
    const check = () => {
      checkKey(resume.key)
      checkName('runId', resume.runId)
      checkFence(resume.fence)
      checkEvents(resume.events)
    }
    return checked(check, () => this.#runs.resumeRun(resume))
  }

  readCalls(runId: string): Promise<ToolCallRecord[]> {
    return checked(
      () => checkName('runId', runId),
      () => this.#runs.readCalls(runId),
    )
  }

  listUnknownCalls(key: SessionKey): Promise<ToolCallRecord[]> {
    return checked(
      () => checkKey(key),
      () => this.#runs.listUnknownCalls(key),
    )
  }

  readEvents(runId: string, options: { afterSeq?: number; limit?: number } = {}): Promise<RunEventRecord[]> {
    const check = () => {
      checkName('runId', runId)
      checkRunRange(options)
    }
    return checked(check, () => this.#runs.readEvents(runId, options))
  }

  findRun(runId: string): Promise<RunSummary | undefined> {
    return checked(
      () => checkName('runId', runId),
      () => this.#runs.findRun(runId),
    )
  }

  findRuns(runIds: readonly string[]): Promise<RunSummary[]> {
    return checked(
      () => checkNames('runIds', runIds),
      () => this.#runs.findRuns(runIds),
    )
  }

  listRuns(key: SessionKey, options: { limit?: number } = {}): Promise<RunSummary[]> {
    const check = () => {
      checkKey(key)
      checkLimit(options)
    }
    return checked(check, () => this.#runs.listRuns(key, options))
  }

  listAppRuns(query: AppRunsQuery): Promise<RunSummary[]> {
    const check = () => {
      checkName('appName', query.appName)
      if (query.userId !== undefined) checkName('userId', query.userId)
      checkLimit(query)
    }
    return checked(check, () => this.#runs.listAppRuns(query))
  }

  saveRequest(runId: string, step: number, record: Record<string, unknown>): Promise<void> {
    const check = () => {
      checkName('runId', runId)
      checkRecord(step, record)
    }
    return checked(check, () => this.#runs.saveRequest(runId, step, record))
  }

  readRequests(runId: string): Promise<{ step: number; record: Record<string, unknown> }[]> {
    return checked(
      () => checkName('runId', runId),
      () => this.#runs.readRequests(runId),
    )
  }

  sendSignal(runId: string, signal: RunSignal): Promise<void> {
    const check = () => {
      checkName('runId', runId)
      checkSignal(signal)
    }
    return checked(check, () => this.#runs.sendSignal(runId, signal))
  }

  signalled(runIds: readonly string[]): Promise<string[]> {
    return checked(
      () => checkNames('runIds', runIds),
      () => this.#runs.signalled(runIds),
    )
  }

  readSignals(runId: string): Promise<PendingSignal[]> {
    return checked(
      () => checkName('runId', runId),
      () => this.#runs.readSignals(runId),
    )
  }

  takeSignals(runId: string): Promise<RunSignal[]> {
    return checked(
      () => checkName('runId', runId),
      () => this.#runs.takeSignals(runId),
    )
  }

  prune(options: PruneOptions): Promise<PrunedCounts> {
    const check = () => {
      if (options.appName !== undefined) checkName('appName', options.appName)
      checkInteger('before', options.before, 0)
    }
    return checked(check, () => this.#runs.prune(options))
  }
}

export class CheckedCalibration implements CalibrationStore {
  readonly #calibration: CalibrationStore

  constructor(calibration: CalibrationStore) {
    this.#calibration = calibration
  }

  read(model: string): Promise<{ bytes: number; tokens: number } | undefined> {
    return checked(
      () => checkName('model', model),
      () => this.#calibration.read(model),
    )
  }

  record(model: string, bytes: number, tokens: number): Promise<void> {
    return checked(
      () => checkObservation(model, bytes, tokens),
      () => this.#calibration.record(model, bytes, tokens),
    )
  }
}

/** Not `async`: that would add a promise to every call, the append included. */
export function checked<T>(check: () => void, call: () => Promise<T>): Promise<T> {
  try {
    check()
  } catch (error) {
    return Promise.reject(error)
  }
  return call()
}
