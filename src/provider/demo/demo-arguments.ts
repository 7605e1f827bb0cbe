/** Plausible arguments for a tool, from its schema and what the user said. */

type Schema = Readonly<Record<string, unknown>>

/** Fills the schema's required properties, and all of them when none is required. */
export function argumentsFor(schema: Schema, text: string): Record<string, unknown> {
  const properties = asSchema(schema.properties)
  const names = Object.keys(properties)
  const required = Array.isArray(schema.required) ? schema.required.map(String) : []
  const wanted = required.length > 0 ? names.filter(name => required.includes(name)) : names
  const numbers = (text.match(/-?\d+(?:\.\d+)?/g) ?? []).map(Number)
  return Object.fromEntries(
    wanted.map(name => [name, valueFor(name, asSchema(properties[name]), text, numbers)]),
  )
}

function valueFor(name: string, schema: Schema, text: string, numbers: number[]): unknown {
  if (schema.default !== undefined) return schema.default
  if (schema.const !== undefined) return schema.const
  if (Array.isArray(schema.enum)) return chosen(schema.enum, text)
  switch (typeOf(schema)) {
    case 'integer':
      return Math.round(numbers.shift() ?? minimum(schema))
    case 'number':
      return numbers.shift() ?? minimum(schema)
    case 'boolean':
      return true
    case 'array':
      return [valueFor(name, asSchema(schema.items), text, numbers)]
    case 'object':
      return argumentsFor(schema, text)
    default:
      return stringFor(name, text)
  }
}

function chosen(options: readonly unknown[], text: string): unknown {
  const spoken = text.toLowerCase()
  return (
    options.find(option => typeof option === 'string' && spoken.includes(option.toLowerCase())) ?? options[0]
  )
}

function stringFor(name: string, text: string): string {
  for (const [pattern, find] of FINDERS) {
    const match = pattern.test(name) ? find.exec(text) : null
    if (match) return (match[1] ?? match[0]).trim()
  }
  return /"([^"]+)"/.exec(text)?.[1] ?? text.trim()
}

// By what a property is called: what in the user's words could be meant.
const FINDERS: readonly (readonly [RegExp, RegExp])[] = [
  [/url|link|address/i, /https?:\/\/[^\s"'<>)]+/],
  [/path|file|folder|directory/i, /(?:\.{0,2}\/)?[\w.-]+(?:\/[\w.-]+)*\.\w+|\.{0,2}\/[\w./-]*/],
  [/email/i, /[\w.+-]+@[\w-]+\.[\w.]+/],
  [/expression|formula|calculation/i, /[-(\d][\d\s+\-*/().^%]*[\d)]/],
  [/city|location|place|where/i, /\b(?:in|at|for|near)\s+(\p{Lu}[\p{L}-]*(?:\s\p{Lu}[\p{L}-]*)*)/u],
  [/date|day/i, /\d{4}-\d{2}-\d{2}/],
]

function typeOf(schema: Schema): string {
  const { type } = schema
  if (Array.isArray(type)) return String(type.find(one => one !== 'null') ?? 'string')
  if (typeof type === 'string') return type.toLowerCase()
  return schema.properties ? 'object' : 'string'
}

function minimum(schema: Schema): number {
  return typeof schema.minimum === 'number' ? schema.minimum : 1
}

function asSchema(value: unknown): Schema {
  return value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as Schema) : {}
}
