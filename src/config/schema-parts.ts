/** The building blocks of the configuration schema, each with its error text. The later ones check values made in code. */

import { z } from 'zod'
import { isRecord } from '../base/is-record.js'
import { THINKING_LEVELS } from '../base/names.js'
import { type Tool, type ToolParameters, toolProblems } from '../tool.js'

/** A non-empty text. */
export const text = (error = 'must be a non-empty text') => z.string({ error }).min(1, { error })

/** A text that may be empty, such as the value of a variable. */
export const anyText = z.string({ error: 'must be a text' })

/** True or false. */
export const flag = z.boolean({ error: 'must be true or false' })

/** One of some names. */
export const oneOf = <const Names extends readonly string[]>(names: Names) =>
  z.enum(names, { error: `must be one of: ${names.join(', ')}` })

/** A whole number within bounds. */
export function wholeNumber(least: number, most = Number.MAX_SAFE_INTEGER) {
  const error =
    most === Number.MAX_SAFE_INTEGER
      ? `must be a whole number of at least ${least}`
      : `must be a whole number from ${least} to ${most}`
  return z.int({ error }).min(least, { error }).max(most, { error })
}

/** A number of at least 0. */
function amount(error = 'must be a number of at least 0') {
  return z.number({ error }).min(0, { error })
}

const DOLLARS = 'must be a number of dollars, more than 0 and at most 1000000'

/** A number of dollars. */
function dollars() {
  return z.number({ error: DOLLARS }).gt(0, { error: DOLLARS }).max(1_000_000, { error: DOLLARS }).optional()
}

/** How much model calls may cost. */
export const budgetSchema = () =>
  group({
    perRunUsd: dollars().describe(
      'Dollars that one run may cost, with agents inside tools and the observer of memory.',
    ),
    perSessionUsd: dollars().describe('Dollars that all runs of a session may cost.'),
    perUserUsdPerDay: dollars().describe('Dollars that all runs of a user may cost on one day of UTC.'),
    unknownPrice: oneOf(['refuse', 'ignore'])
      .optional()
      .describe('A model whose price is not known is refused, or called uncounted. Default `refuse`.'),
  })

const prices = {
  input: amount().describe('Dollars per million tokens of input.'),
  output: amount().describe('Dollars per million tokens of output.'),
  cachedInput: amount().optional().describe('Dollars per million tokens read from the provider’s cache.'),
  cacheWrite: amount().optional().describe('Dollars per million tokens written to the provider’s cache.'),
  cacheWrite1h: amount().optional().describe('The same for tokens that the cache keeps for an hour.'),
}

/** What a model costs. */
export const priceSchema = () =>
  group({
    ...prices,
    longContext: group({
      above: wholeNumber(1).describe('Tokens of input above which these prices hold for the whole request.'),
      ...prices,
      input: prices.input.optional(),
      output: prices.output.optional(),
    })
      .optional()
      .describe('Prices of long requests. What is absent costs as in a shorter one.'),
  })

/** What a model takes and does. */
export const capabilitiesSchema = () =>
  group({
    vision: flag.describe('It takes images.'),
    tools: flag.describe('It calls tools.'),
    thinking: flag.describe('It can think before it answers.'),
  })

/** A URL. */
export function webAddress() {
  const error = 'must be a URL that starts with http:// or https://'
  return z.string({ error }).refine(value => /^https?:\/\//i.test(value) && URL.canParse(value), { error })
}

/** The address of a store. */
export function storeAddress() {
  const error = 'must start with sqlite:, postgres:// or memory:'
  return z.string({ error }).regex(/^(sqlite:.|postgres(ql)?:\/\/|memory:)/i, { error })
}

/** Texts by their names. */
export const textsByName = z.record(z.string(), anyText, { error: 'must be an object of texts' })

/** An object of known keys. */
export function group<const Shape extends z.ZodRawShape>(shape: Shape) {
  return z.strictObject(shape, {
    error: issue => (issue.code === 'invalid_type' ? 'must be an object' : undefined),
  })
}

/** A list of one kind of thing. */
export function list<Item extends z.ZodType>(item: Item) {
  return z.array(item, { error: 'must be a list' })
}

/** An object with that method: a tool, an agent or a provider made in code. */
export function live<Value extends object>(method: string, error: string) {
  return z.custom<Value>(
    value => typeof value === 'object' && value !== null && typeof Reflect.get(value, method) === 'function',
    { error },
  )
}

const TOOL_ERROR = 'must be the name of a tool, or a tool made in code'

/** A tool of Lango, whose keys are checked, or a tool or toolset of ADK. */
const madeTool = z.custom<Tool | object>().superRefine((value, context) => {
  if (!isRecord(value)) {
    context.addIssue({ code: 'custom', message: TOOL_ERROR })
    return
  }
  if (hasMethods(value, ['runAsync']) || hasMethods(value, ['getTools'])) return
  for (const { key, expected } of toolProblems(value)) {
    if (expected !== undefined) context.addIssue({ code: 'custom', path: [key], message: expected })
    else context.addIssue({ code: 'unrecognized_keys', keys: [key] })
  }
})

/** A tool by its name, or one that was made in code. */
export const toolSchema = z.union([text(), madeTool], { error: TOOL_ERROR })

/** A value with all of these methods. */
export function made<Value extends object>(methods: readonly string[], error: string) {
  return z.custom<Value>(value => hasMethods(value, methods), { error })
}

/** A function, kept as it is. */
export const anyFunction = <Value extends (...args: never[]) => unknown>() =>
  z.custom<Value>(value => typeof value === 'function', { error: 'must be a function' })

/** Environment variables. The object itself is kept: it is read later, and its owner may change it. */
export const environment = z.custom<Readonly<Record<string, string | undefined>>>(
  value =>
    isRecord(value) && Object.values(value).every(text => text === undefined || typeof text === 'string'),
  { error: 'must be an object of texts' },
)

export const logger = made<object>(
  ['debug', 'info', 'warn', 'error'],
  'must be a logger with the methods debug, info, warn and error',
)

export const textFiles = made<object>(['read', 'write'], 'must have the methods read and write')

export const tracerProvider = live<object>('getTracer', 'must be an OpenTelemetry tracer provider')
export const meterProvider = live<object>('getMeter', 'must be an OpenTelemetry meter provider')

const PROFILE_ERROR = 'must be the name of a repair profile, or a profile'

/** A repair profile by its name, or as an object. */
export const profileSchema = z.union(
  [
    text(),
    z.custom<object>(value => isRecord(value) && 'vendor' in value && 'names' in value && 'ids' in value, {
      error: PROFILE_ERROR,
    }),
  ],
  { error: PROFILE_ERROR },
)

export function hasMethods(value: unknown, methods: readonly string[]): boolean {
  return isRecord(value) && methods.every(method => typeof Reflect.get(value, method) === 'function')
}

const effectName = oneOf(['read', 'idempotent', 'once'])

const effectOfTool = group({
  effect: effectName
    .optional()
    .describe('`read` changes nothing, `idempotent` may be repeated, `once` must not be. Default `once`.'),
  onUnknown: oneOf(['retry', 'tell', 'ask', 'fail'])
    .optional()
    .describe(
      'What to do when the model repeats a call and it is not known whether the first one took effect: run it again (`retry`), do not run it and report that to the model (`tell`), ask a person (`ask`), or end the run (`fail`). Default: `tell` for `once`, otherwise `retry`.',
    ),
})

const EFFECT_ERROR = 'must be one of: read, idempotent, once; or an object with `effect` and `onUnknown`'

/** The effects of tools by name. */
export const effectsSchema = z
  .record(z.string(), z.union([effectName, effectOfTool], { error: EFFECT_ERROR }), {
    error: 'must be an object of tools',
  })
  .describe(
    'What calls of tools change, by the name of the tool: `read`, `idempotent` or `once`, or an object. Default: what the tool or its MCP server says, otherwise `once`. See tools.md.',
  )

export const modelName = text('must be a model such as "openai/gpt-5.2"')

/** The options of memory. */
export const memorySchema = group({
  observer: modelName
    .optional()
    .describe('The model that takes notes. Default: none; notes are quotations chosen by rules.'),
  recall: flag.optional().describe('Give agents the tool `recall`. Default true.'),
  scope: oneOf(['session', 'user'])
    .optional()
    .describe('What `recall` searches: the session, or all sessions of its user. Default `session`.'),
})

const OUTPUT_ERROR = 'must be a JSON schema; in a program, also a Zod schema'

/** What an agent asks its model for. */
export const modelOptions = {
  thinking: oneOf(THINKING_LEVELS)
    .optional()
    .describe(
      'How much the model thinks before it answers. A model that cannot do exactly that gets the nearest that it can, with a receipt. Default: the model’s own.',
    ),
  temperature: z
    .number({ error: 'must be a number from 0 to 2' })
    .min(0, { error: 'must be a number from 0 to 2' })
    .max(2, { error: 'must be a number from 0 to 2' })
    .optional()
    .describe('The sampling temperature. Models that take none get none, with a receipt.'),
  maxOutputTokens: wholeNumber(1).optional().describe('Maximum number of tokens in one answer.'),
  outputSchema: z
    .custom<ToolParameters>(value => isRecord(value), { error: OUTPUT_ERROR })
    .optional()
    .describe(
      'A JSON schema of an object: the agent’s last answer is JSON that satisfies it. A model that answers otherwise is corrected once.',
    ),
  fallback: list(text('must be a model such as "openai/gpt-5.2"'))
    .optional()
    .describe(
      'Models that answer, in this order, while the model before them is overloaded or unavailable, or its rate limit, quota or key fails. See models.md.',
    ),
}
