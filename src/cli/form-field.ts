/** Fields of a form as lines of text, for the terminal. */
import type { FormField, FormValues } from '../transcript/question-form.js'

/** A line of text as the value of a field: yes or no, or several choices with commas between them. */
export function fieldValue(
  { kind, options = [] }: FormField,
  text: string,
): string | boolean | readonly string[] {
  const named = (word: string) =>
    options.find(({ value, label }) => value === word || label.toLowerCase() === word.toLowerCase())?.value ??
    word
  if (kind === 'flag') return /^(y|yes|true|1|on)$/i.test(text.trim())
  if (kind === 'choice') return text.trim() === '' ? '' : named(text.trim())
  if (kind !== 'choices') return text
  return text
    .split(',')
    .map(word => word.trim())
    .filter(word => word !== '')
    .map(named)
}

/** What may be entered. */
export function hintOf({ kind, options = [] }: FormField): string {
  if (kind === 'flag') return 'yes or no'
  if (kind === 'number' || kind === 'integer') return kind === 'number' ? 'a number' : 'a whole number'
  const names = options
    .map(({ value, label }) => (value === label ? value : `${value} (${label})`))
    .join(', ')
  if (kind === 'choices') return `any of ${names}, with commas`
  return kind === 'choice' ? `one of ${names}` : ''
}

/** A value as it is shown in its field. */
export function entered(value: FormValues[string] | undefined): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  return typeof value === 'object' ? value.join(', ') : (value ?? '')
}
