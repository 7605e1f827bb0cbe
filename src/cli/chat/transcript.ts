import type { Component } from '@earendil-works/pi-tui'
import type { ChatItem } from './chat-item.js'
import type { ChatState } from './chat-state.js'
import { clip, itemLines, noticeLines } from './item-lines.js'
import type { Theme } from './theme.js'

/** Everything that was said so far. Lines are kept for each item until it, or the view of it, changes. */
export class Transcript implements Component {
  readonly #state: () => ChatState
  readonly #theme: Theme
  #kept = new Map<number, { item: ChatItem; lines: string[] }>()
  #view = ''

  constructor(state: () => ChatState, theme: Theme) {
    this.#state = state
    this.#theme = theme
  }

  invalidate(): void {
    this.#kept.clear()
  }

  render(width: number): string[] {
    const { header, items, showReasoning, agent } = this.#state()
    const view = `${width} ${showReasoning} ${agent}`
    if (view !== this.#view) this.#kept.clear()
    this.#view = view
    const kept = new Map<number, { item: ChatItem; lines: string[] }>()
    const lines = header.flatMap(text => noticeLines('quiet', text, this.#theme, width))
    let before: ChatItem | undefined
    for (const item of items) {
      const known = this.#kept.get(item.id)
      const own =
        known?.item === item
          ? known.lines
          : // Measured once, and not with every frame: pi-tui ends the program over a line that is too wide.
            itemLines(item, this.#theme, { width, showReasoning, agent }).map(line => clip(line, width))
      kept.set(item.id, { item, lines: own })
      if (needsSpace(before, item) && lines.length > 0) lines.push('')
      for (const line of own) lines.push(line)
      before = item
    }
    this.#kept = kept
    return lines
  }
}

/** Small things stand together; what people and models say has air around it. */
function needsSpace(before: ChatItem | undefined, item: ChatItem): boolean {
  return !(before && isSmall(before) && isSmall(item))
}

function isSmall({ kind }: ChatItem): boolean {
  return kind === 'tool' || kind === 'notice' || kind === 'reasoning'
}
