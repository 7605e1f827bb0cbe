/** Places in the body of a request, as errors name them. */
import { isRecord } from '../base/is-record.js'

/** As far as the place can be followed; names of union members that the body does not have are passed over. */
export function nodeAt(body: unknown, place: readonly string[]): { node: unknown; names: readonly string[] } {
  // Places of AWS's validation count from one.
  const first = place.includes('member') ? 1 : 0
  let node = body
  for (const name of place) {
    const next = Array.isArray(node) ? node[Number(name) - first] : childOf(node, name)
    if (next !== null && typeof next === 'object') node = next
    else if (/^\d+$/.test(name)) return { node: undefined, names: [] }
  }
  return { node, names: place }
}

function childOf(node: unknown, name: string): unknown {
  if (!isRecord(node)) return undefined
  const camel = name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
  return node[name] ?? node[camel]
}

const DEEPEST = 12

/** All texts below a node. */
export function textsIn(node: unknown, depth = 0): string[] {
  if (typeof node === 'string') return [node]
  if (typeof node !== 'object' || node === null || depth > DEEPEST) return []
  return Object.values(node).flatMap(value => textsIn(value, depth + 1))
}
