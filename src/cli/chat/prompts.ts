import {
  type Component,
  decodeKittyPrintable,
  fuzzyFilter,
  matchesKey,
  SelectList,
  truncateToWidth,
  visibleWidth,
} from '@earendil-works/pi-tui'
import type { ApprovalAnswer, OutcomeAnswer } from '../../tool.js'
import { OUTCOME_WORDS } from '../../transcript/item.js'
import { plainLine, plainText } from '../plain-text.js'
import { count } from '../wording.js'
import type { ApprovalQuestion, CallFacts } from './chat-session.js'
import { argumentEntries } from './format.js'
import { clip, hanging } from './item-lines.js'
import type { Choice } from './model-choices.js'
import { selectTheme, type Theme } from './theme.js'

/** A question about a tool call, and the answers to choose from. */
export interface CallQuestion<Answer> {
  /** The words around the tool's name. */
  title: readonly [before: string, after: string]
  call: CallFacts
  options: readonly { key: string; answer: Answer; label: string }[]
  /** The answer of Escape, and of a question that is taken back. */
  otherwise: Answer
  /** The answer of Enter. */
  selected: Answer
}

/** Whether a tool may run. */
export function approvalQuestion(question: ApprovalQuestion): CallQuestion<ApprovalAnswer> {
  const options = question.onceOnly ? APPROVALS.filter(({ answer }) => answer !== 'always') : APPROVALS
  return { title: ['Allow', '?'], call: question, options, otherwise: 'no', selected: 'once' }
}

/** Whether a call took effect. A wrong answer costs something, so Enter alone gives none. */
export function outcomeQuestion(call: CallFacts): CallQuestion<OutcomeAnswer> {
  const title = ['It is not known whether', 'took effect. Did it?'] as const
  return { title, call, options: OUTCOMES, otherwise: 'leave', selected: 'leave' }
}

/** Asks about a tool call, with everything that it was called with. */
export class CallPrompt<Answer = unknown> implements Component {
  readonly #question: CallQuestion<Answer>
  readonly #theme: Theme
  readonly #rows: () => number
  onAnswer: (answer: Answer) => void = () => {}
  #selected: number
  #isWhole = false

  constructor(question: CallQuestion<Answer>, theme: Theme, rows: () => number) {
    this.#question = question
    this.#theme = theme
    this.#rows = rows
    this.#selected = question.options.findIndex(({ answer }) => answer === question.selected)
  }

  invalidate(): void {}

  handleInput(data: string): void {
    const key = (decodeKittyPrintable(data) ?? data).toLowerCase()
    const { options, otherwise } = this.#question
    const named = options.find(option => option.key === key)
    if (named) this.onAnswer(named.answer)
    else if (key === 'v') this.#isWhole = !this.#isWhole
    else if (matchesKey(data, 'escape')) this.onAnswer(otherwise)
    else if (matchesKey(data, 'up') || matchesKey(data, 'left')) this.#move(-1)
    else if (matchesKey(data, 'down') || matchesKey(data, 'right') || matchesKey(data, 'tab')) this.#move(1)
    else if (matchesKey(data, 'enter')) this.onAnswer(options[this.#selected]?.answer ?? otherwise)
  }

  #move(by: number): void {
    const count = this.#question.options.length
    this.#selected = (this.#selected + by + count) % count
  }

  render(width: number): string[] {
    const theme = this.#theme
    const { title, call, options } = this.#question
    const reason = call.reason === undefined ? '' : ` ${plainLine(call.reason)}`
    const [before, after] = title
    const name = theme.bold(plainLine(call.name))
    const words = `${before} ${name}${after === '?' ? '' : ' '}${after}${reason}`
    return [
      '',
      ...hanging(`  ${theme.notable('?')} `, words, width, text => text),
      ...this.#arguments(width),
      '',
      ...options.map((option, index) => this.#option(option, index === this.#selected, width)),
    ]
  }

  #option({ key, label }: { key: string; label: string }, isSelected: boolean, width: number): string {
    const theme = this.#theme
    const text = `${isSelected ? '→' : ' '} ${key}  ${label}`
    return clip(`    ${isSelected ? theme.accent(theme.bold(text)) : text}`, width)
  }

  /** All of it, or as much as leaves room for the answers; then a line says how much is missing. */
  #arguments(width: number): string[] {
    const entries = argumentEntries(this.#question.call.args)
    const column = Math.min(20, Math.max(0, ...entries.map(({ name }) => visibleWidth(plainLine(name)))))
    const lines = entries.flatMap(({ name, text }) => {
      const label = plainLine(name)
      const sign = `      ${this.#theme.dim(label)}${' '.repeat(Math.max(0, column - visibleWidth(label)))}  `
      const body = plainText(text)
      return hanging(sign, body === '' ? '(empty)' : body, width, part => part)
    })
    const room = Math.max(3, this.#rows() - 14)
    if (this.#isWhole || lines.length <= room) return lines
    const more = `… ${count(lines.length - room, 'more line')}: v shows all`
    return [...lines.slice(0, room), clip(`      ${this.#theme.notable(more)}`, width)]
  }
}

const APPROVALS = [
  { key: 'o', answer: 'once', label: 'once' },
  { key: 'a', answer: 'always', label: 'always, in this session' },
  { key: 'n', answer: 'no', label: 'no' },
] as const

const OUTCOMES = [
  { key: 'h', answer: 'happened', label: OUTCOME_WORDS.happened },
  { key: 'r', answer: 'run', label: OUTCOME_WORDS.run },
  { key: 'l', answer: 'leave', label: OUTCOME_WORDS.leave },
] as const

/** A list to choose from; typing narrows it. */
export class Picker implements Component {
  readonly #title: string
  readonly #theme: Theme
  readonly #rows: number
  onDone: (value: string | undefined) => void = () => {}
  readonly #choices: readonly Choice[]
  #filter = ''
  #list: SelectList

  constructor(title: string, choices: readonly Choice[], theme: Theme, rows: number) {
    this.#title = title
    this.#theme = theme
    this.#rows = rows
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
    const theme = this.#theme
    const keys = this.#filter === '' ? 'type to narrow, Enter takes, Esc leaves' : plainLine(this.#filter)
    return [
      '',
      clip(`  ${theme.bold(this.#title)} ${theme.dim(`· ${keys}`)}`, width),
      ...this.#lines(Math.max(8, width - 2)).map(line => clip(`  ${line}`, width)),
    ]
  }

  #lines(width: number): string[] {
    return this.#list.getSelectedItem() === null
      ? [this.#theme.dim('  nothing matches')]
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
    const list = new SelectList(found, Math.max(3, Math.min(12, this.#rows - 10)), selectTheme(this.#theme), {
      minPrimaryColumnWidth: 16,
      maxPrimaryColumnWidth: 44,
      truncatePrimary: ({ text, maxWidth }) => truncateToWidth(text, maxWidth, '…'),
    })
    list.onSelect = item => this.onDone(item.value)
    list.onCancel = () => this.onDone(undefined)
    return list
  }
}
