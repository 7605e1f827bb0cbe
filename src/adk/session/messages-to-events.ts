import type { Message } from '../../session/message.js'
import { toolCallKind } from '../../session/message.js'
import type { Content, Event, EventActions, Part } from '../sdk.js'
import { eventAuthor } from './event-author.js'
import type { EventExtra } from './event-to-message.js'
import { impliedRole, otherFields } from './event-to-message.js'
import { isLegacyResult, pairParts } from './function-parts.js'
import { mergeSameRole } from './merge-same-role.js'
import type { LayoutEntry } from './message-parts.js'
import { fieldsToParts } from './message-parts.js'

export interface RestoreOptions {
  /** The author of answers whose row does not say. Default `lango-agent`. */
  rootAgentName?: string | undefined
}

/**
 * The events of stored messages, as iteration yields them: ids given, authors mapped, same roles merged. One
 * message restores to the event that was stored; a malformed list restores as well as it can, and nothing in
 * it makes this throw.
 *
 * @spec EventsAdapter.All
 */
export function messagesToEvents(messages: readonly Message[], options: RestoreOptions = {}): Event[] {
  return mergeSameRole(restoreEvents(messages, options))
}

/**
 * What the messages say, one content each and nothing put right: doubled ids stay doubled and arguments that
 * are no objects stay what they are. `undefined` for messages without content.
 */
export function messagesToContents(messages: readonly Message[]): (Content | undefined)[] {
  const rows = messages.map(message => ({ message, parts: partsOf(message), author: '' }))
  const paired = pairParts(rows, { faithful: true })
  return messages.map((message, index) => {
    const extra = (message.extra ?? {}) as EventExtra
    const parts = paired[index]?.parts ?? []
    return extra.content === false ? undefined : contentOf(message, extra, parts)
  })
}

/** As `messagesToEvents`, before merging: what was stored, event by event. */
export function restoreEvents(messages: readonly Message[], options: RestoreOptions): Event[] {
  const { rootAgentName } = options
  const rows = messages.map(message => {
    return { message, parts: partsOf(message), author: eventAuthor(message, { rootAgentName }) }
  })
  const paired = pairParts(rows)
  return messages.flatMap((message, index) => {
    const extra = (message.extra ?? {}) as EventExtra
    const { parts = [], callAuthor } = paired[index] ?? {}
    const author = eventAuthor(message, { rootAgentName, callAuthor })
    const content = extra.content === false ? undefined : contentOf(message, extra, parts)
    const event = eventOf(message, extra, author, content, index)
    return holdsAnswers(message) ? splitAnswers(event, parts) : [event]
  })
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
  const others = typeof extra.content === 'object' ? extra.content : {}
  const named = role === null ? {} : { role }
  const list = extra.parts === null && parts.length === 0 ? {} : { parts }
  return extra.partsFirst ? { ...list, ...named, ...others } : { ...named, ...list, ...others }
}

function roleOf(message: Message, parts: readonly Part[]): string {
  if (parts.length > 0 && parts.every(part => part.functionResponse)) return 'function'
  const role = impliedRole(message.role)
  // Without its call a result is something that the model is told.
  return role === 'function' ? (isLegacyResult(message) ? 'user' : role) : role
}

function eventOf(
  message: Message,
  extra: EventExtra,
  author: string,
  content: Content | undefined,
  index: number,
): Event {
  const others = otherFields(extra) as Partial<Event>
  const actions: EventActions = {
    stateDelta: {},
    artifactDelta: {},
    requestedAuthConfigs: {},
    requestedToolConfirmations: {},
    ...(extra.actions as Partial<EventActions> | undefined),
  }
  const seq = 'seq' in message ? message.seq : index + 1
  const event: Event = {
    ...others,
    id: message.id || `message-${seq}`,
    invocationId: message.invocationId ?? '',
    author,
    actions,
    longRunningToolIds: others.longRunningToolIds ?? [],
    timestamp: message.timestamp,
    ...(message.branch === undefined ? {} : { branch: message.branch }),
    ...(content === undefined ? {} : { content }),
  }
  return Object.assign(event, { [EVENT_BRAND]: true })
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
