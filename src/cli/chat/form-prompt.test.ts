import { expect, test } from 'vitest'
import { questionForm } from '../../transcript/question-form.js'
import { FormPrompt } from './form-prompt.js'
import { createTheme } from './theme.js'

const schema = {
  properties: {
    name: { type: 'string', title: 'Your name' },
    agreed: { type: 'boolean' },
    tags: {
      type: 'array',
      items: {
        anyOf: [
          { const: 'x', title: 'Ex' },
          { const: 'y', title: 'Why' },
        ],
      },
    },
  },
  required: ['name'],
}

function open(args: object) {
  const question = { name: 'svc_ask', args: {}, reason: 'Who are you?' }
  const form = questionForm({ server: 'svc', ...args }) ?? expect.unreachable()
  const prompt = new FormPrompt(question, form, createTheme(false))
  const answers: unknown[] = []
  prompt.onAnswer = answer => void answers.push(answer)
  const type = (...keys: string[]) => {
    for (const key of keys) prompt.handleInput(key)
  }
  return { prompt, answers, type, shown: () => prompt.render(80).join('\n') }
}

test('the fields of a form are filled in one after the other, and a missing one is named', () => {
  const { answers, type, shown } = open({ schema })
  expect(shown()).toContain('Who are you?')
  type('\r', 'n', ' ', 'x', '\r', ...'Ex, y', '\r')
  expect(answers).toEqual([])
  expect(shown()).toContain('Your name is needed.')
  type('\x1b[A', '\x1b[A', ...'Ada', '\r', '\r', '\r')
  expect(answers).toEqual([{ action: 'accept', content: { name: 'Ada', agreed: true, tags: ['x', 'y'] } }])
})

test('a form for a page shows its address; Enter confirms that it was opened, Escape declines', () => {
  const opened = open({ url: 'https://a.example/' })
  expect(opened.shown()).toContain('https://a.example/')
  opened.type('\r')
  expect(opened.answers).toEqual([{ action: 'accept', content: {} }])
  const declined = open({ schema })
  declined.type('\x1b')
  expect(declined.answers).toEqual(['no'])
})
