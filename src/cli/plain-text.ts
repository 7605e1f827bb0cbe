/**
 * Text from models, tools and databases, made safe for a terminal, where a few bytes can move the cursor, set the
 * clipboard or rename the window:
 *
 * - whole control sequences (CSI, OSC, DCS, APC and the like) are removed with their parameters;
 * - any control character that is left, the first byte of an incomplete sequence included, is removed;
 * - bidirectional marks are removed: with them one command can look like another;
 * - half of a surrogate pair becomes the replacement character, because its width is undefined.
 *
 * And text measured in columns of a terminal: width, fitting, padding and wrapping.
 */

/** The text without control characters. Line breaks stay; tabs become four spaces. */
export function plainText(text: string): string {
  return text
    .replace(SEQUENCES, '')
    .replace(/\r\n?/g, '\n')
    .replace(/\t/g, '    ')
    .replace(CONTROLS, '')
    .replace(/\p{Surrogate}/gu, '\ufffd')
}

/**
 * The text for a pipe or a file: without control sequences and control characters, which act again when the text is
 * shown on a terminal later. Tabs and line ends stay, because programs read them.
 */
export function pipeText(text: string): string {
  return text.replace(SEQUENCES, '').replace(PIPE_CONTROLS, '')
}

/** Where a control sequence begins that the end of a streamed text cuts off; the text's length without one. */
export function unfinishedAt(text: string): number {
  const from = Math.max(0, text.length - LONGEST_SEQUENCE)
  const found = text.slice(from).search(UNFINISHED)
  return found === -1 ? text.length : from + found
}

/** The same in one line: each run of white space becomes one space. */
export function plainLine(text: string): string {
  return plainText(text).replace(/\s+/g, ' ').trim()
}

/** How many columns of a terminal a text takes: two for CJK and emoji, none for combining marks. */
export function textWidth(text: string): number {
  if (PLAIN.test(text)) return text.length
  let width = 0
  for (const segment of graphemes(text)) width += graphemeWidth(segment)
  return width
}

/** The text in at most `width` columns; a shortened one ends in an ellipsis. */
export function fitText(text: string, width: number): string {
  if (textWidth(text) <= width) return text
  let shown = ''
  let used = 0
  for (const segment of graphemes(text)) {
    const next = graphemeWidth(segment)
    if (used + next > width - 1) break
    shown += segment
    used += next
  }
  return width < 1 ? '' : `${shown}…`
}

/** The text padded with spaces to `width` columns. */
export function padText(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - textWidth(text)))
}

/** The text in indented lines of at most `width` columns; a longer word has a line of its own. */
export function wrapped(text: string, indent: string, width: number): string[] {
  const lines: string[] = []
  const indentWidth = textWidth(indent)
  let line: string[] = []
  let used = indentWidth
  for (const word of text.split(' ')) {
    const wordWidth = textWidth(plainText(word))
    if (line.length > 0 && used + 1 + wordWidth > width) {
      lines.push(indent + line.join(' '))
      line = []
    }
    used = (line.length === 0 ? indentWidth : used + 1) + wordWidth
    // Spaces at the start of a line are dropped.
    if (line.length > 0 || word !== '') line.push(word)
  }
  return [...lines, indent + line.join(' ')]
}

// Strings end at BEL or ST. Of one without an end only the first byte is removed, not all that follows.
const SEQUENCES = new RegExp(
  [
    '(?:\\u001b[\\]PX^_]|[\\u009d\\u0090\\u0098\\u009e\\u009f])[^\\u0007\\u001b\\u0090\\u0098\\u009c-\\u009f]*(?:\\u0007|\\u001b\\\\|\\u009c)',
    '(?:\\u001b\\[|\\u009b)[0-?]*[ -/]*[@-~]',
    '\\u001b[ -/]*[0-Z\\\\^-~]',
  ].join('|'),
  'g',
)

const CONTROLS = /(?!\n)\p{Cc}|[\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]/gu

/** Of a longer sequence only the control characters are removed from a stream. */
const LONGEST_SEQUENCE = 256

const UNFINISHED = new RegExp(
  [
    '(?:\\u001b[\\]PX^_]|[\\u009d\\u0090\\u0098\\u009e\\u009f])[^\\u0007\\u001b\\u009c]*\\u001b?$',
    '(?:\\u001b\\[|\\u009b)[0-?]*[ -/]*$',
    '\\u001b[ -/]*$',
  ].join('|'),
)

const PIPE_CONTROLS = /(?![\t\r\n])\p{Cc}/gu

/** Latin, Greek, Cyrillic, punctuation and arrows: one column each, without `Intl`. */
const PLAIN = /^[\u0020-\u007e\u00a1-\u00ac\u00ae-\u02ff\u0370-\u0482\u2010-\u2027\u2190-\u2193]*$/

let segmenter: Intl.Segmenter | undefined

/** Longer texts are segmented piece by piece: each step of V8's segmenter takes time for the whole text. */
const PIECE = 256

/** Grapheme clusters. The segmenter is slow to create, so it is created on first use. */
function* graphemes(text: string): Generator<string> {
  if (PLAIN.test(text)) return yield* text
  segmenter ??= new Intl.Segmenter(undefined, { granularity: 'grapheme' })
  for (let start = 0; start < text.length; ) {
    const segments = Array.from(segmenter.segment(text.slice(start, start + PIECE)), ({ segment }) => segment)
    const isLast = start + PIECE >= text.length
    // The piece may end inside its last cluster, which therefore starts the next piece.
    const whole = isLast || segments.length === 1 ? segments : segments.slice(0, -1)
    for (const segment of whole) {
      yield segment
      start += segment.length
    }
  }
}

/** An emoji takes two columns, however many code points it has; in all other scripts the widths add up. */
function graphemeWidth(segment: string): number {
  if (PLAIN.test(segment)) return segment.length
  if (EMOJI.test(segment)) return 2
  let width = 0
  for (const point of segment) width += INVISIBLE.test(point) ? 0 : WIDE.test(point) ? 2 : 1
  return width
}

const WIDE =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{17000}-\u{18cff}\u{1b000}-\u{1b2ff}\u{1f200}-\u{1f2ff}\u{20000}-\u{3fffd}]/u

const EMOJI = /\p{Emoji_Presentation}|\p{Extended_Pictographic}\ufe0f|^[0-9#*]\ufe0f?\u20e3/u

const INVISIBLE = /^(?:[\p{Mn}\p{Me}\p{Cf}\p{Cc}]|[\u1160-\u11ff])$/u
