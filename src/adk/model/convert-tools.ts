import type { GenerationOptions, ToolDeclaration } from '../../provider/provider.js'
import type { FunctionDeclaration, GenerateContentConfig } from '../sdk.js'

/**
 * The functions that a request declares. ADK writes Gemini's schema dialect (upper-case types, numbers as
 * texts, `nullable`) unless the tool brought a JSON schema; models get JSON schema either way. Tools that
 * only Gemini's servers run (search, code execution) have no neutral form and are left out.
 */
export function convertTools(config: GenerateContentConfig | undefined): ToolDeclaration[] {
  return (config?.tools ?? []).flatMap(tool => {
    const declarations = 'functionDeclarations' in tool ? (tool.functionDeclarations ?? []) : []
    return declarations.map(declaration => ({
      name: declaration.name ?? '',
      description: declaration.description ?? '',
      parameters: parametersOf(declaration),
    }))
  })
}

/** Whether and which tool the model must call. */
export function convertToolChoice(
  config: GenerateContentConfig | undefined,
): Pick<GenerationOptions, 'toolChoice'> {
  const calling = config?.toolConfig?.functionCallingConfig
  const [only, ...others] = calling?.allowedFunctionNames ?? []
  switch (calling?.mode as string | undefined) {
    case 'NONE':
      return { toolChoice: 'none' }
    case 'ANY':
      return { toolChoice: only !== undefined && others.length === 0 ? { name: only } : 'required' }
    case 'AUTO':
      return { toolChoice: 'auto' }
    default:
      return {}
  }
}

function parametersOf(declaration: FunctionDeclaration): Record<string, unknown> {
  const schema = declaration.parametersJsonSchema ?? toJsonSchema(declaration.parameters)
  return isObject(schema) ? withoutDialect(schema) : { type: 'object', properties: {} }
}

/** Providers refuse or ignore the dialect's name. */
function withoutDialect(schema: Record<string, unknown>): Record<string, unknown> {
  const { $schema: _dialect, ...rest } = schema
  return rest
}

/** Gemini's schema as JSON schema. A JSON schema passes unchanged. */
export function toJsonSchema(schema: unknown): unknown {
  if (!isObject(schema)) return schema
  const entries = Object.entries(schema).flatMap(([key, value]): [string, unknown][] => {
    if (value === undefined || DROPPED.has(key)) return []
    if (key === 'type') return [[key, toType(value, schema.nullable === true)]]
    if (key === 'properties' || key === '$defs') return [[key, mapValues(value)]]
    if (key === 'format' && (value === 'enum' || value === '')) return []
    if (LISTS.has(key) && Array.isArray(value)) return [[key, value.map(toJsonSchema)]]
    if (key === 'items' || key === 'additionalProperties') return [[key, toJsonSchema(value)]]
    return [[key, COUNTS.has(key) ? Number(value) : value]]
  })
  return Object.fromEntries(entries)
}

const DROPPED = new Set(['nullable', 'propertyOrdering'])
const LISTS = new Set(['anyOf', 'oneOf', 'allOf', 'prefixItems'])
const COUNTS = new Set(['minItems', 'maxItems', 'minLength', 'maxLength', 'minProperties', 'maxProperties'])

function toType(type: unknown, nullable: boolean): unknown {
  if (typeof type !== 'string') return type
  const name = type.toLowerCase()
  return nullable ? [name, 'null'] : name
}

function mapValues(value: unknown): unknown {
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, schema]) => [name, toJsonSchema(schema)]))
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
