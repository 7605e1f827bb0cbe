import { expect, test } from 'vitest'
import { AnswerText, SaidInEvents } from './event-reader.js'

const said = (text: string, options: { author?: string; partial?: boolean; thought?: boolean } = {}) => ({
  author: options.author ?? 'agent',
  partial: options.partial ?? false,
  content: { parts: [{ text, ...(options.thought ? { thought: true } : {}) }] },
})

test('the event reader takes a streamed step from its partials only', () => {
  const answer = new AnswerText()
  expect(answer.add(said('Hello ', { partial: true }))).toEqual({ text: 'Hello ', reasoning: '' })
  expect(answer.add(said('world', { partial: true })).text).toBe('world')
  expect(answer.add(said('Hello world')).text).toBe('')
  expect(answer.text).toBe('Hello world')
})

test('the event reader takes a step without partials from its final event, also after a streamed step', () => {
  const answer = new AnswerText()
  answer.add(said('first', { partial: true }))
  answer.add(said('first'))
  expect(answer.add(said('second')).text).toBe('second')
  expect(answer).toMatchObject({ text: 'first\n\nsecond', lastText: 'second' })
})

test('the text of a run is everything that the last speaking author said, and nothing of others', () => {
  const answer = new AnswerText()
  answer.add(said('A draft.', { author: 'writer' }))
  answer.add(said('Too long.', { author: 'critic' }))
  answer.add(said('Shorter.', { author: 'writer' }))
  expect(answer).toMatchObject({ text: 'A draft.\n\nShorter.', lastText: 'Shorter.' })
})

test('a silent last author does not hide the words of the author before', () => {
  const answer = new AnswerText()
  answer.add(said('Here it is.', { author: 'writer' }))
  answer.add(said('', { author: 'checker' }))
  expect(answer).toMatchObject({ text: 'Here it is.', lastText: 'Here it is.' })
})

test('stored events give the text that the run itself would have reported', () => {
  const said = new SaidInEvents()
  const delta = (author: string, text: string) => said.add({ type: 'text-delta', author, text })
  delta('root', 'Let me ')
  delta('root', 'look.')
  said.add({ type: 'tool-call', author: 'root', id: '1', name: 'search', args: {} })
  delta('helper', 'Hm.')
  said.add({ type: 'tool-call', author: 'helper', id: '2', name: 'search', args: {} })
  delta('root', 'I found i')
  expect(said.end()).toEqual({ text: 'Let me look.\n\nI found i', lastText: 'I found i' })
})

test('the event reader keeps thoughts out of the answer', () => {
  const answer = new AnswerText()
  expect(answer.add(said('hm', { thought: true, partial: true }))).toEqual({ text: '', reasoning: 'hm' })
  answer.add({
    author: 'agent',
    partial: false,
    content: { parts: [{ text: 'hm', thought: true }, { text: 'Yes.' }] },
  })
  expect(answer.text).toBe('Yes.')
})

test('the event reader forgets the partials of a step that broke off', () => {
  const answer = new AnswerText()
  answer.add(said('half a sen', { partial: true }))
  answer.dropStep()
  answer.add(said('whole'))
  expect(answer.text).toBe('whole')
})

test('no piece ends inside of a character: half of one waits for the other half, and alone for the end', () => {
  const answer = new AnswerText()
  const said = (text: string, partial = true) =>
    answer.add({ author: 'root', partial, content: { parts: [{ text }] } }).text
  expect(['a\ud83d', '\ude00b', '\ud83d', '\ude00', 'c\ud83d'].map(text => said(text))).toEqual([
    'a',
    '😀b',
    '',
    '😀',
    'c',
  ])
  expect(said('a😀b😀c\ud83d', false)).toBe('\ud83d')
})
