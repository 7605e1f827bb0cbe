import type { RunEvent } from '../run/run-event.js'
import { note, type Styles, stylesOf } from './output.js'
import { plainLine, plainText } from './plain-text.js'
import { fitText } from './text-width.js'
import { count } from './wording.js'

export interface PrinterOptions {
  /** Text is shown as it comes; otherwise the answer alone, when it is complete. */
  streams: boolean
  quiet: boolean
  /** Text goes to a terminal, which obeys control sequences. */
  isTerminal: boolean
  write(text: string): void
  /** Said when the demo model answers. */
  demoNotice: string
}

/** What is neither the answer nor the end of a run. */
type Happening = Exclude<RunEvent, { type: 'run-start' | 'text-delta' | 'run-finish' | 'error' }>

/** Shows a run to a person: the answer on standard output, everything else on standard error. */
export class RunPrinter {
  private readonly styles: Styles = stylesOf(process.stderr)
  private readonly startedAt = new Map<string, number>()
  private atLineStart = true
  private wrote = false

  constructor(private readonly options: PrinterOptions) {}

  show(event: RunEvent): void {
    switch (event.type) {
      case 'run-start':
        if (event.demo) this.notice(this.options.demoNotice)
        return
      case 'text-delta':
        if (this.options.streams) this.text(event.text)
        return
      case 'run-finish':
        this.finish(event.text)
        return
      case 'error':
        this.endLine()
        note(`lango: ${plainLine(event.error.message)}`)
        return
      default: {
        const words = this.wordsFor(event)
        if (words !== undefined) this.notice(words)
      }
    }
  }

  private finish(answer: string): void {
    if (!this.options.streams && answer !== '') this.text(answer)
    this.endLine()
  }

  private text(text: string): void {
    const shown = this.options.isTerminal ? plainText(text) : text
    if (shown === '') return
    this.options.write(shown)
    this.wrote = true
    this.atLineStart = shown.endsWith('\n')
  }

  private endLine(): void {
    if (this.wrote && !this.atLineStart) this.options.write('\n')
    this.atLineStart = true
  }

  private notice(words: string): void {
    if (this.options.quiet) return
    // A notice between two pieces of text must not stand in the middle of a line.
    if (this.options.isTerminal) this.endLine()
    note(this.styles.dim(fitText(plainLine(words), 400)))
  }

  private wordsFor(event: Happening): string | undefined {
    switch (event.type) {
      case 'tool-call':
        this.startedAt.set(event.id, Date.now())
        return `→ ${event.name} ${fitText(JSON.stringify(event.args), 200)}`
      case 'tool-result':
        return `← ${event.name}${event.isError ? ' failed' : ''} ${this.timeOf(event.id)} ${fitText(shown(event.result), 160)}`
      case 'agent-transfer':
        return `${event.from} hands over to ${event.to}`
      case 'turn-warning':
        return `${event.turns} of ${event.maxTurns} turns are used`
      case 'wrap-up':
        return `the limit is reached (${event.reason}): the model gets one last turn`
      case 'history-cut':
        return `${count(event.cut.messages, 'older message')} left out to fit the budget`
      case 'repair':
        return `the history was repaired for ${event.model}: ${count(event.repairs.length, 'change')}`
      case 'approval-answer':
        return event.answer === 'once' || event.answer === 'always'
          ? undefined
          : `${event.name} was not allowed`
      case 'reasoning-delta':
      case 'usage':
      case 'approval-request':
        return undefined
      default:
        event satisfies never
        return undefined
    }
  }

  private timeOf(callId: string): string {
    const startedAt = this.startedAt.get(callId)
    this.startedAt.delete(callId)
    return startedAt === undefined ? '' : `(${((Date.now() - startedAt) / 1000).toFixed(1)} s)`
  }
}

function shown(result: unknown): string {
  return typeof result === 'string' ? result : (JSON.stringify(result) ?? '')
}
