/** Whether a value is an object with string keys: not null, not an array. Class instances count. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
