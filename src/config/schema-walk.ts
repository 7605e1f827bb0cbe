/** Walks a Zod schema: the known keys of a place, the kinds of value it takes, and data prepared along it. */

import type { z } from 'zod'
import { own } from '../base/own.js'
import { isPlain } from '../base/redact.js'

/** The kinds of value that a text can be converted to. */
export type PlaceKind = 'number' | 'boolean' | 'list' | 'text'

/** The keys that are known at a place, or `undefined` when any key is. */
export function knownKeys(schema: z.core.$ZodType, path: readonly PropertyKey[]): string[] | undefined {
  const place = schemaAt(schema, path).find(found => found._zod.def.type === 'object')
  return place === undefined ? undefined : Object.keys(shapeOf(place))
}

/** Kinds of value that a place takes. */
export function kindsAt(schema: z.core.$ZodType, path: readonly PropertyKey[]): PlaceKind[] {
  return schemaAt(schema, path).flatMap(found => KINDS[found._zod.def.type] ?? [])
}

/** Where a key of this name is known, as dotted paths. Records are left out: their names are the user's. */
export function placesOf(schema: z.core.$ZodType, name: string): string[] {
  const root = openSchema(schema).find(found => found._zod.def.type === 'object')
  if (!root) return []
  return Object.entries(shapeOf(root)).flatMap(([key, child]) => {
    const keys = knownKeys(child, []) ?? []
    return keys.includes(name) ? [`${key}.${name}`] : []
  })
}

const KINDS: Readonly<Record<string, PlaceKind>> = {
  number: 'number',
  int: 'number',
  boolean: 'boolean',
  array: 'list',
  string: 'text',
  enum: 'text',
  literal: 'text',
}

// The parts of Zod's definitions that are walked here; each kind of schema has some of them.
interface Definition {
  type: string
  innerType?: z.core.$ZodType
  in?: z.core.$ZodType
  options?: readonly z.core.$ZodType[]
  element?: z.core.$ZodType
  valueType?: z.core.$ZodType
  shape?: Record<string, z.core.$ZodType>
  getter?: () => z.core.$ZodType
}

function definitionOf(schema: z.core.$ZodType): Definition {
  return schema._zod.def as unknown as Definition
}

function shapeOf(schema: z.core.$ZodType): Record<string, z.core.$ZodType> {
  return definitionOf(schema).shape ?? {}
}

function schemaAt(schema: z.core.$ZodType, path: readonly PropertyKey[]): z.core.$ZodType[] {
  let places = openSchema(schema)
  for (const step of path) places = places.flatMap(place => childSchema(place, step)).flatMap(openSchema)
  return places
}

/** The schema of the value under a key or an index: one, or none. */
function childSchema(schema: z.core.$ZodType, step: PropertyKey): z.core.$ZodType[] {
  const { element, valueType } = definitionOf(schema)
  if (element) return [element]
  if (valueType) return [valueType]
  const shape = shapeOf(schema)
  const child = own(shape, String(step))
  return child ? [child] : []
}

/** The schema inside defaults and optionals, or the members of a union. */
function openSchema(schema: z.core.$ZodType): z.core.$ZodType[] {
  const { innerType, in: before, options, getter } = definitionOf(schema)
  if (options) return options.flatMap(openSchema)
  const inner = innerType ?? before ?? getter?.()
  return inner ? openSchema(inner) : [schema]
}

/** A problem that a schema cannot report itself. */
export interface Misfit {
  kind: 'class' | 'name' | 'circle'
  path: readonly PropertyKey[]
  /** For a cycle: the objects from the outermost one to the repeated one. */
  circle?: readonly object[]
}

interface PreparedData {
  /** New objects and lists; values made in code are not copied. */
  value: unknown
  misfits: readonly Misfit[]
}

/**
 * Prepares data for its schema. The walk follows the schema, so values made in code are never entered or copied.
 *
 * 1. Keys set to `undefined` are removed.
 * 2. Objects that a schema would misread are reported: class instances where data is expected (a Map has no
 *    keys), the name `__proto__`, and agents that form a cycle.
 */
export function prepareData(schema: z.core.$ZodType, input: unknown): PreparedData {
  const misfits: Misfit[] = []
  const value = prepare(input, schema, { path: [], above: [], misfits })
  return { value, misfits }
}

interface Place {
  path: readonly PropertyKey[]
  above: readonly object[]
  misfits: Misfit[]
}

function prepare(value: unknown, schema: z.core.$ZodType, place: Place): unknown {
  if (typeof value !== 'object' || value === null) return value
  const choices = openSchema(schema)
  if (choices.some(choice => isMadeInCode(choice, value))) return value
  if (Array.isArray(value)) {
    return value.map((item, index) => below(item, choices, place, value, index))
  }
  const keeper = choices.find(({ _zod }) => _zod.def.type === 'object' || _zod.def.type === 'record')
  if (!keeper) return value
  if (!isPlain(value)) return misfit('class', value, place)
  if (place.above.includes(value)) return misfit('circle', value, place)
  const entries = Object.entries(value).filter(([, item]) => item !== undefined)
  if (keeper._zod.def.type === 'record' && Object.hasOwn(value, '__proto__')) {
    place.misfits.push({ kind: 'name', path: [...place.path, '__proto__'] })
  }
  return Object.fromEntries(entries.map(([key, item]) => [key, below(item, choices, place, value, key)]))
}

function below(
  item: unknown,
  choices: readonly z.core.$ZodType[],
  place: Place,
  parent: object,
  step: PropertyKey,
): unknown {
  const schema = choices.flatMap(choice => childSchema(choice, step))[0]
  if (!schema) return item
  return prepare(item, schema, {
    misfits: place.misfits,
    path: [...place.path, step],
    above: [...place.above, parent],
  })
}

function isMadeInCode(schema: z.core.$ZodType, value: object): boolean {
  return schema._zod.def.type === 'custom' && accepts(schema, value)
}

function accepts(schema: z.core.$ZodType, value: object): boolean {
  const { safeParse } = schema as z.ZodType
  return safeParse(value).success
}

function misfit(kind: 'class' | 'circle', value: object, { path, above, misfits }: Place): unknown {
  misfits.push(kind === 'circle' ? { kind, path, circle: [...above, value] } : { kind, path })
  return value
}
