/**
 * The words of a text as the index stores them. Messages, observations and questions are cut into terms by this file
 * and nowhere else, so that they meet whatever engine keeps the index.
 *
 * - Letters are compared without case and accents; compatibility forms (`ﬁ`, `Ａ`) are the plain ones.
 * - English words lose their endings (`painted`, `paints` and `painting` are one term). Stop words are left out.
 * - Identifiers are indexed whole and by their parts: `getUserName`, `get_user_name` and `get user name` meet.
 * - Scripts without spaces (Chinese, Japanese, Korean, Thai …) are indexed by pairs of characters.
 */

/** Changes when the same text would give other terms: an index of another version is built again. */
export const TERMS_VERSION = 1

/** How many terms of one text are kept: a file that was read into a tool result must not fill the index. */
const MOST_TERMS = 4000

/** Characters of a text that are looked at. */
const MOST_CHARACTERS = 100_000

/** Longer words are addresses, hashes and encoded data: they are cut here. */
const LONGEST_TERM = 40

/** The terms of a text in order, repeated as often as they occur. */
export function termsOf(text: string): string[] {
  const terms: string[] = []
  for (const [word] of text.slice(0, MOST_CHARACTERS).matchAll(WORDS)) {
    if (terms.length >= MOST_TERMS) break
    terms.push(...termsOfWord(word))
  }
  return terms
}

/** Few words make up most of any text. */
const known = new Map<string, readonly string[]>()
const MOST_KNOWN = 20_000
const LONGEST_KNOWN = 24

function termsOfWord(word: string): readonly string[] {
  const found = known.get(word)
  if (found !== undefined) return found
  const terms: string[] = []
  addTerms(terms, word)
  if (known.size >= MOST_KNOWN) known.clear()
  if (word.length <= LONGEST_KNOWN) known.set(word, terms)
  return terms
}

/** Runs of letters, digits and what joins the parts of an identifier. */
const WORDS = /[\p{L}\p{M}\p{N}_]+(?:['’][\p{L}]+)?/gu

const SPACELESS =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}ー]+/gu

function addTerms(terms: string[], word: string): void {
  if (/^[a-z]+$/.test(word)) {
    addWord(terms, word)
    return
  }
  const plain = word.normalize('NFKC')
  const rest = plain.replace(SPACELESS, run => {
    addPairs(terms, run)
    return ' '
  })
  for (const part of rest.split(' ')) if (part !== '') addIdentifier(terms, part)
}

/** Every two neighbouring characters; a single character by itself. */
function addPairs(terms: string[], run: string): void {
  const characters = [...run]
  if (characters.length === 1) terms.push(run)
  for (let at = 0; at + 1 < characters.length; at++) terms.push(`${characters[at]}${characters[at + 1]}`)
}

function addIdentifier(terms: string[], word: string): void {
  const parts = word
    .replace(/['’].*$/u, '')
    .split(PARTS)
    .filter(Boolean)
  if (parts.length > 1) addWord(terms, fold(parts.join('')))
  for (const part of parts) addWord(terms, fold(part))
}

/** Between `getUser`, `HTTPServer`, `user_name` and `sha256sum`. */
const PARTS = /_+|(?<=\p{Ll})(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})|(?<=\p{L})(?=\p{N})|(?<=\p{N})(?=\p{L})/u

/** Without case and accents. */
function fold(word: string): string {
  return word.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase()
}

function addWord(terms: string[], word: string): void {
  if (STOP_WORDS.has(word) || word === '') return
  const term = stem(word).slice(0, LONGEST_TERM)
  // Half of a character that was cut in two.
  terms.push(term.replace(/[\ud800-\udbff]$/, ''))
}

/** English endings, carefully: what is cut leaves at least three letters with a vowel. */
function stem(word: string): string {
  if (word.length < 4 || !/^[a-z]+$/.test(word)) return word
  let stem = singular(word)
  for (const ending of ['ing', 'ed', 'ly', 'ness', 'ment', 'ful']) {
    if (!stem.endsWith(ending)) continue
    const rest = stem.slice(0, -ending.length)
    if (rest.length < 3 || !/[aeiouy]/.test(rest)) continue
    stem = rest
    break
  }
  if (/([bdfgklmnprt])\1$/.test(stem) && stem.length > 3) stem = stem.slice(0, -1)
  if (stem.endsWith('e') && stem.length > 3) stem = stem.slice(0, -1)
  return stem.endsWith('y') && stem.length > 2 ? `${stem.slice(0, -1)}i` : stem
}

function singular(word: string): string {
  if (word.endsWith('ies') && word.length > 4) return `${word.slice(0, -3)}y`
  if (/(?:ss|x|ch|sh)es$/.test(word)) return word.slice(0, -2)
  if (/[^su]s$/.test(word)) return word.slice(0, -1)
  return word
}

const STOP_WORDS: ReadonlySet<string> = new Set(
  `a about after all also am an and any are as at be because been before being but by can could did do does doing don
  down for from get got had has have having he her here hers him his how i if in into is it its itself just know let
  like ll m me more most my myself no nor not now of off ok on once only or other our ours out over own re really s
  same she should so some such t than that the their theirs them then there these they this those through to too
  under until up us ve very was we well were what when where which while who whom why will with would yeah yes you
  your yours yourself hey hi hello thanks thank wow`.split(/\s+/),
)
