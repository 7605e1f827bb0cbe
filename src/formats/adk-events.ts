/**
 * ADK events of files: ADK for TypeScript and for Python write the same fields, in camel or snake case, with times in
 * milliseconds or seconds, and bytes in either base64 alphabet. Each is converted to an event of ADK for TypeScript,
 * and then to the message that Lango stores for it.
 */

import { eventToMessage } from '../adk/session/event-to-message.js'
import { isRecord } from '../base/is-record.js'
import { openSignature } from '../provider/provider.js'
import type { Message } from '../session/message.js'
import type { Fields } from './wire-parts.js'

/** The messages of a session's events, in order. Events that only set state have none, as at run time. */
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
  // A partial event is followed by a complete one.
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

/** Below these paths keys belong to the user and are not renamed. The list is ADK's. */
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

/** Seconds, milliseconds, or a date text of Python; 0 when there is none. */
function toMilliseconds(time: unknown): number {
  if (typeof time === 'number') return time < LATEST_SECOND ? Math.round(time * 1000) : time
  if (typeof time !== 'string') return 0
  const parsed = Date.parse(time.replace(' ', 'T'))
  return Number.isNaN(parsed) ? 0 : parsed
}

/** As milliseconds a day in 1973, as seconds one in 5138. */
const LATEST_SECOND = 100_000_000_000

/** Python writes URL-safe base64, which not every provider accepts. The bytes are the same. */
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

/**
 * An event without what only Lango reads: signatures of other vendors, which Gemini would refuse, and parts of other
 * programs, which become the text that stands for them.
 */
export function toPlainEvent(event: Fields): Fields {
  const { content } = event
  if (!isRecord(content) || !Array.isArray(content.parts)) return event
  const parts = content.parts.filter(isRecord).flatMap(part => {
    const { thoughtSignature: signature, partMetadata, ...others } = part
    const isOwn = typeof signature === 'string' && openSignature(signature).origin.vendor === 'gemini'
    const { lango: _lango, ...metadata } = isRecord(partMetadata) ? partMetadata : {}
    const plainPart = {
      ...others,
      ...(isOwn ? { thoughtSignature: signature } : {}),
      ...(Object.keys(metadata).length > 0 ? { partMetadata: metadata } : {}),
    }
    const isEmpty =
      !isOwn && others.text === '' && Object.keys(plainPart).every(name => /^(text|thought)$/.test(name))
    return isEmpty ? [] : [plainPart]
  })
  return { ...event, content: { ...content, parts } }
}

/**
 * A session of ADK for TypeScript as ADK for Python reads it: times in seconds, bytes in URL-safe base64, and only fields
 * that all of its versions since 1.0 know, because it refuses any other.
 */
export function toPythonSession(session: Fields): Fields {
  const { events, lastUpdateTime, ...others } = session
  const written = Array.isArray(events) ? events.filter(isRecord).map(toPythonEvent) : []
  return { ...others, events: written, lastUpdateTime: Number(lastUpdateTime) / 1000 }
}

function toPythonEvent(event: Fields): Fields {
  const { actions, content, timestamp, usageMetadata, longRunningToolIds, ...others } = event
  return {
    ...only(others, PYTHON_EVENT),
    timestamp: Number(timestamp) / 1000,
    actions: only(isRecord(actions) ? actions : {}, PYTHON_ACTIONS),
    ...(isRecord(content) ? { content: toPythonContent(content) } : {}),
    ...(isRecord(usageMetadata) ? { usageMetadata: only(usageMetadata, PYTHON_USAGE) } : {}),
    ...(Array.isArray(longRunningToolIds) && longRunningToolIds.length > 0 ? { longRunningToolIds } : {}),
  }
}

function toPythonContent({ role, parts }: Fields): Fields {
  const written = (Array.isArray(parts) ? parts : []).filter(isRecord).map(part => {
    const { thoughtSignature, inlineData, ...others } = only(part, PYTHON_PART)
    return {
      ...others,
      ...(typeof thoughtSignature === 'string' ? { thoughtSignature: urlSafe(thoughtSignature) } : {}),
      ...(isRecord(inlineData) ? { inlineData: { ...inlineData, data: urlSafe(inlineData.data) } } : {}),
    }
  })
  return { ...(role === undefined ? {} : { role }), parts: written }
}

function only(fields: Fields, names: ReadonlySet<string>): Fields {
  return Object.fromEntries(
    Object.entries(fields).filter(([name, value]) => names.has(name) && value !== null),
  )
}

function urlSafe(data: unknown): unknown {
  return typeof data === 'string' ? data.replaceAll('+', '-').replaceAll('/', '_') : data
}

const PYTHON_EVENT = new Set(
  'id invocationId author branch partial turnComplete errorCode errorMessage interrupted customMetadata groundingMetadata'.split(
    ' ',
  ),
)
const PYTHON_ACTIONS = new Set(
  'skipSummarization stateDelta artifactDelta transferToAgent escalate requestedAuthConfigs'.split(' '),
)
const PYTHON_USAGE = new Set(
  'promptTokenCount candidatesTokenCount totalTokenCount cachedContentTokenCount thoughtsTokenCount toolUsePromptTokenCount'.split(
    ' ',
  ),
)
const PYTHON_PART = new Set(
  'text thought thoughtSignature functionCall functionResponse inlineData fileData executableCode codeExecutionResult videoMetadata'.split(
    ' ',
  ),
)
