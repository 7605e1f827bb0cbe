import { isRecord } from '../../base/is-record.js'
import { toJsonData } from '../../base/json.js'
import { splitMedia, toInlineParts } from '../../base/tool-media.js'
import { checkArgument } from '../../errors.js'
import type { Message } from '../../session/message.js'
import { UNKNOWN_ERROR, vendorCodeOf } from '../adk-quirks.js'
import type { Content, Event } from '../sdk.js'
import type { LayoutEntry } from './message-parts.js'
import { partsToFields } from './message-parts.js'

/**
 * What of an event has no named field, kept in `message.extra`, each key only when it says something. Beside
 * the keys below, the event's other fields (usage, errors, metadata, compaction …) stand under their own names.
 */
export interface EventExtra {
  /** The content's role where the message's role does not imply it; `null` when it had none. */
  role?: string | null
  /** Part order and the parts without a named field; `null` when the content had no list of parts. */
  parts?: LayoutEntry[] | null
  /** `false` when the event had no content; otherwise its unknown fields. */
  content?: false | Record<string, unknown>
  /** True when the content named its parts before its role. */
  partsFirst?: true
  /** Actions that are not empty. */
  actions?: Record<string, unknown>
}

/** The event's other fields, as `eventToMessage` left them in `extra`. */
export function otherFields(extra: EventExtra): Record<string, unknown> {
  const fields: Record<string, unknown> = {}
  for (const name of Object.keys(extra))
    if (!NAMED.has(name)) setField(fields, name, (extra as Record<string, unknown>)[name])
  return fields
}

/** Assigning to `__proto__` would set the prototype. */
function setField(fields: Record<string, unknown>, name: string, value: unknown): void {
  if (name === '__proto__') Object.defineProperty(fields, name, { ...DATA, value })
  else fields[name] = value
}

const DATA = { configurable: true, enumerable: true, writable: true }
const NAMED: ReadonlySet<string> = new Set(['role', 'parts', 'content', 'partsFirst', 'actions'])

/**
 * One event as the message that is stored for it. `undefined` when the event carries, besides its identity,
 * nothing but a state delta: the state is saved, and no message is stored. An event that carries nothing at all is kept.
 *
 * ```ts
 * import { createEvent } from '@google/adk'
 * import { eventToMessage } from 'lango/adk'
 *
 * const event = createEvent({ author: 'user', content: { role: 'user', parts: [{ text: 'Hello' }] } })
 * console.log(eventToMessage(event)?.content)
 * ```
 *
 * ```ts
 * import { createEvent } from '@google/adk'
 * import { eventToMessage } from 'lango/adk'
 *
 * const event = createEvent({ author: 'user', content: { role: 'user', parts: [{ text: 'Hello' }] } })
 * const message = eventToMessage(event)
 * ```
 *
 * @spec SessionServiceAdapter.AppendEvent
 */
export function eventToMessage(event: Event): Message | undefined {
  checkArgument(isRecord(event), 'eventToMessage', 'needs an event of ADK')
  const { id, invocationId, author, branch, timestamp, content, actions, ...others } = event
  const fields = withoutEmpty(others)
  const keptActions = withoutEmpty(withoutTemporaryState(actions ?? {}))
  const isBare = !content && isEmpty(fields) && Object.keys(keptActions).every(key => key === 'stateDelta')
  if (isBare && !isEmpty(actions?.stateDelta ?? {})) return undefined

  const { role, extra, ...readable } = contentFields(content, author)
  const complete = { ...fields, ...extra, ...(isEmpty(keptActions) ? {} : { actions: keptActions }) }
  return {
    role,
    ...(author === undefined ? {} : { author }),
    ...readable,
    timestamp,
    id,
    ...(invocationId ? { invocationId } : {}),
    ...(branch === undefined ? {} : { branch }),
    ...(isEmpty(complete) ? {} : { extra: toJsonData(complete) as Record<string, unknown> }),
  }
}

/**
 * Makes an event, in place, what it will be when it is loaded again: results as JSON (a date, a map, a big number), media of
 * tools as parts of their responses, and the vendor's code of a model's error, which ADK replaces with its own.
 */
export function makeStorable(event: Event): void {
  for (const { functionResponse } of event.content?.parts ?? []) {
    if (!functionResponse?.response) continue
    const { result, media } = splitMedia(functionResponse.response)
    functionResponse.response = toJsonData(result) as Record<string, unknown>
    if (media.length > 0)
      functionResponse.parts = [...(functionResponse.parts ?? []), ...toInlineParts(media)]
  }
  const code = event.errorMessage === undefined ? undefined : vendorCodeOf(event.errorMessage)
  if (code !== undefined && event.errorCode === UNKNOWN_ERROR) event.errorCode = code
}

/** The state delta of an event as it is saved: `temp:` keys live only during the run. */
export function persistentStateDelta(event: Event): Record<string, unknown> {
  return withoutTemporary(event.actions?.stateDelta ?? {})
}

interface ContentFields extends Pick<Message, 'role' | 'content' | 'toolCalls'> {
  extra: EventExtra
}

function contentFields(content: Content | undefined, author: string | undefined): ContentFields {
  const roleOfAuthor = author === 'user' ? 'user' : 'assistant'
  if (!content) return { role: roleOfAuthor, content: '', extra: { content: false } }
  const { parts, role, ...others } = content
  const { layout, ...readable } = partsToFields(parts ?? [])
  const onlyResults = !!parts?.length && parts.every(part => part.functionResponse)
  const stored = onlyResults
    ? 'tool'
    : role === 'model'
      ? 'assistant'
      : role === 'user'
        ? 'user'
        : roleOfAuthor
  return {
    role: stored,
    ...readable,
    extra: {
      ...(role === impliedRole(stored) ? {} : { role: role ?? null }),
      ...(Array.isArray(parts) ? (layout ? { parts: layout } : {}) : { parts: null }),
      ...(isEmpty(others) ? {} : { content: others }),
      ...(Object.keys(content)[0] === 'parts' && role !== undefined ? { partsFirst: true } : {}),
    },
  }
}

/** The content role that a restored message has unless its row says otherwise. */
export function impliedRole(role: string): string {
  return role === 'assistant' || role === 'model'
    ? 'model'
    : role === 'tool' || role === 'function'
      ? 'function'
      : 'user'
}

function withoutTemporaryState(actions: object): Record<string, unknown> {
  if (!('stateDelta' in actions) || !actions.stateDelta) return { ...actions }
  return { ...actions, stateDelta: withoutTemporary(actions.stateDelta) }
}

function withoutTemporary(delta: object): Record<string, unknown> {
  if (isEmpty(delta)) return {}
  return Object.fromEntries(Object.entries(delta).filter(([key]) => !key.startsWith('temp:')))
}

/** Leaves out what `createEvent` fills in by itself: fields without a value, empty objects and lists. */
function withoutEmpty(fields: Record<string, unknown>): Record<string, unknown> {
  const kept: Record<string, unknown> = {}
  for (const key of Object.keys(fields)) {
    const value = fields[key]
    if (value === undefined) continue
    const isFilledIn = FILLED_IN.has(key) && typeof value === 'object' && value !== null && isEmpty(value)
    if (!isFilledIn) kept[key] = value
  }
  return kept
}

const FILLED_IN = new Set([
  'longRunningToolIds',
  'stateDelta',
  'artifactDelta',
  'requestedAuthConfigs',
  'requestedToolConfirmations',
])

function isEmpty(value: object): boolean {
  return Object.keys(value).length === 0
}
