import type { PlaceKind } from './schema-paths.js'

/** Says which kinds of value a place of the configuration takes. */
export type PlaceReader = (path: readonly PropertyKey[]) => readonly PlaceKind[]

/** A text from the environment as the kind of value that its place takes; otherwise the text as it is. */
export function valueFor(place: PlaceReader, path: readonly PropertyKey[], text: string): unknown {
  const kinds = place(path)
  if (kinds.includes('number') && /^[+-]?\d+(\.\d+)?$/.test(text)) return Number(text)
  if (kinds.includes('boolean')) return FLAGS.get(text.toLowerCase()) ?? text
  if (kinds.includes('list')) {
    return text
      .split(',')
      .map(item => item.trim())
      .filter(item => item !== '')
  }
  return text
}

const FLAGS: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['1', true],
  ['yes', true],
  ['on', true],
  ['false', false],
  ['0', false],
  ['no', false],
  ['off', false],
])
