import { useCallback, useEffect, useRef, useState } from 'react'
import { flushSync } from 'react-dom'
import { MAX_TITLE, tidyTitle } from '../../../src/base/title.js'
import { useChat } from '../chat-context.js'
import { IconButton } from '../shared/icon-button.js'
import { Menu, type MenuAction } from '../shared/menu.js'
import type { SessionItem } from '../state/api.js'
import { formatAge } from '../state/format.js'

interface SessionRowProps {
  item: SessionItem
  now: number
  isCurrent: boolean
  /** What a run of the chat does. */
  activity: 'running' | 'waiting' | undefined
}

type Mode = 'plain' | 'menu' | 'rename' | 'delete'

/** One chat in the list: a click opens it, its menu renames, forks or deletes it. */
export function SessionRow({ item, now, isCurrent, activity }: SessionRowProps) {
  const { openSession } = useChat()
  const [mode, setMode] = useState<Mode>('plain')
  const more = useRef<HTMLButtonElement>(null)
  // Keyboard users continue from the same row.
  const close = useCallback(() => {
    flushSync(() => setMode('plain'))
    more.current?.focus()
  }, [])
  const title = item.title || item.preview || 'New chat'
  if (mode === 'rename') {
    return <RenameForm item={item} title={title} onClose={close} onLeave={() => setMode('plain')} />
  }
  if (mode === 'delete') {
    return <DeleteQuestion item={item} title={title} isCurrent={isCurrent} onClose={close} />
  }
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
        {activity ? (
          <span className="running-dot" data-activity={activity} role="img" aria-label={ACTIVITY[activity]} />
        ) : null}
        <span className="session-title" dir="auto">
          {title}
        </span>
        <span className="session-age">{formatAge(item.updatedAt, now)}</span>
      </a>
      <IconButton
        ref={more}
        icon="more"
        label={`Actions for ${tidyTitle(title, 60)}`}
        className="session-more"
        aria-haspopup="menu"
        aria-expanded={mode === 'menu'}
        onClick={() => setMode(mode === 'menu' ? 'plain' : 'menu')}
      />
      {mode === 'menu' ? <RowMenu item={item} onMode={setMode} onClose={close} /> : null}
    </li>
  )
}

const ACTIVITY = { running: 'An answer is being written', waiting: 'An answer waits for you' } as const

interface RowMenuProps {
  item: SessionItem
  onMode: (mode: Mode) => void
  onClose: () => void
}

function RowMenu({ item, onMode, onClose }: RowMenuProps) {
  const { client, sessions, thread, openSession } = useChat()
  const fork = async () => {
    onMode('plain')
    const forked = await client.fork(item.sessionId).catch((error: unknown) => thread.showError(error))
    await sessions.refresh()
    if (forked) openSession(forked.sessionId)
  }
  const actions: MenuAction[] = [
    { icon: 'pencil', label: 'Rename', act: () => onMode('rename') },
    { icon: 'fork', label: 'Fork', act: () => void fork() },
    { icon: 'trash', label: 'Delete', act: () => onMode('delete') },
  ]
  return <Menu actions={actions} onClose={onClose} onLeave={() => onMode('plain')} />
}

interface RenameFormProps {
  item: SessionItem
  title: string
  onClose: () => void
  /** The focus has gone elsewhere and stays there. */
  onLeave: () => void
}

function RenameForm({ item, title, onClose, onLeave }: RenameFormProps) {
  const { sessions, thread } = useChat()
  const [text, setText] = useState(title)
  const field = useRef<HTMLInputElement>(null)
  const isOver = useRef(false)
  useEffect(() => field.current?.select(), [])
  const end = (isKept: boolean, close = onClose) => {
    if (isOver.current) return
    isOver.current = true
    const next = tidyTitle(text) ?? ''
    if (isKept && next !== '' && next !== title) {
      void sessions.rename(item.sessionId, next)
      thread.renamed(item.sessionId, next)
    }
    close()
  }
  return (
    <li className="session-row">
      <input
        ref={field}
        className="rename-field"
        aria-label="New name"
        dir="auto"
        maxLength={MAX_TITLE}
        value={text}
        onChange={event => setText(event.target.value)}
        onBlur={() => end(true, onLeave)}
        onKeyDown={event => {
          if (event.nativeEvent.isComposing) return
          if (event.key === 'Enter') {
            // Otherwise the same key presses the button that gets the focus next.
            event.preventDefault()
            end(true)
          }
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
  title: string
  isCurrent: boolean
  onClose: () => void
}

/** Nothing is deleted by a key that was held a moment too long: the question begins at *Keep*. */
function DeleteQuestion({ item, title, isCurrent, onClose }: DeleteQuestionProps) {
  const { sessions, openSession } = useChat()
  const row = useRef<HTMLLIElement>(null)
  const keep = useRef<HTMLButtonElement>(null)
  const [isGoing, setGoing] = useState(false)
  useEffect(() => keep.current?.focus(), [])
  const remove = async () => {
    setGoing(true)
    const neighbour = row.current?.nextElementSibling ?? row.current?.previousElementSibling
    const deleted = await sessions.delete(item.sessionId)
    if (!deleted) return onClose()
    if (isCurrent) openSession(undefined)
    else neighbour?.querySelector('a')?.focus()
  }
  return (
    <li ref={row} className="session-row">
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be laid out in a row everywhere. */}
      <div
        className="delete-question"
        role="group"
        aria-label={`Delete ${tidyTitle(title, 60)}?`}
        onKeyDown={event => {
          if (event.key !== 'Escape') return
          event.stopPropagation()
          onClose()
        }}
      >
        <span title={title}>Delete for good?</span>
        <button type="button" className="button danger" disabled={isGoing} onClick={() => void remove()}>
          Delete
        </button>
        <button ref={keep} type="button" className="button" onClick={onClose}>
          Keep
        </button>
      </div>
    </li>
  )
}
