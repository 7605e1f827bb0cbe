import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { defined } from '../../base/defined.js'
import { letOthersRun } from '../../base/pause.js'
import { AgentError, checkOptions, invariant } from '../../errors.js'
import type { HistoryCut, Message, Session, SessionKey, State, StoredMessage } from '../../session/message.js'
import { type SessionJournal, undoState } from '../../session/session-journal.js'
import { newestMessagePages } from '../../session/session-pages.js'
import type { AppendOptions, Lease, SessionAccess, SessionStore } from '../../session/session-store.js'
import { restoreRequests, withoutInheritedNames, withoutScope } from '../adk-quirks.js'
import { wrapAgents } from '../agent-failures.js'
import {
  type AdkSession,
  type AppendEventRequest,
  BaseSessionService,
  type Content,
  type CreateSessionRequest,
  createEvent,
  type Event,
  type GetSessionRequest,
  type ListSessionsRequest,
  type ListSessionsResponse,
} from '../sdk.js'
import { type NodeHooks, type NodeService, nodeServices, wrapNodes } from '../workflow-nodes.js'
import { adkView, findCallEvents, withMarks, withNumbers } from './adk-view.js'
import { eventToMessage, makeStorable, persistentStateDelta } from './event-to-message.js'
import { listSessions } from './list-sessions.js'
import { restoreEvents } from './messages-to-events.js'
import { type Fence, SessionFence } from './session-fence.js'

export interface SessionServiceOptions extends NodeHooks {
  /** The author of answers whose row does not say, and of those that ADK signs `model`. */
  rootAgentName?: string | undefined
  /** How much of a history `getSession` hands out. 0 or absent: 32,000. `'off'`: the message limit holds. */
  budgetTokens?: number | 'off' | undefined
  maxMessages?: number | undefined
  /**
   * Moves the cut in steps of a quarter of the budget, so that prompt caches hold from one load to the next. Default: only
   * with the default budget; one that is given is filled.
   */
  steady?: boolean | undefined
  /**
   * The right to write to one session. A lease or its number belongs to the first session that is loaded or
   * written; with `key` to that one. Other sessions (an `AgentTool` keeps its own under another app name) are
   * written under leases of their own.
   */
  fence?: Fence | undefined
  /** Marks the messages that are handed out with their numbers, for notes about those that are not sent. */
  isNumbered?: boolean | undefined
  /** Called with a session that was loaded. */
  onLoad?: ((session: Session) => void) | undefined
  /** Called with what a loaded history left out. */
  onCut?: ((cut: HistoryCut, key: SessionKey) => void) | undefined
  /** Called with an event of the session that the fence belongs to, in the same tick as its append. */
  onAppend?: ((event: Event) => void) | undefined
  /** The message of the run, which is stored already: ADK loads the session without it and appends it itself. */
  opening?: StoredOpening | undefined
  /** Called after a plugin has changed that message, with what is stored instead and what was stored before. */
  onOpeningChanged?: ((key: SessionKey, changed: StoredOpening, before: Message) => Promise<void>) | undefined
  /** Records what is appended to the session of the fence and to nested ones, so that a run can be resumed. */
  journal?: SessionJournal<Event> | undefined
}

/** Nodes learn of session services once in a process. */
let isWrapped = false

/** A user's message that was stored when its run was opened. */
export interface StoredOpening {
  message: Message
  seq: number
}

/**
 * ADK's session service over any store. Appending persists first and then changes the given session object in
 * place: ADK loads a session once per run and reads that object afterwards. When the store refuses, the object
 * is unchanged.
 *
 * ```ts
 * import { LlmAgent, Runner } from '@google/adk'
 * import { SessionServiceAdapter } from 'lango/adk'
 * import { openStore } from 'lango/store'
 *
 * const store = await openStore('sqlite:./lango.db')
 * const agent = new LlmAgent({ name: 'root', model: 'gemini-3.5-flash' })
 * export const runner = new Runner({
 *   appName: 'app',
 *   agent,
 *   sessionService: new SessionServiceAdapter(store, { rootAgentName: agent.name }),
 * })
 * ```
 */
export class SessionServiceAdapter extends BaseSessionService {
  readonly #store: SessionAccess
  readonly #options: SessionServiceOptions
  readonly #fence: SessionFence
  /** Until ADK has appended it. */
  #opening: StoredOpening | undefined
  /** The stored state of the sessions that were handed out: ADK writes to their own before it appends. */
  readonly #stored = new WeakMap<AdkSession, State>()
  /** The numbers of recorded events. Parallel agents may be replayed in another order than they were recorded in. */
  readonly #numbers = new WeakMap<Event, number>()
  readonly #nodes: NodeService

  constructor(store: SessionAccess, options: SessionServiceOptions = {}) {
    super()
    checkOptions(options, 'new SessionServiceAdapter')
    this.#store = store
    this.#options = options
    this.#fence = new SessionFence(store, options.fence)
    this.#opening = options.opening
    this.#nodes = { hooks: options }
    if (!isWrapped) {
      wrapNodes()
      wrapAgents()
    }
    isWrapped = true
    nodeServices.set(this, this.#nodes)
  }

  override async createSession(request: CreateSessionRequest): Promise<AdkSession> {
    const { appName, userId, state, sessionId: given } = withoutScope(request)
    const sessionId = given || randomUUID()
    const nestedIn = this.#fence.nestedIn({ appName, userId, sessionId })
    const key = this.#keyOf(appName, userId, sessionId)
    const session = await this.#store.createSession(key, state, nestedIn ? { nestedIn } : {})
    return this.#toAdk(appName, session)
  }

  override async getSession(given: GetSessionRequest): Promise<AdkSession | undefined> {
    const request = withoutScope(given)
    const key = this.#keyOf(request.appName, request.userId, request.sessionId)
    this.#fence.claim(key)
    const view = this.#options.journal?.viewOf(key)
    const opened = this.#opening && this.#fence.owns(key) ? this.#opening.seq - 1 : view?.throughSeq
    const loaded = await this.#load(key, request.config, opened)
    if (!loaded) return undefined
    const session = view ? { ...loaded, state: undoState(loaded.state, view.undo) } : loaded
    await letOthersRun()
    this.#options.onLoad?.(session)
    if (session.cut) this.#options.onCut?.(session.cut, key)
    const restored = this.#toAdk(request.appName, session, request.config)
    await letOthersRun()
    return restored
  }

  /** Concurrent callers get one session: the second one reads what the first one created. */
  override async getOrCreateSession(request: CreateSessionRequest): Promise<AdkSession> {
    const { appName, userId, sessionId } = withoutScope(request)
    if (!sessionId) return this.createSession(request)
    const session = await this.getSession({ appName, userId, sessionId })
    if (session) return session
    try {
      return await this.createSession(request)
    } catch (error) {
      if (!(error instanceof AgentError) || error.code !== 'session-exists') throw error
      const created = await this.getSession({ appName, userId, sessionId })
      if (!created) throw error
      return created
    }
  }

  override listSessions(request: ListSessionsRequest): Promise<ListSessionsResponse> {
    return listSessions(this.#store, withoutScope(request))
  }

  override async deleteSession(request: {
    appName: string
    userId: string
    sessionId: string
  }): Promise<void> {
    const { appName, userId, sessionId } = withoutScope(request)
    await this.#store.deleteSession(this.#keyOf(appName, userId, sessionId))
  }

  override async appendEvent({ session, event }: AppendEventRequest): Promise<Event> {
    if (event.partial) return event
    makeStorable(event)
    const key = this.#keyOf(session.appName, session.userId, session.id)
    const opening = this.#adopt(key, event)
    const message = eventToMessage(event)
    // When a plugin has changed the content, appending it replaces what is stored.
    const isStored = opening !== undefined && isDeepStrictEqual(message, opening.message)
    // An event that says nothing is not recorded, so the record has nothing in its place.
    const isRecorded = message !== undefined || Object.keys(event.actions?.stateDelta ?? {}).length > 0
    const adopted = isRecorded ? this.#options.journal?.adopt(key, event) : undefined
    await letOthersRun()
    if (!adopted) await this.#write(session, key, event, isStored ? undefined : message)
    if (opening && message && !isStored && !adopted)
      await this.#options.onOpeningChanged?.(key, { message, seq: opening.seq }, opening.message)
    const shown = withMarks(answersCalls(event) ? await this.#withItsCalls(session, event) : event)
    keepTemporaryState(session, event)
    // Without a message the event changes the state and is not part of the history.
    const isMessage = adopted ? adopted.seq !== undefined || opening !== undefined : message !== undefined
    this.#remember(session, event)
    await super.appendEvent({ session: isMessage ? session : { ...session, events: [] }, event: shown })
    // The message that opens the run is stored before all that is recorded.
    const isStoredBefore = adopted !== undefined || opening !== undefined
    if (this.#options.journal)
      this.#numbers.set(shown, isStoredBefore ? (adopted?.seq ?? 0) : Number.MAX_SAFE_INTEGER)
    if (adopted) keepOrder(session.events, each => this.#numbers.get(each))
    session.lastUpdateTime = event.timestamp
    this.#nodes.opened?.appends.stored(event)
    return event
  }

  isAnswered(agentName: string, branch: string | undefined): boolean {
    return this.#options.journal?.isAnswered(agentName, branch) ?? false
  }

  #write(
    session: AdkSession,
    key: SessionKey,
    event: Event,
    message: Message | undefined,
  ): Promise<unknown> | undefined {
    const stateDelta = persistentStateDelta(event)
    const hasDelta = Object.keys(stateDelta).length > 0
    const { journal, onAppend } = this.#options
    const isNested = this.#fence.isNested(key)
    if (journal && (isNested || this.#fence.owns(key))) {
      if (!isNested) onAppend?.(event)
      const delta = { ...event.actions?.stateDelta }
      const before = pick(this.#stored.get(session) ?? {}, Object.keys(delta))
      return journal.append({ key, isNested, event, message, stateDelta, delta, before })
    }
    return this.#fence.write(key, fence => {
      if (this.#fence.owns(key)) onAppend?.(event)
      const options: AppendOptions = { ...(hasDelta ? { stateDelta } : {}), ...fence }
      if (message) return this.#store.appendMessage(key, message, options)
      return hasDelta ? this.#store.updateState(key, stateDelta, fence) : undefined
    })
  }

  /** Keeps the stored state of a session up to date. */
  #remember(session: AdkSession, event: Event): void {
    const delta = event.actions?.stateDelta ?? {}
    const stored = this.#stored.get(session)
    if (stored) Object.assign(stored, delta)
  }

  /** The stored message that its run was opened with, if the event is that message: it takes the id and the time. */
  #adopt(key: SessionKey, event: Event): StoredOpening | undefined {
    const opening = this.#opening
    if (!opening || event.author !== 'user' || !this.#fence.owns(key)) return undefined
    this.#opening = undefined
    event.id = opening.message.id ?? event.id
    event.timestamp = opening.message.timestamp
    return opening
  }

  /**
   * A person's answer may come so late that its call lies before the loaded tail (a long-running tool, an
   * approval). ADK throws when it cannot find the call, so the call is put back at the head of the tail; an
   * answer whose call does not exist is shown to ADK as text.
   */
  async #withItsCalls(session: AdkSession, event: Event): Promise<Event> {
    const { rootAgentName } = this.#options
    const key = this.#keyOf(session.appName, session.userId, session.id)
    const { found, missing } = await findCallEvents({
      store: this.#store,
      key,
      session,
      event,
      rootAgentName,
    })
    session.events.unshift(...found)
    restoreRequests(session.events, event)
    const answers = event.content?.parts?.filter(part => part.functionResponse).length ?? 0
    if (missing === 0 || missing < answers) return event
    return adkView([event], { rootAgentName })[0] ?? event
  }

  /** What a caller asks for by number or time is handed out whole, whatever it costs. */
  async #load(
    key: SessionKey,
    config: GetSessionRequest['config'],
    throughSeq: number | undefined,
  ): Promise<Session | undefined> {
    const { budgetTokens, maxMessages, steady = !budgetTokens } = this.#options
    const before = defined({ throughSeq })
    if (!config?.numRecentEvents && !config?.afterTimestamp)
      return this.#store.loadSession(key, { steady, ...defined({ budgetTokens, maxMessages }), ...before })
    const newest = await this.#store.loadSession(key, { budgetTokens: 'off', maxMessages: 1, ...before })
    if (!newest) return undefined
    const { cut: _cut, ...session } = newest
    return { ...session, messages: await recentMessages(this.#store, key, config, throughSeq) }
  }

  /** Agents inside tools have sessions under their own name; in the store these belong to the run's app. */
  #keyOf(appName: string, userId: string, sessionId: string): SessionKey {
    const owner = this.#fence.nestedIn({ appName, userId, sessionId })
    return { appName: owner === undefined ? appName : `${owner}/${appName}`, userId, sessionId }
  }

  #toAdk(appName: string, session: Session, config?: GetSessionRequest['config']): AdkSession {
    const { rootAgentName } = this.#options
    const stored = restoreEvents(session.messages, { rootAgentName })
    const known = this.#options.isNumbered ? withNumbers(stored, session.messages) : stored
    const events = recentEvents(known, config)
    const restored: AdkSession = {
      id: session.key.sessionId,
      appName,
      userId: session.key.userId,
      state: withoutInheritedNames({ ...session.state }),
      events: adkView(events, { rootAgentName }),
      lastUpdateTime: session.messages.at(-1)?.timestamp ?? session.updatedAt,
    }
    if (this.#options.journal) this.#stored.set(restored, { ...session.state })
    return restored
  }
}

/** Moves an event that was just added before those that were recorded after it. */
function keepOrder(events: Event[], numberOf: (event: Event) => number | undefined): void {
  for (let at = events.length - 1; at > 0; at--) {
    const [earlier, later] = [events[at - 1], events[at]]
    const isOrdered = !earlier || !later || (numberOf(earlier) ?? 0) <= (numberOf(later) ?? 0)
    if (isOrdered) return
    events.splice(at - 1, 2, later, earlier)
  }
}

function pick(state: State, keys: readonly string[]): State {
  return Object.fromEntries(keys.flatMap(key => (Object.hasOwn(state, key) ? [[key, state[key]]] : [])))
}

/** A function that stores an event outside ADK's own loop, in a session whose lease is given. */
export function noteAppender(store: Pick<SessionStore, 'appendMessage'>) {
  return async (key: SessionKey, note: Partial<Event>, lease: Lease): Promise<void> => {
    const event = createEvent({ ...note, invocationId: note.invocationId ?? `lango-${randomUUID()}` })
    const message = eventToMessage(event)
    if (message) await store.appendMessage(key, message, { fence: lease.fence })
  }
}

/** The message of a run as ADK will append it, and the id of the invocation that it opens. */
export function openingMessage(content: Content): { message: Message; invocationId: string } {
  const invocationId = `e-${randomUUID()}`
  const message = eventToMessage(createEvent({ author: 'user', content, invocationId }))
  invariant(message !== undefined, 'an event with content is a message')
  return { message, invocationId }
}

/** A stored message as ADK takes it from a user. */
export function contentOf(message: Message): Content {
  const { content } = eventOf(message)
  invariant(content, 'the message of a run has content')
  return content
}

/** The event that a message was stored for. */
export function eventOf(message: Message, rootAgentName?: string): Event {
  const [event] = restoreEvents([message], rootAgentName === undefined ? {} : { rootAgentName })
  invariant(event, 'a stored message is an event')
  return event
}

/** The newest messages that the two filters of ADK can choose, in order. */
async function recentMessages(
  store: Pick<SessionStore, 'readMessages'>,
  key: SessionKey,
  { numRecentEvents, afterTimestamp = 0 }: NonNullable<GetSessionRequest['config']>,
  throughSeq: number | undefined,
): Promise<StoredMessage[]> {
  const messages: StoredMessage[] = []
  const range = {
    limit: numRecentEvents || undefined,
    beforeSeq: throughSeq === undefined ? undefined : throughSeq + 1,
  }
  for await (const page of newestMessagePages(store, key, defined(range))) {
    messages.unshift(...page)
    if (page.some(({ timestamp }) => timestamp < afterTimestamp)) break
  }
  return messages
}

/** ADK's own reading of its two filters; a cut that separates a pair is repaired by the view. */
function recentEvents(events: Event[], config: GetSessionRequest['config'] = {}): Event[] {
  const { numRecentEvents, afterTimestamp } = config
  const newest = numRecentEvents ? events.slice(-numRecentEvents) : events
  if (!afterTimestamp) return newest
  return newest.slice(newest.findLastIndex(event => event.timestamp < afterTimestamp) + 1)
}

/** Whether the event is a person's and answers calls. */
function answersCalls({ author, content }: Event): boolean {
  return author === 'user' && content?.parts?.some(part => part.functionResponse) === true
}

/** `temp:` keys are never stored, but tools and instructions of this run may read them. */
function keepTemporaryState(session: AdkSession, event: Event): void {
  for (const [key, value] of Object.entries(event.actions?.stateDelta ?? {})) {
    if (key.startsWith('temp:')) session.state[key] = value
  }
}
