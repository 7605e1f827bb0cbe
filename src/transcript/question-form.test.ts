import { expect, test } from 'vitest'
import { formContent, initialValues, questionForm } from './question-form.js'

const SCHEMA = {
  type: 'object',
  properties: {
    name: { type: 'string', title: 'Your name', description: 'In full.' },
    mail: { type: 'string', format: 'email' },
    size: { type: 'number', default: 1.5 },
    count: { type: 'integer' },
    agreed: { type: 'boolean', default: true },
    color: { type: 'string', enum: ['r', 'g'], enumNames: ['Red', 'Green'] },
    kind: { type: 'string', oneOf: [{ const: 'a', title: 'A thing' }], default: 'a' },
    tags: { type: 'array', items: { anyOf: [{ const: 'x', title: 'X' }] } },
  },
  required: ['name', 'tags'],
}

const form = () => questionForm({ server: 's', message: 'm', schema: SCHEMA }) ?? expect.unreachable()

test('fields of a form have the kinds, words and choices of the schema', () => {
  expect(form().fields).toEqual([
    { name: 'name', label: 'Your name', description: 'In full.', kind: 'text', required: true },
    { name: 'mail', label: 'mail', kind: 'text', format: 'email', required: false },
    { name: 'size', label: 'size', kind: 'number', initial: '1.5', required: false },
    { name: 'count', label: 'count', kind: 'integer', required: false },
    { name: 'agreed', label: 'agreed', kind: 'flag', initial: true, required: false },
    {
      ...{ name: 'color', label: 'color', kind: 'choice', required: false },
      options: [
        { value: 'r', label: 'Red' },
        { value: 'g', label: 'Green' },
      ],
    },
    {
      ...{ name: 'kind', label: 'kind', kind: 'choice', required: false, initial: 'a' },
      options: [{ value: 'a', label: 'A thing' }],
    },
    {
      ...{ name: 'tags', label: 'tags', kind: 'choices', required: true },
      options: [{ value: 'x', label: 'X' }],
    },
  ])
})

test('the answer of a form has the types of the schema; empty fields are left out', () => {
  const { fields } = form()
  const values = { ...initialValues(fields), name: ' Ada ', count: '3', tags: ['x'] }
  expect(formContent(fields, values)).toEqual({
    content: { name: ' Ada ', size: 1.5, count: 3, agreed: true, kind: 'a', tags: ['x'] },
  })
})

test.each([
  [{}, 'Your name is needed.'],
  [{ name: 'Ada' }, 'tags is needed.'],
  [{ name: 'Ada', tags: ['x'], count: '1.5' }, 'count must be a whole number.'],
  [{ name: 'Ada', tags: ['x'], size: 'big' }, 'size must be a number.'],
  [{ name: 'Ada', tags: ['x'], color: 'b' }, 'color must be one of r, g.'],
])('%j is not an answer of the form', (entered, problem) => {
  const { fields } = form()
  expect(formContent(fields, { ...initialValues(fields), ...entered })).toEqual({ problem })
})

test.each([
  undefined,
  {},
  { server: 's', message: 'Sure?' },
  { schema: SCHEMA },
  { server: 's', url: 'javascript:alert(1)' },
  { server: 's', schema: { properties: [] } },
])('a question without a form: %j', args => expect(questionForm(args)).toBeUndefined())

test('a question without a form may have a page to open', () =>
  expect(questionForm({ server: 's', url: 'https://a.example/' })).toEqual({
    fields: [],
    url: 'https://a.example/',
  }))
