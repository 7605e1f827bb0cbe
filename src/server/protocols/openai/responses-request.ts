/** The body of `POST /v1/responses`: its items as the messages of a chat, and its parameters as options of a run. */
import { z } from 'zod'
import { defined } from '../../../base/defined.js'
import type { ClientTools } from '../../../tool.js'
import { badField } from '../read-body.js'
import type { CompletionMessage } from './completion-request.js'
import {
  type AskedOptions,
  type AskedSchema,
  clientTools,
  EFFORTS,
  effortOptions,
  Format,
  FunctionTool,
  formatOptions,
  invalidValue,
  isEmpty,
  type Refused,
  refuseUnsupported,
  SHARED_REFUSALS,
  SharedParameters,
  schemaOf,
  type ToolWishes,
  unsupported,
  withoutNull,
} from './request-options.js'

const InputPart = z.discriminatedUnion('type', [
  z.object({ type: z.literal('input_text'), text: z.string() }),
  z.object({ type: z.literal('output_text'), text: z.string() }),
  z.object({ type: z.literal('refusal'), refusal: z.string() }),
  z.object({
    type: z.literal('input_image'),
    image_url: z.string().min(1).nullish(),
    file_id: z.string().nullish(),
  }),
  z.object({
    type: z.literal('input_file'),
    file_data: z.string().min(1).nullish(),
    file_url: z.string().min(1).nullish(),
    file_id: z.string().nullish(),
    filename: z.string().max(255).nullish(),
  }),
])
type InputPart = z.infer<typeof InputPart>

const Content = z.union([z.string(), z.array(InputPart)])

/** An item of the input. A message may leave its type out. */
export const InputItem = z.union([
  z.object({
    type: z.literal('message').optional(),
    role: z.enum(['user', 'assistant', 'system', 'developer']),
    content: Content,
  }),
  z.object({
    type: z.literal('function_call'),
    call_id: z.string(),
    name: z.string(),
    arguments: z.string(),
  }),
  z.object({ type: z.literal('function_call_output'), call_id: z.string(), output: Content }),
  /** Its text is a part of the run that it came from: a model gets its own thoughts from there. */
  z.object({ type: z.literal('reasoning') }),
  z.object({ type: z.literal('item_reference').nullish(), id: z.string() }),
])
export type InputItem = z.infer<typeof InputItem>

const NamedTool = z.object({ type: z.literal('function'), name: z.string() })

/** The body of `POST /v1/responses`. */
export const ResponseRequest = z.object({
  ...SharedParameters,
  model: z.string().max(256).optional(),
  /** Items are checked one by one, as `InputItem`. */
  input: z.union([z.string(), z.array(z.unknown())]).nullish(),
  instructions: z.string().nullish(),
  previous_response_id: z.string().nullish(),
  conversation: z.union([z.string(), z.object({ id: z.string() })]).nullish(),
  background: z.boolean().nullish(),
  max_output_tokens: z.number().int().min(1).nullish(),
  tools: z.array(z.looseObject({ type: z.string() })).nullish(),
  tool_choice: z
    .union([
      z.enum(['auto', 'none', 'required']),
      NamedTool,
      z.object({
        type: z.literal('allowed_tools'),
        mode: z.enum(['auto', 'required']),
        tools: z.array(NamedTool).min(1),
      }),
    ])
    .nullish(),
  text: z.object({ format: Format.nullish(), verbosity: z.string().nullish() }).nullish(),
  reasoning: z
    .object({
      effort: z.enum(EFFORTS).nullish(),
      summary: z.string().nullish(),
      generate_summary: z.string().nullish(),
    })
    .nullish(),
  stream_options: z.object({ include_obfuscation: z.boolean().nullish() }).nullish(),
  /** The history is fitted to the agent's budget, and to the model's window, in any case. */
  truncation: z.enum(['auto', 'disabled']).nullish(),
  include: z.array(z.string()).nullish(),
  max_tool_calls: z.number().nullish(),
  prompt: z.unknown().optional(),
  context_management: z.unknown().optional(),
})
export type ResponseRequest = z.infer<typeof ResponseRequest>

const REFUSALS: Readonly<Record<string, Refused>> = {
  ...SHARED_REFUSALS,
  include: { unless: isEmpty, advice: 'omit it.' },
  max_tool_calls: { advice: 'the turn limit of the agent ends a run. Omit it.' },
  prompt: { advice: 'prompts of OpenAI’s servers are not here. Send `instructions`.' },
  context_management: { advice: 'the history is fitted to the agent’s budget. Omit it.' },
}

/** What a response asks for, as its run gets it. */
export interface ResponseOptions {
  clientTools: ClientTools | undefined
  asked: AskedOptions
  isStructured: boolean
  schema: AskedSchema | undefined
  conversation: string | undefined
  isKept: boolean
}

export function responseOptions(request: ResponseRequest): ResponseOptions {
  refuseUnsupported(request, REFUSALS)
  const { text, stream_options: stream, background, store } = request
  if (text?.verbosity && text.verbosity !== 'medium')
    throw unsupported('text.verbosity', '`text.verbosity` is not supported: say in words how long to answer.')
  if (stream?.include_obfuscation)
    throw unsupported('stream_options.include_obfuscation', 'Obfuscation is not supported: omit it.')
  if (background && store === false)
    throw invalidValue('background', 'Background mode requires `store` to be true.')
  const conversation =
    typeof request.conversation === 'string' ? request.conversation : request.conversation?.id
  if (conversation !== undefined && request.previous_response_id)
    throw invalidValue(
      'previous_response_id',
      '`previous_response_id` and `conversation` cannot be used together.',
    )
  return {
    clientTools: clientTools(toolWishes(request)),
    asked: askedOf(request),
    isStructured: (text?.format?.type ?? 'text') !== 'text',
    schema: schemaOf(text?.format ?? undefined, 'text.format'),
    conversation,
    isKept: store !== false,
  }
}

function toolWishes(request: ResponseRequest): ToolWishes {
  const { tool_choice: choice = 'auto', parallel_tool_calls: parallel = true } = withoutNull(request)
  const tools = (request.tools ?? []).map((tool, index) => {
    if (tool.type !== 'function')
      throw unsupported(
        `tools.${index}.type`,
        `Tools of type "${tool.type}" are not supported: declare functions. The agent runs its own tools.`,
      )
    const parsed = FunctionTool.safeParse(tool)
    if (!parsed.success)
      throw badField(`tools.${index}`, `The tool is not valid: ${parsed.error.issues[0]?.message}.`)
    return parsed.data
  })
  if (typeof choice === 'string') return { tools, choice, parallel }
  if (choice.type === 'function')
    return { tools, choice: { names: [choice.name], mode: 'required' }, parallel }
  return { tools, choice: { names: choice.tools.map(({ name }) => name), mode: choice.mode }, parallel }
}

function askedOf(request: ResponseRequest): AskedOptions {
  const { temperature, top_p: topP, max_output_tokens: maxOutputTokens } = withoutNull(request)
  const { outputSchema, generation } = formatOptions(request.text?.format ?? undefined)
  return {
    ...defined({ temperature, maxOutputTokens }),
    ...effortOptions(request.reasoning?.effort, 'reasoning.effort'),
    ...defined({ outputSchema }),
    generation: { ...defined({ topP }), ...generation },
  }
}

/** What an answer repeats of its request. */
export function echoOf(request: ResponseRequest): Record<string, unknown> {
  const given = withoutNull(request)
  const { effort = null, summary = null } = request.reasoning ?? {}
  return {
    instructions: given.instructions ?? null,
    max_output_tokens: given.max_output_tokens ?? null,
    metadata: given.metadata ?? {},
    parallel_tool_calls: given.parallel_tool_calls ?? true,
    previous_response_id: given.previous_response_id ?? null,
    reasoning: { effort, summary },
    store: given.store ?? true,
    background: given.background ?? false,
    temperature: given.temperature ?? null,
    top_p: given.top_p ?? null,
    text: { format: given.text?.format ?? { type: 'text' } },
    tool_choice: given.tool_choice ?? 'auto',
    tools: (given.tools ?? []).map(tool => ({ strict: null, parameters: null, description: null, ...tool })),
    truncation: given.truncation ?? 'disabled',
    service_tier: 'default',
    ...defined({ user: given.user, safety_identifier: given.safety_identifier }),
    ...defined({ prompt_cache_key: given.prompt_cache_key }),
  }
}

/** The items of an input as messages of a chat. Calls that follow each other are of one answer. */
export function itemsToMessages(items: readonly InputItem[]): CompletionMessage[] {
  const messages: CompletionMessage[] = []
  for (const [index, item] of items.entries()) {
    const place = `input.${index}`
    if ('role' in item) messages.push(toMessage(item, place))
    else if (item.type === 'function_call_output')
      messages.push({
        role: 'tool',
        tool_call_id: item.call_id,
        content: textOf(item.output, `${place}.output`),
      })
    else if (item.type === 'function_call') {
      const { call_id: id, name, arguments: args } = item
      const call = { id, type: 'function' as const, function: { name, arguments: args } }
      const last = messages.at(-1)
      if (last?.role === 'assistant') last.tool_calls = [...(last.tool_calls ?? []), call]
      else messages.push({ role: 'assistant', content: null, tool_calls: [call] })
    }
  }
  return messages
}

function toMessage(
  { role, content }: Extract<InputItem, { role: string }>,
  place: string,
): CompletionMessage {
  if (role !== 'user') return { role, content: textOf(content, `${place}.content`) }
  if (typeof content === 'string') return { role, content }
  return { role, content: content.map((part, index) => toPart(part, `${place}.content.${index}`)) }
}

function textOf(content: z.infer<typeof Content>, place: string): string {
  if (typeof content === 'string') return content
  const texts = content.map((part, index) => {
    if ('text' in part) return part.text
    if (part.type === 'refusal') return part.refusal
    throw unsupported(`${place}.${index}`, `A part of type ${part.type} is not supported here: send text.`)
  })
  return texts.join('\n')
}

type UserPart = Exclude<Extract<CompletionMessage, { role: 'user' }>['content'], string>[number]

function toPart(part: InputPart, place: string): UserPart {
  if ('file_id' in part && part.file_id)
    throw unsupported(`${place}.file_id`, 'Files of OpenAI’s servers are not here: send the data, or a URL.')
  if (part.type === 'refusal') return { type: 'refusal', refusal: part.refusal }
  if (part.type === 'input_text' || part.type === 'output_text') return { type: 'text', text: part.text }
  if (part.type === 'input_image') {
    if (!part.image_url) throw badField(`${place}.image_url`, 'The image has no `image_url`.')
    return { type: 'image_url', image_url: { url: part.image_url } }
  }
  const url = part.file_data ?? part.file_url
  if (!url) throw badField(place, 'The file has neither `file_data` nor `file_url`.')
  const filename = part.filename ?? undefined
  return { type: 'file', file: { file_data: url, ...defined({ filename }) } }
}
