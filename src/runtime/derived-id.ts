/** Ids that are derived from what they stand for: the same thing twice has one id, in every process. */
import { createHash } from 'node:crypto'

/** A digest of a list of texts. */
export function digest(parts: readonly string[]): string {
  const hash = createHash('sha256')
  // With its length before each part, no two lists have the same digest.
  for (const part of parts) hash.update(`${part.length}\n`).update(part)
  return hash.digest('hex')
}

/** A UUID of version 8, which is the one for ids of one's own making. */
export function uuidOf(parts: readonly string[]): string {
  const hex = digest(parts)
  const variant = '89ab'[Number.parseInt(hex[16] ?? '0', 16) % 4]
  const groups = [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `${variant}${hex.slice(17, 20)}`,
  ]
  return [...groups, hex.slice(20, 32)].join('-')
}
