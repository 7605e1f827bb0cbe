import { fitText } from './text-width.js'

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
