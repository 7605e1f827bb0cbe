/**
 * The words of Python's JSON decoder, which vLLM passes on. Only asked after JSON.parse has refused a text,
 * so it needs to find the first fault, not to build a value.
 */

/** What Python says about a text that is not JSON; nothing when it is. */
export function pythonJsonError(text: string): string | undefined {
  try {
    JSON.parse(text)
    return undefined
  } catch {
    const fault = scan(text)
    return fault === undefined ? undefined : describe(text, fault)
  }
}

interface Fault {
  readonly what: string
  readonly at: number
}

/** A position after a value, or the fault that was met. */
type Scanned = number | Fault

function scan(text: string): Fault | undefined {
  const end = scanValue(text, skipSpace(text, 0))
  if (typeof end !== 'number') return end
  const rest = skipSpace(text, end)
  // Python takes a few texts that JSON.parse does not, such as NaN.
  return rest === text.length ? undefined : { what: 'Extra data', at: rest }
}

function describe(text: string, { what, at }: Fault): string {
  const before = text.slice(0, at)
  const line = before.split('\n').length
  const column = at - before.lastIndexOf('\n')
  return `${what}: line ${line} column ${column} (char ${at})`
}

function scanValue(text: string, at: number): Scanned {
  const character = text[at]
  if (character === '"') return scanString(text, at + 1)
  if (character === '{') return scanObject(text, at + 1)
  if (character === '[') return scanArray(text, at + 1)
  const literal = /^(?:null|true|false|NaN|-?Infinity|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?)/.exec(
    text.slice(at),
  )
  return literal === null ? { what: 'Expecting value', at } : at + literal[0].length
}

function scanString(text: string, start: number): Scanned {
  for (let at = start; at < text.length; at += 1) {
    const character = text[at] as string
    if (character === '"') return at + 1
    if (character < ' ') return { what: 'Invalid control character at', at }
    if (character !== '\\') continue
    if (at + 1 >= text.length) break
    const escaped = text[at + 1] as string
    if (escaped === 'u' && !/^[0-9a-fA-F]{4}$/.test(text.slice(at + 2, at + 6))) {
      return { what: 'Invalid \\uXXXX escape', at: at + 1 }
    }
    if (!'"\\/bfnrtu'.includes(escaped)) return { what: 'Invalid \\escape', at }
    at += escaped === 'u' ? 5 : 1
  }
  return { what: 'Unterminated string starting at', at: start - 1 }
}

const PROPERTY_EXPECTED = 'Expecting property name enclosed in double quotes'

function scanObject(text: string, start: number): Scanned {
  let at = skipSpace(text, start)
  if (text[at] === '}') return at + 1
  // Each turn reads at least one character, so the loop ends with the text.
  while (at <= text.length) {
    if (text[at] !== '"') return { what: PROPERTY_EXPECTED, at }
    const key = scanString(text, at + 1)
    if (typeof key !== 'number') return key
    at = skipSpace(text, key)
    if (text[at] !== ':') return { what: "Expecting ':' delimiter", at }
    const value = scanValue(text, skipSpace(text, at + 1))
    if (typeof value !== 'number') return value
    at = skipSpace(text, value)
    if (text[at] === '}') return at + 1
    if (text[at] !== ',') return { what: "Expecting ',' delimiter", at }
    at = skipSpace(text, at + 1)
  }
  return { what: PROPERTY_EXPECTED, at }
}

function scanArray(text: string, start: number): Scanned {
  let at = skipSpace(text, start)
  if (text[at] === ']') return at + 1
  while (at <= text.length) {
    const value = scanValue(text, at)
    if (typeof value !== 'number') return value
    at = skipSpace(text, value)
    if (text[at] === ']') return at + 1
    if (text[at] !== ',') return { what: "Expecting ',' delimiter", at }
    at = skipSpace(text, at + 1)
  }
  return { what: 'Expecting value', at }
}

function skipSpace(text: string, from: number): number {
  let at = from
  while (at < text.length && ' \t\n\r'.includes(text[at] as string)) at += 1
  return at
}
