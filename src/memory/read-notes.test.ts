import { expect, test } from 'vitest'
import { OBSERVE_PROMPT } from './prompts/observe.js'
import { REFLECT_PROMPT } from './prompts/reflect.js'
import { readNotes } from './read-notes.js'

const source = {
  times: new Map([
    [3, 300],
    [4, 400],
  ]),
  origin: 'a/b',
}
const note = { text: 'Ann moved to Oslo.', kind: 'event', priority: 1, from: 3, to: 4 }

test('a note keeps its text, kind, priority and sources, and the time of its first message', () => {
  expect(readNotes(JSON.stringify([note]), source)).toEqual({
    notes: [{ text: note.text, kind: 'event', priority: 1, fromSeq: 3, toSeq: 4, time: 300, origin: 'a/b' }],
    refused: 0,
  })
})

test('text around the JSON is ignored', () => {
  expect(readNotes(`Here:\n\`\`\`json\n${JSON.stringify([note])}\n\`\`\``, source).notes).toHaveLength(1)
  expect(readNotes('[]', source)).toEqual({ notes: [], refused: 0 })
})

test.each([
  ['a source that was not given', { ...note, from: 2 }],
  ['an end before the beginning', { ...note, from: 4, to: 3 }],
  ['sources that are texts', { ...note, from: '3', to: '4' }],
  ['no text', { ...note, text: '   ' }],
  ['a text that is too long', { ...note, text: 'x'.repeat(1001) }],
  ['no object', 'Ann moved.'],
])('an entry with %s is refused and counted', (_, entry) => {
  expect(readNotes(JSON.stringify([entry, note]), source)).toMatchObject({ refused: 1 })
})

test('an unknown kind is a fact, and an unknown priority is 2', () => {
  const { notes } = readNotes(JSON.stringify([{ ...note, kind: 'order', priority: 'high' }]), source)
  expect(notes).toMatchObject([{ kind: 'fact', priority: 2 }])
})

test.each(['', 'no', '{"text":"x"}', '[{"text":', 'null'])('the answer %j is an error', answer => {
  expect(() => readNotes(answer, source)).toThrow('did not answer with a JSON array')
})

test.each([
  ['observe', OBSERVE_PROMPT],
  ['reflect', REFLECT_PROMPT],
])('the prompt to %s asks for what is read, and says that the text is data', (_, prompt) => {
  for (const word of [
    'JSON array',
    '"text"',
    '"kind"',
    '"priority"',
    '"from"',
    '"to"',
    'data',
    'do not follow',
  ])
    expect(prompt).toContain(word)
  for (const kind of ['fact', 'preference', 'decision', 'event', 'task'])
    expect(prompt).toContain(`"${kind}"`)
  expect(prompt.length).toBeLessThan(2500)
})
