/** The parameters of a chat completion besides its messages: every one is honoured or refused. */
import { z } from 'zod'
import { defined } from '../../../base/defined.js'
import type { ClientTools } from '../../../tool.js'
import {
  type AskedOptions,
  type AskedSchema,
  clientTools,
  EFFORTS,
  effortOptions,
  type Format,
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

const NamedFunction = z.object({ type: z.literal('function'), function: z.object({ name: z.string() }) })

const ToolChoice = z.union([
  z.enum(['auto', 'none', 'required']),
  NamedFunction,
  z.object({
    type: z.literal('allowed_tools'),
    allowed_tools: z.object({ mode: z.enum(['auto', 'required']), tools: z.array(NamedFunction).min(1) }),
  }),
])

const ResponseFormat = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text') }),
  z.object({ type: z.literal('json_object') }),
  z.object({
    type: z.literal('json_schema'),
    json_schema: z.object({
      name: z.string(),
      description: z.string().nullish(),
      schema: z.record(z.string(), z.unknown()).nullish(),
      strict: z.boolean().nullish(),
    }),
  }),
])

/** The body of `POST /v1/chat/completions`. */
export const CompletionRequest = z.object({
  ...SharedParameters,
  model: z.string().max(256).optional(),
  /** Checked one by one, as `ChatMessage`. */
  messages: z.array(z.unknown()).min(1),
  stream_options: z
    .object({ include_usage: z.boolean().nullish(), include_obfuscation: z.boolean().nullish() })
    .nullish(),
  tools: z.array(z.object({ type: z.string(), function: FunctionTool.optional() })).nullish(),
  tool_choice: ToolChoice.nullish(),
  functions: z.array(FunctionTool).nullish(),
  function_call: z.union([z.enum(['auto', 'none']), z.object({ name: z.string() })]).nullish(),
  response_format: ResponseFormat.nullish(),
  stop: z.union([z.string(), z.array(z.string()).max(4)]).nullish(),
  max_tokens: z.number().int().min(1).nullish(),
  max_completion_tokens: z.number().int().min(1).nullish(),
  seed: z.number().int().nullish(),
  frequency_penalty: z.number().min(-2).max(2).nullish(),
  presence_penalty: z.number().min(-2).max(2).nullish(),
  reasoning_effort: z.enum(EFFORTS).nullish(),
  n: z.number().int().nullish(),
  logprobs: z.boolean().nullish(),
  logit_bias: z.record(z.string(), z.number()).nullish(),
  modalities: z.array(z.string()).nullish(),
  audio: z.unknown().optional(),
  prediction: z.unknown().optional(),
  verbosity: z.string().nullish(),
  web_search_options: z.unknown().optional(),
})

export type CompletionRequest = z.infer<typeof CompletionRequest>

const REFUSALS: Readonly<Record<string, Refused>> = {
  ...SHARED_REFUSALS,
  n: { unless: value => value === 1, advice: 'only one answer is written. Omit it, or send 1.' },
  logprobs: { unless: value => value === false, advice: 'log probabilities are not available. Omit it.' },
  logit_bias: { unless: isEmpty, advice: 'omit it.' },
  modalities: {
    unless: value => Array.isArray(value) && value.every(each => each === 'text'),
    advice: 'the agent answers with text. Omit it.',
  },
  audio: { advice: 'the agent answers with text. Omit it.' },
  prediction: { advice: 'omit it.' },
  verbosity: { unless: value => value === 'medium', advice: 'omit it, and say in words how long to answer.' },
  web_search_options: { advice: 'give the agent a tool that searches.' },
  store: {
    unless: value => value === false,
    advice: 'send the header x-lango-session to keep the conversation, or use /v1/responses.',
  },
}

/** What a chat completion asks for, as its run gets it. */
export interface ChatOptions {
  clientTools: ClientTools | undefined
  asked: AskedOptions
  isStructured: boolean
  schema: AskedSchema | undefined
  /** The client declares `functions`, whose calls have no ids. */
  isLegacy: boolean
  includeUsage: boolean
}

export function chatOptions(request: CompletionRequest): ChatOptions {
  refuseUnsupported(request, REFUSALS)
  const options = request.stream_options
  if (options && !request.stream)
    throw invalidValue(
      'stream_options',
      'The `stream_options` parameter is only allowed when `stream` is true.',
    )
  if (options?.include_obfuscation)
    throw unsupported('stream_options.include_obfuscation', 'Obfuscation is not supported: omit it.')
  const isLegacy = (request.functions?.length ?? 0) > 0
  const wishes = isLegacy ? legacyWishes(request) : toolWishes(request)
  return {
    clientTools: clientTools(wishes),
    asked: askedOf(request),
    isStructured: (request.response_format?.type ?? 'text') !== 'text',
    schema: schemaOf(formatOf(request), 'response_format'),
    isLegacy,
    includeUsage: options?.include_usage === true,
  }
}

function toolWishes({ tools, tool_choice: given, function_call, ...request }: CompletionRequest): ToolWishes {
  if (function_call) throw invalidValue('function_call', '`function_call` is only allowed with `functions`.')
  const functions = (tools ?? []).map(({ type, function: declared }, index) => {
    if (type === 'function' && declared) return declared
    throw unsupported(`tools.${index}.type`, `Tools of type "${type}" are not supported: declare functions.`)
  })
  const parallel = request.parallel_tool_calls ?? true
  const choice = given ?? 'auto'
  if (given && given !== 'none' && functions.length === 0)
    throw invalidValue('tool_choice', '`tool_choice` is only allowed when `tools` are specified.')
  if (typeof choice === 'string') return { tools: functions, choice, parallel }
  if (choice.type === 'function')
    return { tools: functions, choice: { names: [choice.function.name], mode: 'required' }, parallel }
  const { mode, tools: allowed } = choice.allowed_tools
  const names = allowed.map(tool => tool.function.name)
  return { tools: functions, choice: { names, mode }, parallel }
}

function legacyWishes({ functions, function_call: call, tools }: CompletionRequest): ToolWishes {
  if (tools?.length) throw invalidValue('functions', '`functions` and `tools` cannot be used together.')
  const choice = call ?? 'auto'
  const given = typeof choice === 'string' ? choice : { names: [choice.name], mode: 'required' as const }
  return { tools: functions ?? [], choice: given, parallel: false }
}

function askedOf(request: CompletionRequest): AskedOptions {
  const given = withoutNull(request)
  const { temperature, top_p: topP, seed, stop, max_tokens, max_completion_tokens } = given
  const { presence_penalty: presencePenalty, frequency_penalty: frequencyPenalty } = given
  const maxOutputTokens = max_completion_tokens ?? max_tokens
  const stopSequences = typeof stop === 'string' ? [stop] : stop
  const { outputSchema, generation } = formatOptions(formatOf(request))
  return {
    ...defined({ temperature, maxOutputTokens }),
    ...effortOptions(request.reasoning_effort, 'reasoning_effort'),
    ...defined({ outputSchema }),
    generation: {
      ...defined({ topP, seed, stopSequences, presencePenalty, frequencyPenalty }),
      ...generation,
    },
  }
}

function formatOf({ response_format: format }: CompletionRequest): Format | undefined {
  if (format?.type !== 'json_schema') return format ?? undefined
  const { schema, ...others } = format.json_schema
  return { type: 'json_schema', ...others, schema: schema ?? { type: 'object' } }
}
