import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef, useState } from 'react'
import './panel-frame.css'
import { PanelResizer, usePanelWidth } from './panel-resizer.js'

export interface PanelFrameProps {
  title: string
  subtitle?: string | undefined
  onClose: () => void
  /** Stays in sight while the content scrolls. */
  head?: ReactNode
  children: ReactNode
}

/**
 * A panel at the right side of the page, next to which the page stays usable; on a small screen a sheet over all of it,
 * which keeps the focus. Escape closes it, and the focus goes back to where it came from.
 */
export function PanelFrame({ title, subtitle, onClose, head, children }: PanelFrameProps) {
  const panel = useRef<HTMLElement>(null)
  const titleId = useId()
  const isSheet = useIsSheet()
  const [width, setWidth] = usePanelWidth()
  useReturnedFocus(panel)
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Escape' && !event.defaultPrevented) {
      // Escape also stops a run; here it means the panel alone.
      event.stopPropagation()
      onClose()
    }
    if (event.key === 'Tab' && isSheet && panel.current) keepFocus(event, panel.current)
  }
  const role = isSheet ? { role: 'dialog', 'aria-modal': true } : { role: 'complementary' }
  return (
    <section
      {...role}
      ref={panel}
      aria-labelledby={titleId}
      tabIndex={-1}
      className="inspect-frame"
      style={isSheet ? undefined : { width }}
      onKeyDown={onKeyDown}
    >
      {isSheet ? null : <PanelResizer width={width} onWidth={setWidth} />}
      <header className="inspect-frame-header">
        <div className="inspect-frame-titles">
          <h2 id={titleId}>{title}</h2>
          {subtitle ? <p dir="auto">{subtitle}</p> : null}
        </div>
        <button
          type="button"
          className="inspect-frame-close"
          aria-label={`Close: ${title}`}
          onClick={onClose}
        >
          <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
            <path d="M3.5 3.5l9 9m0-9l-9 9" stroke="currentColor" strokeWidth="1.6" strokeLinecap="round" />
          </svg>
        </button>
      </header>
      {head}
      {children}
    </section>
  )
}

/** Up to here there is no room for both; `panel-frame.css` says the same. */
const SHEET = '(max-width: 900px)'

function useIsSheet(): boolean {
  const [isSheet, setIsSheet] = useState(() => matchMedia(SHEET).matches)
  useEffect(() => {
    const query = matchMedia(SHEET)
    const listen = () => setIsSheet(query.matches)
    query.addEventListener('change', listen)
    return () => query.removeEventListener('change', listen)
  }, [])
  return isSheet
}

function useReturnedFocus(panel: { readonly current: HTMLElement | null }): void {
  useEffect(() => {
    const before = document.activeElement
    panel.current?.focus({ preventScroll: true })
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true })
    }
  }, [panel])
}

const FOCUSABLE = 'button:not(:disabled), a[href], input, select, textarea, [tabindex]:not([tabindex="-1"])'

/** Tab goes round inside a sheet. */
function keepFocus(event: KeyboardEvent, panel: HTMLElement): void {
  const stops = [...panel.querySelectorAll<HTMLElement>(FOCUSABLE)].filter(
    element => element.offsetParent !== null,
  )
  const first = stops[0]
  const last = stops.at(-1)
  const isAtStart = document.activeElement === first || document.activeElement === panel
  if (event.shiftKey && isAtStart && last) {
    event.preventDefault()
    last.focus()
  } else if (!event.shiftKey && document.activeElement === last && first) {
    event.preventDefault()
    first.focus()
  }
}
