/**
 * The JSON of A2A: version 1.0, whose form is used here, and 0.3, which is converted when it comes in and goes out. The
 * types of the SDK are those of its parsed messages; these are what is sent.
 */
import type { Context } from 'hono'
import { z } from 'zod'
import { defined } from '../../../base/defined.js'
import { isRecord } from '../../../base/is-record.js'
import { AgentError } from '../../../errors.js'
import type { ServerContext, ServerEnv } from '../../server-context.js'
import { badField, type InputPart, mediaPart } from '../read-body.js'

export type A2aVersion = '1.0' | '0.3'

export type TaskState =
  `TASK_STATE_${'SUBMITTED' | 'WORKING' | 'COMPLETED' | 'FAILED' | 'CANCELED' | 'INPUT_REQUIRED'}`

export interface Part {
  text?: string
  /** Base64. */
  raw?: string
  url?: string
  data?: unknown
  filename?: string
  mediaType?: string
}

export interface AgentMessage {
  messageId: string
  contextId: string
  taskId: string
  role: 'ROLE_USER' | 'ROLE_AGENT'
  parts: Part[]
}

export interface Artifact {
  artifactId: string
  parts: Part[]
}

export interface TaskStatus {
  state: TaskState
  message?: AgentMessage
  timestamp: string
}

export interface Task {
  id: string
  contextId: string
  status: TaskStatus
  artifacts: Artifact[]
  history?: AgentMessage[]
  metadata?: Record<string, unknown>
}

interface InTask {
  taskId: string
  contextId: string
  metadata?: Record<string, unknown>
}

/** What is streamed. */
export type Update =
  | { task: Task }
  | { statusUpdate: InTask & { status: TaskStatus } }
  | { artifactUpdate: InTask & { artifact: Artifact; append: boolean; lastChunk: boolean } }

/** An error with one of the protocol's numbers. */
export function a2aError(a2aCode: number, message: string): AgentError {
  return new AgentError('invalid-argument', message, { details: { a2aCode } })
}

export const TASK_NOT_FOUND = -32001
export const NOT_CANCELABLE = -32002
export const NO_PUSH = -32003
export const UNSUPPORTED = -32004
export const WRONG_VERSION = -32009
export const UNKNOWN_METHOD = -32601

const text = z.string().nullish()

/** A part of either version. */
const AnyPart = z.object({
  ...{ text, raw: text, url: text, data: z.unknown().optional(), filename: text, mediaType: text },
  file: z.object({ bytes: text, uri: text, mimeType: text, name: text }).nullish(),
})

/** `params` of sending a message, and the body of the REST route, in either version. */
export const SendParams = z.object({
  tenant: z.string().max(256).nullish(),
  message: z.object({
    messageId: z.string().min(1).max(256),
    contextId: z.string().max(256).nullish(),
    taskId: z.string().max(256).nullish(),
    role: z.enum(['ROLE_USER', 'user']),
    parts: z.array(AnyPart).min(1),
    metadata: z.unknown().optional(),
  }),
  configuration: z
    .object({
      historyLength: z.number().int().min(0).nullish(),
      returnImmediately: z.boolean().nullish(),
      blocking: z.boolean().nullish(),
      taskPushNotificationConfig: z.unknown().optional(),
      pushNotificationConfig: z.unknown().optional(),
    })
    .nullish(),
  metadata: z.unknown().optional(),
})
export type SendParams = z.infer<typeof SendParams>
export type SentMessage = SendParams['message']

export const TaskParams = z.object({
  id: z.string().min(1).max(256),
  historyLength: z.coerce.number().int().min(0).nullish(),
})

/** A message as a run gets it. Data is JSON in a text. */
export function inputParts({ parts }: SentMessage): InputPart[] {
  return parts.map((part, index): InputPart => {
    const { text: words, data, file } = part
    if (typeof words === 'string') return { text: words }
    const url = part.url ?? file?.uri
    const raw = part.raw ?? file?.bytes
    const mimeType = (part.mediaType || file?.mimeType) ?? ''
    const name = (part.filename || file?.name) ?? undefined
    const field = `message.parts.${index}`
    const type = mimeType === '' ? 'application/octet-stream' : mimeType
    if (url) return mediaPart({ url, mimeType: type, name, field })
    if (raw) return mediaPart({ url: `data:${type};base64,${raw}`, mimeType: type, name, field })
    if (data !== undefined && data !== null) return { text: JSON.stringify(data) }
    throw badField(field, `${field} must have text, data, a url or bytes.`)
  })
}

/** The words of a message, and its first data part. */
export function contentOf({ parts }: SentMessage): { words: string; data: unknown } {
  const words = parts.flatMap(part => (typeof part.text === 'string' ? [part.text] : [])).join('\n')
  return { words, data: parts.find(({ data }) => data !== undefined && data !== null)?.data }
}

/** An answer in the client's version. */
export function toWire(version: A2aVersion, value: Update): unknown {
  return version === '1.0' ? value : legacyUpdate(value)
}

export function taskToWire(version: A2aVersion, task: Task): unknown {
  return version === '1.0' ? task : legacyTask(task)
}

function legacyUpdate(update: Update): unknown {
  if ('task' in update) return legacyTask(update.task)
  if ('statusUpdate' in update) {
    const { status, ...event } = update.statusUpdate
    return { kind: 'status-update', ...event, status: legacyStatus(status), final: isLast(status.state) }
  }
  const { artifact, ...event } = update.artifactUpdate
  return { kind: 'artifact-update', ...event, artifact: legacyArtifact(artifact) }
}

/** After these states a stream ends. */
function isLast(state: TaskState): boolean {
  return isTerminal(state) || state === 'TASK_STATE_INPUT_REQUIRED'
}

export function isTerminal(state: TaskState): boolean {
  return state === 'TASK_STATE_COMPLETED' || state === 'TASK_STATE_FAILED' || state === 'TASK_STATE_CANCELED'
}

function legacyTask({ status, artifacts, history, ...task }: Task) {
  return {
    ...{ kind: 'task', ...task, status: legacyStatus(status), artifacts: artifacts.map(legacyArtifact) },
    ...(history ? { history: history.map(legacyMessage) } : {}),
  }
}

function legacyStatus({ state, message, timestamp }: TaskStatus) {
  const name = state.slice('TASK_STATE_'.length).toLowerCase().replace('_', '-')
  return { state: name, timestamp, ...(message ? { message: legacyMessage(message) } : {}) }
}

function legacyMessage({ role, parts, ...message }: AgentMessage) {
  return {
    kind: 'message',
    ...message,
    role: role === 'ROLE_USER' ? 'user' : 'agent',
    parts: parts.map(legacyPart),
  }
}

function legacyArtifact({ parts, ...artifact }: Artifact) {
  return { ...artifact, parts: parts.map(legacyPart) }
}

function legacyPart({ text: words, data, raw, url, mediaType, filename }: Part) {
  if (words !== undefined) return { kind: 'text', text: words }
  if (data !== undefined) return { kind: 'data', data: isRecord(data) ? data : { value: data } }
  const named = defined({ mimeType: mediaType, name: filename })
  return { kind: 'file', file: { ...(url === undefined ? { bytes: raw ?? '' } : { uri: url }), ...named } }
}

/** The card, which everybody may read: it names no tools, models or sessions. */
export function agentCard(
  c: Context<ServerEnv>,
  { info, version }: ServerContext,
  hasTokens: boolean,
): object {
  const isHttps = c.req.header('x-forwarded-proto') === 'https'
  const url = `${isHttps ? 'https' : 'http'}://${new URL(c.req.url).host}/a2a`
  const modes = ['text/plain', 'application/json']
  const described = `The agent ${info.agent}, served by Lango.`
  const bearer = { type: 'http', scheme: 'bearer', httpAuthSecurityScheme: { scheme: 'bearer' } }
  const security = {
    securitySchemes: { bearer },
    ...{ security: [{ bearer: [] }], securityRequirements: [{ schemes: { bearer: { list: [] } } }] },
  }
  return {
    ...{ name: info.agent, description: described, version },
    supportedInterfaces: [
      { url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
      { url, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
      { url, protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
    ],
    // What clients of 0.3 read.
    ...{ protocolVersion: '0.3.0', url, preferredTransport: 'JSONRPC' },
    capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: false },
    ...{ defaultInputModes: [...modes, 'image/*', 'audio/*', 'application/pdf'], defaultOutputModes: modes },
    skills: [{ id: 'chat', name: info.agent, description: described, tags: ['chat'] }],
    ...(hasTokens ? security : {}),
  }
}
