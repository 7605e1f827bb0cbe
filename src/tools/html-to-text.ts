import { own } from '../base/own.js'

/**
 * The readable text of a page: without scripts, styles and tags; blocks on separate lines; links with their
 * addresses. It reads the page once, from start to end, so that the time is linear for any input.
 */
export function htmlToText(html: string): string {
  // Only ASCII: other letters may change their length, and positions in both texts must agree.
  const lower = html.replaceAll(/[A-Z]+/g, letters => letters.toLowerCase())
  const out = new TextOutput()
  let position = 0
  while (position < html.length) {
    const open = html.indexOf('<', position)
    if (open === -1) {
      out.text(html.slice(position))
      break
    }
    out.text(html.slice(position, open))
    position = skipMarkup(html, lower, open, out)
  }
  return out.result()
}

/** Handles the tag, comment or lone `<` at `open` and returns the position after it. */
function skipMarkup(html: string, lower: string, open: number, out: TextOutput): number {
  if (html.startsWith('<!--', open)) return after(html, '-->', open + 4)
  const name = /^<(\/?)([a-z][a-z0-9]*)/.exec(lower.slice(open, open + MAX_NAME))
  if (!name) {
    if (html[open + 1] === '!' || html[open + 1] === '?') return after(html, '>', open)
    out.text('<')
    return open + 1
  }
  const [, slash, tag = ''] = name
  const end = tagEnd(html, open)
  if (slash === '' && SKIPPED.has(tag)) return after(lower, `</${tag}`, end, '>')
  if (tag === 'a') out.link(slash === '' ? hrefOf(html.slice(open, end)) : undefined)
  else if (tag === 'li' && slash === '') out.block('- ')
  else if (HEADING.test(tag) && slash === '') out.block(`${'#'.repeat(Number(tag[1]))} `)
  else if (tag === 'td' || tag === 'th') out.text(' ')
  else if (BLOCKS.has(tag)) out.block('')
  return end
}

const MAX_NAME = 20
const MAX_TAG = 10_000
const MAX_LINE = 20_000
const SKIPPED = new Set(['script', 'style', 'noscript', 'template', 'svg', 'iframe', 'object'])
const HEADING = /^h[1-6]$/
const BLOCKS = new Set(
  'address article aside blockquote br dd div dl dt fieldset figure footer form h1 h2 h3 h4 h5 h6 header hr li main nav ol p pre section table title tr ul'.split(
    ' ',
  ),
)

/** The position after `mark` and the `closing` that follows it; the end of the text when there is none. */
function after(text: string, mark: string, from: number, closing = ''): number {
  const at = text.indexOf(mark, from)
  if (at === -1) return text.length
  if (closing === '') return at + mark.length
  const end = text.indexOf(closing, at)
  return end === -1 ? text.length : end + closing.length
}

/** The position after the `>` that ends a tag. One within quotes does not end it, unless the quotes never close. */
function tagEnd(html: string, open: number): number {
  const limit = Math.min(html.length, open + MAX_TAG)
  let quote = ''
  for (let at = open + 1; at < limit; at++) {
    const character = html[at] as string
    if (quote !== '') {
      if (character === quote) quote = ''
    } else if (character === '"' || character === "'") quote = character
    else if (character === '>') return at + 1
  }
  return after(html.slice(0, limit), '>', open)
}

function hrefOf(tag: string): string | undefined {
  const match = /\shref\s*=\s*(?:"([^"]{1,2000})"|'([^']{1,2000})'|([^\s"'>]{1,2000}))/i.exec(tag)
  return match?.[1] ?? match?.[2] ?? match?.[3]
}

/** Collects text with collapsed white space, one line per block. */
class TextOutput {
  readonly #lines: string[] = []
  #line = ''
  /** Stored separately: reading the end of a string under construction copies all of it. */
  #endsInSpace = false
  #href: string | undefined
  #linkStart = 0

  text(raw: string): void {
    const text = decodeEntities(raw).replaceAll(/\s+/g, ' ')
    const added = this.#line === '' || this.#endsInSpace ? text.trimStart() : text
    if (added !== '') this.#endsInSpace = added.endsWith(' ')
    this.#line += added
    if (this.#line.length > MAX_LINE) this.block('')
  }

  block(prefix: string): void {
    this.link(undefined)
    const line = this.#line.trim()
    if (line !== '' && line !== '-') this.#lines.push(line)
    this.#line = prefix
    this.#endsInSpace = prefix !== ''
  }

  /** A link begins, or, with `undefined`, ends. */
  link(href: string | undefined): void {
    const words = this.#line.slice(this.#linkStart).trim()
    if (this.#href?.match(/^(https?:)?\//) && words !== '') {
      this.#line = `${this.#line.trimEnd()} (${decodeEntities(this.#href)})`
      this.#endsInSpace = false
    }
    this.#href = href
    this.#linkStart = this.#line.length
  }

  result(): string {
    this.block('')
    return this.#lines.join('\n')
  }
}

const ENTITIES: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: ' ',
  ndash: '–',
  mdash: '—',
  hellip: '…',
  copy: '©',
  lsquo: '‘',
  rsquo: '’',
  ldquo: '“',
  rdquo: '”',
  euro: '€',
}

function decodeEntities(text: string): string {
  return text.replaceAll(/&(#x[0-9a-f]{1,6}|#[0-9]{1,7}|[a-z]{2,8});/gi, (whole, name: string) => {
    if (!name.startsWith('#')) return own(ENTITIES, name.toLowerCase()) ?? whole
    const isHex = name[1] === 'x' || name[1] === 'X'
    const code = Number.parseInt(name.slice(isHex ? 2 : 1), isHex ? 16 : 10)
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : whole
  })
}
