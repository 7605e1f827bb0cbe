import { fitText, padText, textWidth } from './text-width.js'

export interface Column {
  title: string
  align?: 'right'
  /** Takes what room is left; the others are as wide as their widest cell. */
  flexible?: boolean
  /** The least that a column may be squeezed to when the terminal is narrow. */
  least?: number
}

const GAP = 2

/** Lines of a table that fits `width` columns. The first line holds the titles. */
export function tableLines(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  width: number,
): string[] {
  const widths = columnWidths(columns, rows, width)
  const titles = columns.map(({ title }) => title)
  return [titles, ...rows].map(row =>
    columns
      .map((column, index) => cell(row[index] ?? '', widths[index] ?? 0, column))
      .join(' '.repeat(GAP))
      .trimEnd(),
  )
}

function cell(text: string, width: number, { align }: Column): string {
  const shown = fitText(text, width)
  return align === 'right' ? ' '.repeat(Math.max(0, width - textWidth(shown))) + shown : padText(shown, width)
}

function columnWidths(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  width: number,
): number[] {
  const natural = columns.map((column, index) =>
    Math.max(textWidth(column.title), ...rows.map(row => textWidth(row[index] ?? ''))),
  )
  let excess = sum(natural) + GAP * (columns.length - 1) - width
  const squeeze = (index: number, least: number) => {
    const cut = Math.min(Math.max(0, excess), Math.max(0, (natural[index] ?? 0) - least))
    natural[index] = (natural[index] ?? 0) - cut
    excess -= cut
  }
  // The flexible column gives first, then those that allow it, the widest first.
  for (const [index, { flexible, least = 8 }] of columns.entries()) if (flexible) squeeze(index, least)
  for (const [index, { flexible, least }] of columns.entries()) {
    if (!flexible && least !== undefined) squeeze(index, least)
  }
  return natural
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
