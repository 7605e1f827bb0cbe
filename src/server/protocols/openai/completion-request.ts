/** What a request for a chat completion may hold, and what it may not. */
import { z } from 'zod'
import { AgentError } from '../../../errors.js'
import type { RuntimeInfo } from '../../../runtime/info.js'

const TextParts = [
  z.object({ type: z.literal('text'), text: z.string() }),
  z.object({ type: z.literal('refusal'), refusal: z.string() }),
] as const

const MediaParts = [
  z.object({ type: z.literal('image_url'), image_url: z.object({ url: z.string().min(1) }) }),
  z.object({
    type: z.literal('input_audio'),
    input_audio: z.object({ data: z.base64(), format: z.string().regex(/^[\w-]{1,20}$/) }),
  }),
  z.object({
    type: z.literal('file'),
    file: z.object({ file_data: z.string().min(1), filename: z.string().max(255).optional() }),
  }),
] as const

const Text = z.union([z.string(), z.array(z.discriminatedUnion('type', [...TextParts]))])
const Anything = z.union([z.string(), z.array(z.discriminatedUnion('type', [...TextParts, ...MediaParts]))])

const Call = z.object({
  id: z.string(),
  type: z.literal('function').optional(),
  function: z.object({ name: z.string(), arguments: z.string() }),
})

const ChatMessage = z.discriminatedUnion('role', [
  z.object({ role: z.literal('system'), content: Text }),
  z.object({ role: z.literal('developer'), content: Text }),
  z.object({ role: z.literal('user'), content: Anything }),
  z.object({
    role: z.literal('assistant'),
    content: Text.nullish(),
    refusal: z.string().nullish(),
    tool_calls: z.array(Call).nullish(),
  }),
  z.object({ role: z.literal('tool'), content: Text, tool_call_id: z.string() }),
])

/** The body of `POST /v1/chat/completions`. Fields that are not named here are ignored. */
export const CompletionRequest = z.object({
  model: z.string().max(256).optional(),
  messages: z.array(ChatMessage).min(1),
  stream: z.boolean().nullish(),
  stream_options: z.object({ include_usage: z.boolean().nullish() }).nullish(),
  n: z.number().int().nullish(),
  tools: z.array(z.unknown()).nullish(),
  functions: z.array(z.unknown()).nullish(),
  response_format: z.object({ type: z.string() }).nullish(),
  logprobs: z.boolean().nullish(),
  modalities: z.array(z.string()).nullish(),
})

export type CompletionRequest = z.infer<typeof CompletionRequest>
export type CompletionMessage = CompletionRequest['messages'][number]
export type TextContent = z.infer<typeof Text>

/** Refuses what a client would wait for in vain. */
export function refuseUnsupported(request: CompletionRequest): void {
  for (const field of ['tools', 'functions'] as const) {
    if ((request[field]?.length ?? 0) > 0) {
      const advice = 'The agent runs its own tools; add them to the configuration of the server.'
      throw unsupported(field, `Tools of the client are not supported. ${advice}`)
    }
  }
  if ((request.n ?? 1) !== 1) throw unsupported('n', 'Only one answer can be asked for: leave `n` out, or 1.')
  const format = request.response_format?.type ?? 'text'
  if (format !== 'text') {
    throw unsupported('response_format', 'The agent answers with text: leave `response_format` out.')
  }
  if (request.logprobs) throw unsupported('logprobs', 'There are no log probabilities: leave `logprobs` out.')
  if (request.modalities?.some(modality => modality !== 'text')) {
    throw unsupported('modalities', 'The agent answers with text: leave `modalities` out.')
  }
}

function unsupported(field: string, message: string): AgentError {
  const details = { field, openaiCode: 'unsupported_parameter' }
  return new AgentError('invalid-argument', message, { details })
}

/** The model that a run is given: none for the names by which clients mean the agent itself. */
export function modelOf({ model = '' }: CompletionRequest, info: RuntimeInfo): string | undefined {
  return agentNames(info).includes(model) || model === '' ? undefined : model
}

/** Names that mean the agent with its own model. */
export function agentNames({ agent, app }: RuntimeInfo): string[] {
  return [...new Set(['lango', agent, app])]
}
