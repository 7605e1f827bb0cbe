/**
 * Finds formulas in Markdown as models write them: `\(…\)`, `\[…\]` and `$$…$$`. A single dollar is money, code is
 * code, and what is not closed stays text, so an answer that is still being written shows the source of its last
 * formula. Every step moves on, and a search for an end stops at the next beginning: long texts take no longer
 * than they are.
 */
export type MathPiece =
  | { kind: 'text' | 'code'; text: string }
  | { kind: 'inline' | 'display'; tex: string; indent: string }

/** A longer formula is shown as text: laying it out would block the page. */
const MOST_CHARACTERS = 5000

/** The text cut into formulas, code, and what is between. */
export function mathPieces(text: string): MathPiece[] {
  const pieces: MathPiece[] = []
  let textStart = 0
  let at = 0
  const add = (piece: MathPiece, from: number, to: number) => {
    if (from > textStart) pieces.push({ kind: 'text', text: text.slice(textStart, from) })
    pieces.push(piece)
    textStart = to
    at = to
  }
  while (at < text.length) {
    const codeEnd = endOfCode(text, at)
    const formula = codeEnd === undefined ? formulaAt(text, at) : undefined
    if (codeEnd !== undefined) add({ kind: 'code', text: text.slice(at, codeEnd) }, at, codeEnd)
    else if (formula) add(formula.piece, formula.from, formula.to)
    else at = afterSign(text, at)
  }
  if (textStart < text.length) pieces.push({ kind: 'text', text: text.slice(textStart) })
  return pieces
}

/** The text for a parser that knows `$$` only; what is no formula is escaped. */
export function withDollars(text: string): string {
  const written = (piece: MathPiece) => {
    if ('text' in piece)
      return piece.kind === 'code' ? piece.text : piece.text.replaceAll(/\\[\s\S]|\${2,}/g, escapedDollars)
    // The spaces keep a dollar of the formula apart from the marks; the parser takes them away.
    if (piece.kind === 'inline') return `$$ ${piece.tex} $$`
    return fenced(piece, '$$', '$$')
  }
  return mathPieces(text).map(written).join('')
}

/** The text for a parser that knows no formulas: their sources, as code. */
export function withTexAsCode(text: string): string {
  const written = (piece: MathPiece) => {
    if ('text' in piece) return piece.text
    return piece.kind === 'inline' ? `\`\` ${piece.tex} \`\`` : fenced(piece, '```tex', '```')
  }
  return mathPieces(text).map(written).join('')
}

function escapedDollars(found: string): string {
  return found.startsWith('\\') ? found : found.replaceAll('$', '\\$')
}

function fenced({ tex, indent }: { tex: string; indent: string }, open: string, close: string): string {
  return [open, ...tex.split('\n').map(line => line.trim()), close].join(`\n${indent}`)
}

/** Past a sign; runs of marks are taken whole, and what a backslash escapes with it. */
function afterSign(text: string, at: number): number {
  const sign = text[at]
  if (sign === '\\') return at + 2
  return sign === '`' || sign === '$' ? at + runLength(text, at) : at + 1
}

/** What may stand before a fence in its line. */
const BEFORE_FENCE = /^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?$/

/** Where the code ends that begins here, if any does. A fence that is not closed reaches to the end of the text. */
function endOfCode(text: string, at: number): number | undefined {
  const sign = text[at]
  if (sign !== '`' && sign !== '~') return undefined
  const length = runLength(text, at)
  if (length >= 3 && BEFORE_FENCE.test(lineBefore(text, at))) {
    const close = new RegExp(`\\n[ \\t>]*${sign}{${length},}[ \\t]*(?=\\n|$)`, 'g')
    close.lastIndex = at + length
    return close.exec(text) ? close.lastIndex : text.length
  }
  if (sign === '~') return undefined
  for (let end = at + length; end < text.length; ) {
    end = text.indexOf('`', end)
    if (end < 0) return undefined
    const found = runLength(text, end)
    end += found
    if (found === length) return end
  }
  return undefined
}

function runLength(text: string, at: number): number {
  let end = at + 1
  while (text[end] === text[at]) end += 1
  return end - at
}

/** What stands before a place in its line; a word when that is much, because only marks and spaces are looked for. */
function lineBefore(text: string, at: number): string {
  const start = Math.max(0, at - 80)
  const line = text.slice(start, at).split('\n').at(-1) ?? ''
  return start > 0 && line.length === 80 ? 'long' : line
}

interface Formula {
  piece: MathPiece
  from: number
  to: number
}

function formulaAt(text: string, from: number): Formula | undefined {
  const open = text.slice(from, from + 2)
  const close = { '\\(': '\\)', '\\[': '\\]', $$: '$$' }[open]
  if (close === undefined || (open === '$$' && text[from + 2] === '$')) return undefined
  const end = endOfFormula(text, from + 2, open, close)
  if (end === undefined) return undefined
  const inner = text.slice(from + 2, end)
  if (inner.trim() === '' || isProse(open, inner)) return undefined
  const indent = /^[ \t>]*$/.exec(lineBefore(text, from))?.[0]
  const after = /^([.,;:]?)[ \t]*(?=\n|$)/.exec(text.slice(end + 2, end + 40))
  if (open === '\\(' || indent === undefined || !after)
    return { piece: { kind: 'inline', tex: oneLine(inner), indent: '' }, from, to: end + 2 }
  // A full stop after the formula belongs to its line.
  const tex = inner.replaceAll(/\n[ \t>]*/g, '\n').trim() + (after[1] ?? '')
  return { piece: { kind: 'display', tex, indent }, from, to: end + 2 + after[0].length }
}

/** Two price classes in a sentence ("$$ and $$") look like a formula: one that is set apart by spaces needs a sign of mathematics. */
function isProse(open: string, inner: string): boolean {
  return open === '$$' && /^[ \t]/.test(inner) && !/[\\^_=+*/<>{}|-]|^\s*\w\s*$/.test(inner)
}

function oneLine(tex: string): string {
  return tex.replaceAll(/\s*\n[ \t>]*/g, ' ').trim()
}

function endOfFormula(text: string, start: number, open: string, close: string): number | undefined {
  const last = Math.min(text.length - 2, start + MOST_CHARACTERS)
  for (let at = start; at <= last; ) {
    const two = text.slice(at, at + 2)
    if (two === close) return text[at + 2] === '$' && close === '$$' ? undefined : at
    if (two === open || (open === '\\(' && /^\n[ \t]*\n/.test(text.slice(at, at + 20)))) return undefined
    at += two[0] === '\\' ? 2 : 1
  }
  return undefined
}
