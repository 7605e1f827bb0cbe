import { describe, expect, test } from 'vitest'
import { lastMatch } from './chat-session.js'

function turns(...texts: string[]) {
  return texts.map((text, index) => ({ seq: 2 * index + 1, text }))
}

describe('the stored turn that a client means', () => {
  test.each([
    ['the last one', ['a', 'b'], turns('a', 'b'), 1],
    ['an earlier one', ['a', 'b'], turns('a', 'b', 'c', 'd'), 1],
    ['one of several that say the same, by its place', ['yes', 'yes'], turns('yes', 'yes', 'yes'), 1],
    ['the one with the same words before it', ['no', 'yes'], turns('yes', 'no', 'yes', 'maybe', 'yes'), 2],
    ['the newest, for a client that knows the end only', ['yes'], turns('no', 'yes', 'no', 'yes'), 3],
    ['none, when nobody said it', ['z'], turns('a', 'b'), undefined],
    ['none, when nothing was said', [], turns('a'), undefined],
  ])('is %s', (_name, texts, stored, index) => {
    expect(lastMatch(texts, stored)).toBe(index)
  })
})
