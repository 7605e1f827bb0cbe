import {
  type Component,
  decodeKittyPrintable,
  fuzzyFilter,
  matchesKey,
  SelectList,
  truncateToWidth,
} from '@earendil-works/pi-tui'
import { plainLine } from '../plain-text.js'
import { clip } from './item-lines.js'
import type { Choice } from './model-choices.js'
import { selectTheme, type Theme } from './theme.js'

/** A list to choose from; typing narrows it. */
export class Picker implements Component {
  onDone: (value: string | undefined) => void = () => {}
  readonly #choices: readonly Choice[]
  #filter = ''
  #list: SelectList

  constructor(
    private readonly title: string,
    choices: readonly Choice[],
    private readonly theme: Theme,
    private readonly rows: number,
  ) {
    this.#choices = choices.map(choice => ({ ...choice, label: plainLine(choice.label) }))
    this.#list = this.#makeList()
  }

  invalidate(): void {}

  handleInput(data: string): void {
    const typed = decodeKittyPrintable(data) ?? data
    if (matchesKey(data, 'backspace')) this.#narrow([...this.#filter].slice(0, -1).join(''))
    else if (/^[^\p{Cc}]+$/u.test(typed)) this.#narrow(this.#filter + typed)
    else this.#list.handleInput(data)
  }

  render(width: number): string[] {
    const { theme } = this
    const keys = this.#filter === '' ? 'type to narrow, Enter takes, Esc leaves' : plainLine(this.#filter)
    return [
      '',
      clip(`  ${theme.bold(this.title)} ${theme.dim(`· ${keys}`)}`, width),
      ...this.#lines(Math.max(8, width - 2)).map(line => clip(`  ${line}`, width)),
    ]
  }

  #lines(width: number): string[] {
    return this.#list.getSelectedItem() === null
      ? [this.theme.dim('  nothing matches')]
      : this.#list.render(width)
  }

  #narrow(filter: string): void {
    this.#filter = filter
    this.#list = this.#makeList()
  }

  #makeList(): SelectList {
    const found = fuzzyFilter(
      [...this.#choices],
      this.#filter,
      ({ label, description = '' }) => `${label} ${description}`,
    )
    const list = new SelectList(found, Math.max(3, Math.min(12, this.rows - 10)), selectTheme(this.theme), {
      minPrimaryColumnWidth: 16,
      maxPrimaryColumnWidth: 44,
      truncatePrimary: ({ text, maxWidth }) => truncateToWidth(text, maxWidth, '…'),
    })
    list.onSelect = item => this.onDone(item.value)
    list.onCancel = () => this.onDone(undefined)
    return list
  }
}
