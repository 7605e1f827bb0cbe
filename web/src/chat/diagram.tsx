import { useEffect, useState, useSyncExternalStore } from 'react'
import { CopyButton } from '../shared/copy-button.js'
import { useFold } from '../shared/folds.js'
import { CodeBlock } from './code-block.js'
import type { DrawnDiagram } from './draw-diagram.js'

/** A diagram as a picture, or its source: by choice, until it is drawn, and when it cannot be. */
export function Diagram({ source }: { source: string }) {
  const { diagram, problem } = useDrawn(source)
  const [isSource, setSource] = useFold(`diagram:${source}`, false)
  if (!diagram)
    return (
      <>
        <CodeBlock code={source} language="mermaid" />
        {problem === undefined ? null : (
          <p className="diagram-problem">This diagram cannot be drawn: {problem}</p>
        )}
      </>
    )
  const { address, width, height, type } = diagram
  const kind = type.replace(/-v\d+$/, '')
  const toggle = (
    <button
      type="button"
      className="quiet-button"
      aria-expanded={isSource}
      onClick={() => setSource(!isSource)}
    >
      {isSource ? 'Diagram' : 'Source'}
    </button>
  )
  if (isSource) return <CodeBlock code={source} language="mermaid" action={toggle} />
  return (
    <figure className="code-block diagram">
      <figcaption>
        <span>{kind || 'diagram'}</span>
        {toggle}
        <CopyButton text={source} label="Copy" />
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard. */}
      <div className="diagram-picture" tabIndex={0}>
        <img
          src={address}
          width={width}
          height={height}
          alt={`Diagram${kind ? ` (${kind})` : ''}; its source can be shown`}
        />
      </div>
    </figure>
  )
}

interface Drawn {
  key: string
  diagram?: DrawnDiagram
  problem?: string
}

function useDrawn(source: string): Drawn {
  const isDark = useSyncExternalStore(onThemeChange, isDarkNow)
  const key = `${isDark}:${source}`
  const [drawn, setDrawn] = useState<Drawn>({ key: '' })
  useEffect(() => {
    let isCurrent = true
    const keep = (found: Omit<Drawn, 'key'>) => {
      if (isCurrent) setDrawn({ key, ...found })
    }
    import('./draw-diagram.js')
      .then(({ drawDiagram }) => drawDiagram(source, isDark))
      .then(
        diagram => keep({ diagram }),
        (error: unknown) => keep({ problem: reasonOf(error) }),
      )
    return () => {
      isCurrent = false
    }
  }, [key, source, isDark])
  // In the other theme the old picture stays until there is a new one.
  return drawn.key === key || drawn.key.endsWith(`:${source}`) ? drawn : { key }
}

/** The first lines of a parser's message say where and what; the rest is the parser's own tables. */
function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  return (message.split('\n')[0] ?? '').replace(/:$/, '.').slice(0, 200)
}

const DARK = '(prefers-color-scheme: dark)'

function isDarkNow(): boolean {
  const { theme } = document.documentElement.dataset
  return theme === undefined ? matchMedia(DARK).matches : theme === 'dark'
}

function onThemeChange(listener: () => void): () => void {
  const observer = new MutationObserver(listener)
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] })
  const system = matchMedia(DARK)
  system.addEventListener('change', listener)
  return () => {
    observer.disconnect()
    system.removeEventListener('change', listener)
  }
}
