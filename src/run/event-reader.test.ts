import { expect, test } from 'vitest'
import { AnswerText } from './event-reader.js'

const said = (text: string, options: { author?: string; partial?: boolean; thought?: boolean } = {}) => ({
  author: options.author ?? 'agent',
  partial: options.partial ?? false,
  content: { parts: [{ text, ...(options.thought ? { thought: true } : {}) }] },
})

test('hears a streamed step from its partials only', () => {
  const answer = new AnswerText()
  expect(answer.add(said('Hello ', { partial: true }))).toEqual({ text: 'Hello ', reasoning: '' })
  expect(answer.add(said('world', { partial: true })).text).toBe('world')
  expect(answer.add(said('Hello world')).text).toBe('')
  expect(answer.text).toBe('Hello world')
})

test('hears a step without partials from its final event, also after a streamed step', () => {
  const answer = new AnswerText()
  answer.add(said('first', { partial: true }))
  answer.add(said('first'))
  expect(answer.add(said('second')).text).toBe('second')
  expect(answer.text).toBe('second')
})

test('answers with the words of the final author', () => {
  const answer = new AnswerText()
  answer.add(said('I hand over.', { author: 'root' }))
  answer.add(said('Here it is.', { author: 'helper' }))
  expect(answer.text).toBe('Here it is.')
})

test('does not pass the words of an earlier author off as the answer', () => {
  const answer = new AnswerText()
  answer.add(said('I hand over.', { author: 'root' }))
  answer.add(said('', { author: 'helper' }))
  expect(answer.text).toBe('')
})

test('keeps thoughts out of the answer', () => {
  const answer = new AnswerText()
  expect(answer.add(said('hm', { thought: true, partial: true }))).toEqual({ text: '', reasoning: 'hm' })
  answer.add({
    author: 'agent',
    partial: false,
    content: { parts: [{ text: 'hm', thought: true }, { text: 'Yes.' }] },
  })
  expect(answer.text).toBe('Yes.')
})

test('forgets the partials of a step that broke off', () => {
  const answer = new AnswerText()
  answer.add(said('half a sen', { partial: true }))
  answer.dropStep()
  answer.add(said('whole'))
  expect(answer.text).toBe('whole')
})
