/**
 * Formulas, loaded with the first one. KaTeX writes MathML, which the browser lays out and reads aloud by itself:
 * no styles, no fonts.
 */

import katex from 'katex'
import type { ExtraProps, Options } from 'react-markdown'
import rehypeKatex from 'rehype-katex'
import remarkGfm from 'remark-gfm'
import remarkMath from 'remark-math'
import { withDollars } from '../state/math-pieces.js'

/** KaTeX refuses links and pictures by itself; sizes are limited so that a formula cannot cover the page. */
const KATEX = {
  output: 'mathml',
  strict: 'ignore',
  maxSize: 20,
  maxExpand: 500,
} as const

const plugins: Pick<Options, 'remarkPlugins' | 'rehypePlugins'> = {
  remarkPlugins: [remarkGfm, [remarkMath, { singleDollarTextMath: false }]],
  rehypePlugins: [() => showMistakes, [rehypeKatex, KATEX], () => styleLetters],
}

/** How Markdown with formulas is written for the parser, and what the parser needs for it. */
export const math = { withDollars, plugins }

type Element = NonNullable<ExtraProps['node']>
type Parent = Pick<Element, 'children'>

/** A formula with a mistake is shown as its source, with the reason. KaTeX's own way needs inline styles. */
function showMistakes(parent: Parent): void {
  for (const child of parent.children) {
    if (child.type !== 'element') continue
    const { className } = child.properties
    const [text] = child.children
    const isFormula = Array.isArray(className) && className.includes('language-math')
    if (!isFormula || text?.type !== 'text') showMistakes(child)
    else {
      const mistake = mistakeIn(text.value)
      if (mistake === undefined) continue
      child.tagName = 'span'
      child.properties = { className: ['katex-error'], title: mistake }
    }
  }
}

function mistakeIn(tex: string): string | undefined {
  try {
    katex.renderToString(tex, KATEX)
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/** Browsers know no `mathvariant`: bold, script and blackboard letters are written as the characters that they are. */
function styleLetters(parent: Parent): void {
  for (const child of parent.children) {
    if (child.type !== 'element') continue
    const { mathvariant } = child.properties
    const starts = typeof mathvariant === 'string' ? LETTERS.get(mathvariant) : undefined
    for (const text of starts ? child.children : [])
      if (text.type === 'text') text.value = styled(text.value, String(mathvariant), starts ?? [])
    styleLetters(child)
  }
}

/** Where A, a and 0 of a style begin in Unicode; 0 where it has none. */
const LETTERS = new Map<string, readonly number[]>([
  ['bold', [0x1d400, 0x1d41a, 0x1d7ce]],
  ['bold-italic', [0x1d468, 0x1d482, 0]],
  ['script', [0x1d49c, 0x1d4b6, 0]],
  ['bold-script', [0x1d4d0, 0x1d4ea, 0]],
  ['fraktur', [0x1d504, 0x1d51e, 0]],
  ['double-struck', [0x1d538, 0x1d552, 0x1d7d8]],
  ['bold-fraktur', [0x1d56c, 0x1d586, 0]],
  ['sans-serif', [0x1d5a0, 0x1d5ba, 0x1d7e2]],
  ['bold-sans-serif', [0x1d5d4, 0x1d5ee, 0x1d7ec]],
  ['sans-serif-italic', [0x1d608, 0x1d622, 0]],
  ['monospace', [0x1d670, 0x1d68a, 0x1d7f6]],
])

/** Letters that Unicode had before it had the rest of their alphabets. */
const EARLIER: Readonly<Record<string, string>> = {
  'double-struck': 'CℂHℍNℕPℙQℚRℝZℤ',
  script: 'BℬEℰFℱHℋIℐLℒMℳRℛeℯgℊoℴ',
  fraktur: 'CℭHℌIℑRℜZℨ',
}

function styled(text: string, variant: string, starts: readonly number[]): string {
  return text.replaceAll(/[A-Za-z0-9]/g, sign => {
    const earlier = EARLIER[variant]?.indexOf(sign) ?? -1
    if (earlier >= 0) return EARLIER[variant]?.[earlier + 1] ?? sign
    const [kind, first] = /[A-Z]/.test(sign) ? [0, 65] : /[a-z]/.test(sign) ? [1, 97] : [2, 48]
    const start = starts[kind] ?? 0
    return start === 0 ? sign : String.fromCodePoint(start + sign.charCodeAt(0) - first)
  })
}
