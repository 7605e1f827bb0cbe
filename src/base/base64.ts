/** Base64 of the UTF-8 bytes of a text, in every runtime. */
export function encodeBase64(text: string): string {
  let binary = ''
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte)
  return btoa(binary)
}

/** The text of such bytes. Throws when it is not base64. */
export function decodeBase64(text: string): string {
  return new TextDecoder().decode(Uint8Array.from(atob(text), character => character.charCodeAt(0)))
}

/**
 * Base64 in the one form that every vendor reads: without a data URL around it, white space and the letters of the URL
 * alphabet, and padded. The very text when it is so already, `undefined` when it is not base64.
 */
export function plainBase64(text: string): string | undefined {
  if (isPlain(text)) return text
  let inner = text
  // A program that takes a data URL for base64 may have put it into another one.
  for (let depth = 0; depth < MOST_NESTED && inner.startsWith('data:'); depth++) {
    const comma = inner.indexOf(',')
    if (comma < 0) return undefined
    inner = inner.slice(comma + 1)
  }
  const letters = inner.replaceAll(/\s+/g, '').replaceAll('-', '+').replaceAll('_', '/').replace(/=+$/, '')
  const padded = letters + '='.repeat((4 - (letters.length % 4)) % 4)
  return isPlain(padded) ? padded : undefined
}

const MOST_NESTED = 3

function isPlain(text: string): boolean {
  return text.length % 4 === 0 && isBase64(text)
}

/** True for letters of base64, followed by at most two `=`. */
export function isBase64(text: string): boolean {
  return endsPadded(text, text.search(/[^A-Za-z0-9+/]/))
}

/** The same for the letters of both alphabets. */
export function isEitherBase64(text: string): boolean {
  return endsPadded(text, text.search(/[^A-Za-z0-9+/_-]/))
}

/**
 * `end` is where the first other character was found. Such a search needs no memory; an expression for the whole text
 * takes some for every character, and fails where a file is large and the process busy.
 */
function endsPadded(text: string, end: number): boolean {
  if (end === -1) return true
  const rest = text.length - end
  return rest <= 2 && text.endsWith('='.repeat(rest))
}

/** The media type in a data URL, and the base64. */
export function readDataUrl(url: string): { mimeType: string; data: string } | undefined {
  const comma = url.startsWith('data:') ? url.indexOf(',') : -1
  const [mimeType = '', ...parameters] = url.slice(5, Math.max(5, comma)).split(';')
  return comma < 0 || !parameters.includes('base64') ? undefined : { mimeType, data: url.slice(comma + 1) }
}
