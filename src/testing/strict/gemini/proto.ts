/**
 * Gemini's JSON is parsed into protocol buffers, and the parser has its own words for what does not fit.
 * Field names may come in camel case or in snake case; errors always speak snake case. All faults are
 * reported together, one per line.
 */
import { isEitherBase64 } from '../../../base/base64.js'
import { isObject, type JsonObject } from '../json.js'

export interface ProtoMessage {
  readonly name: string
  readonly fields: () => Readonly<Record<string, ProtoField>>
}

export interface ProtoField {
  readonly type: ProtoScalar | ProtoMessage
  readonly many?: true
  readonly map?: true
  /** The values of an enum, in upper case. */
  readonly values?: readonly string[]
}

export type ProtoScalar = 'string' | 'bool' | 'number' | 'bytes' | 'struct' | 'value' | 'enum'

export interface ProtoFault {
  /** Where the fault is, in snake case. */
  readonly field: string
  readonly description: string
}

const STRUCT = 'type.googleapis.com/google.protobuf.Struct'
const PACKAGE = 'type.googleapis.com/google.ai.generativelanguage.v1beta'

export function checkProto(message: ProtoMessage, value: JsonObject): ProtoFault[] {
  const faults: ProtoFault[] = []
  checkMessage(message, value, '', faults)
  return faults
}

const snakeNames = new Map<string, string>()

/** `functionCall` → `function_call`. The names of the API are few and asked for often; others are not kept. */
export function snakeCase(name: string): string {
  const known = snakeNames.get(name)
  if (known !== undefined) return known
  const snake = name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
  if (snakeNames.size < 500) snakeNames.set(name, snake)
  return snake
}

function checkMessage(message: ProtoMessage, value: JsonObject, path: string, faults: ProtoFault[]): void {
  const fields = message.fields()
  for (const [name, content] of Object.entries(value)) {
    const snake = snakeCase(name)
    const field = Object.hasOwn(fields, snake) ? fields[snake] : undefined
    if (field === undefined) faults.push(unknownName(name, path, 'Cannot find field.'))
    else if (content !== null) checkField(field, content, { name, path, at: join(path, snake) }, faults)
  }
}

interface Place {
  readonly name: string
  readonly path: string
  readonly at: string
}

function checkField(field: ProtoField, content: unknown, place: Place, faults: ProtoFault[]): void {
  if (field.map) {
    if (!isObject(content)) return void faults.push(invalidValue(place.at, `${PACKAGE}.MapEntry`, content))
    for (const [key, entry] of Object.entries(content)) {
      checkSingle(field, entry, { ...place, at: `${place.at}[${mapIndex(content, key)}].value` }, faults)
    }
  } else if (Array.isArray(content) && field.type !== 'value') {
    if (!field.many) {
      return void faults.push(
        unknownName(place.name, place.path, 'Proto field is not repeating, cannot start list.'),
      )
    }
    content.forEach((entry, index) => {
      if (entry !== null) checkSingle(field, entry, { ...place, at: `${place.at}[${index}]` }, faults)
    })
  } else checkSingle(field, content, place, faults)
}

function checkSingle(field: ProtoField, content: unknown, place: Place, faults: ProtoFault[]): void {
  if (typeof field.type === 'object') {
    if (isObject(content)) checkMessage(field.type, content, place.at, faults)
    else faults.push(invalidValue(place.at, `${PACKAGE}.${field.type.name}`, content))
    return
  }
  const expected = scalarFault(field, content)
  if (expected !== undefined) faults.push(invalidValue(place.at, expected, content))
}

/** The name of the type that was expected, when the content is not of it. */
function scalarFault(field: ProtoField, content: unknown): string | undefined {
  switch (field.type) {
    case 'string':
      return typeof content === 'string' ? undefined : 'TYPE_STRING'
    case 'bool':
      return typeof content === 'boolean' ? undefined : 'TYPE_BOOL'
    case 'number':
      return typeof content === 'number' || isNumeric(content) ? undefined : 'TYPE_DOUBLE'
    case 'bytes':
      return typeof content === 'string' && isBytes(content) ? undefined : 'TYPE_BYTES'
    case 'struct':
      return isObject(content) ? undefined : STRUCT
    case 'enum':
      return isEnumValue(field, content) ? undefined : 'TYPE_ENUM'
    default:
      return undefined
  }
}

function isEnumValue(field: ProtoField, content: unknown): boolean {
  if (typeof content === 'number') return true
  return typeof content === 'string' && (field.values?.includes(content.toUpperCase()) ?? true)
}

function isNumeric(content: unknown): boolean {
  return typeof content === 'string' && content !== '' && Number.isFinite(Number(content))
}

/** Both alphabets are read, padded or not. */
function isBytes(text: string): boolean {
  return isEitherBase64(text) && text.replace(/=+$/, '').length % 4 !== 1
}

function unknownName(name: string, path: string, reason: string): ProtoFault {
  const place = path === '' ? '' : ` at '${path}'`
  return {
    field: path,
    description: `Invalid JSON payload received. Unknown name "${name}"${place}: ${reason}`,
  }
}

function invalidValue(at: string, type: string, content: unknown): ProtoFault {
  const shown = isObject(content) ? '' : JSON.stringify(content)
  const decoding = type === 'TYPE_BYTES' && typeof content === 'string' ? ` Base64 decoding failed for` : ''
  return { field: at, description: `Invalid value at '${at}' (${type}),${decoding} ${shown}`.trimEnd() }
}

function mapIndex(map: JsonObject, key: string): number {
  return Object.keys(map).indexOf(key)
}

function join(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`
}
