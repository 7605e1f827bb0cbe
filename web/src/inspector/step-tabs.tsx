import { type KeyboardEvent, type ReactNode, useId } from 'react'

export type TabName = 'compare' | 'repairs' | 'parts' | 'raw'

export interface StepTabsProps {
  tab: TabName
  onTab: (tab: TabName) => void
  repairs: number
  tools: number
  children: ReactNode
}

/** Four views of one request. Arrow keys move between them. */
export function StepTabs({ tab, onTab, repairs, tools, children }: StepTabsProps) {
  const id = useId()
  const tabs: { name: TabName; label: string; count?: number }[] = [
    { name: 'compare', label: 'Stored and sent' },
    { name: 'repairs', label: 'Repairs', count: repairs },
    { name: 'parts', label: 'Instruction and tools', count: tools },
    { name: 'raw', label: 'Raw' },
  ]
  const onKeyDown = (event: KeyboardEvent<HTMLElement>) => {
    const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
    if (move === undefined) return
    event.preventDefault()
    const at = tabs.findIndex(one => one.name === tab)
    const next = tabs[(at + move + tabs.length) % tabs.length]
    if (!next) return
    onTab(next.name)
    document.getElementById(`${id}-${next.name}`)?.focus()
  }
  return (
    <>
      <div
        className="inspect-step-tabs"
        role="tablist"
        aria-label="Views of the request"
        onKeyDown={onKeyDown}
      >
        {tabs.map(({ name, label, count }) => (
          <button
            key={name}
            id={`${id}-${name}`}
            type="button"
            role="tab"
            aria-selected={tab === name}
            aria-controls={`${id}-panel`}
            tabIndex={tab === name ? 0 : -1}
            onClick={() => onTab(name)}
          >
            {label}
            {count ? <span className="inspect-step-tabs-count">{count}</span> : null}
          </button>
        ))}
      </div>
      <div
        id={`${id}-panel`}
        role="tabpanel"
        aria-labelledby={`${id}-${tab}`}
        className="inspect-step-tab-panel"
      >
        {children}
      </div>
    </>
  )
}
