/**
 * The record of a run that is resumed. ADK is driven through the run again, with the same message:
 *
 * - a model step that was answered gets its recorded answer;
 * - a tool call that was answered gets its recorded response (the ledger has those that were not answered yet);
 * - an event that ADK appends again takes its recorded form, and nothing is written;
 * - where the record ends, work continues.
 *
 * Events are compared lane by lane: those of one author on one branch come in one order, while parallel branches and
 * agents inside tools have orders of their own. A run that leaves the record has changed code, and must not continue.
 */
import { createEvent, type Event } from '../adk/sdk.js'
import { parseJson } from '../base/json.js'
import { AgentError, type AgentErrorJson } from '../errors.js'
import { type Message, type StoredMessage, toolCallKind } from '../session/message.js'
import type { JournalEntry } from '../session/run-store.js'
import type { AdoptedEvent, SessionView } from '../session/session-journal.js'
import { isSyntheticMetadata } from '../session/turn.js'

/** One recorded event. */
export interface RecordedEvent {
  readonly entry: JournalEntry
  /** Absent when the event only changed the state. */
  readonly message: StoredMessage | undefined
}

/** Where events have one order. */
export interface Lane {
  /** See `JournalEntry.scope`. */
  scope: string
  author: string
  branch: string
  /** The path of a node of a workflow; empty outside of nodes. */
  node: string
}

interface RecordedLane {
  readonly events: RecordedEvent[]
  next: number
}

export class Replay {
  /** The records that have not come again, by lane. */
  readonly #lanes = new Map<string, RecordedLane>()
  /** Recorded answers that ADK was given and has not appended yet, by their ids. */
  readonly #given = new Map<string, RecordedEvent>()
  readonly #answers = new Map<string, unknown>()
  /** The scopes of calls, as the ledger names them. */
  readonly #scopes = new Map<string, string>()
  /** What agents inside answered calls have done. */
  readonly skipped: readonly RecordedEvent[]
  readonly #views = new Map<string, SessionView>()
  readonly #adopted = new WeakSet<Event>()
  /** Recorded answers after which their model call gave another one. */
  readonly #continued = new WeakSet<Event>()
  readonly #failures = new WeakMap<Event, AgentError>()
  readonly #openingId: string | undefined
  readonly #eventOf: (message: Message) => Event
  /** The branches of agents below parallel ones, by name. */
  readonly #branches: ReadonlyMap<string, string>
  #divergence: AgentError | undefined
  #mayRetry = false
  /** Those who wait for records to come again. */
  readonly #waiting: (() => void)[] = []

  /** `openingId` is the message that ADK is driven with; it has a record only if it changed the state. */
  constructor(
    record: readonly RecordedEvent[],
    openingId: string | undefined,
    eventOf: (message: Message) => Event,
    branches: ReadonlyMap<string, string> = new Map(),
  ) {
    this.#openingId = openingId
    this.#eventOf = eventOf
    this.#branches = branches
    this.#collectAnswers(record)
    const replayed = record.filter(({ entry }) => !this.#isOver(entry.scope))
    this.skipped = record.filter(({ entry }) => this.#isOver(entry.scope))
    for (const recorded of replayed) {
      const name = laneName(laneOf(recorded.entry))
      const lane = this.#lanes.get(name) ?? { events: [], next: 0 }
      lane.events.push(recorded)
      this.#lanes.set(name, lane)
    }
    this.#collectViews(replayed)
  }

  /** Whether agents worked inside a call that has its answer: they are not run again. */
  #isOver(scope: string): boolean {
    if (scope === '') return false
    const outer = this.#scopes.get(scope)
    return this.#answers.has(scope) || (outer !== undefined && this.#isOver(outer))
  }

  /** Why the run cannot continue: it has left the record. */
  get divergence(): AgentError | undefined {
    return this.#divergence
  }

  /** Whether the event was recorded by an earlier attempt. */
  has(event: Event): boolean {
    return this.#adopted.has(event)
  }

  /** The failure of a model that a recorded event reports. */
  failureOf(event: Event): AgentError | undefined {
    return this.#failures.get(event)
  }

  /** Whether there is something left that code on this branch will be given again. */
  isReplaying(scope: string, branch: string): boolean {
    return this.#left().some(({ entry }) => entry.scope === scope && isRelated(this.#placeOf(entry), branch))
  }

  /** The recorded response to a tool call; the call is named as in the ledger. */
  answerOf(callId: string): { response: unknown } | undefined {
    return this.#answers.has(callId) ? { response: this.#answers.get(callId) } : undefined
  }

  /** What of a nested session was there before the call whose agent uses it; `undefined` once that agent has begun. */
  viewOf(scope: string): SessionView | undefined {
    return this.#views.get(scope)
  }

  /** Whether the next record of a lane is the answer of a model step. */
  hasAnswer(lane: Lane): boolean {
    return this.#next(lane)?.entry.kind === 'model'
  }

  /** Whether it is, and the step gave no other one. */
  hasOnlyAnswer(lane: Lane): boolean {
    const { entry } = this.#next(lane) ?? {}
    return entry?.kind === 'model' && !entry.more
  }

  /** Whether the next record of a lane is a notice to the model. */
  hasNotice(lane: Lane): boolean {
    const { entry, message } = this.#next(lane) ?? {}
    return entry?.kind === 'event' && isSyntheticMetadata(message?.extra?.customMetadata)
  }

  /** The recorded answer of the next model step of a lane; `undefined` when the model is to be asked. */
  nextAnswer(lane: Lane): Event | undefined {
    const recorded = this.#next(lane)
    if (!recorded) {
      this.#checkEnd(lane, `agent "${lane.author}" calls the model`)
      return undefined
    }
    const { entry, message } = recorded
    const failure = failureOf(message)
    // The run failed here, and only its end was not stored.
    if (failure !== undefined) throw new AgentError('internal', failure)
    if (entry.kind !== 'model' || !message)
      throw this.#diverge(`agent "${lane.author}" calls the model`, recorded)
    this.#take(lane)
    this.#given.set(entry.id, recorded)
    const answer = this.#restored(recorded, message)
    if (entry.more) this.#continued.add(answer)
    return answer
  }

  /** Whether the model call of a recorded answer gave another one after it. */
  hasMore(answer: Event): boolean {
    return this.#continued.has(answer)
  }

  /** See `SessionJournal.adopt`. */
  adopt({ scope, node }: Pick<Lane, 'scope' | 'node'>, event: Event): AdoptedEvent | undefined {
    if (this.#divergence) throw this.#divergence
    const lane = { scope, author: event.author ?? '', branch: event.branch ?? '', node }
    const given = this.#takeGiven(event.id, lane)
    const recorded = given ?? this.#next(lane)
    if (event.id === this.#openingId && recorded?.entry.id !== this.#openingId) return undefined
    if (!recorded) {
      this.#checkEnd(lane, `${lane.author || 'an agent'} adds ${describe(shapeOf(event))}`)
      return undefined
    }
    const { entry, message } = recorded
    if (!given) {
      const shape = message ? shapeOf(this.#eventOf(message)) : []
      if (entry.kind === 'model' || String(shape) !== String(shapeOf(event)))
        throw this.#diverge(`${lane.author || 'an agent'} adds ${describe(shapeOf(event))}`, recorded)
      this.#take(lane)
    }
    this.#views.delete(scope)
    this.#adopted.add(event)
    if (entry.error) this.#failures.set(event, storedError(entry.error))
    if (message) Object.assign(event, this.#restored(recorded, message))
    else Object.assign(event, { id: entry.id, actions: { ...event.actions, stateDelta: { ...entry.delta } } })
    return { seq: entry.seq }
  }

  /** The recorded events of an execution of a node, which gives them again. */
  eventsOf(lane: Pick<Lane, 'branch' | 'node'>, ids: readonly string[]): Event[] {
    const own = [...this.#lanes.values()].flatMap(recorded => {
      const { entry } = recorded.events[recorded.next] ?? {}
      if (entry?.node !== lane.node || entry.branch !== lane.branch) return []
      const found = recorded.events.slice(recorded.next).filter(each => ids.includes(each.entry.id))
      recorded.next += found.length
      return found
    })
    own.sort((one, other) => ids.indexOf(one.entry.id) - ids.indexOf(other.entry.id))
    for (const each of own) this.#given.set(each.entry.id, each)
    this.#progressed()
    return own.map(each => (each.message ? this.#restored(each, each.message) : stateEvent(each.entry)))
  }

  /** A node fails again. ADK may wait before it runs it once more. */
  failed(): void {
    this.#mayRetry = true
  }

  /** Whether there are records of a node. */
  hasNode(isWanted: (path: string) => boolean): boolean {
    return [...this.#lanes.values()].some(({ events }) => isWanted(events[0]?.entry.node ?? ''))
  }

  /**
   * Resolves when everything that is recorded has come again, apart from what the node itself gives again. Nodes work side
   * by side, so that one of them may come to its end of the record before others do; nothing new is done before all have.
   * When nothing comes any more, the run has left the record.
   */
  async untilLive(what: string, own?: Pick<Lane, 'branch' | 'node'>): Promise<void> {
    const isOwn = ({ entry }: RecordedEvent) => entry.node === own?.node && entry.branch === own?.branch
    const others = () => this.#left().filter(each => !isOwn(each))
    for (;;) {
      if (this.#divergence) throw this.#divergence
      const [left] = others()
      if (!left) return
      const isStalled = await this.#progress()
      if (isStalled && others().includes(left)) this.#diverge(what, left)
    }
  }

  /** Resolves when a record has come again, or with `true` when none does. */
  #progress(): Promise<boolean> {
    return new Promise(resolve => {
      const timer = setTimeout(() => resolve(true), this.#mayRetry ? RETRY_MS : STALLED_MS)
      this.#waiting.push(() => {
        clearTimeout(timer)
        resolve(false)
      })
    })
  }

  #progressed(): void {
    for (const go of this.#waiting.splice(0)) go()
  }

  /** The recorded answer that an event is. A plugin may have given it another id; its lane has no other before it. */
  #takeGiven(eventId: string, lane: Lane): RecordedEvent | undefined {
    const name = laneName(lane)
    const isOwn = ({ entry }: RecordedEvent) => entry.kind === 'model' && laneName(laneOf(entry)) === name
    const inLane = [...this.#given.values()].find(isOwn)
    const given = this.#given.get(eventId) ?? inLane
    if (given) this.#given.delete(given.entry.id)
    return given
  }

  /** The run has ended: everything that was recorded must have come again. */
  finish(): void {
    const [left] = this.#left()
    if (left && !this.#divergence) this.#diverge('the run ends', left)
  }

  #next(lane: Lane): RecordedEvent | undefined {
    const { events, next } = this.#lanes.get(laneName(lane)) ?? { events: [], next: 0 }
    return events[next]
  }

  #take(lane: Lane): void {
    const recorded = this.#lanes.get(laneName(lane))
    if (recorded) recorded.next += 1
    this.#progressed()
  }

  #left(): RecordedEvent[] {
    return [...this.#lanes.values()].flatMap(({ events, next }) => events.slice(next, next + 1))
  }

  #restored({ entry }: RecordedEvent, message: StoredMessage): Event {
    const event = this.#eventOf(message)
    // Messages keep no `temp:` keys.
    if (entry.delta) event.actions = { ...event.actions, stateDelta: { ...entry.delta } }
    return event
  }

  /** The lane has no more records. Where one order holds with other lanes, those must have none either. */
  #checkEnd(lane: Lane, what: string): void {
    if (this.#divergence) throw this.#divergence
    const place = this.#placeOf(lane)
    const left = this.#left().find(
      ({ entry }) =>
        entry.scope === lane.scope &&
        isRelated(this.#placeOf(entry), place) &&
        isRelated(entry.node ?? '', lane.node),
    )
    if (left) throw this.#diverge(what, left)
  }

  /** The branch of an event. An agent of the user's own may leave it out, also where others work beside it. */
  #placeOf({ scope, author, branch }: Pick<Lane, 'scope' | 'author' | 'branch'>): string {
    return branch === '' && scope === '' ? (this.#branches.get(author) ?? '') : branch
  }

  #diverge(what: string, { entry, message }: RecordedEvent): AgentError {
    const shape = message ? shapeOf(this.#eventOf(message)) : []
    const recorded = entry.kind === 'model' ? `an answer with ${describe(shape)}` : describe(shape)
    this.#progressed()
    this.#divergence ??= new AgentError(
      'run-interrupted',
      `The run cannot be resumed, because its agents behave differently now: ${what}, where the record has ${recorded} of "${entry.author}". Send a message to continue.`,
      { retryable: true, details: { expected: recorded, author: entry.author } },
    )
    return this.#divergence
  }

  #collectAnswers(record: readonly RecordedEvent[]): void {
    const calls = new Map<string, string>()
    for (const { entry, message } of record) {
      const lane = laneName(laneOf(entry))
      for (const call of message?.toolCalls ?? []) {
        const name = `${lane}\n${call.id}`
        if (toolCallKind(call, message?.role ?? '') !== 'response') {
          calls.set(name, `${entry.id}/${call.id}`)
          this.#scopes.set(`${entry.id}/${call.id}`, entry.scope)
        } else {
          const id = calls.get(name)
          if (id !== undefined) this.#answers.set(id, parseJson(call.output ?? 'null'))
        }
      }
    }
  }

  #collectViews(record: readonly RecordedEvent[]): void {
    for (const scope of new Set(record.map(({ entry }) => entry.scope))) {
      const events = record.filter(({ entry }) => entry.scope === scope)
      const first = events.find(({ entry }) => entry.seq !== undefined)?.entry.seq ?? 1
      const undo = events
        .flatMap(({ entry: { delta, before = {} } }) => (delta ? [{ delta, before }] : []))
        .reverse()
      this.#views.set(scope, { throughSeq: first - 1, undo })
    }
  }
}

function laneOf({ scope, author, branch, node = '' }: JournalEntry): Lane {
  return { scope, author, branch, node }
}

function laneName({ scope, author, branch, node }: Lane): string {
  return `${scope}\n${author}\n${branch}\n${node}`
}

/** Whether the events of two branches, or of two nodes, have one order: one of them contains the other. */
function isRelated(one: string, other: string): boolean {
  const [outer, inner] = one.length <= other.length ? [one, other] : [other, one]
  return outer === '' || outer === inner || inner.startsWith(`${outer}.`)
}

/** What an event consists of, without what differs between two executions of the same code. */
function shapeOf({ content }: Event): string[] {
  const parts = content?.parts ?? []
  const calls = parts.flatMap(({ functionCall }) => (functionCall ? [`a call of ${functionCall.name}`] : []))
  const answers = parts.flatMap(({ functionResponse }) =>
    functionResponse ? [`a response of ${functionResponse.name}`] : [],
  )
  if (calls.length + answers.length > 0) return [...calls, ...answers]
  return parts.length > 0 ? ['text'] : []
}

function describe(shape: readonly string[]): string {
  return shape.length > 0 ? shape.join(', ') : 'a change of state'
}

/** An event that only changes the state. */
function stateEvent({ id, author, branch, delta = {} }: JournalEntry): Event {
  const event = createEvent({ id, author, ...(branch === '' ? {} : { branch }) })
  event.actions.stateDelta = { ...delta }
  return event
}

/** The words of a model's failure that was stored as an event. */
function failureOf(message: Message | undefined): string | undefined {
  const { errorCode, errorMessage } = message?.extra ?? {}
  const failure = errorMessage ?? errorCode
  return failure === undefined ? undefined : String(failure)
}

/** An error as the journal keeps it. */
function storedError(error: Readonly<Record<string, unknown>>): AgentError {
  // The journal of a run wrote it; a store returns what it was given.
  const { code, message, ...options } = error as unknown as AgentErrorJson
  return new AgentError(code, message, options)
}

/** How long nothing that is recorded comes again before the run has left the record. */
const STALLED_MS = 5_000
/** As long as a node may wait that has failed, by default, before it is run again. */
const RETRY_MS = 70_000
