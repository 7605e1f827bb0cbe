/**
 * Cuts markdown where cutting changes nothing, so that a growing answer is parsed block by block and only its
 * last block again. A cut is made at a blank line outside a code fence, before a line that is not indented;
 * never inside lists, quotes or tables, and never when blocks refer to each other.
 */
export function markdownBlocks(text: string): string[] {
  if (REFERENCES.test(text)) return [text]
  const blocks: string[] = []
  let block: string[] = []
  let fence: string | undefined
  let afterBlank = false
  for (const line of text.split('\n')) {
    if (fence === undefined && afterBlank && block[0] !== undefined && startsBlock(line, block[0])) {
      blocks.push(block.join('\n'))
      block = []
    }
    const mark = FENCE.exec(line)?.[1]
    if (mark && fence === undefined) fence = mark
    else if (fence !== undefined && closes(line, mark, fence)) fence = undefined
    afterBlank = line.trim() === ''
    block.push(line)
  }
  if (block.length > 0) blocks.push(block.join('\n'))
  return blocks
}

/** Whether a text may contain a formula. */
export function mayHaveMath(text: string): boolean {
  return /\$\$|\\\(|\\\[|(?:`{3}|~{3})[ \t]*math\b/.test(text)
}

/** A longer block, a deeper one, or one with more marks takes seconds to parse, or exhausts the stack. */
const MOST_CHARACTERS = 100_000
const MOST_LEVELS = 60
const MOST_MARKS = 5000

/** Whether a block must be shown as plain text, because a parser of Markdown would block the page. */
export function isTooComplex(block: string): boolean {
  if (block.length > MOST_CHARACTERS) return true
  let marks = 0
  for (const line of block.split('\n')) {
    if (line.trim() === '') marks = 0
    marks += line.length - line.replaceAll(/[*_[\]^~]/g, '').length
    if (marks > MOST_MARKS || levelsOf(line) > MOST_LEVELS) return true
  }
  return false
}

/** How many quotes and lists a line opens, one inside the other. */
function levelsOf(line: string): number {
  return /^(?:[ \t]*(?:[>+*-]|\d{1,9}[.)]))*/.exec(line)?.[0].replaceAll(/[\s\d]/g, '').length ?? 0
}

/** Link definitions and footnotes stand apart from where they are used. */
const REFERENCES = /^ {0,3}\[(?:[^\][\\]|\\[\s\S]){1,999}\]:/m
/** Code, and formulas that have lines of their own. */
const FENCE = /^ {0,3}(`{3,}|~{3,}|\${2}(?=\s*$)|\\\[(?=\s*$))/
/** Lists, quotes and tables: blank lines may stand inside them. */
const CONTAINER = /^([-*+](\s|$)|\d+[.)](\s|$)|>|\|)/

function startsBlock(line: string, first: string): boolean {
  if (/^\s/.test(line) || line === '') return false
  return !CONTAINER.test(line) || !CONTAINER.test(first)
}

function closes(line: string, mark: string | undefined, fence: string): boolean {
  if (fence === '\\[') return line.trim() === '\\]'
  if (mark === undefined) return false
  return mark[0] === fence[0] && mark.length >= fence.length && line.trim() === mark
}
