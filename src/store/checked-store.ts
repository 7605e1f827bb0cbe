/**
 * Validates what callers pass to a store, once for every driver: drivers trust their arguments. An invalid argument
 * rejects with `invalid-argument` and the name of the field, before the driver is called. What a driver has to parse
 * or to serialize anyway (cursors, JSON) it refuses itself.
 */
import type { ArtifactStore } from '../session/artifacts.js'
import type { Message, Session, SessionKey, State, StoredMessage } from '../session/message.js'
import type { AcceptedRun, OpenedRun, RunBegin, RunOpening, RunStore } from '../session/run-store.js'
import type { ScheduleStore } from '../session/schedule-store.js'
import type { SessionMemory } from '../session/session-memory.js'
import type {
  AppendOptions,
  BackupOptions,
  BackupReceipt,
  CalibrationStore,
  CreateOptions,
  EraseOptions,
  EraseReceipt,
  ExpireOptions,
  ExpireReceipt,
  Lease,
  LeaseOptions,
  ListQuery,
  LoadOptions,
  ReadOptions,
  SessionPage,
  SessionStore,
  SessionSummary,
  SessionVariants,
  UserKey,
  VariantSummary,
} from '../session/session-store.js'
import { DAY_MS, type SpendingStore } from '../session/spending.js'
import {
  checkEvents,
  checkFence,
  checkInteger,
  checkKey,
  checkLeaseOptions,
  checkListQuery,
  checkLoadOptions,
  checkMessage,
  checkMessages,
  checkName,
  checkNesting,
  checkReadOptions,
  checkRunInput,
  checkState,
  checkTitle,
  invalid,
  withText,
} from './check-input.js'
import { CheckedArtifacts } from './checked-artifacts.js'
import { CheckedMemory } from './checked-memory.js'
import { CheckedCalibration, CheckedRuns, checked } from './checked-runs.js'
import { CheckedSpending } from './checked-spending.js'
import { CheckedSchedules } from './schedules.js'

/** The store with its input validated. Closing it closes the store. */
export function checkedStore(store: SessionStore): SessionStore {
  return new CheckedStore(store)
}

class CheckedStore implements SessionStore {
  readonly runs: RunStore
  readonly calibration: CalibrationStore
  readonly memory: SessionMemory
  readonly artifacts: ArtifactStore
  readonly spending: SpendingStore
  readonly schedules: ScheduleStore
  readonly variants: SessionVariants
  readonly #store: SessionStore

  constructor(store: SessionStore) {
    this.#store = store
    this.runs = new CheckedRuns(store.runs)
    this.calibration = new CheckedCalibration(store.calibration)
    this.memory = new CheckedMemory(store.memory)
    this.artifacts = new CheckedArtifacts(store.artifacts)
    this.spending = new CheckedSpending(store.spending)
    this.schedules = new CheckedSchedules(store.schedules)
    this.variants = new CheckedVariants(store.variants)
  }

  createSession(key: SessionKey, state: State = {}, options: CreateOptions = {}): Promise<Session> {
    const check = () => {
      checkKey(key)
      checkState('state', state)
      checkNesting(key, options)
      checkFence(options.fence)
      checkTitle(options.title)
    }
    return checked(check, () => this.#store.createSession(key, state, options))
  }

  loadSession(key: SessionKey, options: LoadOptions = {}): Promise<Session | undefined> {
    const check = () => {
      checkKey(key)
      checkLoadOptions(options)
    }
    return checked(check, () => this.#store.loadSession(key, options))
  }

  readMessages(key: SessionKey, options: ReadOptions = {}): Promise<StoredMessage[]> {
    const check = () => {
      checkKey(key)
      checkReadOptions(options)
    }
    return checked(check, () => this.#store.readMessages(key, options))
  }

  appendMessage(key: SessionKey, message: Message, options: AppendOptions = {}): Promise<{ seq: number }> {
    const check = () => {
      checkKey(key)
      checkMessage(message)
      checkFence(options.fence)
      if (options.stateDelta !== undefined) checkState('stateDelta', options.stateDelta)
    }
    return checked(check, () => this.#store.appendMessage(key, withText(message), options))
  }

  appendMessages(
    key: SessionKey,
    messages: readonly Message[],
    options: AppendOptions = {},
  ): Promise<{ seq: number }[]> {
    const check = () => {
      checkKey(key)
      checkMessages(messages)
      checkFence(options.fence)
      if (options.stateDelta !== undefined) checkState('stateDelta', options.stateDelta)
    }
    return checked(check, () => this.#store.appendMessages(key, messages.map(withText), options))
  }

  updateState(key: SessionKey, delta: State, options: { fence?: number } = {}): Promise<void> {
    const check = () => {
      checkKey(key)
      checkState('delta', delta)
      checkFence(options.fence)
    }
    return checked(check, () => this.#store.updateState(key, delta, options))
  }

  forkSession(
    key: SessionKey,
    newSessionId: string,
    options: { throughSeq?: number } = {},
  ): Promise<Session> {
    const check = () => {
      checkKey(key)
      checkName('newSessionId', newSessionId)
      if (options.throughSeq !== undefined) checkInteger('throughSeq', options.throughSeq, 0)
    }
    return checked(check, () => this.#store.forkSession(key, newSessionId, options))
  }

  describeSession(key: SessionKey): Promise<SessionSummary | undefined> {
    return checked(
      () => checkKey(key),
      () => this.#store.describeSession(key),
    )
  }

  renameSession(key: SessionKey, title: string): Promise<void> {
    const check = () => {
      checkKey(key)
      checkTitle(title)
    }
    return checked(check, () => this.#store.renameSession(key, title))
  }

  listSessions(query: ListQuery): Promise<SessionPage> {
    return checked(
      () => checkListQuery(query),
      () => this.#store.listSessions(query),
    )
  }

  listApps(): Promise<string[]> {
    return this.#store.listApps()
  }

  deleteSession(key: SessionKey): Promise<boolean> {
    return checked(
      () => checkKey(key),
      () => this.#store.deleteSession(key),
    )
  }

  acquireLease(key: SessionKey, options: LeaseOptions = {}): Promise<Lease> {
    const check = () => {
      checkKey(key)
      checkLeaseOptions(options)
    }
    return checked(check, () => this.#store.acquireLease(key, options))
  }

  secret(): Promise<string> {
    return this.#store.secret()
  }

  check(): Promise<void> {
    return this.#store.check()
  }

  openRun(opening: RunOpening, options: LeaseOptions = {}): Promise<OpenedRun> {
    const check = () => {
      checkOpening(opening)
      if (opening.dueAt !== undefined) throw invalid('dueAt', 'is for queueRun', opening.dueAt)
      checkLeaseOptions(options)
    }
    return checked(check, () => this.#store.openRun(opening, options))
  }

  queueRun(opening: RunOpening): Promise<AcceptedRun> {
    return checked(
      () => checkOpening(opening),
      () => this.#store.queueRun(opening),
    )
  }

  beginRun(begin: RunBegin): Promise<{ seq: number } | undefined> {
    const check = () => {
      checkKey(begin.key)
      checkName('runId', begin.runId)
      checkFence(begin.fence)
      checkMessage(begin.message)
      checkEvents(begin.events)
    }
    return checked(check, () => this.#store.beginRun(begin))
  }

  erase(owner: UserKey, options: EraseOptions = {}): Promise<EraseReceipt> {
    const check = () => {
      checkName('appName', owner.appName)
      checkName('userId', owner.userId)
    }
    return checked(check, () => this.#store.erase(owner, options))
  }

  expire(options: ExpireOptions): Promise<ExpireReceipt> {
    const check = () => {
      checkName('appName', options.appName)
      if (options.sessionsMs !== undefined) checkInteger('sessionsMs', options.sessionsMs, 1)
      if (options.runsMs !== undefined) checkInteger('runsMs', options.runsMs, 0)
      if (options.usageMs !== undefined) checkInteger('usageMs', options.usageMs, DAY_MS)
    }
    return checked(check, () => this.#store.expire(options))
  }

  backup(path: string, options: BackupOptions = {}): Promise<BackupReceipt> {
    return checked(
      () => checkName('path', path),
      () => this.#store.backup(path, options),
    )
  }

  close(): Promise<void> {
    return this.#store.close()
  }
}

class CheckedVariants implements SessionVariants {
  readonly #variants: SessionVariants

  constructor(variants: SessionVariants) {
    this.#variants = variants
  }

  list(key: SessionKey): Promise<VariantSummary[]> {
    return checked(
      () => checkKey(key),
      () => this.#variants.list(key),
    )
  }

  show(key: SessionKey, of: string): Promise<void> {
    const check = () => {
      checkKey(key)
      checkName('of', of)
    }
    return checked(check, () => this.#variants.show(key, of))
  }
}

/** The parts of the contract, each with the class that implements it. */
const PARTS: { readonly [Name in PartName]: new (part: SessionStore[Name]) => SessionStore[Name] } = {
  runs: CheckedRuns,
  calibration: CheckedCalibration,
  memory: CheckedMemory,
  artifacts: CheckedArtifacts,
  spending: CheckedSpending,
  schedules: CheckedSchedules,
  variants: CheckedVariants,
}

type PartName = {
  [Name in keyof SessionStore]: SessionStore[Name] extends (...given: never[]) => unknown ? never : Name
}[keyof SessionStore]

/** The members of the contract that a store made in code lacks, such as `runs.saveStep`. */
export function missingMembers(store: object): string[] {
  const ofParts = Object.entries(PARTS).flatMap(([name, contract]) => {
    const part: unknown = Reflect.get(store, name)
    if (typeof part !== 'object' || part === null) return [name]
    return missingMethods(contract, part).map(method => `${name}.${method}`)
  })
  return [...missingMethods(CheckedStore, store), ...ofParts]
}

/** Classes that implement the contract have all of its methods, and no other public ones. */
function missingMethods({ prototype }: { prototype: object }, given: object): string[] {
  const methods = Object.getOwnPropertyNames(prototype).filter(name => name !== 'constructor')
  return methods.filter(name => typeof Reflect.get(given, name) !== 'function')
}

function checkOpening({ key, runId, title, message, events, input, orQueue, dueAt }: RunOpening): void {
  checkKey(key)
  checkName('runId', runId)
  checkTitle(title)
  checkMessage(message)
  checkEvents(events)
  checkRunInput(input)
  if (orQueue !== undefined) checkEvents(orQueue.events)
  if (dueAt !== undefined) checkInteger('dueAt', dueAt, 0)
}
