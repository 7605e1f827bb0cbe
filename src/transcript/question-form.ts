/**
 * The form of a question: fields from the JSON schema that an MCP server asks with (texts, numbers, yes or no, choices), and
 * the answer from what a person has entered. Page and terminal show the same fields.
 */
import { isRecord } from '../base/is-record.js'

export interface FormField {
  readonly name: string
  readonly label: string
  readonly description?: string
  readonly kind: 'text' | 'number' | 'integer' | 'flag' | 'choice' | 'choices'
  /** For texts: as the type of an input. */
  readonly format?: 'email' | 'url' | 'date'
  readonly options?: readonly { readonly value: string; readonly label: string }[]
  readonly required: boolean
  readonly initial?: string | boolean | readonly string[]
}

/** What a question asks for. */
export interface QuestionForm {
  readonly fields: readonly FormField[]
  /** A page to open before the answer. */
  readonly url?: string
}

export type FormValues = Readonly<Record<string, string | boolean | readonly string[]>>

export type FormContent = Record<string, string | number | boolean | string[]>

/** The form of a question with these arguments; `undefined` when it is a plain yes or no. */
export function questionForm(args: unknown): QuestionForm | undefined {
  if (!isRecord(args) || typeof args.server !== 'string') return undefined
  const url = typeof args.url === 'string' && /^https?:\/\//i.test(args.url) ? args.url : undefined
  const schema = isRecord(args.schema) ? args.schema : {}
  const properties = isRecord(schema.properties) ? schema.properties : {}
  const required: unknown[] = Array.isArray(schema.required) ? schema.required : []
  const fields = Object.entries(properties).map(([name, field]) =>
    toField(name, isRecord(field) ? field : {}, required.includes(name)),
  )
  if (fields.length === 0 && url === undefined) return undefined
  return { fields, ...(url === undefined ? {} : { url }) }
}

interface AskingEvent {
  id: string
  callId?: string
  args: unknown
  reason?: string | undefined
}

/** What a call is while it asks: an approval, a confirmation of ADK's, or a question with a form. */
export function askingFacts({ id, callId, args, reason }: AskingEvent, isAdks: boolean) {
  const form = isAdks || callId === undefined ? undefined : questionForm(args)
  return {
    status: 'waiting' as const,
    ...(reason === undefined ? {} : { reason }),
    ...(isAdks ? { onceOnly: true as const } : {}),
    ...(form ? { form: { ...form, id } } : {}),
  }
}

/** A call that asks no more. */
export function unasked<Call extends object>(call: Call): Omit<Call, 'reason' | 'onceOnly' | 'form'> {
  const { reason: _reason, onceOnly: _once, form: _form, ...rest } = call as Call & Record<string, unknown>
  return rest as Omit<Call, 'reason' | 'onceOnly' | 'form'>
}

/** What is in the fields before a person has entered anything. */
export function initialValues(fields: readonly FormField[]): FormValues {
  return Object.fromEntries(fields.map(({ name, kind, initial }) => [name, initial ?? EMPTY[kind]]))
}

/** The answer, or what is wrong with it. Fields that were left empty are left out. */
export function formContent(
  fields: readonly FormField[],
  values: FormValues,
): { content: FormContent } | { problem: string } {
  const content: FormContent = {}
  for (const field of fields) {
    const read = readField(field, values[field.name] ?? EMPTY[field.kind])
    if (read && 'problem' in read) return read
    if (read) content[field.name] = read.value
    else if (field.required) return { problem: `${field.label} is needed.` }
  }
  return { content }
}

const EMPTY = { text: '', number: '', integer: '', flag: false, choice: '', choices: [] } as const

function readField(
  { kind, label, options = [] }: FormField,
  value: string | boolean | readonly string[],
): { value: FormContent[string] } | { problem: string } | undefined {
  if (kind === 'flag') return { value: value === true || value === 'true' }
  if (kind === 'choices') {
    const chosen = typeof value === 'object' ? [...value] : []
    return chosen.length > 0 ? { value: chosen } : undefined
  }
  const text = String(value).trim()
  if (text === '') return undefined
  if (kind === 'text') return { value: String(value) }
  if (kind === 'choice') {
    const known = options.some(option => option.value === text)
    return known
      ? { value: text }
      : { problem: `${label} must be one of ${options.map(each => each.value).join(', ')}.` }
  }
  const number = Number(text)
  if (!Number.isFinite(number)) return { problem: `${label} must be a number.` }
  if (kind === 'integer' && !Number.isInteger(number)) return { problem: `${label} must be a whole number.` }
  return { value: number }
}

function toField(name: string, field: Record<string, unknown>, required: boolean): FormField {
  const label = typeof field.title === 'string' && field.title !== '' ? field.title : name
  const description = typeof field.description === 'string' ? { description: field.description } : {}
  const shared = { name, label, ...description, required }
  const given = field.default
  if (field.type === 'boolean') return { ...shared, kind: 'flag', initial: given === true }
  if (field.type === 'number' || field.type === 'integer')
    return { ...shared, kind: field.type, ...(typeof given === 'number' ? { initial: String(given) } : {}) }
  if (field.type === 'array') {
    const options = optionsOf(isRecord(field.items) ? field.items : {})
    const initial = Array.isArray(given) ? { initial: given.map(String) } : {}
    return { ...shared, kind: 'choices', options, ...initial }
  }
  const initial = typeof given === 'string' ? { initial: given } : {}
  const options = optionsOf(field)
  if (options.length > 0) return { ...shared, kind: 'choice', options, ...initial }
  const format = FORMATS.get(field.format)
  return { ...shared, kind: 'text', ...(format ? { format } : {}), ...initial }
}

const FORMATS: ReadonlyMap<unknown, 'email' | 'url' | 'date'> = new Map([
  ['email', 'email'],
  ['uri', 'url'],
  ['date', 'date'],
])

/** `enum` with or without `enumNames`, or `oneOf` and `anyOf` with titles. */
function optionsOf(field: Record<string, unknown>): { value: string; label: string }[] {
  const { enumNames, enum: values } = field
  const names: unknown[] = Array.isArray(enumNames) ? enumNames : []
  if (Array.isArray(values))
    return values.map((value: unknown, index) => ({
      value: String(value),
      label: String(names[index] ?? value),
    }))
  const titled: unknown = field.oneOf ?? field.anyOf
  if (!Array.isArray(titled)) return []
  return titled.flatMap((option: unknown) =>
    isRecord(option) && option.const !== undefined
      ? [{ value: String(option.const), label: String(option.title ?? option.const) }]
      : [],
  )
}
