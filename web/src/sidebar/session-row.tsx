import { useEffect, useRef, useState } from 'react'
import { useChat } from '../chat-context.js'
import { IconButton } from '../shared/icon-button.js'
import { Icon, type IconName } from '../shared/icons.js'
import type { SessionItem } from '../state/api.js'
import { formatAge } from '../state/format.js'

interface SessionRowProps {
  item: SessionItem
  now: number
  isCurrent: boolean
  isRunning: boolean
}

type Mode = 'plain' | 'menu' | 'rename' | 'delete'

/** One chat in the list: a click opens it, its menu renames, forks or deletes it. */
export function SessionRow({ item, now, isCurrent, isRunning }: SessionRowProps) {
  const { openSession } = useChat()
  const [mode, setMode] = useState<Mode>('plain')
  const close = () => setMode('plain')
  const title = item.title || item.preview || 'New chat'
  if (mode === 'rename') return <RenameForm item={item} title={title} onClose={close} />
  if (mode === 'delete') return <DeleteQuestion item={item} isCurrent={isCurrent} onClose={close} />
  return (
    <li
      className="session-row"
      data-current={isCurrent || undefined}
      data-menu={mode === 'menu' || undefined}
    >
      <a
        href={`/s/${encodeURIComponent(item.sessionId)}`}
        aria-current={isCurrent ? 'page' : undefined}
        onClick={event => {
          if (event.metaKey || event.ctrlKey || event.shiftKey) return
          event.preventDefault()
          openSession(item.sessionId)
        }}
      >
        {isRunning ? (
          <span className="running-dot" role="img" aria-label="An answer is being written" />
        ) : null}
        <span className="session-title" dir="auto">
          {title}
        </span>
        <span className="session-age">{formatAge(item.updatedAt, now)}</span>
      </a>
      <IconButton
        icon="more"
        label={`Actions for ${title.slice(0, 60)}`}
        className="session-more"
        aria-expanded={mode === 'menu'}
        onClick={() => setMode(mode === 'menu' ? 'plain' : 'menu')}
      />
      {mode === 'menu' ? <Menu item={item} onMode={setMode} /> : null}
    </li>
  )
}

function Menu({ item, onMode }: { item: SessionItem; onMode: (mode: Mode) => void }) {
  const { client, sessions, thread, openSession } = useChat()
  const menu = useRef<HTMLDivElement>(null)
  useEffect(() => {
    menu.current?.querySelector('button')?.focus()
    const onPointer = (event: PointerEvent) => {
      const row = menu.current?.parentElement
      if (!(event.target instanceof Node) || !row?.contains(event.target)) onMode('plain')
    }
    document.addEventListener('pointerdown', onPointer)
    return () => document.removeEventListener('pointerdown', onPointer)
  }, [onMode])
  const fork = async () => {
    onMode('plain')
    const forked = await client.fork(item.sessionId).catch((error: unknown) => thread.tellError(error))
    await sessions.refresh()
    if (forked) openSession(forked.sessionId)
  }
  const actions: { icon: IconName; label: string; act: () => void }[] = [
    { icon: 'pencil', label: 'Rename', act: () => onMode('rename') },
    { icon: 'fork', label: 'Fork', act: () => void fork() },
    { icon: 'trash', label: 'Delete', act: () => onMode('delete') },
  ]
  return (
    <div
      ref={menu}
      className="menu"
      role="menu"
      tabIndex={-1}
      onKeyDown={event => {
        if (event.key === 'Escape') {
          event.stopPropagation()
          onMode('plain')
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

function RenameForm({ item, title, onClose }: { item: SessionItem; title: string; onClose: () => void }) {
  const { sessions, thread } = useChat()
  const [text, setText] = useState(title)
  const field = useRef<HTMLInputElement>(null)
  const isOver = useRef(false)
  useEffect(() => field.current?.select(), [])
  const end = (isKept: boolean) => {
    if (isOver.current) return
    isOver.current = true
    const next = text.trim()
    if (isKept && next !== '' && next !== title) {
      void sessions.rename(item.sessionId, next)
      thread.renamed(item.sessionId, next)
    }
    onClose()
  }
  return (
    <li className="session-row">
      <input
        ref={field}
        className="rename-field"
        aria-label="New name"
        dir="auto"
        maxLength={200}
        value={text}
        onChange={event => setText(event.target.value)}
        onBlur={() => end(true)}
        onKeyDown={event => {
          if (event.nativeEvent.isComposing) return
          if (event.key === 'Enter') end(true)
          if (event.key === 'Escape') {
            event.stopPropagation()
            end(false)
          }
        }}
      />
    </li>
  )
}

interface DeleteQuestionProps {
  item: SessionItem
  isCurrent: boolean
  onClose: () => void
}

function DeleteQuestion({ item, isCurrent, onClose }: DeleteQuestionProps) {
  const { sessions, openSession } = useChat()
  const keep = useRef<HTMLButtonElement>(null)
  useEffect(() => keep.current?.focus(), [])
  const remove = async () => {
    const deleted = await sessions.delete(item.sessionId)
    if (deleted && isCurrent) openSession(undefined)
    if (!deleted) onClose()
  }
  return (
    <li className="session-row delete-question">
      <span>Delete for good?</span>
      <button type="button" className="button danger" onClick={() => void remove()}>
        Delete
      </button>
      <button ref={keep} type="button" className="button" onClick={onClose}>
        Keep
      </button>
    </li>
  )
}
