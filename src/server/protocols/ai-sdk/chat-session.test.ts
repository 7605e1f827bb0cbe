import { expect, test } from 'vitest'
import { lastMatch } from './chat-session.js'

function turns(...texts: string[]) {
  return texts.map((text, index) => ({ seq: 2 * index + 1, text }))
}

test.each([
  ['the last turn', ['a', 'b'], turns('a', 'b'), 1],
  ['an earlier turn', ['a', 'b'], turns('a', 'b', 'c', 'd'), 1],
  ['one of several equal turns, by its place', ['yes', 'yes'], turns('yes', 'yes', 'yes'), 1],
  ['a turn with the same text before it', ['no', 'yes'], turns('yes', 'no', 'yes', 'maybe', 'yes'), 2],
  ['the newest turn, for a client that has the end only', ['yes'], turns('no', 'yes', 'no', 'yes'), 3],
  ['no turn, when no text is equal', ['z'], turns('a', 'b'), undefined],
  ['no turn, when the client sent no text', [], turns('a'), undefined],
])('lastMatch finds %s', (_name, texts, stored, index) => {
  expect(lastMatch(texts, stored)).toBe(index)
})
