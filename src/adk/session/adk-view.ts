/**
 * Restored events as ADK's content processing accepts them and keeps them whole. ADK validates nothing; what
 * it does with each oddity was measured, and each is turned here into something that it passes on:
 *
 * - a result in the role `function`: sent as it is and refused by newer endpoints → role `user`;
 * - a result whose call is not there: dropped with every text next to it, and at the end of a history an
 *   exception → a text;
 * - a result next to anything else, or answering two call events: dropped or doubled → events of their own;
 * - a result by somebody other than its caller: turned into text, its call left unanswered → the caller's. A user's is
 *   kept for the caller and lost for every other agent, so it stays the user's only where no other agent has spoken;
 * - an empty first text: the event and its results dropped → the empty text left out;
 * - a content without role: dropped → the author's role; without parts: sent empty → not sent.
 */
import { isRecord } from '../../base/is-record.js'
import { isRequestTool } from '../../base/names.js'
import { accountOf, type SessionKey, type StoredMessage } from '../../session/message.js'
import { newestMessagePages } from '../../session/session-pages.js'
import type { SessionStore } from '../../session/session-store.js'
import { isSyntheticMetadata } from '../../session/turn.js'
import { markAnswer, markNumber, markWrittenBy } from '../adk-quirks.js'
import type { AdkSession, Content, Event, FunctionCall, Part } from '../sdk.js'
import { eventIdOf, restoreEvents } from './messages-to-events.js'

export interface ViewOptions {
  rootAgentName?: string | undefined
}

/** The events to hand to ADK. They are copies where they differ; the events given are never changed. */
export function adkView(events: readonly Event[], options: ViewOptions = {}): Event[] {
  const calls: Calls = new Map()
  const isAlone = onlyOneSpeaks(events, options.rootAgentName)
  let group = 0
  const shown: Event[] = []
  for (const event of events) {
    const first = shown.length
    for (const segment of segmentsOf(withKnownAuthor(event, options.rootAgentName))) {
      group += 1
      for (const { functionCall } of segment.content?.parts ?? []) {
        if (functionCall?.id) calls.set(functionCall.id, { group, author: segment.author })
      }
      const isKept = isAlone && segment.author === 'user'
      const visible = holdsResults(segment)
        ? resultEvents(segment, calls, isKept)
        : [withSendableContent(segment)]
      for (const each of visible) shown.push(withDistinctId(withMarks(each), shown.length - first))
    }
  }
  return shown
}

/** The events with the numbers of the messages that they come from. */
export function withNumbers(events: readonly Event[], messages: readonly StoredMessage[]): Event[] {
  const numbers = new Map(messages.map((message, index) => [eventIdOf(message, index), message.seq]))
  return events.map(event => {
    const number = numbers.get(event.id)
    const { content } = event
    return content && number !== undefined ? { ...event, content: markNumber(content, number) } : event
  })
}

/** Whether the root agent, or the only one that has spoken, made every event that is not the user's. */
function onlyOneSpeaks(events: readonly Event[], rootAgentName: string | undefined): boolean {
  const speaker = rootAgentName ?? events.find(({ author }) => author !== 'user')?.author
  return events.every(({ author }) => author === 'user' || author === speaker)
}

/**
 * The event with marks on its content: who wrote it, where it has the user's role and is no tool's result, the model that
 * has answered with it, and the account that has sealed its signatures.
 */
export function withMarks(event: Event): Event {
  const { author, content, customMetadata, modelVersion } = event
  const account = accountOf(customMetadata)
  const model = content?.role === 'model' ? modelVersion : undefined
  if (content && (account !== undefined || model !== undefined))
    return { ...event, content: markAnswer(content, { model, account }) }
  if (content?.role !== 'user' || content.parts?.some(isResult)) return event
  const byUser = author === 'user' && !isSyntheticMetadata(customMetadata)
  return { ...event, content: markWrittenBy(content, byUser ? 'user' : 'program') }
}

/** ADK itself signs an answer that ended a run early with `model`; no agent has that name. */
function withKnownAuthor(event: Event, rootAgentName: string | undefined): Event {
  if (rootAgentName === undefined || event.author !== 'model') return event
  return { ...event, author: rootAgentName }
}

/** An event whose results are next to other parts, as several: results alone, the rest alone, in order. */
function segmentsOf(event: Event): Event[] {
  const parts = event.content?.parts ?? []
  const results = parts.filter(part => part.functionResponse).length
  if (results === 0 || results === parts.length) return [event]
  const segments: Part[][] = []
  for (const part of parts) {
    const last = segments.at(-1)
    if (last && isResult(last[0]) === isResult(part)) last.push(part)
    else segments.push([part])
  }
  const [first = [], ...others] = segments
  return [withParts(event, first), ...others.map(segment => withParts(bare(event), segment))]
}

/** Segments after the first repeat nothing: no actions, no usage, no error. */
function bare(event: Event): Event {
  const { id, invocationId, author, branch, timestamp, content, isolationScope } = event
  const actions = {
    stateDelta: {},
    artifactDelta: {},
    requestedAuthConfigs: {},
    requestedToolConfirmations: {},
  }
  const scoped = {
    ...(branch === undefined ? {} : { branch }),
    ...(isolationScope === undefined ? {} : { isolationScope }),
  }
  const kept = { id, invocationId, actions, longRunningToolIds: [], timestamp, ...scoped }
  const copy: Event = {
    ...kept,
    ...(author === undefined ? {} : { author }),
    ...(content ? { content } : {}),
  }
  return Object.assign(copy, brandOf(event))
}

function brandOf(event: Event): object {
  return Object.fromEntries(Object.getOwnPropertySymbols(event).map(symbol => [symbol, true]))
}

/** Calls by their id: the event that they are in, and who made them. */
type Calls = Map<string, { group: number; author: string | undefined }>

/** Results grouped by the event of their calls; those without a call as text. */
function resultEvents(event: Event, calls: Calls, keepsAuthor: boolean): Event[] {
  const groups = new Map<number, Part[]>()
  for (const part of event.content?.parts ?? []) {
    const group = calls.get(part.functionResponse?.id ?? '')?.group ?? (asksPerson(part) ? REQUESTS : ORPHANS)
    const others = groups.get(group)
    if (others) others.push(part)
    else groups.set(group, [part])
  }
  return [...groups].map(([group, parts], index) => {
    const base = index === 0 ? event : bare(event)
    if (group === ORPHANS) return { ...base, content: { role: 'user', parts: parts.map(orphanAsText) } }
    const author = calls.get(parts[0]?.functionResponse?.id ?? '')?.author
    const shown = { ...base, content: { ...base.content, role: 'user', parts } }
    // A person's answer stays the person's: workflows look for it there.
    if (author !== undefined && !keepsAuthor && !parts.some(asksPerson)) shown.author = author
    return shown
  })
}

const ORPHANS = -1
/** Answers to ADK's own questions to a person: ADK leaves them out of every request by itself. */
const REQUESTS = -2

/**
 * The text for a result whose call is no longer in the history. ADK would drop the event or
 * throw; as text it passes, and our own model adapter makes a result of it again, so that repair sees it.
 */
function orphanAsText(part: Part): Part {
  const { name, response } = part.functionResponse ?? {}
  return {
    text: `[Earlier result of tool \`${name || 'unknown'}\`: ${JSON.stringify(response ?? {})}]`,
    partMetadata: { lango: { orphan: part.functionResponse } },
  }
}

function withSendableContent(event: Event): Event {
  const { content } = event
  if (!content) return event
  const parts = withoutEmptyHead(content.parts ?? [])
  if (parts.length === 0) {
    const { content: _content, ...rest } = event
    return rest
  }
  const role = parts.some(isCall) && !parts.some(asksPerson) ? 'model' : sendableRole(content, event.author)
  if (role === content.role && parts === content.parts) return event
  return { ...event, content: { ...content, role, parts } }
}

function sendableRole(content: Content, author: string | undefined): string {
  if (content.role === 'user' || content.role === 'model') return content.role
  return content.role === undefined && author !== 'user' ? 'model' : 'user'
}

/** Leading empty texts go; a signed one is moved to the end, because its signature is needed. */
function withoutEmptyHead(parts: Part[]): Part[] {
  const head = parts.findIndex(part => part.text !== '')
  if (head === 0) return parts
  if (head === -1) return parts.filter(part => part.thoughtSignature !== undefined)
  const signed = parts.slice(0, head).filter(part => part.thoughtSignature !== undefined)
  return [...parts.slice(head), ...signed]
}

function isCall(part: Part): boolean {
  return part.functionCall !== undefined
}

function asksPerson(part: Part): boolean {
  return isRequestTool((part.functionCall ?? part.functionResponse)?.name)
}

function isResult(part: Part | undefined): boolean {
  return part?.functionResponse !== undefined
}

function holdsResults(event: Event): boolean {
  return isResult(event.content?.parts?.[0])
}

function withParts(event: Event, parts: Part[]): Event {
  return { ...event, content: { ...event.content, parts } }
}

/** `index`: how many events of the same message come before. */
function withDistinctId(event: Event, index: number): Event {
  return index === 0 ? event : { ...event, id: `${event.id}-${index + 1}` }
}

/** An event of a user that answers calls, and where it belongs. */
interface LateAnswer {
  store: Pick<SessionStore, 'readMessages'>
  key: SessionKey
  session: AdkSession
  event: Event
  rootAgentName: string | undefined
}

/**
 * The events of calls that a user's event answers and `session.events` does not hold, oldest first, read from the store,
 * and how many were not found. An answer to a question about another call (a confirmation, a credential) needs that call
 * too: ADK compares the two. Bounded: a call further back than that is not looked for.
 */
export async function findCallEvents({
  store,
  key,
  session,
  event,
  rootAgentName,
}: LateAnswer): Promise<{ found: Event[]; missing: number }> {
  const missing = missingCalls(session, event)
  const found: Event[] = []
  if (missing.size === 0) return { found, missing: 0 }
  const range = { limit: FARTHEST_CALL, pageSize: PAGE_SIZE }
  for await (const messages of newestMessagePages(store, key, range)) {
    for (const message of messages.toReversed()) {
      if (!message.toolCalls?.some(call => call.kind !== 'response' && missing.has(call.id))) continue
      const events = adkView(restoreEvents([message], { rootAgentName }), { rootAgentName })
      for (const call of events.flatMap(callsOf)) {
        const original = missing.delete(call.id ?? '') ? originalOf(call) : undefined
        if (original !== undefined && !session.events.some(each => holdsCall(each, original)))
          missing.add(original)
      }
      found.unshift(...events)
    }
    if (missing.size === 0) break
  }
  return { found, missing: missing.size }
}

const PAGE_SIZE = 500
const FARTHEST_CALL = 10_000

/** The ids of calls that the event answers, and of those that answered questions are about, without those at hand. */
function missingCalls({ events }: AdkSession, event: Event): Set<string> {
  const answered = (event.content?.parts ?? []).flatMap(part => part.functionResponse?.id || [])
  const questions = events.flatMap(callsOf).filter(({ id }) => id !== undefined && answered.includes(id))
  const named = [...answered, ...questions.flatMap(question => originalOf(question) ?? [])]
  return new Set(named.filter(id => !events.some(each => holdsCall(each, id))))
}

function callsOf({ content }: Event): FunctionCall[] {
  return (content?.parts ?? []).flatMap(part => part.functionCall ?? [])
}

function holdsCall(event: Event, id: string): boolean {
  return callsOf(event).some(call => call.id === id)
}

/** The id of the call that a question of ADK's own to a person is about. */
function originalOf({ name, args }: FunctionCall): string | undefined {
  if (!isRequestTool(name) || !args) return undefined
  const { originalFunctionCall, functionCallId } = args
  if (typeof functionCallId === 'string') return functionCallId
  const id = isRecord(originalFunctionCall) ? originalFunctionCall.id : undefined
  return typeof id === 'string' ? id : undefined
}
