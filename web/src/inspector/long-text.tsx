import { useState } from 'react'
import { plural } from './words.js'

export interface LongTextProps {
  text: string
  /** How many characters are shown unasked. */
  limit?: number
  className?: string
}

/** A text that may be of any length and direction: its beginning, and the rest on request. */
export function LongText({ text, limit = 220, className = '' }: LongTextProps) {
  const [shown, setShown] = useState(limit)
  const isLong = text.length > shown + 40
  return (
    <div className={`inspect-long-text ${className}`}>
      <span dir="auto">{isLong ? `${beginning(text, shown)}…` : text}</span>
      {isLong ? (
        <button type="button" className="inspect-message-link" onClick={() => setShown(shown + MORE)}>
          {plural(text.length - shown, 'more character')}
        </button>
      ) : null}
    </div>
  )
}

/** A million characters at once would freeze the page, so they come in portions. */
const MORE = 20_000

/** Does not cut through a character that takes two places. */
function beginning(text: string, length: number): string {
  const code = text.charCodeAt(length - 1)
  return text.slice(0, code >= 0xd800 && code < 0xdc00 ? length - 1 : length)
}
