import { expect, test } from 'vitest'
import { markdownBlocks, mayHaveMath } from '../../web/src/state/markdown-blocks.js'
import { mathPieces, withDollars, withTexAsCode } from '../../web/src/state/math-pieces.js'

/** The formulas of a text, those that have lines of their own in brackets. */
function formulas(text: string): string[] {
  return mathPieces(text).flatMap(piece =>
    'text' in piece ? [] : [piece.kind === 'display' ? `[${piece.tex}]` : piece.tex],
  )
}

test.each([
  ['in parentheses', 'The area \\(\\pi r^2\\) of it', ['\\pi r^2']],
  ['two in a line', '\\(a\\) and \\(b\\)', ['a', 'b']],
  ['in brackets, alone', 'So:\n\\[ x = 1 \\]\nThen', ['[x = 1]']],
  ['in brackets, over lines, also after a minus', '\\[\na\n- b\n= c\n\\]', ['[a\n- b\n= c]']],
  ['with a line break that has a length', '\\[ a \\\\[2pt] b \\]', ['[a \\\\[2pt] b]']],
  ['in dollars, alone', '$$E = mc^2$$', ['[E = mc^2]']],
  ['in dollars over lines', '$$\nx\n$$', ['[x]']],
  ['in dollars in a sentence', 'We know $$x^2$$ already', ['x^2']],
  ['with a full stop after it', '\\[ x \\].', ['[x.]']],
  ['in a list', '- \\(x\\)\n  \\[ y \\]', ['x', '[y]']],
  ['with a dollar in it', '\\(5\\$\\)', ['5\\$']],
])('a formula is found: %s', (_name, text, found) => {
  expect(formulas(text)).toEqual(found)
  expect(mayHaveMath(text)).toBe(true)
})

test.each([
  ['money', 'It costs $5 and $6, or $7.'],
  ['price classes', 'Between $$ and $$$; rather $$ or $$ than that'],
  ['inline code', 'Write `\\(x\\)` or ``$$x$$``'],
  ['a fence', '```tex\n\\[ x \\]\n```'],
  ['a fence that is not closed', '~~~\n\\[ x \\]'],
  ['a fence in a list', '- ```\n  $$x$$\n  ```'],
  ['a formula that is not closed', 'So \\(x + 1 and \\[ y and $$z'],
  ['a backslash before a backslash', 'C:\\\\(x\\\\)'],
  ['an empty formula', '\\(\\) and $$$$'],
  ['a formula over two paragraphs', '\\(a\n\nb\\)'],
])('no formula is found: %s', (_name, text) => {
  expect(formulas(text)).toEqual([])
})

test('splitting a text at its formulas keeps every character between them', () => {
  const text = 'a `b` \\(c\\) d $$ e\n\n```\nf\n```\n'
  const kept = mathPieces(text).map(piece => ('text' in piece ? piece.text : `\\(${piece.tex}\\)`))
  expect(kept.join('')).toBe(text)
})

test('formulas are rewritten with dollars for the parser, in their place, and other dollars are escaped', () => {
  expect(withDollars('a \\(x\\) b $$ c')).toBe('a $$ x $$ b \\$\\$ c')
  expect(withDollars('> \\[\n> x\n> \\]')).toBe('> $$\n> x\n> $$')
  expect(withDollars('1. a\n   \\[ x \\]')).toBe('1. a\n   $$\n   x\n   $$')
})

test('in a shared page the source of a formula is code', () => {
  expect(withTexAsCode('a \\(x_1\\) b')).toBe('a `` x_1 `` b')
  expect(withTexAsCode('\\[\nx_1\n\\]')).toBe('```tex\nx_1\n```')
})

test('a formula with an empty line in it stays in one block', () => {
  expect(markdownBlocks('a\n\n\\[\nx\n\ny\n\\]\n\nb')).toEqual(['a\n', '\\[\nx\n\ny\n\\]\n', 'b'])
  expect(markdownBlocks('$$\nx\n\ny\n$$\n\nb')).toEqual(['$$\nx\n\ny\n$$\n', 'b'])
})
