import { parseJson } from '../../base/json.js'
import { DEFAULT_AGENT_NAME, isRequestTool } from '../../base/names.js'
import { atOnce, type Steps } from '../../base/pause.js'
import { checkMessages, checkOptions } from '../../errors.js'
import { type Message, normalizeRole, toolCallKind } from '../../session/message.js'
import { type CallItem, type Identified, identifyCalls } from '../../session/pair-calls.js'
import { isSyntheticMetadata, startsTurn } from '../../session/turn.js'
import type { Content, Event, EventActions, Part } from '../sdk.js'
import { type EventExtra, impliedRole, otherFields } from './event-to-message.js'
import { fieldsToParts, type LayoutEntry } from './message-parts.js'

export interface RestoreOptions {
  /** The author of answers whose row does not say. Default `lango-agent`. */
  rootAgentName?: string | undefined
}

/**
 * The events of stored messages, as iteration yields them: ids given, authors mapped, same roles merged. One
 * message restores to the event that was stored; a malformed list restores as well as it can, and nothing in
 * it makes this throw.
 *
 * ```ts
 * import { messagesToEvents } from 'lango/adk'
 *
 * const messages = [{ role: 'user', content: 'Hello', timestamp: Date.now() }]
 * const [event] = messagesToEvents(messages, { rootAgentName: 'root' })
 * console.log(event?.author, event?.content)
 * ```
 *
 * @spec EventsAdapter.All
 */
export function messagesToEvents(messages: readonly Message[], options: RestoreOptions = {}): Event[] {
  checkMessages(messages, 'messagesToEvents')
  checkOptions(options, 'messagesToEvents')
  return mergeSameRole(restoreEvents(messages, options))
}

/**
 * What the messages say, one content each and nothing put right: doubled ids stay doubled and arguments that
 * are no objects stay what they are. `undefined` for messages without content.
 */
export function messagesToContents(messages: readonly Message[]): (Content | undefined)[] {
  const rows = messages.map(message => ({ message, parts: partsOf(message), author: '' }))
  const paired = atOnce(pairParts(rows, { faithful: true }))
  return messages.map((message, index) => {
    const extra = (message.extra ?? {}) as EventExtra
    const parts = paired[index]?.parts ?? []
    return extra.content === false ? undefined : contentOf(message, extra, parts)
  })
}

/** As `messagesToEvents`, before merging: what was stored, event by event. */
export function restoreEvents(messages: readonly Message[], options: RestoreOptions): Event[] {
  return atOnce(restoringEvents(messages, options))
}

/** Messages between two steps. */
const STEP = 64

/** As `restoreEvents`, in steps: a whole session may have a hundred thousand messages. */
export function* restoringEvents(messages: readonly Message[], options: RestoreOptions): Steps<Event[]> {
  const { rootAgentName } = options
  const rows: PartsOfMessage[] = []
  for (const message of messages) {
    rows.push({ message, parts: partsOf(message), author: eventAuthor(message, { rootAgentName }) })
    if (rows.length % STEP === 0) yield
  }
  const paired = yield* pairParts(rows)
  const events: Event[] = []
  for (const [index, message] of messages.entries()) {
    const extra = (message.extra ?? {}) as EventExtra
    const { parts = [], callAuthor } = paired[index] ?? {}
    const author = eventAuthor(message, { rootAgentName, callAuthor })
    const content = extra.content === false ? undefined : contentOf(message, extra, parts)
    const event = eventOf(message, extra, author, content, index)
    if (holdsAnswers(message)) events.push(...splitAnswers(event, parts))
    else events.push(event)
    if (index % STEP === 0) yield
  }
  return events
}

/** The parts of one message as its row has them, before ids are given. */
function partsOf(message: Message): Part[] {
  return fieldsToParts(message, layoutOf(message))
}

function layoutOf(message: Message): LayoutEntry[] | undefined {
  const layout = message.extra?.parts
  return Array.isArray(layout) ? (layout as LayoutEntry[]) : undefined
}

function contentOf(message: Message, extra: EventExtra, parts: Part[]): Content {
  const role = extra.role === undefined ? roleOf(message, parts) : extra.role
  if (role !== null && parts.length > 0 && extra.content === undefined && !extra.partsFirst)
    return { role, parts }
  const others = typeof extra.content === 'object' ? extra.content : {}
  const named = role === null ? {} : { role }
  const list = extra.parts === null && parts.length === 0 ? {} : { parts }
  return extra.partsFirst ? { ...list, ...named, ...others } : { ...named, ...list, ...others }
}

function roleOf(message: Message, parts: readonly Part[]): string {
  if (parts.length > 0 && parts.every(part => part.functionResponse)) return 'function'
  const role = impliedRole(message.role)
  // A result without its call becomes text for the model.
  return role === 'function' ? (isLegacyResult(message) ? 'user' : role) : role
}

function eventOf(
  message: Message,
  extra: EventExtra,
  author: string,
  content: Content | undefined,
  index: number,
): Event {
  const none = { stateDelta: {}, artifactDelta: {}, requestedAuthConfigs: {}, requestedToolConfirmations: {} }
  const actions: EventActions = extra.actions === undefined ? none : { ...none, ...extra.actions }
  // A copy already, so it is filled in place: spreading it would take several times as long.
  const event = otherFields(extra) as Partial<Event> & { [EVENT_BRAND]?: true }
  event.id = eventIdOf(message, index)
  event.invocationId = message.invocationId ?? ''
  event.author = author
  event.actions = actions
  event.longRunningToolIds = event.longRunningToolIds ?? []
  event.timestamp = message.timestamp
  if (message.branch !== undefined) event.branch = message.branch
  if (content !== undefined) event.content = content
  event[EVENT_BRAND] = true
  return event as Event
}

/** The id of a message's event. Imported messages often have none. */
export function eventIdOf(message: Message, index: number): string {
  return message.id || `message-${'seq' in message ? message.seq : index + 1}`
}

/**
 * The mark of ADK's `createEvent`, by which ADK knows its events. Taken by name, so that restoring does not
 * load ADK; a contract test holds it equal to ADK's own.
 */
const EVENT_BRAND = Symbol.for('google.adk.event')

/** In rows from elsewhere one entry may hold a call and its answer; ADK drops events that hold both. */
function holdsAnswers(message: Message): boolean {
  return (message.toolCalls ?? []).some(call => toolCallKind(call, message.role) === 'both')
}

function splitAnswers(event: Event, parts: readonly Part[]): Event[] {
  const answers = parts.filter(part => part.functionResponse)
  const others = parts.filter(part => !part.functionResponse)
  const asked = { ...event, content: { ...event.content, parts: others } }
  const answered: Event = {
    ...event,
    id: `${event.id}-answers`,
    actions: { stateDelta: {}, artifactDelta: {}, requestedAuthConfigs: {}, requestedToolConfirmations: {} },
    longRunningToolIds: [],
    content: { role: 'function', parts: answers },
  }
  return [asked, answered]
}

interface AuthorContext {
  rootAgentName?: string | undefined
  /** Who made the call that this message answers. */
  callAuthor?: string | undefined
}

/**
 * Who an event is by. A stored author wins; a user is `user`; a tool's result belongs to the author of the
 * call, because ADK turns results by anybody else into text; everything else was said by the root agent.
 */
function eventAuthor(message: Message, context: AuthorContext): string {
  if (message.author) return message.author
  const rootAgent = context.rootAgentName || DEFAULT_AGENT_NAME
  const role = normalizeRole(message.role)
  if (role === 'user') return 'user'
  if (role === 'tool') return context.callAuthor ?? rootAgent
  return rootAgent
}

/** A stored message with its parts as its row has them. */
interface PartsOfMessage {
  message: Message
  parts: readonly Part[]
  /** The author if the parts hold calls. */
  author: string
}

/** The parts of one message with their ids. */
interface PairedParts {
  parts: Part[]
  /** Who made the call that the first answer among the parts belongs to. */
  callAuthor?: string | undefined
}

/**
 * Gives calls and answers their ids: every call another id, every answer the id and, where it has none, the
 * name of its call. `faithful`: doubled ids stay doubled, and arguments and results are whatever their JSON says.
 */
function* pairParts(
  rows: readonly PartsOfMessage[],
  { faithful = false }: { faithful?: boolean } = {},
): Steps<PairedParts[]> {
  const references = referencesOf(rows)
  const ids: PartIds[] = rows.map(() => [])
  for (const [index, identified] of identifyCalls(references, { unique: !faithful }).entries()) {
    const { at, place } = references[index] as Reference
    ;(ids[at] as PartIds)[place] = identified
  }
  yield
  const paired: PairedParts[] = []
  for (const [index, row] of rows.entries()) {
    paired.push(toPaired(row, ids[index] ?? [], faithful))
    if (index % STEP === 0) yield
  }
  return paired
}

/** A call or an answer, who made it, and the place of its part; a bare result has the first place. */
type Reference = CallItem & { author: string; place: number }

type PartIds = (Identified<Reference> | undefined)[]

function referencesOf(rows: readonly PartsOfMessage[]): Reference[] {
  const found: Reference[] = []
  let turn = 0
  rows.forEach(({ message, parts, author }, at) => {
    if (startsTurn(message)) turn += 1
    if (isLegacyResult(message)) {
      found.push({ kind: 'answer', author, at, turn, place: 0 })
      return
    }
    for (const [place, { functionCall, functionResponse }] of parts.entries()) {
      const reference = functionCall ?? functionResponse
      if (!reference) continue
      const { id, name } = reference
      found.push({ kind: functionCall ? 'call' : 'answer', id, name, author, at, turn, place })
    }
  })
  return found
}

function toPaired({ message, parts }: PartsOfMessage, ids: PartIds, faithful: boolean): PairedParts {
  if (isLegacyResult(message)) return pairLegacy(message, ids[0], faithful)
  let callAuthor: string | undefined
  const paired = parts.map((part, place): Part => {
    const { id = '', call } = ids[place] ?? {}
    if (isComplete(part, id)) {
      if (part.functionResponse) callAuthor ??= call?.author
      return part
    }
    if (part.functionCall) {
      const { functionCall } = part
      const args = faithful ? {} : objectArgs(functionCall.args)
      return { ...part, functionCall: { ...withId(functionCall, id), ...args } }
    }
    if (!part.functionResponse) return part
    const { name, response } = part.functionResponse
    callAuthor ??= call?.author
    const named = { ...part.functionResponse, ...(name || !call ? {} : { name: call.name ?? '' }) }
    return { ...part, functionResponse: { ...withId(named, id), ...toResponse(response, faithful) } }
  })
  return { parts: paired, callAuthor }
}

/** Whether a call or an answer has its id, its name and an object already: the usual case, which needs no copy. */
function isComplete({ functionCall, functionResponse }: Part, id: string): boolean {
  if (functionCall) return functionCall.id === id && isObject(functionCall.args)
  if (!functionResponse?.name) return false
  return functionResponse.id === id && isObject(functionResponse.response)
}

/** Rows from before results had metadata: the answer belongs to the next open call before it. */
function pairLegacy(
  message: Message,
  identified: Identified<Reference> | undefined,
  faithful: boolean,
): PairedParts {
  const { id = '', call } = identified ?? {}
  if (!call) return { parts: message.content === '' ? [] : [{ text: message.content }] }
  const response = toResponse(parseJson(message.content), faithful)
  return {
    parts: [{ functionResponse: { id, name: call.name ?? '', ...response } }],
    callAuthor: call.author,
  }
}

function toResponse(response: unknown, faithful: boolean): { response?: Record<string, unknown> } {
  return faithful ? { response: response as Record<string, unknown> } : objectResponse(response)
}

/** A tool's result of which nothing but the text is known. */
function isLegacyResult(message: Message): boolean {
  if (normalizeRole(message.role) !== 'tool' || (message.toolCalls ?? []).length > 0) return false
  return message.extra?.parts === undefined
}

/** Sets the id: where it stood, or first. */
function withId<Fields extends { id?: string }>(fields: Fields, id: string): Fields {
  return fields.id === undefined ? Object.assign({ id }, fields, { id }) : { ...fields, id }
}

/** ADK and the wires want objects. Whatever else a row holds is kept inside one. */
function objectArgs(args: unknown): { args?: Record<string, unknown> } {
  if (args === undefined || args === null) return {}
  return { args: isObject(args) ? args : { input: args } }
}

function objectResponse(response: unknown): { response?: Record<string, unknown> } {
  if (response === undefined) return {}
  if (isObject(response)) return { response }
  return { response: Array.isArray(response) ? { results: response } : { result: response } }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Consecutive events of one role become one, so that no model gets two turns of one side in a row. Only within
 * one author and branch; never a tool's result with anything else, never a call with a result, never the user's
 * text with what Lango wrote in the user's role, never a part that carries a signature (it is valid only where it
 * was made), never events that ADK treats as a whole (compaction, confirmations, workflow nodes).
 *
 * Events without content (an error, usage) do not stand between two that follow each other in what is said.
 *
 * @spec EventsAdapter.All (merging)
 */
export function mergeSameRole(events: readonly Event[]): Event[] {
  const merged: Event[] = []
  const placeOfCall = new Map<string, number>()
  let spoken = -1
  for (const event of events) {
    const last = merged[spoken]
    if (last && canMerge(last, event, placeOfCall)) {
      merged[spoken] = merge(last, event)
    } else {
      merged.push(event)
      if (event.content || 'isCompacted' in event) spoken = merged.length - 1
    }
    for (const { functionCall } of event.content?.parts ?? []) {
      if (functionCall?.id) placeOfCall.set(functionCall.id, spoken)
    }
  }
  return merged
}

function canMerge(first: Event, second: Event, placeOfCall: ReadonlyMap<string, number>): boolean {
  const [left, right] = [first.content, second.content]
  // What most neighbours differ in is compared first.
  if (left?.role !== right?.role || first.author !== second.author || first.branch !== second.branch)
    return false
  if (!isPlain(first, left) || !isPlain(second, right)) return false
  if (first.isolationScope !== second.isolationScope) return false
  if (isSyntheticMetadata(first.customMetadata) !== isSyntheticMetadata(second.customMetadata)) return false
  const [leftResults, rightResults] = [left.parts.filter(isResult), right.parts.filter(isResult)]
  if (leftResults.length === 0 && rightResults.length === 0) return true
  if (leftResults.length < left.parts.length || rightResults.length < right.parts.length) return false
  return answerOneEvent([...leftResults, ...rightResults], placeOfCall)
}

type Filled = Content & { parts: Part[] }

function isPlain(event: Event, content: Content | undefined): content is Filled {
  if (!content?.role || !content.parts?.length) return false
  if (UNMERGED.some(field => event[field as keyof Event] !== undefined)) return false
  const { agentState, endOfAgent } = event.actions
  if (agentState !== undefined || endOfAgent !== undefined || event.longRunningToolIds?.length) return false
  return !content.parts.some(part => part.thoughtSignature !== undefined || asksPerson(part))
}

const UNMERGED = ['isCompacted', 'errorCode', 'interrupted', 'output', 'route', 'nodeInfo']

/** ADK leaves events with these calls out of every request, with all that is in them. */
function asksPerson(part: Part): boolean {
  return isRequestTool(part.functionCall?.name ?? part.functionResponse?.name)
}

function isResult(part: Part): boolean {
  return part.functionResponse !== undefined
}

/** ADK puts a whole result event after the call event that it answers, so it may answer only one. */
function answerOneEvent(results: readonly Part[], placeOfCall: ReadonlyMap<string, number>): boolean {
  const ids = results.map(part => part.functionResponse?.id ?? '')
  const places = new Set(ids.map(id => placeOfCall.get(id)))
  return new Set(ids).size === ids.length && places.size === 1 && !places.has(undefined)
}

function merge(first: Event, second: Event): Event {
  const actions = { ...first.actions, ...second.actions }
  for (const field of ['stateDelta', 'artifactDelta', 'requestedAuthConfigs'] as const) {
    Object.assign(actions, { [field]: { ...first.actions[field], ...second.actions[field] } })
  }
  actions.requestedToolConfirmations = {
    ...first.actions.requestedToolConfirmations,
    ...second.actions.requestedToolConfirmations,
  }
  const parts = [...(first.content?.parts ?? []), ...(second.content?.parts ?? [])]
  // The later time counts: what ADK's compaction has not summarised yet must stay visible.
  const { id, invocationId } = first
  return { ...first, ...second, id, invocationId, actions, content: { ...first.content, parts } }
}
