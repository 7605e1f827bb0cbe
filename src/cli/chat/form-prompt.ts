import { type Component, decodeKittyPrintable, Input, matchesKey } from '@earendil-works/pi-tui'
import type { CallResponse } from '../../tool.js'
import {
  type FormField,
  type FormValues,
  formContent,
  initialValues,
  type QuestionForm,
} from '../../transcript/question-form.js'
import { entered, fieldValue, hintOf } from '../form-field.js'
import { plainLine } from '../plain-text.js'
import type { ApprovalQuestion } from './chat-session.js'
import { clip, hanging } from './item-lines.js'
import type { Theme } from './theme.js'

/** Asks for the fields of a form, one after the other. Escape declines. */
export class FormPrompt implements Component {
  readonly #question: ApprovalQuestion
  readonly #form: QuestionForm
  readonly #theme: Theme
  readonly #input = new Input()
  #values: FormValues
  #at = 0
  #problem = ''
  onAnswer: (answer: CallResponse | 'no') => void = () => {}

  constructor(question: ApprovalQuestion, form: QuestionForm, theme: Theme) {
    this.#question = question
    this.#form = form
    this.#theme = theme
    this.#values = initialValues(form.fields)
    this.#input.focused = true
    this.#show()
  }

  invalidate(): void {}

  handleInput(data: string): void {
    if (matchesKey(data, 'escape')) this.onAnswer('no')
    else if (matchesKey(data, 'up')) this.#move(-1)
    else if (matchesKey(data, 'down') || matchesKey(data, 'tab')) this.#move(1)
    else if (matchesKey(data, 'enter')) this.#enter()
    else if (this.#form.fields[this.#at]?.kind === 'flag') this.#flag(decodeKittyPrintable(data) ?? data)
    else this.#input.handleInput(data)
  }

  render(width: number): string[] {
    const theme = this.#theme
    const { fields, url } = this.#form
    const words = plainLine(this.#question.reason ?? `${this.#question.name} asks`)
    return [
      '',
      ...hanging(`  ${theme.notable('?')} `, words, width, text => text),
      ...(url === undefined ? [] : [clip(`      ${theme.accent(plainLine(url))}`, width)]),
      '',
      ...fields.flatMap((field, index) => this.#field(field, index === this.#at, width)),
      ...(this.#problem === '' ? [] : [clip(`      ${theme.notable(this.#problem)}`, width)]),
      clip(
        `    ${theme.dim(fields.length === 0 ? 'Enter when it is done, Esc declines' : 'Enter takes a field, ↑ goes back, Esc declines')}`,
        width,
      ),
    ]
  }

  #field(field: FormField, isActive: boolean, width: number): string[] {
    const theme = this.#theme
    const label = plainLine(field.label)
    if (!isActive) {
      const shown = entered(this.#values[field.name])
      return [clip(`      ${theme.dim(label)}  ${plainLine(shown)}`, width)]
    }
    const hints = [field.description, hintOf(field), field.required ? 'needed' : '']
      .filter(Boolean)
      .join(' · ')
    return [
      clip(`    → ${theme.bold(label)}${hints === '' ? '' : `  ${theme.dim(plainLine(hints))}`}`, width),
      ...this.#input.render(Math.max(8, width - 8)).map(line => `        ${line}`),
    ]
  }

  #flag(key: string): void {
    if (/^[yn]$/i.test(key)) this.#input.setValue(/^y$/i.test(key) ? 'yes' : 'no')
    else if (key === ' ') this.#input.setValue(this.#input.getValue() === 'yes' ? 'no' : 'yes')
  }

  #enter(): void {
    const { fields } = this.#form
    this.#keep()
    if (this.#at < fields.length - 1) {
      this.#move(1)
      return
    }
    const answer = formContent(fields, this.#values)
    if ('content' in answer) this.onAnswer({ action: 'accept', content: answer.content })
    else this.#problem = answer.problem
  }

  #move(by: number): void {
    this.#keep()
    this.#problem = ''
    const last = Math.max(0, this.#form.fields.length - 1)
    this.#at = Math.min(last, Math.max(0, this.#at + by))
    this.#show()
  }

  #keep(): void {
    const field = this.#form.fields[this.#at]
    if (field) this.#values = { ...this.#values, [field.name]: fieldValue(field, this.#input.getValue()) }
  }

  #show(): void {
    const field = this.#form.fields[this.#at]
    this.#input.setValue(field ? entered(this.#values[field.name]) : '')
  }
}
