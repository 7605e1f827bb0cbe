import { useEffect, useRef } from 'react'
import { Icon, type IconName } from './icons.js'

export interface MenuAction {
  icon: IconName
  label: string
  act: () => void
}

interface MenuProps {
  actions: readonly MenuAction[]
  /** By the keyboard: the focus goes back to the button. */
  onClose: () => void
  /** By the pointer, somewhere else. */
  onLeave: () => void
}

/** A list of actions below its button; the element around both is what counts as inside. */
export function Menu({ actions, onClose, onLeave }: MenuProps) {
  const menu = useRef<HTMLDivElement>(null)
  const leave = useRef(onLeave)
  leave.current = onLeave
  useEffect(() => {
    menu.current?.querySelector('button')?.focus()
    const onPointer = (event: PointerEvent) => {
      const around = menu.current?.parentElement
      if (!(event.target instanceof Node) || !around?.contains(event.target)) leave.current()
    }
    document.addEventListener('pointerdown', onPointer)
    return () => document.removeEventListener('pointerdown', onPointer)
  }, [])
  return (
    <div
      ref={menu}
      className="menu"
      role="menu"
      tabIndex={-1}
      onKeyDown={event => {
        if (event.key === 'Escape' || event.key === 'Tab') {
          event.preventDefault()
          event.stopPropagation()
          onClose()
        } else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
          event.preventDefault()
          moveFocus(event.currentTarget, event.key === 'ArrowDown' ? 1 : -1)
        }
      }}
    >
      {actions.map(({ icon, label, act }) => (
        <button key={label} type="button" role="menuitem" onClick={act}>
          <Icon name={icon} />
          {label}
        </button>
      ))}
    </div>
  )
}

function moveFocus(menu: HTMLElement, step: number): void {
  const items = [...menu.querySelectorAll('button')]
  const index = items.indexOf(document.activeElement as HTMLButtonElement)
  items[(index + step + items.length) % items.length]?.focus()
}
