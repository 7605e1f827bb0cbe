/**
 * Any JavaScript string in a text column. PostgreSQL refuses NUL and both databases lose half surrogate
 * pairs, so such texts are stored as a JSON literal after a marker; all others unchanged and readable.
 */
const MARKER = '\u0001'

export function storableText(text: string): string {
  const plain = !text.includes('\0') && isWellFormed(text) && text.charCodeAt(0) !== 1
  return plain ? text : MARKER + JSON.stringify(text)
}

/** The reverse of `storableText`. */
export function restoreText(stored: string): string {
  return stored.charCodeAt(0) === 1 ? (JSON.parse(stored.slice(1)) as string) : stored
}

function isWellFormed(text: string): boolean {
  // Every supported Node has it; the compiler's ES2023 library does not know it yet.
  return (text as unknown as { isWellFormed(): boolean }).isWellFormed()
}
