/** Vertex may stream a call's arguments as values at JSON paths (`$.items[0].name`); this puts them together. */

export interface PartialArgWire {
  jsonPath?: string
  stringValue?: string
  numberValue?: number
  boolValue?: boolean
  nullValue?: unknown
  willContinue?: boolean
}

/** Writes one streamed value into the arguments. Text at a path that has text already continues it. */
export function applyPartialArg(args: Record<string, unknown>, partial: PartialArgWire): void {
  const path = parsePath(partial.jsonPath ?? '')
  const last = path.pop()
  if (last === undefined) return
  let place: Container = args
  for (const [index, key] of path.entries()) {
    const next = path[index + 1] ?? last
    place = childOf(place, key, typeof next === 'number')
  }
  const before = read(place, last)
  const value = partialValue(partial)
  write(place, last, typeof before === 'string' && typeof value === 'string' ? before + value : value)
}

type Container = Record<string, unknown> | unknown[]

function childOf(place: Container, key: string | number, isArray: boolean): Container {
  const found = read(place, key)
  if (found !== null && typeof found === 'object') return found as Container
  const made: Container = isArray ? [] : {}
  write(place, key, made)
  return made
}

function read(place: Container, key: string | number): unknown {
  return Object.hasOwn(place, key) ? (place as Record<string | number, unknown>)[key] : undefined
}

function write(place: Container, key: string | number, value: unknown): void {
  Object.defineProperty(place, key, { value, enumerable: true, configurable: true, writable: true })
}

function partialValue(partial: PartialArgWire): unknown {
  if (partial.stringValue !== undefined) return partial.stringValue
  if (partial.numberValue !== undefined) return partial.numberValue
  if (partial.boolValue !== undefined) return partial.boolValue
  return null
}

/** `$.a['b c'][0]` → `['a', 'b c', 0]`. An index is bounded, so that no path can ask for a giant array. */
function parsePath(path: string): (string | number)[] {
  const steps: (string | number)[] = []
  for (const match of path.matchAll(/\.([^.[\]]+)|\[(\d{1,5})\]|\[['"](.*?)['"]\]/g)) {
    if (match[2] !== undefined) steps.push(Number(match[2]))
    else steps.push(match[1] ?? match[3] ?? '')
  }
  return steps
}
