/** The body of `POST /agui`, AG-UI's `RunAgentInput`: its messages as those of a chat, its parameters as options of a run. */
import type { Message as AguiMessage } from '@ag-ui/core'
import type { Context } from 'hono'
import { z } from 'zod'
import { isRecord } from '../../../base/is-record.js'
import { digest } from '../../../runtime/derived-id.js'
import type { SessionKey } from '../../../session/message.js'
import type { ClientTools } from '../../../tool.js'
import { clientState, readClientJson } from '../../client-json.js'
import type { ServerContext, ServerEnv } from '../../server-context.js'
import { type CompletionMessage, type SortedMessages, sortMessages } from '../openai/completion-request.js'
import { clientTools, FunctionTool } from '../openai/request-options.js'
import { badField, checkMessages, type InputPart, mediaPart, readBody } from '../read-body.js'

const Source = z.discriminatedUnion('type', [
  z.object({ type: z.literal('data'), value: z.base64().min(1), mimeType: z.string().min(1) }),
  z.object({ type: z.literal('url'), value: z.string().min(1), mimeType: z.string().nullish() }),
  z.object({ type: z.literal('file'), value: z.string().min(1), provider: z.string().nullish() }),
])

const ContentPart = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text'), text: z.string() }),
  z.object({ type: z.enum(['image', 'audio', 'video', 'document']), source: Source }),
])
type ContentPart = z.infer<typeof ContentPart>

const Content = z.union([z.string(), z.array(ContentPart)])
const ToolCall = z.object({
  id: z.string(),
  type: z.literal('function'),
  function: z.object({ name: z.string(), arguments: z.string() }),
})
const id = z.string()

/** A message, with what is read of it. */
const Message = z.discriminatedUnion('role', [
  z.looseObject({ id, role: z.literal('system'), content: z.string() }),
  z.looseObject({ id, role: z.literal('developer'), content: z.string() }),
  z.looseObject({ id, role: z.literal('user'), content: Content }),
  z.looseObject({
    ...{ id, role: z.literal('assistant'), content: z.string().nullish() },
    toolCalls: z.array(ToolCall).nullish(),
  }),
  z.looseObject({
    ...{ id, role: z.literal('tool'), content: Content, toolCallId: z.string() },
    error: z.string().nullish(),
  }),
  z.looseObject({ id, role: z.literal('activity') }),
  z.looseObject({ id, role: z.literal('reasoning') }),
])
type Message = z.infer<typeof Message>

const RunAgentInput = z.object({
  threadId: z.string().min(1).max(256),
  runId: z.string().min(1).max(256),
  protocolVersion: z.string().nullish(),
  parentRunId: z.string().max(256).nullish(),
  state: z.unknown().optional(),
  /** Checked one by one, as `Message`. */
  messages: z.array(z.unknown()),
  tools: z.array(FunctionTool.omit({ strict: true })).nullish(),
  context: z.array(z.object({ description: z.string(), value: z.string() })).nullish(),
  forwardedProps: z.unknown().optional(),
  resume: z
    .array(
      z.object({
        interruptId: z.string(),
        status: z.enum(['resolved', 'cancelled']),
        payload: z.unknown().optional(),
      }),
    )
    .nullish(),
})

export type ResumeEntry = NonNullable<z.infer<typeof RunAgentInput>['resume']>[number]

/** A request, as a run gets it. */
export interface AguiRequest {
  threadId: string
  runId: string
  parentRunId: string | undefined
  /** As they were sent. */
  messages: readonly AguiMessage[]
  /** The messages after the last answer; `undefined` when there is nothing new. */
  sorted: SortedMessages | undefined
  /** A digest of the new message of the user's, with its id: the same message is recognised when it is sent again. */
  fingerprint: string
  state: Record<string, unknown>
  clientTools: ClientTools | undefined
  /** Information for the model, as one text. */
  context: string
  model: string | undefined
  /** The client wants another answer to a message that was answered. */
  regenerates: boolean
  forwardedProps: unknown
  resume: readonly ResumeEntry[]
}

export async function readInput(c: Context<ServerEnv>, context: ServerContext): Promise<AguiRequest> {
  const input = await readBody(c, RunAgentInput)
  await noteUnknown(c, context)
  const messages = await checkMessages(input.messages, Message, context.limits)
  const { threadId, runId, forwardedProps } = input
  const key = context.keyOf(c, threadId)
  const unsent = await withoutSent(context, key, messages)
  const chat = unsent.flatMap(toChat)
  const fresh = chat.slice(chat.findLastIndex(({ role }) => role === 'assistant') + 1)
  const hasNews = fresh.some(({ role }) => role === 'user' || role === 'tool')
  const sorted = hasNews ? await sortMessages(chat) : undefined
  const last = messages.findLast(({ role }) => role === 'user')
  return {
    ...{ threadId, runId, parentRunId: input.parentRunId ?? undefined, sorted, forwardedProps },
    // Everything that was read of them is checked; the rest is passed back as it was sent.
    messages: messages as unknown as AguiMessage[],
    fingerprint: last ? fingerprintOf(key, last) : '',
    state: stateOf(input.state, context),
    clientTools: clientTools({ tools: input.tools ?? [], choice: 'auto', parallel: true }),
    context: (input.context ?? []).map(({ description, value }) => `${description}: ${value}`).join('\n'),
    model: modelIn(forwardedProps),
    regenerates: regeneratesIn(forwardedProps),
    resume: input.resume ?? [],
  }
}

/** The newest runs among which those of messages that were sent before are looked for. */
export const LOOKED_AT = 20

/** The digest of the message that a run was started with. */
export async function requestOf({ runtime }: ServerContext, runId: string): Promise<unknown> {
  const first = await runtime.store.runs.readEvents(runId, { limit: 2 })
  return first.find(({ request }) => request !== undefined)?.request
}

function fingerprintOf({ appName, userId, sessionId }: SessionKey, { id, content }: Message): string {
  return digest([appName, userId, 'agui', sessionId, id, JSON.stringify(content)])
}

/** Without messages that got no answer, such as one whose run has failed, and were sent before: they are stored. */
async function withoutSent(
  context: ServerContext,
  key: SessionKey,
  messages: readonly Message[],
): Promise<readonly Message[]> {
  const lastAnswer = messages.findLastIndex(({ role }) => role === 'assistant')
  const lastAsked = messages.findLastIndex(({ role }) => role === 'user')
  const unanswered = messages.slice(lastAnswer + 1, lastAsked).filter(({ role }) => role === 'user')
  if (unanswered.length === 0) return messages
  const runs = await context.hub.list(key, LOOKED_AT)
  const requests = await Promise.all(runs.map(({ runId }) => requestOf(context, runId)))
  // A message is sent together with those before it.
  const sent = unanswered.slice(
    0,
    unanswered.findLastIndex(each => requests.includes(fingerprintOf(key, each))) + 1,
  )
  return messages.filter(message => !sent.includes(message))
}

/** AG-UI asks servers to run without the fields of later versions, and to say so. */
async function noteUnknown(c: Context<ServerEnv>, { logger }: ServerContext): Promise<void> {
  const body = await readClientJson(c, { optional: true })
  const unknown = Object.keys(isRecord(body) ? body : {}).filter(
    key => !Object.hasOwn(RunAgentInput.shape, key),
  )
  if (unknown.length > 0) logger.warn('An AG-UI request has unknown fields', { fields: unknown.slice(0, 10) })
}

function stateOf(state: unknown, { limits }: ServerContext): Record<string, unknown> {
  if (state === undefined || state === null) return {}
  if (!isRecord(state)) throw badField('state', 'state must be an object: it is the state of the session.')
  return clientState(state, limits)
}

/** Lango's own: the model of this run. */
function modelIn(forwardedProps: unknown): string | undefined {
  const lango = isRecord(forwardedProps) ? forwardedProps.lango : undefined
  const model = isRecord(lango) ? lango.model : undefined
  if (model === undefined || model === null) return undefined
  if (typeof model === 'string' && model !== '' && model.length <= 256) return model
  throw badField('forwardedProps.lango.model', 'forwardedProps.lango.model must be the name of a model.')
}

/** Lango's own: without it, a message that is sent again is the same run. */
function regeneratesIn(forwardedProps: unknown): boolean {
  const lango = isRecord(forwardedProps) ? forwardedProps.lango : undefined
  const wanted = isRecord(lango) ? lango.regenerate : undefined
  if (wanted === undefined || wanted === null || typeof wanted === 'boolean') return wanted === true
  throw badField('forwardedProps.lango.regenerate', 'forwardedProps.lango.regenerate must be true or false.')
}

function toChat(message: Message, index: number): CompletionMessage[] {
  const place = `messages.${index}.content`
  switch (message.role) {
    case 'system':
    case 'developer':
      return [{ role: message.role, content: message.content }]
    case 'user':
      return [{ role: 'user', content: userContent(message.content, place) }]
    case 'assistant':
      return [{ role: 'assistant', content: message.content ?? '', tool_calls: message.toolCalls ?? [] }]
    case 'tool':
      return [{ role: 'tool', content: resultText(message), tool_call_id: message.toolCallId }]
    // The consumer's own, and a run keeps its own thoughts.
    case 'activity':
    case 'reasoning':
      return []
  }
}

function userContent(content: string | ContentPart[], place: string) {
  const parts = typeof content === 'string' ? [{ type: 'text' as const, text: content }] : content
  return parts
    .filter(part => part.type !== 'text' || part.text !== '')
    .map((part, index) => ({ type: 'ready' as const, part: toPart(part, `${place}.${index}`) }))
}

const TYPES = { image: 'image/*', audio: 'audio/*', video: 'video/*', document: 'application/pdf' } as const

function toPart(part: ContentPart, place: string): InputPart {
  if (part.type === 'text') return { text: part.text }
  const { source, type } = part
  if (source.type === 'data') return { inlineData: { mimeType: source.mimeType, data: source.value } }
  // A part that cannot be used must not fail the run; the model gets a note that there was one.
  if (source.type === 'file') return { text: `[A file (${type}) of another provider was left out here.]` }
  return mediaPart({
    url: source.value,
    mimeType: source.mimeType ?? TYPES[type],
    field: `${place}.source.value`,
  })
}

/** A result as one text. Media in it are named: the results of tools are JSON. */
function resultText({ content, error }: Extract<Message, { role: 'tool' }>): string {
  const text =
    typeof content === 'string'
      ? content
      : content.map(part => (part.type === 'text' ? part.text : `[${part.type}]`)).join('\n')
  if (!error) return text
  return JSON.stringify({ error, ...(text === '' ? {} : { result: text }) })
}
