import { type KeyboardEvent, type PointerEvent, useEffect, useState } from 'react'
import { readStored, writeStored } from '../shared/stored.js'

const KEY = 'lango-panel-width'
const MINIMUM = 360
const STEP = 32

/** How wide the panel is, kept for the next time and never wider than the page allows. */
export function usePanelWidth(): [number, (width: number) => void] {
  const [width, setWidth] = useState(() => within(readWidth() ?? firstWidth()))
  useEffect(() => {
    const listen = () => setWidth(within)
    window.addEventListener('resize', listen)
    return () => window.removeEventListener('resize', listen)
  }, [])
  const change = (next: number) => {
    const bounded = within(next)
    setWidth(bounded)
    writeStored(KEY, String(bounded))
  }
  return [width, change]
}

/** The edge that is dragged, or moved with the arrow keys. */
export function PanelResizer({ width, onWidth }: { width: number; onWidth: (width: number) => void }) {
  const onPointerDown = (event: PointerEvent<HTMLElement>) => {
    event.currentTarget.setPointerCapture(event.pointerId)
    event.preventDefault()
  }
  const onPointerMove = (event: PointerEvent<HTMLElement>) => {
    if (event.currentTarget.hasPointerCapture(event.pointerId)) onWidth(window.innerWidth - event.clientX)
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const change = { ArrowLeft: STEP, ArrowRight: -STEP }[event.key]
    if (change === undefined) return
    event.preventDefault()
    onWidth(width + change)
  }
  return (
    // biome-ignore lint/a11y/useSemanticElements: a separator that can be moved is not a rule
    <div
      role="separator"
      aria-orientation="vertical"
      aria-label="Width of the panel"
      aria-valuenow={Math.round(width)}
      aria-valuemin={MINIMUM}
      aria-valuemax={Math.round(maximum())}
      tabIndex={0}
      className="inspect-frame-resizer"
      onPointerDown={onPointerDown}
      onPointerMove={onPointerMove}
      onKeyDown={onKeyDown}
    />
  )
}

/** Wide screens keep the chats and the chat beside it. */
function firstWidth(): number {
  const half = window.innerWidth * 0.54
  return window.innerWidth >= 1200 ? Math.min(half, window.innerWidth - ROOM) : half
}

/** What the chats and a narrow chat need. */
const ROOM = 272 + 384

function maximum(): number {
  return Math.max(MINIMUM, window.innerWidth - 120)
}

function within(width: number): number {
  return Math.min(Math.max(width, MINIMUM), maximum())
}

function readWidth(): number | undefined {
  const saved = Number(readStored(KEY))
  return saved > 0 ? saved : undefined
}
