/**
 * The requests of a run repeat each other: every step sends the whole conversation again. So a long request is
 * cut into parts at places that its JSON gives, each distinct part is stored once for the run, and the request
 * itself becomes a list of parts. The cuts do not understand the JSON: joined, the parts are the very same text.
 */

/** Shorter requests are stored as they are, readable. */
export const SHORT_REQUEST = 4096

/** Parts are at least this long, except before a place where a new one always begins. */
const LEAST_PART = 512

/** Between two fields or two objects of a list, and at the end of a list. Quotes inside of texts are escaped. */
const CUT = /(?<=[}"])(?=,\{?"|\]\}*,")/

/** What comes before these places grows from step to step, and what comes after stays. */
const ALWAYS_NEW = /^(?:,"body":|\]\}*,")/

/** Cuts JSON into parts, most of them the same for the next request of the run. */
export function splitRequest(json: string): string[] {
  const parts: string[] = []
  let gathered = ''
  const flush = () => {
    if (gathered !== '') parts.push(gathered)
    gathered = ''
  }
  for (const piece of json.split(CUT)) {
    if (ALWAYS_NEW.test(piece)) flush()
    gathered += piece
    if (gathered.length >= LEAST_PART) flush()
  }
  flush()
  return parts
}

/** What tells parts of one run apart. */
export function digestOf(part: string): string {
  return builtIn('node:crypto').createHash('sha256').update(part).digest('base64url')
}

/**
 * A list of numbers as text: `5+3` for 5, 6, 7, 8 and `5+3*2` for 5, 7, 9, 11, as numbers mostly follow each other
 * with equal gaps. Behind a marker that no JSON begins with.
 */
export function writePartList(ids: readonly number[]): string {
  const series: { first: number; more: number; gap: number }[] = []
  for (const id of ids) {
    const last = series.at(-1)
    if (last?.more === 0 && id > last.first) Object.assign(last, { more: 1, gap: id - last.first })
    else if (last !== undefined && last.more > 0 && id === last.first + last.gap * (last.more + 1))
      last.more++
    else series.push({ first: id, more: 0, gap: 1 })
  }
  return LIST_MARKER + series.map(writeSeries).join(' ')
}

function writeSeries({ first, more, gap }: { first: number; more: number; gap: number }): string {
  if (more === 0) return `${first}`
  return gap === 1 ? `${first}+${more}` : `${first}+${more}*${gap}`
}

/** The numbers that `writePartList` wrote; `undefined` when the text is a request itself. */
export function readPartList(stored: string): number[] | undefined {
  if (!stored.startsWith(LIST_MARKER)) return undefined
  return stored
    .slice(LIST_MARKER.length)
    .split(' ')
    .flatMap(series => {
      const [first = 0, more = 0, gap = 1] = series.split(/[+*]/).map(Number)
      return Array.from({ length: more + 1 }, (_, index) => first + index * gap)
    })
}

const LIST_MARKER = 'parts '

/** A part as it is stored: compressed where that makes it shorter. */
export function packPart(part: string): string {
  const packed = PACKED_MARKER + builtIn('node:zlib').deflateRawSync(part).toString('base64')
  return packed.length < part.length + PLAIN_MARKER.length ? packed : PLAIN_MARKER + part
}

/** The reverse of `packPart`. */
export function unpackPart(stored: string): string {
  const rest = stored.slice(PLAIN_MARKER.length)
  return stored.startsWith(PACKED_MARKER)
    ? builtIn('node:zlib').inflateRawSync(Buffer.from(rest, 'base64')).toString()
    : rest
}

const PACKED_MARKER = 'z'
const PLAIN_MARKER = ' '

/** Taken when it is needed: commands that only list sessions start sooner without these. */
const builtIn = process.getBuiltinModule
