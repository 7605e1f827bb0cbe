/** Standard output and standard error: colours only on a terminal, tables, progress, and closed pipes. */
import { fitText, padText, textWidth } from './plain-text.js'

let colorAllowed = true
let whenPipeCloses = (): void => {
  process.exit(0)
}

/** Forbids colours for the rest of the process. */
export function forbidColor(): void {
  colorAllowed = false
}

/**
 * Handles a reader that closes its pipe early (`| head`). That is no error: the process exits with 0, or runs what
 * `onClosedPipe` has set.
 */
export function guardPipes(): void {
  process.stdout.on('error', error => {
    if (!isClosedPipe(error)) throw error
    whenPipeCloses()
  })
  process.stderr.on('error', error => {
    if (!isClosedPipe(error)) throw error
  })
}

/** Sets what to do instead of exiting when the reader of standard output closes its pipe. */
export function onClosedPipe(action: () => void): void {
  whenPipeCloses = action
}

/** Writes to standard output and waits while its reader is slow. */
export async function print(text: string): Promise<void> {
  if (process.stdout.write(text) || process.stdout.destroyed) return
  await new Promise<void>(resolve => {
    const done = () => {
      process.stdout.off('drain', done)
      process.stdout.off('close', done)
      resolve()
    }
    process.stdout.on('drain', done)
    process.stdout.on('close', done)
  })
}

/** One JSON document on standard output. */
export function printJson(value: unknown): Promise<void> {
  return print(`${JSON.stringify(value, null, 2)}\n`)
}

/** A line on standard error, for what a person wants to know and a pipe must not get. */
export function note(text: string): void {
  process.stderr.write(`${text}\n`)
}

export interface Styles {
  bold(text: string): string
  dim(text: string): string
  green(text: string): string
  yellow(text: string): string
  red(text: string): string
}

/** Text styles for a stream; without effect on anything but a terminal. */
export function stylesOf(stream: { isTTY?: boolean }): Styles {
  const shown = colorAllowed && stream.isTTY === true && !process.env.NO_COLOR && process.env.TERM !== 'dumb'
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
export function lineWidth(): number {
  const width = process.stdout.columns ?? Number(process.env.COLUMNS)
  return Number.isFinite(width) && width > 0 ? Math.max(40, width) : 120
}

function isClosedPipe(error: Error & { code?: unknown }): boolean {
  // A closed terminal reports EIO.
  return error.code === 'EPIPE' || error.code === 'EIO' || error.code === 'ERR_STREAM_DESTROYED'
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
  readonly #stream: NodeJS.WriteStream
  readonly #startedAt = Date.now()
  #reportedAt = Date.now()
  #isShown = false

  constructor(stream: NodeJS.WriteStream = process.stderr) {
    this.#stream = stream
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
