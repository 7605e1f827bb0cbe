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
