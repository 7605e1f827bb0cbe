/**
 * What each session has sent last: by agent, branch and model. A run keeps it in memory; another process, or a later
 * run of this one after others, finds it in the stored requests. Each of them names the runs that hold the last
 * requests of the other lanes, however long ago those were.
 */

import type { Calibration } from '../adk/model/model-adapter.js'
import { prefixOf } from '../adk/model/sent-prefix.js'
import type { LastSent, RequestLane } from '../adk/model/steady-request.js'
import { isRecord } from '../base/is-record.js'
import { letOthersRun } from '../base/pause.js'
import { messageOf } from '../errors.js'
import type { Logger } from '../logger.js'
import { joinRefused, NOTHING_REFUSED, type Refused } from '../provider/refused.js'
import type { RequestPlace } from '../run/run-event.js'
import { type RunScope, runScope } from '../run/run-scope.js'
import type { RunStore } from '../session/run-store.js'
import type { CalibrationStore } from '../session/session-store.js'

/** Sessions whose last requests are kept in memory. */
const MOST_SESSIONS = 500

/** Runs that are searched for a request that names the others: a run may have sent none. */
const MOST_RUNS = 8

/** Lanes that a request names. A session has as many as agents, branches and models have taken part in it. */
const MOST_LANES = 100

/** A promise that a run made would keep the whole run in memory, by its asynchronous context. */
const NOTHING = Promise.resolve()

interface SessionLanes {
  /** The run that has sent the newest of them. */
  runId: string
  readonly lanes: Map<string, LastSent>
  /** The run that holds the last request of each lane, in the order in which they were sent. */
  readonly holders: Map<string, string>
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
  /** By session and model: what was refused. Runs that take turns with one session share it. */
  readonly #refused = new Map<string, Refused>()

  constructor(runs: RunStore, logger: Logger) {
    this.#runs = runs
    this.#logger = logger
  }

  /** What was sent before a request. */
  async find(scope: RunScope, place: RequestPlace, model: string): Promise<RequestLane> {
    const session = await this.#open(scope)
    const name = laneName(place, model)
    const search = session.search.then(() => this.#search(scope, session, place, name))
    session.search = search
    await search
    if (session.search === search) session.search = NOTHING
    const last = session.lanes.get(name)
    const refused = this.#refused.get(refusedName(scope, model))
    if (last) return { last, refused }
    const other = session.models.get(placeName(place))
    const otherModel = other === undefined ? undefined : session.lanes.get(laneName(place, other))?.prefix
    return { otherModel, refused }
  }

  /** A request was sent. Returns the runs that hold the last requests of the session's other lanes. */
  sent(scope: RunScope, place: RequestPlace, model: string, sent: LastSent): Record<string, string> {
    this.#noteRefused(scope, model, sent.decided)
    const session = this.#sessions.get(sessionName(scope))
    if (!session) return {}
    const name = laneName(place, model)
    session.lanes.set(name, sent)
    session.models.set(placeName(place), model)
    session.holders.delete(name)
    session.holders.set(name, scope.runId)
    const elsewhere = [...session.holders].filter(([, runId]) => runId !== scope.runId)
    return Object.fromEntries(elsewhere.slice(-MOST_LANES))
  }

  async #open(scope: RunScope): Promise<SessionLanes> {
    const name = sessionName(scope)
    const known = this.#sessions.get(name)
    if (known?.runId === scope.runId) return known
    const { previousRunId, isResumed } = scope
    const isContinued = known !== undefined && previousRunId === known.runId && !isResumed
    const runs = isContinued || previousRunId === null ? [] : await this.#earlierRuns(scope)
    // Parallel agents of the run may have been here meanwhile.
    const current = this.#sessions.get(name)
    if (current?.runId === scope.runId) return current
    const opened: SessionLanes =
      isContinued && current
        ? { ...current, runId: scope.runId }
        : {
            runId: scope.runId,
            lanes: new Map(),
            holders: new Map(),
            models: new Map(),
            unread: isResumed ? [scope.runId, ...runs] : runs,
            search: NOTHING,
          }
    this.#sessions.delete(name)
    this.#sessions.set(name, opened)
    const [oldest] = this.#sessions.keys()
    if (this.#sessions.size > MOST_SESSIONS && oldest !== undefined) this.#sessions.delete(oldest)
    return opened
  }

  /** Newest first. The run itself is one of those that the store lists. */
  async #earlierRuns(scope: RunScope): Promise<string[]> {
    try {
      const runs = await this.#runs.listRuns(scope.key, { limit: MOST_RUNS + 1 })
      return runs.filter(run => run.runId !== scope.runId && run.state !== 'queued').map(run => run.runId)
    } catch (error) {
      return this.#failed(error)
    }
  }

  /** Reads the requests of earlier runs until the lane is found, or a request that names its run, or none. */
  async #search(scope: RunScope, session: SessionLanes, place: RequestPlace, name: string): Promise<void> {
    for (let count = 0; count < MOST_RUNS && !session.lanes.has(name); count++) {
      const runId = session.unread.shift()
      if (runId === undefined) break
      if (await this.#read(scope, session, runId)) session.unread = []
    }
    if (session.lanes.has(name)) return
    const ofPlace = [...session.holders].findLast(([lane]) => lane.endsWith(` ${placeName(place)}`))
    const isOtherKnown = session.models.has(placeName(place))
    const holder = session.holders.get(name) ?? (isOtherKnown ? undefined : ofPlace?.[1])
    if (holder !== undefined) await this.#read(scope, session, holder)
  }

  /** Takes over what a run has sent. Returns true when its requests name the runs of the other lanes. */
  async #read(scope: RunScope, session: SessionLanes, runId: string): Promise<boolean> {
    const requests = await this.#runs.readRequests(runId).catch(error => this.#failed(error))
    // What an earlier attempt has sent stays: a request that is asked again has a number of its own.
    if (runId === scope.runId) scope.countFrom(requests.at(-1)?.step ?? 0)
    let namesOthers = false
    for (const { record } of requests.toReversed()) {
      if (this.#adopt(scope, session, runId, record)) namesOthers = true
      await letOthersRun()
    }
    return namesOthers
  }

  #adopt(scope: RunScope, session: SessionLanes, runId: string, record: Record<string, unknown>): boolean {
    const { place, decided, model, body, lanes } = record as Partial<StoredSent>
    if (!isRecord(place) || !isRecord(decided) || typeof model !== 'string') return false
    this.#noteRefused(scope, model, decided)
    const name = laneName(place, model)
    if (!session.models.has(placeName(place))) session.models.set(placeName(place), model)
    const prefix = session.lanes.has(name) ? undefined : prefixOf(body)
    if (prefix) session.lanes.set(name, { decided, prefix })
    for (const [other, holder] of [...Object.entries(lanes ?? {}), [name, runId] as const])
      if (!session.holders.has(other)) session.holders.set(other, holder)
    return lanes !== undefined
  }

  #noteRefused(scope: RunScope, model: string, { refused }: LastSent['decided']): void {
    if (!refused) return
    const name = refusedName(scope, model)
    this.#refused.set(name, joinRefused(this.#refused.get(name) ?? NOTHING_REFUSED, refused))
    const [oldest] = this.#refused.keys()
    if (this.#refused.size > MOST_SESSIONS && oldest !== undefined) this.#refused.delete(oldest)
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
  lanes?: Record<string, string>
}

function sessionName({ key }: RunScope): string {
  return JSON.stringify([key.appName, key.userId, key.sessionId])
}

function refusedName(scope: RunScope, model: string): string {
  return `${model} ${sessionName(scope)}`
}

function placeName({ app, agent, branch }: RequestPlace): string {
  return JSON.stringify([app, agent, branch])
}

function laneName(place: RequestPlace, model: string): string {
  return `${model} ${placeName(place)}`
}

const BYTES_PER_ESTIMATED_TOKEN = 4
/** Below this number the fixed cost of a request outweighs the model's tokenizer. */
const LEAST_TOKENS = 2_000
/** Vocabularies of 2024 count some scripts more than four times as high as today's. */
const SCALE_LIMITS = { least: 0.5, most: 6 }
/** A smaller request says more about its fixed cost than about its text. */
const LEAST_RECENT = 500
/** How much of the recent ratio each further request decides. */
const RECENT_SHARE = 0.3

/**
 * The ratio of the tokens that a model counts to the estimate, kept in the store. Reading is synchronous,
 * because a model call must not wait for it: until the store has answered, the ratio is 1.
 */
export class CalibratedTokens implements Calibration {
  readonly #known = new Map<string, { bytes: number; tokens: number }>()
  /** The ratio of the latest requests: the next one mostly extends one of them. */
  readonly #recent = new Map<string, number>()
  readonly #loading = new Set<string>()

  readonly #store: CalibrationStore
  readonly #logger: Logger

  constructor(store: CalibrationStore, logger: Logger) {
    this.#store = store
    this.#logger = logger
  }

  scale(model: string): number {
    this.#load(model)
    const known = this.#known.get(model)
    if (!known || known.tokens < LEAST_TOKENS) return 1
    const scale = known.tokens / (known.bytes / BYTES_PER_ESTIMATED_TOKEN)
    // An estimate that is too low costs a refusal, one that is too high only some history.
    const cautious = Math.max(scale, this.#recent.get(model) ?? 0)
    return Math.min(SCALE_LIMITS.most, Math.max(SCALE_LIMITS.least, cautious))
  }

  observe(model: string, estimatedTokens: number, countedTokens: number): void {
    if (estimatedTokens <= 0 || countedTokens <= 0) return
    const bytes = Math.round(estimatedTokens * BYTES_PER_ESTIMATED_TOKEN)
    const known = this.#known.get(model) ?? { bytes: 0, tokens: 0 }
    this.#known.set(model, { bytes: known.bytes + bytes, tokens: known.tokens + countedTokens })
    if (countedTokens >= LEAST_RECENT) {
      const ratio = countedTokens / estimatedTokens
      const recent = this.#recent.get(model) ?? ratio
      this.#recent.set(model, recent + RECENT_SHARE * (ratio - recent))
    }
    const run = runScope.getStore()
    if (run) run.counted({ model, bytes, tokens: countedTokens })
    else void this.#store.record(model, bytes, countedTokens).catch(error => this.#failed(error))
  }

  #load(model: string): void {
    if (this.#loading.has(model)) return
    this.#loading.add(model)
    void this.#store
      .read(model)
      .then(stored => {
        const known = this.#known.get(model)
        if (stored && stored.bytes > (known?.bytes ?? 0)) this.#known.set(model, stored)
      })
      .catch(error => this.#failed(error))
  }

  #failed(error: unknown): void {
    this.#logger.debug('The calibration of token counts could not be read or stored', {
      error: messageOf(error),
    })
  }
}
