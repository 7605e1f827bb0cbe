/**
 * ADK's events as files hold them: TypeScript's ADK and Python's write the same fields, in camel or in snake
 * case, with times in milliseconds or in seconds, and bytes in either alphabet of base64. What comes out is an
 * event as ADK for TypeScript has it, and then the message that Lango stores for it.
 */

import { eventToMessage } from '../adk/session/event-to-message.js'
import { isRecord } from '../base/is-record.js'
import type { Message } from '../session/message.js'

export type Fields = Record<string, unknown>

/** The messages of a session's events, in order. Events that only set state leave none, as when they happen. */
export function eventsToMessages(events: readonly unknown[]): Message[] {
  const seen = new Set<string>()
  return events.flatMap(raw => {
    const message = isRecord(raw) ? toMessage(raw) : undefined
    if (!message) return []
    // Storing an id again would replace the message that has it.
    const isNew = message.id !== undefined && message.id !== '' && !seen.has(message.id)
    if (isNew && message.id !== undefined) seen.add(message.id)
    const { id, ...rest } = message
    return [isNew && id !== undefined ? { ...rest, id } : rest]
  })
}

function toMessage(raw: Fields): Message | undefined {
  const event = toCamelCase(raw, '') as Fields
  const { actions, longRunningToolIds, content, partial, ...others } = withoutNull(event)
  // A partial event is a glimpse of one that follows whole.
  if (partial === true) return undefined
  const complete = {
    ...others,
    ...(isRecord(content) ? { content: withPlainBase64(content) } : {}),
    ...(isRecord(actions) ? { actions: withoutNull(actions) } : {}),
    ...(Array.isArray(longRunningToolIds) ? { longRunningToolIds } : {}),
    timestamp: toMilliseconds(event.timestamp),
  }
  // The converter reads the fields that are there, and a file may lack any of them.
  return eventToMessage(complete as unknown as Parameters<typeof eventToMessage>[0])
}

/** Where people's own keys begin: from there on nothing is renamed. The list is ADK's. */
const PRESERVED = new Set([
  'actions.stateDelta',
  'actions.artifactDelta',
  'actions.requestedAuthConfigs',
  'actions.requestedToolConfirmations',
  'actions.customMetadata',
  'actions.agentState',
  'customMetadata',
  'content.parts.functionCall.args',
  'content.parts.functionResponse.response',
  'output',
  'route',
])

/** A name in snake_case, in camelCase. */
export function camelCase(name: string): string {
  return name.replaceAll(/_([a-z])/g, (_match, letter: string) => letter.toUpperCase())
}

function toCamelCase(value: unknown, path: string): unknown {
  if (Array.isArray(value)) return value.map(item => toCamelCase(item, path))
  if (!isRecord(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => {
      const name = camelCase(key)
      const place = path === '' ? name : `${path}.${name}`
      return [name, PRESERVED.has(place) ? item : toCamelCase(item, place)]
    }),
  )
}

/** Seconds, milliseconds, or the time of day of a Python program; 0 when there is none. */
function toMilliseconds(time: unknown): number {
  if (typeof time === 'number') return time < LATEST_SECOND ? Math.round(time * 1000) : time
  if (typeof time !== 'string') return 0
  const parsed = Date.parse(time.replace(' ', 'T'))
  return Number.isNaN(parsed) ? 0 : parsed
}

/** As milliseconds this is a day in 1973, as seconds one in 5138. */
const LATEST_SECOND = 100_000_000_000

/** Python writes bytes in the alphabet for addresses, which not every provider reads. The bytes are the same. */
function withPlainBase64(content: Fields): Fields {
  if (!Array.isArray(content.parts)) return withoutNull(content)
  const parts = content.parts.map(part => {
    if (!isRecord(part)) return part
    const { thoughtSignature, inlineData, ...rest } = withoutNull(part)
    return {
      ...rest,
      ...(thoughtSignature === undefined ? {} : { thoughtSignature: plain(thoughtSignature) }),
      ...(isRecord(inlineData)
        ? { inlineData: { ...withoutNull(inlineData), data: plain(inlineData.data) } }
        : {}),
    }
  })
  return { ...withoutNull(content), parts }
}

function plain(data: unknown): unknown {
  return typeof data === 'string' ? data.replaceAll('-', '+').replaceAll('_', '/') : data
}

function withoutNull(fields: Fields): Fields {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== null && value !== undefined),
  )
}
