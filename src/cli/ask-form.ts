/** The form of a question, line by line, for commands without a screen. */

import type { CallResponse } from '../tool.js'
import {
  type FormValues,
  formContent,
  initialValues,
  type QuestionForm,
} from '../transcript/question-form.js'
import { askLine } from './ask.js'
import { entered, fieldValue, hintOf } from './form-field.js'
import type { Io } from './io.js'
import { note } from './output.js'
import { plainLine } from './plain-text.js'

/** The answer to a form. An empty line takes what is in brackets; the end of input declines. */
export async function askForm(
  io: Io,
  words: string,
  { fields, url }: QuestionForm,
  signal: AbortSignal,
): Promise<CallResponse | 'no'> {
  note(io, plainLine(words))
  if (url !== undefined) note(io, `Open this page: ${plainLine(url)}`)
  const last = fields.length === 0 ? await askLine(io, 'Is it done? [y/N]: ', signal) : 'y'
  if (!last || !/^y/i.test(last.trim())) return 'no'
  let values: FormValues = initialValues(fields)
  for (;;) {
    for (const field of fields) {
      const before = entered(values[field.name])
      const hints = [hintOf(field), field.required ? 'needed' : ''].filter(Boolean).join(', ')
      const label = `${field.label}${hints === '' ? '' : ` (${hints})`}${before === '' ? '' : ` [${before}]`}: `
      const said = await askLine(io, plainLine(label), signal)
      if (said === undefined) return 'no'
      if (said.trim() !== '') values = { ...values, [field.name]: fieldValue(field, said) }
    }
    const answer = formContent(fields, values)
    if ('content' in answer) return { action: 'accept', content: answer.content }
    note(io, answer.problem)
  }
}
