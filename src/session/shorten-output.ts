import { countTextTokens } from './tokens.js'

/**
 * Shortens a tool output to about `limitTokens`, keeping its beginning and its end and saying between them
 * how much is missing. JSON stays JSON, because it is parsed again on its way to a model: its longest string
 * is shortened in place when that is enough, otherwise the text as a whole becomes `{"output": …}`.
 * The marker ends with `note`, which may name the place of the whole text.
 */
export function shortenOutput(text: string, limitTokens: number, note = ''): string {
  if (countTextTokens(text) <= limitTokens) return text
  if (!isJson(text)) return shortenText(text, { limitTokens, note, form: identity })
  const longest = longestString(text)
  if (longest !== undefined) {
    const rest = countTextTokens(text.slice(0, longest.start)) + countTextTokens(text.slice(longest.end))
    if (rest <= limitTokens / 2) {
      const value = JSON.parse(text.slice(longest.start, longest.end)) as string
      const shorter = JSON.stringify(
        shortenText(value, { limitTokens: limitTokens - rest, note, form: quoted }),
      )
      return text.slice(0, longest.start) + shorter + text.slice(longest.end)
    }
  }
  return `{"output":${JSON.stringify(shortenText(text, { limitTokens: limitTokens - 4, note, form: quoted }))}}`
}

/**
 * The beginning and the end of a text with a visible marker between. `form` is how the text will be written,
 * since quoting it as JSON makes it longer.
 */
function shortenText(text: string, { limitTokens, note, form }: Shortening): string {
  const density = text.length / Math.max(1, countTextTokens(form(text)))
  const markerTokens = MARKER_TOKENS + (note === '' ? 0 : countTextTokens(form(note)))
  let room = Math.max(0, Math.floor((limitTokens - markerTokens) * density))
  let shorter = around(text, room, note)
  // Dense passages at the ends can cost more than the average: a few rounds reach the limit or the bare marker.
  for (let round = 0; round < 12 && room > 0 && countTextTokens(form(shorter)) > limitTokens; round++) {
    room = Math.floor(room * 0.75)
    shorter = around(text, room, note)
  }
  return shorter
}

interface Shortening {
  limitTokens: number
  note: string
  form: (text: string) => string
}

const MARKER_TOKENS = 20

function around(text: string, room: number, note: string): string {
  if (room >= text.length) return text
  let head = Math.ceil(room * 0.6)
  let tail = text.length - (room - head)
  if (splitsPair(text, head)) head--
  if (splitsPair(text, tail)) tail++
  const [first, last] = [text.slice(0, head), text.slice(tail)]
  return `${first}… [shortened by Lango: ${missing(text, head, tail)} left out${note}] …${last}`
}

/** How much is missing. A text that its tool has shortened before, by bytes, is counted from the beginning. */
function missing(text: string, head: number, tail: number): string {
  const earlier = EARLIER.exec(text.slice(head, tail))
  if (!earlier) return `${grouped(tail - head)} of ${grouped(text.length)} characters`
  const all = Number(earlier[1])
  return `${all - byteLength(text.slice(0, head)) - byteLength(text.slice(tail))} of ${all} bytes`
}

const EARLIER = /\[shortened by Lango: \d+ of (\d+) bytes left out\]/

const encoder = new TextEncoder()

function byteLength(text: string): number {
  return encoder.encode(text).length
}

/** 12,345. Made by hand, because the first use of `Intl` takes longer than opening a store. */
function grouped(number: number): string {
  return String(number).replaceAll(/\B(?=(\d{3})+$)/g, ',')
}

/** Whether a cut before `index` would part the two halves of one character. */
function splitsPair(text: string, index: number): boolean {
  const before = text.charCodeAt(index - 1)
  const after = text.charCodeAt(index)
  return before >= 0xd800 && before < 0xdc00 && after >= 0xdc00 && after < 0xe000
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/**
 * Where the longest string value of a JSON text stands, quotes included. The text itself is searched rather
 * than its parsed value: numbers that a double cannot hold must come through as they were written.
 */
function longestString(json: string): { start: number; end: number } | undefined {
  let longest: { start: number; end: number } | undefined
  for (let start = json.indexOf('"'); start !== -1; ) {
    const end = stringEnd(json, start)
    const isKey = /^\s*:/.test(json.slice(end, end + 16))
    if (!isKey && (longest === undefined || end - start > longest.end - longest.start))
      longest = { start, end }
    start = json.indexOf('"', end)
  }
  return longest
}

/** The index after the closing quote of the string that opens at `start`. The text is valid JSON. */
function stringEnd(json: string, start: number): number {
  for (let end = json.indexOf('"', start + 1); end !== -1; end = json.indexOf('"', end + 1)) {
    let slashes = 0
    while (json.charCodeAt(end - 1 - slashes) === 0x5c) slashes++
    if (slashes % 2 === 0) return end + 1
  }
  return json.length
}

function identity(text: string): string {
  return text
}

function quoted(text: string): string {
  return JSON.stringify(text)
}
