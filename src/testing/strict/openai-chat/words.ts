/** OpenAI's sentences about JSON that does not fit; Chat Completions and Responses share them. */
import { kindName } from '../json.js'
import type { Violation } from '../violation.js'

/** The label of everything that is about the shape of the JSON and not about the conversation. */
export type ShapeCode = 'C-schema' | 'R-schema' | 'C4' | 'C5' | 'C6' | 'C7' | 'C8' | 'C9' | 'R7' | 'R8'

export function missing(code: ShapeCode, path: string): Violation {
  return refuse(code, `Missing required parameter: '${path}'.`, path, 'missing_required_parameter')
}

export function unknownParameter(code: ShapeCode, path: string): Violation {
  return refuse(code, `Unknown parameter: '${path}'.`, path, 'unknown_parameter')
}

export function wrongType(code: ShapeCode, path: string, expected: string, value: unknown): Violation {
  return refuse(
    code,
    `Invalid type for '${path}': expected ${expected}, but got ${kindName(value)} instead.`,
    path,
    'invalid_type',
  )
}

export function tooLong(code: ShapeCode, path: string, limit: number, length: number): Violation {
  return refuse(
    code,
    `Invalid '${path}': string too long. Expected a string with maximum length ${limit}, but got a string with length ${length} instead.`,
    path,
    'string_above_max_length',
  )
}

export function emptyString(code: ShapeCode, path: string): Violation {
  return refuse(
    code,
    `Invalid '${path}': empty string. Expected a string with minimum length 1, but got an empty string instead.`,
    path,
    'empty_string',
  )
}

export function emptyArray(code: ShapeCode, path: string): Violation {
  return refuse(
    code,
    `Invalid '${path}': empty array. Expected an array with minimum length 1, but got an empty array instead.`,
    path,
    'empty_array',
  )
}

export function longArray(code: ShapeCode, path: string, limit: number, length: number): Violation {
  return refuse(
    code,
    `Invalid '${path}': array too long. Expected an array with maximum length ${limit}, but got an array with length ${length} instead.`,
    path,
    'array_above_max_length',
  )
}

export function badPattern(code: ShapeCode, path: string): Violation {
  return refuse(
    code,
    `Invalid '${path}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.`,
    path,
    'invalid_value',
  )
}

export function unsupported(
  code: ShapeCode,
  path: string,
  value: unknown,
  values: readonly string[],
): Violation {
  return refuse(
    code,
    `Invalid value: '${String(value)}'. Supported values are: ${enumerate(values)}.`,
    path,
    'invalid_value',
  )
}

/** `'a'`, `'a' and 'b'`, `'a', 'b', and 'c'`. */
function enumerate(values: readonly string[]): string {
  const quoted = values.map(value => `'${value}'`)
  const last = quoted.at(-1) ?? ''
  if (quoted.length < 3) return quoted.join(' and ')
  return `${quoted.slice(0, -1).join(', ')}, and ${last}`
}

/** Numbers out of bounds; OpenAI names the kind of number in its error code. */
export function outOfBounds(
  code: ShapeCode,
  path: string,
  value: unknown,
  bounds: { kind: 'integer' | 'decimal'; minimum?: number; maximum?: number },
): Violation | undefined {
  if (value === undefined || value === null) return undefined
  const { kind, minimum, maximum } = bounds
  if (typeof value !== 'number')
    return wrongType(code, path, kind === 'integer' ? 'an integer' : 'a decimal', value)
  if (minimum !== undefined && value < minimum) {
    const message = `Invalid '${path}': ${kind} below minimum value. Expected a value >= ${minimum}, but got ${value} instead.`
    return refuse(code, message, path, `${kind}_below_min_value`)
  }
  if (maximum !== undefined && value > maximum) {
    const message = `Invalid '${path}': ${kind} above maximum value. Expected a value <= ${maximum}, but got ${value} instead.`
    return refuse(code, message, path, `${kind}_above_max_value`)
  }
  return undefined
}

/** Function schemas: an object at the root, and closed objects when `strict` is set. */
export function schemaFault(
  code: ShapeCode,
  tool: { name: string; parameters: unknown; strict: unknown; path: string },
): Violation | undefined {
  const { name, parameters, strict, path } = tool
  if (parameters === undefined || parameters === null) return undefined
  if (typeof parameters !== 'object' || Array.isArray(parameters)) {
    return wrongType(code, path, 'an object', parameters)
  }
  const { type, additionalProperties } = parameters as { type?: unknown; additionalProperties?: unknown }
  const empty = Object.keys(parameters).length === 0
  if (type !== 'object' && !empty) {
    const got = type === undefined ? 'None' : String(type)
    const message = `Invalid schema for function '${name}': schema must be a JSON Schema of 'type: "object"', got 'type: "${got}"'.`
    return refuse(code, message, path, 'invalid_function_parameters')
  }
  if (strict !== true || additionalProperties === false) return undefined
  const message = `Invalid schema for function '${name}': In context=(), 'additionalProperties' is required to be supplied and to be false.`
  return refuse(code, message, path, 'invalid_function_parameters')
}

export function refuse(
  code: string,
  message: string,
  param: string | null = null,
  errorCode: string | null = null,
): Violation {
  return { code, status: 400, message, param, errorCode }
}
