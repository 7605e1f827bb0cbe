import { useState } from 'react'
import type { JsonLine } from './json-tree.js'

/** One line of the tree: a branch that folds, or a value that unfolds when it is long. */
export function JsonRow({
  line,
  isFound,
  onToggle,
}: {
  line: JsonLine
  isFound: boolean
  onToggle: () => void
}) {
  const [isWhole, setIsWhole] = useState(false)
  const isLong = line.open === undefined && line.text.length > SHOWN
  const text = isLong ? (isWhole ? line.text.slice(0, MAXIMUM) : `${line.text.slice(0, SHOWN)}…`) : line.text
  const name = line.name === '' ? null : <span className="inspect-json-name">{line.name}</span>
  const indent = { paddingInlineStart: 8 + Math.min(line.depth, 16) * 14 }
  if (line.open === undefined && !isLong) {
    return (
      <div className={`inspect-json-row${isFound ? ' is-found' : ''}`} style={indent}>
        <span className="inspect-json-fold" />
        {name}
        <span className={`inspect-json-value inspect-json-${line.kind}`}>{text}</span>
      </div>
    )
  }
  const isOpen = line.open ?? isWhole
  return (
    <button
      type="button"
      className={`inspect-json-row${isFound ? ' is-found' : ''}`}
      style={indent}
      aria-expanded={isOpen}
      onClick={() => (line.open === undefined ? setIsWhole(!isWhole) : onToggle())}
    >
      <span className="inspect-json-fold" aria-hidden="true">
        {isOpen ? '▾' : '▸'}
      </span>
      {name}
      <span className={`inspect-json-value inspect-json-${line.open === undefined ? line.kind : 'size'}`}>
        {text}
      </span>
    </button>
  )
}

const SHOWN = 160
/** Longer values are read better in an editor: copying gives all of it. */
const MAXIMUM = 50_000
