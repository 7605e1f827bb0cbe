import type { DescribedRow } from './describe-rows.js'

export interface ListItem {
  key: string
  /** One row, or several that were not sent and stand for a single line. */
  rows: readonly DescribedRow[]
  isFold: boolean
}

/** A run of messages that were not sent is one line until it is asked for. */
export function foldRows(
  rows: readonly DescribedRow[],
  { changesOnly, unfolded }: { changesOnly: boolean; unfolded: ReadonlySet<string> },
): ListItem[] {
  const items: ListItem[] = []
  let unsent: DescribedRow[] = []
  const close = () => {
    const [first] = unsent
    if (!first) return
    const key = `fold-${first.key}`
    if (unsent.length < FOLDED_FROM || unfolded.has(key)) {
      for (const row of unsent) items.push({ key: row.key, rows: [row], isFold: false })
    } else {
      items.push({ key, rows: unsent, isFold: true })
    }
    unsent = []
  }
  for (const row of rows) {
    if (row.fate === 'not-sent') {
      unsent.push(row)
      continue
    }
    close()
    if (!changesOnly || row.fate !== 'same') items.push({ key: row.key, rows: [row], isFold: false })
  }
  close()
  return items
}

const FOLDED_FROM = 3
