/** What the AI SDK's `DefaultChatTransport` posts, and what of it is new. */
import { z } from 'zod'
import { type InputPart, mediaPart } from '../media-part.js'
import { badField } from '../read-body.js'

const Part = z.looseObject({ type: z.string() })

const UiMessage = z.object({
  id: z.string(),
  role: z.enum(['system', 'user', 'assistant']),
  parts: z.array(Part),
  metadata: z.unknown().optional(),
})

/** The body of `POST /api/chat`. */
export const ChatRequest = z.object({
  id: z.string().min(1).max(256),
  messages: z.array(UiMessage).min(1),
  trigger: z.enum(['submit-message', 'regenerate-message']).nullish(),
  messageId: z.string().nullish(),
  /** Not of the AI SDK: a model for this run, given as `body` of the transport. */
  model: z.string().min(1).max(256).nullish(),
})

export type ChatRequest = z.infer<typeof ChatRequest>
export type UiMessage = z.infer<typeof UiMessage>

/** What is asked for: a message, the same turn again, another message in its place, or to go on after approvals. */
export type ChatAsk =
  | { kind: 'message' | 'again' | 'edit'; message: UiMessage }
  | { kind: 'go-on'; message: UiMessage }

/** Reads what a request means from its trigger and its last message. */
export function askOf({ messages, trigger, messageId }: ChatRequest): ChatAsk {
  const named = messages.find(({ id }) => id === messageId)
  if (named?.role === 'assistant') return { kind: 'go-on', message: named }
  const last = messages.at(-1)
  if (last?.role === 'assistant') return { kind: 'go-on', message: last }
  if (last?.role !== 'user') throw badField('messages', 'The last message must be the user’s.')
  if (trigger === 'regenerate-message') return { kind: 'again', message: last }
  return { kind: messageId === last.id ? 'edit' : 'message', message: last }
}

/** What the user says. Files are data URLs, or URLs that the model's provider can read. */
export function inputOf({ parts }: UiMessage): InputPart[] {
  const input = parts.flatMap((part, index): InputPart[] => {
    if (part.type === 'text' && typeof part.text === 'string')
      return part.text === '' ? [] : [{ text: part.text }]
    if (part.type !== 'file' || typeof part.url !== 'string') return []
    const mimeType = typeof part.mediaType === 'string' ? part.mediaType : 'application/octet-stream'
    const name = typeof part.filename === 'string' ? part.filename : undefined
    return [mediaPart({ url: part.url, mimeType, name, field: `parts.${index}.url` })]
  })
  if (input.length === 0)
    throw badField('messages', 'The last message says nothing: it needs text or a file.')
  return input
}

/** The words of the user's messages, in order. */
export function userTexts(messages: readonly UiMessage[]): string[] {
  return messages.flatMap(({ role, parts }) =>
    role === 'user'
      ? [parts.map(({ type, text }) => (type === 'text' && typeof text === 'string' ? text : '')).join('')]
      : [],
  )
}

/** Approvals that the user has answered, by the id of the call. */
export function answersIn({ parts }: UiMessage): { callId: string; approved: boolean }[] {
  return parts.flatMap(({ state, toolCallId, approval }) => {
    if (state !== 'approval-responded' || typeof toolCallId !== 'string') return []
    const approved = (approval as { approved?: unknown } | undefined)?.approved === true
    return [{ callId: toolCallId, approved }]
  })
}

const Metadata = z.object({
  lango: z.object({ runId: z.uuid(), seq: z.number().int().min(0) }),
})

/** Where the stream of an answer stopped, as the server told it with the answer. */
export function placeIn({ metadata }: UiMessage): { runId: string; seq: number } | undefined {
  return Metadata.safeParse(metadata).data?.lango
}
