import { type ReactNode, useEffect, useState } from 'react'
import { CopyButton } from '../shared/copy-button.js'
import type { CodePiece } from './highlight.js'

/** Longer code is shown without colours. */
const MAXIMUM_LENGTH = 40_000

/** Code with its language, a copy button, and colours once the highlighter is loaded. */
export function CodeBlock({
  code,
  language,
  action,
}: {
  code: string
  language: string
  action?: ReactNode
}) {
  const pieces = usePieces(code, language)
  return (
    <figure className="code-block">
      <figcaption>
        <span>{language || 'text'}</span>
        {action}
        <CopyButton text={code} label="Copy" />
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard. */}
      <pre tabIndex={0}>
        <code>{pieces ? render(pieces) : code}</code>
      </pre>
    </figure>
  )
}

function usePieces(code: string, language: string): CodePiece[] | undefined {
  const [found, setFound] = useState<{ code: string; pieces: CodePiece[] | undefined }>()
  useEffect(() => {
    if (language === '' || code.length > MAXIMUM_LENGTH) return
    let isCurrent = true
    import('./highlight.js').then(
      ({ highlight }) => {
        if (isCurrent) setFound({ code, pieces: highlight(code, language) })
      },
      () => {
        // The server has other files since an update: code without colours is still code.
      },
    )
    return () => {
      isCurrent = false
    }
  }, [code, language])
  if (!found?.pieces) return undefined
  if (found.code === code) return found.pieces
  // While code streams in, the colours of what was there stay and the rest follows plain.
  return code.startsWith(found.code) ? [...found.pieces, code.slice(found.code.length)] : undefined
}

function render(pieces: readonly CodePiece[]): ReactNode[] {
  return pieces.map((piece, index) =>
    typeof piece === 'string' ? (
      piece
    ) : (
      // biome-ignore lint/suspicious/noArrayIndexKey: pieces have no identity but their place.
      <span key={index} className={piece.kind}>
        {render(piece.pieces)}
      </span>
    ),
  )
}
