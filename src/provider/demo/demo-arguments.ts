/** Plausible arguments for a tool, from its schema and what the user said. */

type Schema = Readonly<Record<string, unknown>>

/** Fills the schema's required properties; when none is required, those that the words say something of. */
export function argumentsFor(schema: Schema, text: string): Record<string, unknown> {
  const properties = asSchema(schema.properties)
  const names = Object.keys(properties)
  const required = Array.isArray(schema.required) ? schema.required.map(String) : []
  const isFree = required.length === 0
  const wanted = isFree ? names : names.filter(name => required.includes(name))
  const numbers = (text.match(/-?\d+(?:\.\d+)?/g) ?? []).map(Number)
  return Object.fromEntries(
    wanted
      .filter(name => !isFree || isSaid(name, asSchema(properties[name]), text, numbers))
      .map(name => [name, valueFor(name, asSchema(properties[name]), text, numbers)]),
  )
}

/** Whether the words hold anything for a property that may be left out. */
function isSaid(name: string, schema: Schema, text: string, numbers: readonly number[]): boolean {
  if (schema.default !== undefined || Array.isArray(schema.enum)) return true
  const type = typeOf(schema)
  if (type === 'integer' || type === 'number') return numbers.length > 0
  if (type !== 'string') return true
  const isKnown = FINDERS.some(([pattern]) => pattern.test(name))
  return !isKnown || found(name, text) !== undefined || QUOTED.test(text)
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
  return found(name, text) ?? QUOTED.exec(text)?.[1] ?? text.trim()
}

function found(name: string, text: string): string | undefined {
  if (ZONE_NAME.test(name)) return zoneIn(text)
  for (const [pattern, find] of FINDERS) {
    const match = pattern.test(name) ? find.exec(text) : null
    if (match) return (match[1] ?? match[0]).trim()
  }
  return undefined
}

/** A time zone that is named, or the one of a city that is: `New York` is `America/New_York`. */
function zoneIn(text: string): string | undefined {
  const spoken = text.toLowerCase().replaceAll(' ', '_')
  return Intl.supportedValuesOf('timeZone').find(zone => {
    const city = zone.slice(zone.lastIndexOf('/') + 1).toLowerCase()
    return new RegExp(`(^|[^a-z])${city}($|[^a-z])`).test(spoken)
  })
}

const QUOTED = /"([^"]+)"/
const ZONE_NAME = /time_?zone/i

// By what a property is called: what in the user's words could be meant.
const FINDERS: readonly (readonly [RegExp, RegExp])[] = [
  [/url|link|address/i, /https?:\/\/[^\s"'<>)]+/],
  [/path|file|folder|directory/i, /(?:\.{0,2}\/)?[\w.-]+(?:\/[\w.-]+)*\.\w+|\.{0,2}\/[\w./-]*/],
  [/email/i, /[\w.+-]+@[\w-]+\.[\w.]+/],
  [/expression|formula|calculation/i, /[-(\d][\d\s+\-*/().^%]*[\d)]/],
  [/city|location|place|where/i, /\b(?:in|at|for|near)\s+(\p{Lu}[\p{L}-]*(?:\s\p{Lu}[\p{L}-]*)*)/u],
  [/date|day/i, /\d{4}-\d{2}-\d{2}/],
  // Found by the list of zones.
  [ZONE_NAME, /^$/],
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
