import { type RefObject, useEffect, useState } from 'react'
import { useChat, useObserved } from '../chat-context.js'
import { FoundMessages } from '../exchange/found-messages.js'
import type { SessionsController } from '../sessions-controller.js'
import { IconButton } from '../shared/icon-button.js'
import { Icon, Logo } from '../shared/icons.js'
import type { SessionItem } from '../state/api.js'
import { asksPerson } from '../state/live-run.js'
import { SessionRow } from './session-row.js'
import { ThemeSwitch } from './theme-switch.js'

interface SidebarProps {
  searchField: RefObject<HTMLInputElement | null>
  onClose: () => void
  onShowShortcuts: () => void
  onShowSettings: () => void
  onImport: () => void
}

/** All chats, newest first; more are loaded as the reader scrolls. */
export function Sidebar({ searchField, onClose, onShowShortcuts, onShowSettings, onImport }: SidebarProps) {
  const { openSession, openCheck, openPanel, info } = useChat()
  return (
    <nav className="sidebar" aria-label="Chats">
      <div className="sidebar-head">
        <Logo size={26} />
        <span className="brand">Lango</span>
        <IconButton icon="panel" label="Hide the chats" onClick={onClose} />
      </div>
      <button type="button" className="new-chat" onClick={() => openSession(undefined)}>
        <Icon name="plus" />
        <span>New chat</span>
      </button>
      <SearchField field={searchField} />
      <SessionList />
      <div className="sidebar-foot">
        <span className="user-name" title={`Signed in as ${info.user}`}>
          {info.user}
        </span>
        <IconButton icon="coin" label="What was spent" onClick={() => openPanel({ type: 'usage' })} />
        <IconButton icon="import" label="Import chats" onClick={onImport} />
        <IconButton icon="shield" label="Check a history" onClick={openCheck} />
        <IconButton icon="settings" label="Settings" onClick={onShowSettings} />
        <IconButton icon="keyboard" label="Keyboard shortcuts" onClick={onShowShortcuts} />
        <ThemeSwitch />
      </div>
    </nav>
  )
}

/** A pause in typing before the server is asked. */
const SEARCH_PAUSE_MS = 200

function SearchField({ field }: { field: RefObject<HTMLInputElement | null> }) {
  const { sessions } = useChat()
  const [text, setText] = useState('')
  useEffect(() => {
    if (text === sessions.state.get().search) return
    const timer = setTimeout(() => sessions.search(text), SEARCH_PAUSE_MS)
    return () => clearTimeout(timer)
  }, [text, sessions])
  return (
    <label className="search-field">
      <Icon name="search" />
      <input
        ref={field}
        type="search"
        placeholder="Search chats and messages"
        aria-label="Search chats"
        value={text}
        onChange={event => setText(event.target.value)}
        onKeyDown={event => {
          if (event.key !== 'Escape') return
          event.stopPropagation()
          setText('')
          event.currentTarget.blur()
        }}
      />
    </label>
  )
}

/** How near to the end of the list more is asked for. */
const LOAD_AHEAD_PIXELS = 300

function SessionList() {
  const { sessions, thread, link } = useChat()
  const state = useObserved(sessions.state)
  // The chat says that the server does not answer.
  const isSaid = useObserved(link) === 'lost' && state.problem?.code === 'unreachable'
  const { sessionId, live } = useObserved(thread.state)
  const isLive = live !== undefined && live.phase !== 'finished'
  const isAsked = isLive && live.items.some(item => item.kind === 'tool' && asksPerson(item))
  const current = isAsked ? 'waiting' : isLive ? 'running' : undefined
  const now = Date.now()
  useWatchedRuns(sessions, isLive || state.sessions.some(item => item.running || item.waiting))
  const onScroll = (element: HTMLElement) => {
    const rest = element.scrollHeight - element.scrollTop - element.clientHeight
    if (rest < LOAD_AHEAD_PIXELS) void sessions.loadMore()
  }
  const { search } = state
  if (state.sessions.length === 0 && search === '')
    return <p className="list-note">{emptyText(state.status, state.search)}</p>
  return (
    <>
      {state.problem && !isSaid ? (
        <p className="list-problem" role="alert">
          {state.problem.message}
        </p>
      ) : null}
      <div className="session-scroll" onScroll={event => onScroll(event.currentTarget)}>
        {state.sessions.length === 0 ? <p className="list-note">{emptyText(state.status, search)}</p> : null}
        <ul className="session-list">
          {state.sessions.map(item => (
            <SessionRow
              key={item.sessionId}
              item={item}
              now={now}
              isCurrent={item.sessionId === sessionId}
              activity={item.sessionId === sessionId ? current : activityOf(item)}
            />
          ))}
        </ul>
        {search.trim() === '' ? null : <FoundMessages key={search} text={search} />}
      </div>
    </>
  )
}

function activityOf({ running, waiting }: SessionItem): 'running' | 'waiting' | undefined {
  return waiting ? 'waiting' : running ? 'running' : undefined
}

/** How often the list is read while answers are being written, to see where they have ended. */
const WATCH_MS = 3000

function useWatchedRuns(sessions: SessionsController, isRunning: boolean): void {
  useEffect(() => {
    if (!isRunning) return
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') void sessions.refresh()
    }, WATCH_MS)
    return () => clearInterval(timer)
  }, [sessions, isRunning])
}

function emptyText(status: string, search: string): string {
  if (status === 'loading') return ''
  if (status === 'failed') return 'The chats could not be loaded.'
  return search ? `No chat is called “${search}”.` : 'Your chats will be listed here.'
}
