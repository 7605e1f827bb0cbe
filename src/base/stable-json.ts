import { isRecord } from './is-record.js'

/**
 * JSON with the keys of every object in one order: two values have one text exactly when their JSON means the
 * same. Throws, as `JSON.stringify` does, for a value that contains itself.
 */
export function stableJson(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) => (isRecord(inner) ? sorted(inner) : inner))
}

function sorted(value: object): object {
  return Object.fromEntries(Object.entries(value).sort(([left], [right]) => (left < right ? -1 : 1)))
}
