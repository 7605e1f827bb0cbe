/** Titles of sessions: one line, counted in code points, so that no character is cut in half. */

/** The length of a title that somebody gives. */
export const MAX_TITLE = 200

/** The length of a title that is made of the first message. */
const OPENING_LENGTH = 80

/** A title as it is kept: one line of at most `most` code points; `undefined` when nothing is left. */
export function tidyTitle(title: string | undefined, most = MAX_TITLE): string | undefined {
  const kept: string[] = []
  for (const character of title ?? '') {
    const isSpace = /[\s\p{Cc}]/u.test(character)
    if (!isSpace) kept.push(character)
    else if (kept.length > 0 && kept.at(-1) !== ' ') kept.push(' ')
    if (kept.length === most) break
  }
  const line = kept.join('').trimEnd()
  return line === '' ? undefined : line
}

/** The title of a session that a message opens; empty when the message has no text. */
export function titleOfMessage(text: string | undefined): string {
  return tidyTitle(text, OPENING_LENGTH) ?? ''
}
