import type { ReasoningItem } from '../../../src/transcript/item.js'
import { useFold } from '../shared/folds.js'
import { Icon } from '../shared/icons.js'
import { Markdown } from './markdown.js'

/** What the model thought, folded until somebody wants to read it. */
export function Reasoning({ entry }: { entry: ReasoningItem }) {
  const [isOpen, setOpen] = useFold(`reasoning:${entry.text.slice(0, 80)}`, false)
  if (entry.redacted)
    return <p className="fold-label">The model's reasoning is kept sealed by its provider.</p>
  return (
    <div className="reasoning" data-open={isOpen || undefined}>
      <button type="button" className="fold-label" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Icon name="spark" size={14} />
        <span className={entry.streaming ? 'shimmer' : ''}>{entry.streaming ? 'Reasoning' : 'Reasoned'}</span>
        <span className="fold-arrow">
          <Icon name="chevron" size={12} />
        </span>
      </button>
      {isOpen ? (
        <div className="reasoning-text">
          <Markdown text={entry.text} />
        </div>
      ) : null}
    </div>
  )
}
