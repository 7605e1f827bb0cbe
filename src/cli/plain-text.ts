/**
 * Text from models, tools and databases is shown on a terminal, where a few bytes can move the cursor, set the
 * clipboard or rename the window. Every such text passes here before it is shown:
 *
 * - whole control sequences (CSI, OSC, DCS, APC and kin) are removed with what they carry;
 * - any control character that is left, an incomplete sequence's first byte included, is removed;
 * - marks that reverse the direction of reading are removed: with them a command can look like another;
 * - half of a character becomes the replacement sign, because nobody knows how wide it is.
 */

/** The text with nothing in it that a terminal would obey. Line breaks stay; tabs become spaces. */
export function plainText(text: string): string {
  return text
    .replace(SEQUENCES, '')
    .replace(/\r\n?/g, '\n')
    .replace(/\t/g, '    ')
    .replace(CONTROLS, '')
    .replace(/\p{Surrogate}/gu, '\ufffd')
}

/** The same in one line: breaks and runs of blanks become one blank. */
export function plainLine(text: string): string {
  return plainText(text).replace(/\s+/g, ' ').trim()
}

// Strings end at BEL or ST. One without an end is not swallowed with all that follows: it only loses its start.
const SEQUENCES = new RegExp(
  [
    '(?:\\u001b[\\]PX^_]|[\\u009d\\u0090\\u0098\\u009e\\u009f])[^\\u0007\\u001b\\u0090\\u0098\\u009c-\\u009f]*(?:\\u0007|\\u001b\\\\|\\u009c)',
    '(?:\\u001b\\[|\\u009b)[0-?]*[ -/]*[@-~]',
    '\\u001b[ -/]*[0-Z\\\\^-~]',
  ].join('|'),
  'g',
)

const CONTROLS = /(?!\n)\p{Cc}|[\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]/gu
