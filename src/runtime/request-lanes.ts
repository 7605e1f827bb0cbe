/**
 * What each session has sent last: by agent, branch and model. A run keeps it in memory; another process, or a later
 * run of this one after others, finds it in the stored requests of the newest runs.
 */

import { prefixOf } from '../adk/model/sent-prefix.js'
import type { LastSent, RequestLane } from '../adk/model/steady-request.js'
import { isRecord } from '../base/is-record.js'
import { letOthersRun } from '../base/pause.js'
import { messageOf } from '../errors.js'
import type { Logger } from '../logger.js'
import type { RequestPlace } from '../run/run-event.js'
import type { RunScope } from '../run/run-scope.js'
import type { RunStore } from '../session/run-store.js'

/** Sessions whose last requests are kept in memory. */
const MOST_SESSIONS = 500

/** Runs that are searched for the last request of a lane. */
const MOST_RUNS = 8

interface SessionLanes {
  /** The run that has sent the newest of them. */
  runId: string
  readonly lanes: Map<string, LastSent>
  /** By agent and branch: the model of the newest request. */
  readonly models: Map<string, string>
  /** Earlier runs whose requests were not read, newest first. */
  unread: string[]
  /** One search at a time: parallel agents ask for their lanes at once. */
  search: Promise<unknown>
}

export class RequestLanes {
  readonly #runs: RunStore
  readonly #logger: Logger
  readonly #sessions = new Map<string, SessionLanes>()

  constructor(runs: RunStore, logger: Logger) {
    this.#runs = runs
    this.#logger = logger
  }

  /** What was sent before a request. */
  async find(scope: RunScope, place: RequestPlace, model: string): Promise<RequestLane> {
    const session = await this.#open(scope)
    const name = laneName(place, model)
    session.search = session.search.then(() => this.#search(session, name))
    await session.search
    const last = session.lanes.get(name)
    if (last) return { last }
    const other = session.models.get(placeName(place))
    const otherModel = other === undefined ? undefined : session.lanes.get(laneName(place, other))?.prefix
    return { otherModel }
  }

  /** A request was sent. */
  sent(scope: RunScope, place: RequestPlace, model: string, sent: LastSent): void {
    const session = this.#sessions.get(sessionName(scope))
    session?.lanes.set(laneName(place, model), sent)
    session?.models.set(placeName(place), model)
  }

  async #open(scope: RunScope): Promise<SessionLanes> {
    const name = sessionName(scope)
    const known = this.#sessions.get(name)
    if (known?.runId === scope.runId) return known
    const runs = await this.#earlierRuns(scope)
    // Parallel agents of the run may have been here meanwhile.
    const current = this.#sessions.get(name)
    if (current?.runId === scope.runId) return current
    const isNewest = current !== undefined && !scope.isResumed && runs[0] === current.runId
    const opened: SessionLanes = isNewest
      ? { ...current, runId: scope.runId }
      : {
          runId: scope.runId,
          lanes: new Map(),
          models: new Map(),
          unread: scope.isResumed ? [scope.runId, ...runs] : runs,
          search: Promise.resolve(),
        }
    this.#sessions.delete(name)
    this.#sessions.set(name, opened)
    const [oldest] = this.#sessions.keys()
    if (this.#sessions.size > MOST_SESSIONS && oldest !== undefined) this.#sessions.delete(oldest)
    return opened
  }

  async #earlierRuns(scope: RunScope): Promise<string[]> {
    try {
      const runs = await this.#runs.listRuns(scope.key, { limit: MOST_RUNS + 1 })
      return runs.filter(run => run.runId !== scope.runId && run.state !== 'queued').map(run => run.runId)
    } catch (error) {
      return this.#failed(error)
    }
  }

  /** Reads the requests of earlier runs until the lane is found. */
  async #search(session: SessionLanes, name: string): Promise<void> {
    for (let count = 0; count < MOST_RUNS && !session.lanes.has(name); count++) {
      const runId = session.unread.shift()
      if (runId === undefined) return
      const requests = await this.#runs.readRequests(runId).catch(error => this.#failed(error))
      for (const { record } of requests.toReversed()) {
        this.#adopt(session, record)
        await letOthersRun()
      }
    }
  }

  #adopt(session: SessionLanes, record: Record<string, unknown>): void {
    const { place, decided, model, body } = record as Partial<StoredSent>
    if (!isRecord(place) || !isRecord(decided) || typeof model !== 'string') return
    const name = laneName(place, model)
    if (!session.models.has(placeName(place))) session.models.set(placeName(place), model)
    if (session.lanes.has(name)) return
    const prefix = prefixOf(body)
    if (prefix) session.lanes.set(name, { decided, prefix })
  }

  /** Without the requests before it a request stands alone: a run does not fail for that. */
  #failed(error: unknown): never[] {
    this.#logger.warn('The earlier requests of a session could not be read', { error: messageOf(error) })
    return []
  }
}

/** The fields of a stored request that name its lane. The recorder wrote them. */
interface StoredSent {
  place: RequestPlace
  decided: LastSent['decided']
  model: string
  body: unknown
}

function sessionName({ key }: RunScope): string {
  return JSON.stringify([key.appName, key.userId, key.sessionId])
}

function placeName({ app, agent, branch }: RequestPlace): string {
  return JSON.stringify([app, agent, branch])
}

function laneName(place: RequestPlace, model: string): string {
  return `${model} ${placeName(place)}`
}
