/** Standard output and standard error: colours only on a terminal, tables and progress. */
import type { Io, OutputStream } from './io.js'
import { fitText, padText, textWidth } from './plain-text.js'

/** Writes to standard output and waits while its reader is slow. */
export async function print(io: Io, text: string): Promise<void> {
  if (io.stdout.write(text) || io.stdout.destroyed) return
  await new Promise<void>(resolve => {
    const done = () => {
      io.stdout.off('drain', done)
      io.stdout.off('close', done)
      resolve()
    }
    io.stdout.on('drain', done)
    io.stdout.on('close', done)
  })
}

/** One JSON document on standard output. */
export function printJson(io: Io, value: unknown): Promise<void> {
  return print(io, `${JSON.stringify(value, null, 2)}\n`)
}

/** A line on standard error, for what a person wants to know and a pipe must not get. */
export function note(io: Pick<Io, 'stderr'>, text: string): void {
  io.stderr.write(`${text}\n`)
}

export interface Styles {
  bold(text: string): string
  dim(text: string): string
  green(text: string): string
  yellow(text: string): string
  red(text: string): string
}

/** Text styles for a stream; without effect on anything but a terminal. */
export function stylesOf({ env, color }: Pick<Io, 'env' | 'color'>, stream: OutputStream): Styles {
  const shown = color && stream.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb'
  const style = (on: number, off: number) => (text: string) =>
    shown && text !== '' ? `\u001b[${on}m${text}\u001b[${off}m` : text
  return {
    bold: style(1, 22),
    dim: style(2, 22),
    green: style(32, 39),
    yellow: style(33, 39),
    red: style(31, 39),
  }
}

/** The width of a line: the terminal's, COLUMNS, or 120. */
export function lineWidth(io: Io): number {
  const width = io.stdout.columns ?? Number(io.env.COLUMNS)
  return Number.isFinite(width) && width > 0 ? Math.max(40, width) : 120
}

export interface Column {
  title: string
  align?: 'right'
  /** Shrinks first; the others are as wide as their widest cell. */
  flexible?: boolean
  /** The minimum width on a narrow terminal. */
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
  // The flexible column shrinks first, then those with a minimum, from left to right.
  for (const [index, { flexible, least = 8 }] of columns.entries()) if (flexible) squeeze(index, least)
  for (const [index, { flexible, least }] of columns.entries()) {
    if (!flexible && least !== undefined) squeeze(index, least)
  }
  return natural
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

/** Reports the progress of a long task on standard error. A task that ends within half a second reports nothing. */
export class Progress {
  readonly #stream: OutputStream
  readonly #startedAt = Date.now()
  #reportedAt = Date.now()
  #isShown = false

  constructor({ stderr }: Pick<Io, 'stderr'>) {
    this.#stream = stderr
  }

  /** `describe` returns the state of the task, as in "exported 1,000 of 5,000 messages". */
  report(describe: () => string): void {
    const now = Date.now()
    const isTerminal = this.#stream.isTTY
    const intervalMs = isTerminal ? 100 : 5000
    if (now - this.#startedAt < FIRST_AFTER_MS || now - this.#reportedAt < intervalMs) return
    this.#reportedAt = now
    this.#isShown = true
    // A line that wraps cannot be overwritten.
    const fitting = () => fitText(describe(), (this.#stream.columns ?? 80) - 1)
    this.#stream.write(isTerminal ? `\r${fitting()}\u001b[K` : `${describe()}\n`)
  }

  /** Clears the line, so that the next output starts on an empty one. */
  end(): void {
    if (this.#isShown && this.#stream.isTTY) this.#stream.write('\r\u001b[K')
  }
}

const FIRST_AFTER_MS = 500
