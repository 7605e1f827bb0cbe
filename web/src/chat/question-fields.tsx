import { type FormEvent, useState } from 'react'
import type { ToolItem } from '../../../src/transcript/item.js'
import {
  type FormField,
  type FormValues,
  formContent,
  initialValues,
  type QuestionForm,
} from '../../../src/transcript/question-form.js'
import { useChat } from '../chat-context.js'

/** What a tool asks a person: a form by its schema, or a page to open. */
export function QuestionFields({ form, entry }: { form: QuestionForm & { id: string }; entry: ToolItem }) {
  const { thread } = useChat()
  const { fields, url } = form
  const [values, setValues] = useState<FormValues>(() => initialValues(fields))
  const [problem, setProblem] = useState('')
  const [isSent, setSent] = useState(false)
  const send = async (answer: 'no' | Record<string, unknown>) => {
    setSent(true)
    await thread.approve(form.id, answer)
    setSent(false)
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const answer = formContent(fields, values)
    if ('problem' in answer) setProblem(answer.problem)
    else void send({ action: 'accept', content: answer.content })
  }
  return (
    <form className="approval question-form" onSubmit={submit} noValidate>
      <p dir="auto">{entry.reason ?? `${entry.name} asks:`}</p>
      {url === undefined ? null : (
        <p>
          <a href={url} target="_blank" rel="noreferrer noopener">
            {url}
          </a>
        </p>
      )}
      {fields.map(field => (
        <Field
          key={field.name}
          field={field}
          value={values[field.name] ?? ''}
          onChange={value => setValues({ ...values, [field.name]: value })}
        />
      ))}
      {problem === '' ? null : <p role="alert">{problem}</p>}
      <div className="approval-buttons">
        <button type="submit" className="button primary" disabled={isSent}>
          {fields.length === 0 ? 'Done' : 'Send'}
        </button>
        <button type="button" className="button" disabled={isSent} onClick={() => void send('no')}>
          Decline
        </button>
      </div>
    </form>
  )
}

interface FieldProps {
  field: FormField
  value: FormValues[string]
  onChange(value: FormValues[string]): void
}

function Field({ field, value, onChange }: FieldProps) {
  const { kind, label, description, required } = field
  const name = required ? `${label} *` : label
  const hint = description === undefined ? null : <small dir="auto">{description}</small>
  if (kind === 'choices') return <Choices field={field} value={value} onChange={onChange} />
  if (kind === 'flag')
    return (
      <label className="question-field">
        <input type="checkbox" checked={value === true} onChange={event => onChange(event.target.checked)} />
        <span dir="auto">{name}</span>
        {hint}
      </label>
    )
  const id = `question-${field.name}`
  return (
    <div className="question-field">
      <label htmlFor={id} dir="auto">
        {name}
      </label>
      {hint}
      {kind === 'choice' ? (
        <select id={id} value={String(value)} onChange={event => onChange(event.target.value)}>
          <option value="" />
          {(field.options ?? []).map(option => (
            <option key={option.value} value={option.value}>
              {option.label}
            </option>
          ))}
        </select>
      ) : (
        <input
          id={id}
          type={kind === 'text' ? (field.format ?? 'text') : 'number'}
          step={kind === 'number' ? 'any' : undefined}
          dir="auto"
          value={String(value)}
          onChange={event => onChange(event.target.value)}
        />
      )}
    </div>
  )
}

function Choices({ field, value, onChange }: FieldProps) {
  const { label, required, options = [] } = field
  const chosen = typeof value === 'object' ? value : []
  const toggle = (option: string, isChosen: boolean) =>
    onChange(isChosen ? [...chosen, option] : chosen.filter(each => each !== option))
  return (
    <fieldset className="question-field">
      <legend>{required ? `${label} *` : label}</legend>
      {options.map(option => (
        <label key={option.value}>
          <input
            type="checkbox"
            checked={chosen.includes(option.value)}
            onChange={event => toggle(option.value, event.target.checked)}
          />
          <span dir="auto">{option.label}</span>
        </label>
      ))}
    </fieldset>
  )
}
