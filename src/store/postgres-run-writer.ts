/**
 * Opens runs and stores their steps in one round trip each. A duplicate row means that a message replaces another one, or
 * that another process has just stored a run with this id: the tasks of `RunWriter` do both.
 */
import type {
  AcceptedRun,
  RunBegin,
  RunOpening,
  RunResume,
  RunStep,
  SavedStep,
} from '../session/run-store.js'
import type { OpeningAttempt, OpeningAttempts } from './hold-lease.js'
import { readPlaces } from './postgres-calls.js'
import { beginStatement, queueStatement } from './postgres-queue-statements.js'
import { fitsStatement, openStatement, stepStatement } from './postgres-step-statements.js'
import { numberIn, type Row, type SqlDatabase, type Statement, type Task, textIn } from './sql-database.js'
import { OpeningTasks } from './sql-queue.js'
import { isLongRequest, KnownParts, partsOfRequest, splitAgainst } from './sql-requests.js'
import { RunWriter, type StepParts, type StepRows } from './sql-run-steps.js'

export class PostgresRunWriter extends RunWriter {
  readonly #database: SqlDatabase
  readonly #parts: StepParts
  readonly #knownParts = new KnownParts()

  constructor(database: SqlDatabase, parts: StepParts) {
    super(database, parts)
    this.#database = database
    this.#parts = parts
  }

  override opening(opening: RunOpening): OpeningAttempts {
    const tasks = new OpeningTasks(this.#parts, opening)
    const open = async (ttlMs: number) => {
      const opened = await this.#write(
        () => openTask(this.#parts, opening, ttlMs, tasks),
        () => tasks.take(ttlMs),
      )
      // A new session has no parts yet.
      if (opened !== 'busy' && 'seq' in opened && opened.seq === 1) this.#knownParts.add(opening.key, [])
      return opened
    }
    return { open, begin: ticket => this.#database.write(() => tasks.begin(ticket)) }
  }

  override async queue(opening: RunOpening): Promise<AcceptedRun> {
    const tasks = new OpeningTasks(this.#parts, opening)
    return this.#write(
      () => queueTask(this.#parts, opening),
      () => tasks.queueOnly(),
    )
  }

  override async begin(begin: RunBegin): Promise<{ seq: number } | undefined> {
    const row = begin.input && (await this.#run(beginStatement(this.#parts.dialect, begin)))
    return row ? { seq: numberIn(row, 'seq') } : super.begin(begin)
  }

  override async resume(resume: RunResume): Promise<{ attempt: number } | undefined> {
    const resumed = await super.resume(resume)
    if (resumed) this.#knownParts.forget(resume.key)
    return resumed
  }

  protected override async store(step: RunStep, rows: StepRows): Promise<SavedStep> {
    try {
      const stored = fitsStatement(rows) ? await this.#storeInOneTrip(step, rows) : undefined
      if (stored !== undefined) return stored
      this.#knownParts.forget(step.key)
      return await super.store(step, rows)
    } catch (error) {
      this.#knownParts.forget(step.key)
      throw error
    }
  }

  /** `undefined` leaves the rest (a replaced message, the reason of a refusal) to the transaction. */
  async #storeInOneTrip(step: RunStep, rows: StepRows): Promise<SavedStep | undefined> {
    const long = rows.requests.find(({ json }) => isLongRequest(json))
    const known = long ? await this.#partsOf(step, long.json) : new Map<string, number>()
    const requests = rows.requests.map(request => ({ ...request, ...splitAgainst(known, request.json) }))
    const row = await this.#run(stepStatement(this.#parts.dialect, step, rows, requests))
    if (row === undefined) return undefined
    if (row.parts !== null) this.#knownParts.add(step.key, readNewParts(textIn(row, 'parts')))
    return {
      ...(rows.row === undefined ? {} : { seq: numberIn(row, 'seq') }),
      ...(step.calls
        ? { calls: row.calls === null ? [] : readPlaces(textIn(row, 'calls'), rows.calls) }
        : {}),
    }
  }

  /**
   * Read once, for the first request of a session that this process stores: later ones repeat it. What another process
   * has stored meanwhile is a duplicate.
   */
  async #partsOf({ key }: RunStep, json: string): Promise<ReadonlyMap<string, number>> {
    const known = this.#knownParts.get(key)
    if (known !== undefined) return known
    const rows = await this.#database.run(partsOfRequest(this.#parts.dialect, key, json))
    const parts = new Map(rows.map(row => [textIn(row, 'digest'), numberIn(row, 'id')]))
    this.#knownParts.add(key, parts)
    return parts
  }

  /** The row that a statement returns; `undefined` when something forbids it. */
  async #run(statement: Statement): Promise<Row | undefined> {
    try {
      const [row] = await this.#database.run(statement)
      return row
    } catch (error) {
      if (this.#database.isDuplicate(error)) return undefined
      throw error
    }
  }

  async #write<T>(task: () => Task<T>, orElse: () => Task<T>): Promise<T> {
    try {
      return await this.#database.write(task)
    } catch (error) {
      if (!this.#database.isDuplicate(error)) throw error
      return this.#database.write(orElse)
    }
  }
}

/** Takes a ticket and opens the run in two statements. The second sees every ticket, because the first waited for its turn. */
function* openTask(
  parts: StepParts,
  opening: RunOpening,
  ttlMs: number,
  tasks: OpeningTasks,
): Task<OpeningAttempt> {
  const ticket = yield* parts.takeTicket(opening.key, ttlMs)
  const [opened] = yield openStatement(parts.dialect, opening, ticket, tasks)
  if (opened?.seq !== null) return { ticket, seq: numberIn(opened, 'seq') }
  return yield* tasks.open(ticket)
}

/** Takes a ticket for the place of a run, and stores it in its queue or for later. */
function* queueTask({ dialect, takeTicket }: StepParts, opening: RunOpening): Task<AcceptedRun> {
  const ticket = yield* takeTicket(opening.key, 1)
  const [accepted] = yield queueStatement(dialect, opening, ticket)
  if (numberIn(accepted, 'stored') === 0) return { known: true }
  return opening.dueAt === undefined ? { queued: numberIn(accepted, 'queued') } : { dueAt: opening.dueAt }
}

function readNewParts(text: string): [digest: string, id: number][] {
  return text.split(',').map(entry => {
    const [id = '', digest = ''] = entry.split(' ')
    return [digest, Number(id)]
  })
}
