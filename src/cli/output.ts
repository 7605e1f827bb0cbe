import { fitText, padText, textWidth } from './plain-text.js'

/** What goes to standard output and standard error: colours only where they are seen, and no noise from pipes. */

let colorAllowed = true
let whenPipeCloses = (): void => {
  process.exit(0)
}

/** Forbids colours for the rest of the process. */
export function forbidColor(): void {
  colorAllowed = false
}

/**
 * A reader that has seen enough (`| head`) closes its pipe. That is no error: the command ends quietly, or does
 * what `onClosedPipe` said.
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

/** Called when the reader of standard output has gone, instead of ending the process. */
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

/** A line on standard error: what a person wants to know and a pipe must not get. */
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

/** How text is emphasised on a stream; on anything but a terminal it stays as it is. */
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

/** How wide a line may be. What is not a terminal has no edge, but tables have to end somewhere. */
export function lineWidth(): number {
  const width = process.stdout.columns ?? Number(process.env.COLUMNS)
  return Number.isFinite(width) && width > 0 ? Math.max(40, width) : 120
}

function isClosedPipe(error: Error & { code?: unknown }): boolean {
  // EIO is what a terminal says that has been closed.
  return error.code === 'EPIPE' || error.code === 'EIO' || error.code === 'ERR_STREAM_DESTROYED'
}

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

/** Says on standard error how far a long task is; a task that is over soon says nothing. */
export class Progress {
  private readonly startedAt = Date.now()
  private toldAt = Date.now()
  private shown = false

  /** `describe` words the state of things, as in "exported 1,000 of 5,000 messages". */
  constructor(private readonly stream: NodeJS.WriteStream = process.stderr) {}

  tell(describe: () => string): void {
    const now = Date.now()
    const pause = this.stream.isTTY ? 100 : 5000
    if (now - this.startedAt < FIRST_AFTER_MS || now - this.toldAt < pause) return
    this.toldAt = now
    this.shown = true
    // A line that wraps cannot be written over.
    const fitting = () => fitText(describe(), (this.stream.columns ?? 80) - 1)
    this.stream.write(this.stream.isTTY ? `\r${fitting()}\u001b[K` : `${describe()}\n`)
  }

  /** Wipes the line, so that what follows stands alone. */
  end(): void {
    if (this.shown && this.stream.isTTY) this.stream.write('\r\u001b[K')
  }
}

const FIRST_AFTER_MS = 500
