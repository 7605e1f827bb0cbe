/** What both of OpenAI's APIs let a client ask for besides the messages, as a run gets it. */
import { z } from 'zod'
import { defined } from '../../../base/defined.js'
import { AgentError } from '../../../errors.js'
import type { RunInput } from '../../../runtime/runtime.js'
import type { ClientTools } from '../../../tool.js'

/** What a request asks the model for. */
export type AskedOptions = Pick<
  RunInput,
  'temperature' | 'maxOutputTokens' | 'thinking' | 'generation' | 'outputSchema'
>

/** A parameter that the agent cannot be given. */
export function unsupported(field: string, message: string): AgentError {
  const details = { field, openaiCode: 'unsupported_parameter' }
  return new AgentError('invalid-argument', message, { details })
}

/** A value that OpenAI's own server refuses, too. */
export function invalidValue(field: string, message: string): AgentError {
  return new AgentError('invalid-argument', message, { details: { field, openaiCode: 'invalid_value' } })
}

/** Refuses parameters that nobody knows: one that is ignored would be taken for honoured. */
export function refuseUnknown(body: unknown, schema: z.ZodObject): void {
  if (typeof body !== 'object' || body === null) return
  const unknown = Object.keys(body).find(key => !Object.hasOwn(schema.shape, key))
  if (unknown === undefined) return
  const details = { field: unknown, openaiCode: 'unknown_parameter' }
  throw new AgentError('invalid-argument', `Unknown parameter: '${unknown}'.`, { details })
}

/** Parameters of one vendor's servers, and the values that change nothing here. */
export function refuseUnsupported(
  request: Readonly<Record<string, unknown>>,
  refusals: Readonly<Record<string, Refused>>,
): void {
  for (const [field, { unless, advice }] of Object.entries(refusals)) {
    const value = request[field]
    if (value === undefined || value === null || unless?.(value)) continue
    throw unsupported(field, `\`${field}\` is not supported: ${advice}`)
  }
}

export interface Refused {
  /** Values that ask for what happens anyway. */
  unless?(value: unknown): boolean
  advice: string
}

export function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0
}

/** Parameters of both APIs that have one meaning. */
export const SharedParameters = {
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  /** Kept with the run. */
  metadata: z
    .record(z.string().max(64), z.string().max(512))
    .refine(value => Object.keys(value).length <= 16, 'at most 16 pairs')
    .nullish(),
  user: z.string().nullish(),
  safety_identifier: z.string().nullish(),
  /** Hints for the caches of OpenAI's servers: the requests of a session extend each other as they are. */
  prompt_cache_key: z.string().nullish(),
  prompt_cache_retention: z.string().nullish(),
  service_tier: z.string().nullish(),
  store: z.boolean().nullish(),
  stream: z.boolean().nullish(),
  top_logprobs: z.number().nullish(),
}

export const SHARED_REFUSALS: Readonly<Record<string, Refused>> = {
  service_tier: {
    unless: value => value === 'auto' || value === 'default',
    advice: 'omit it, or send "auto".',
  },
  top_logprobs: { unless: value => value === 0, advice: 'log probabilities are not available. Omit it.' },
}

/** The JSON Schema of an answer, or that it must be JSON. */
export const Format = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text') }),
  z.object({ type: z.literal('json_object') }),
  z.object({
    type: z.literal('json_schema'),
    name: z.string().regex(/^[\w-]{1,64}$/),
    description: z.string().nullish(),
    schema: z.record(z.string(), z.unknown()),
    strict: z.boolean().nullish(),
  }),
])
export type Format = z.infer<typeof Format>

/** A format as options of the model. `description` says what the answer is for: it is a part of the schema. */
export function formatOptions(
  format: Format | undefined,
): Pick<AskedOptions, 'outputSchema'> & { generation: AskedOptions['generation'] } {
  if (format === undefined || format.type === 'text') return { generation: {} }
  if (format.type === 'json_object') return { generation: { responseMimeType: 'application/json' } }
  const { schema, description } = format
  const outputSchema = { ...defined({ description: description ?? undefined }), ...schema }
  return { outputSchema, generation: {} }
}

/** The schema of an answer, as far as its errors are concerned. */
export interface AskedSchema {
  /** The parameter that holds it. */
  field: string
  name: string
  isStrict: boolean
}

export function schemaOf(format: Format | undefined, field: string): AskedSchema | undefined {
  if (format?.type !== 'json_schema') return undefined
  return { field, name: format.name, isStrict: format.strict === true }
}

/** A schema that answers cannot be checked with. */
export function isUncheckable(error: unknown): error is AgentError {
  return error instanceof AgentError && error.details.field === 'outputSchema'
}

export function invalidSchema({ field, name }: AskedSchema, { message }: AgentError): AgentError {
  const details = { field, openaiCode: 'invalid_json_schema' }
  return new AgentError('invalid-argument', `Invalid schema for ${field} '${name}': ${message}`, { details })
}

export const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh'] as const

/** How much a model thinks. */
export function effortOptions(
  effort: (typeof EFFORTS)[number] | null | undefined,
  field: string,
): Pick<RunInput, 'thinking'> {
  if (effort === undefined || effort === null) return {}
  if (effort === 'none') return { thinking: 'off' }
  if (effort === 'minimal' || effort === 'xhigh')
    throw unsupported(field, `\`${field}\` may be none, low, medium or high.`)
  return { thinking: effort }
}

/** A function as both APIs declare it; the one nests it and the other does not. */
export const FunctionTool = z.object({
  name: z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/),
  description: z.string().nullish(),
  parameters: z.record(z.string(), z.unknown()).nullish(),
  strict: z.boolean().nullish(),
})

function clientTool({ name, description, parameters, strict }: z.infer<typeof FunctionTool>) {
  return {
    name,
    ...defined({
      description: description ?? undefined,
      parameters: parameters ?? undefined,
      strict: strict ?? undefined,
    }),
  }
}

/** Which tools the model may or must call, as both APIs say it. */
export interface ToolWishes {
  tools: readonly z.infer<typeof FunctionTool>[]
  choice: 'auto' | 'none' | 'required' | { names: readonly string[]; mode: 'auto' | 'required' }
  parallel: boolean
}

export function clientTools({ tools, choice, parallel }: ToolWishes): ClientTools | undefined {
  if (tools.length === 0 && (choice === 'auto' || choice === 'none')) return undefined
  const declared = tools.map(clientTool)
  if (typeof choice === 'string') return { tools: declared, choice, parallel }
  const { names, mode } = choice
  if (mode === 'required') return { tools: declared, choice: { names }, parallel }
  return { tools: declared.filter(({ name }) => names.includes(name)), choice: 'auto', parallel }
}

/** `null` stands for an absent value in OpenAI's APIs. */
export function withoutNull<T extends object>(
  value: T,
): { [Key in keyof T]: NonNullable<T[Key]> | undefined } {
  const entries = Object.entries(value).filter(([, each]) => each !== null)
  // The keys are those of the value, without the nulls.
  return Object.fromEntries(entries) as { [Key in keyof T]: NonNullable<T[Key]> | undefined }
}
