/**
 * Readies data for its schema. The walk follows the schema, so values made in code are never entered or copied.
 *
 * 1. Keys set to `undefined` are left out.
 * 2. Objects that a schema would misread are reported: instances of classes where data belongs (a Map has no
 *    keys), the name `__proto__`, and agents that form a circle.
 */
import type { z } from 'zod'
import { isPlain } from '../base/redact.js'
import { childSchema, openSchema } from './schema-paths.js'

/** Something that a schema cannot report itself. */
export interface Misfit {
  kind: 'class' | 'name' | 'circle'
  path: readonly PropertyKey[]
  /** For a circle: the objects on the way from the outermost one to the one that comes again. */
  circle?: readonly object[]
}

export interface PreparedData {
  /** New objects and lists; everything that was made in code is still itself. */
  value: unknown
  misfits: readonly Misfit[]
}

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
