import { type Component, truncateToWidth, visibleWidth } from '@earendil-works/pi-tui'
import { plainLine } from '../plain-text.js'
import type { ChatState } from './chat-state.js'
import { formatCost, formatCount, formatDuration } from './format.js'
import { clip } from './item-lines.js'
import type { Theme } from './theme.js'

/** The last line: model and session on the left, what the session has used on the right. */
export class StatusLine implements Component {
  readonly #state: () => ChatState
  readonly #theme: Theme
  /** Takes the place of the line for a moment. */
  hint = ''

  constructor(state: () => ChatState, theme: Theme) {
    this.#state = state
    this.#theme = theme
  }

  invalidate(): void {}

  render(width: number): string[] {
    if (this.hint !== '') return [clip(` ${this.#theme.notable(this.hint)}`, width)]
    const { model, demo, sessionId, usage, usageIsPartial } = this.#state()
    const name = `${plainLine(model) || "the agent's model"}${demo ? ' (offline)' : ''}`
    const left = ` ${name} · ${plainLine(sessionId)}`
    const more = usageIsPartial ? '+' : ''
    const tokens = `${formatCount(usage.inputTokens)}${more} in, ${formatCount(usage.outputTokens)}${more} out`
    const isCounted = usage.cost !== undefined && usage.totalTokens > 0
    const cost = isCounted ? ` · ${formatCost(usage.cost ?? 0)}${usage.cost === 0 ? '' : more}` : ''
    for (const right of [`${tokens}${cost} `, `${tokens} `, '']) {
      const gap = width - visibleWidth(left) - visibleWidth(right)
      if (gap >= 2) return [this.#theme.dim(left + ' '.repeat(gap) + right)]
    }
    return [this.#theme.dim(truncateToWidth(left, Math.max(1, width), width > 4 ? '…' : ''))]
  }
}

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
const FRAME_MS = 100

/** What is being done, while something is. Below it, messages that wait for their turn. */
export class Activity implements Component {
  readonly #state: () => ChatState
  readonly #theme: Theme
  readonly #redraw: () => void
  #timer: NodeJS.Timeout | undefined

  constructor(state: () => ChatState, theme: Theme, redraw: () => void) {
    this.#state = state
    this.#theme = theme
    this.#redraw = redraw
  }

  invalidate(): void {}

  /** Turns while something is being done, and at no other time. */
  update(): void {
    const isWorking = this.#state().phase !== 'idle'
    if (isWorking && !this.#timer) this.#timer = setInterval(this.#redraw, FRAME_MS)
    if (!isWorking) this.stop()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  render(width: number): string[] {
    const { phase, since, queue } = this.#state()
    if (phase === 'idle' || (phase === 'tools' && this.#isAsking())) return []
    const now = Date.now()
    const frame = FRAMES[Math.floor(now / FRAME_MS) % FRAMES.length] ?? ''
    const seconds =
      now - since >= 1000
        ? ` ${formatDuration(Math.floor((now - since) / 1000) * 1000).replace('.0', '')}`
        : ''
    const keys = phase === 'stopping' ? '' : ' · Ctrl-C stops'
    const line = `  ${this.#theme.accent(frame)} ${this.#theme.dim(`${this.#words()}${seconds}${keys}`)}`
    const waiting = queue.map(text => clip(`    ${this.#theme.dim(`next: ${plainLine(text)}`)}`, width))
    return ['', clip(line, width), ...waiting]
  }

  #words(): string {
    const { phase, items, place = 1 } = this.#state()
    switch (phase) {
      case 'starting':
        return 'starting…'
      case 'waiting':
        return 'waiting: another run has the session, or was just killed'
      case 'queued':
        return `waits: place ${place} in the queue of this session`
      case 'answering':
        return 'answering…'
      case 'stopping':
        return 'stopping…'
      case 'tools': {
        const running = items.filter(item => item.kind === 'tool' && item.status === 'running')
        const names = running.map(item => (item.kind === 'tool' ? plainLine(item.name) : ''))
        return names.length === 0 ? 'working…' : `running ${names.join(', ')}…`
      }
      default:
        return 'thinking…'
    }
  }

  /** A question that is on the screen says itself what is being waited for. */
  #isAsking(): boolean {
    const tools = this.#state().items.filter(item => item.kind === 'tool')
    const isAsked = tools.some(({ status, outcome }) => status === 'waiting' || outcome?.asks)
    return isAsked && tools.every(({ status }) => status !== 'running')
  }
}
