export interface Difference {
  path: string
  before: unknown
  after: unknown
}
export function compareRecords(
  old: Record<string, Record<string, unknown>>,
  now: Record<string, Record<string, unknown>>,
): { structure: Difference[]; words: Difference[] }
