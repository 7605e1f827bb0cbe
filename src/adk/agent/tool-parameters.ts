import { z } from 'zod'
import { AgentError, messageOf } from '../../errors.js'
import type { JsonSchema, StandardSchema, ToolParameters } from '../../tool.js'

/** The parameters of a tool: their declaration for the model, and the check of its arguments. */
export interface CheckedParameters {
  readonly jsonSchema: JsonSchema
  validate(args: unknown): Promise<{ args: unknown } | { problem: string }>
}

/** Understands a JSON schema and anything that follows Standard Schema, Zod first of all. */
export function checkedParameters(parameters: ToolParameters): CheckedParameters {
  if ('~standard' in parameters) {
    const schema = parameters as StandardSchema
    return { jsonSchema: withoutDialect(describe(schema)), validate: args => validateWith(schema, args) }
  }
  const schema = toStandardSchema(parameters)
  return { jsonSchema: withoutDialect(parameters), validate: args => validateWith(schema, args) }
}

/**
 * The schema of an answer. Throws `invalid-argument` where it does not describe an object, which providers demand, or
 * where answers could not be checked with it.
 */
export function checkedOutput(schema: ToolParameters): CheckedParameters {
  const isStandard = '~standard' in schema
  if (!isStandard) checkable(schema)
  const checked = checkedParameters(schema)
  if (checked.jsonSchema.type !== 'object') {
    const message =
      '`outputSchema` must describe an object: put what it describes into a property of an object.'
    throw new AgentError('invalid-argument', message, { details: { field: 'outputSchema' } })
  }
  return checked
}

function checkable(schema: JsonSchema): void {
  try {
    z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0])
  } catch (cause) {
    const message = `Answers cannot be checked with \`outputSchema\`: ${messageOf(cause)}. Describe it without that, or use Zod.`
    throw new AgentError('invalid-argument', message, { cause, details: { field: 'outputSchema' } })
  }
}

/** Schemas of recent libraries describe themselves; Zod 4 of any release is described by Zod. */
function describe(schema: StandardSchema): JsonSchema {
  const { jsonSchema } = schema['~standard'] as StandardSchema['~standard'] & SelfDescription
  if (jsonSchema) return jsonSchema.input({ target: 'draft-2020-12' })
  if (schema instanceof z.ZodType) return z.toJSONSchema(schema, { io: 'input' })
  // A schema that cannot be described still checks; the model goes by the tool's description.
  return { type: 'object' }
}

interface SelfDescription {
  readonly jsonSchema?: { input(options: { target: string }): JsonSchema }
}

/** Zod cannot express every JSON schema (conditions, negations); those are only checked to be objects. */
function toStandardSchema(schema: JsonSchema): StandardSchema {
  try {
    return z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0])
  } catch {
    return z.looseObject({})
  }
}

async function validateWith(
  schema: StandardSchema,
  args: unknown,
): Promise<{ args: unknown } | { problem: string }> {
  const copy = copyOf(args)
  const bare = withoutPrototypes(copy)
  try {
    const result = await schema['~standard'].validate(copy)
    if (!result.issues) return lostPrototypeKey(copy, result.value) ?? { args: result.value }
    const problems = result.issues.map(issue => {
      const path = (issue.path ?? []).map(pathKey).join('.')
      return path === '' ? issue.message : `${path}: ${issue.message}`
    })
    return { problem: problems.join('; ') }
  } catch (error) {
    return { problem: messageOf(error) }
  } finally {
    for (const object of bare) Object.setPrototypeOf(object, Object.prototype)
  }
}

/**
 * Takes the prototype of every plain object below a value, in place, and returns those objects. Schemas read
 * `args.constructor` and find the inherited function where the model gave no such argument.
 */
function withoutPrototypes(value: unknown, found: object[] = []): object[] {
  if (Array.isArray(value)) for (const item of value) withoutPrototypes(item, found)
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype)
    return found
  Object.setPrototypeOf(value, null)
  found.push(value)
  for (const item of Object.values(value)) withoutPrototypes(item, found)
  return found
}

/** Zod leaves `__proto__` out of what it returns; the model gets an error instead. */
function lostPrototypeKey(args: unknown, checked: unknown): { problem: string } | undefined {
  if (!hasPrototypeKey(args) || hasPrototypeKey(checked)) return undefined
  return { problem: '"__proto__" cannot be the name of an argument' }
}

function hasPrototypeKey(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, '__proto__')
}

/** A tool may change what it is given, and ADK keeps the arguments of a call for the next request. */
export function copyOf(args: unknown): unknown {
  try {
    return structuredClone(args)
  } catch {
    // Arguments of a model are JSON; another caller's may hold a function, which has no copy.
    return args
  }
}

function pathKey(segment: unknown): string {
  return typeof segment === 'object' && segment !== null && 'key' in segment
    ? String(segment.key)
    : String(segment)
}

function withoutDialect(schema: JsonSchema): JsonSchema {
  const { $schema: _dialect, ...rest } = schema
  return rest
}
