import { useChat, useObserved } from '../chat-context.js'
import { TakeAlongButton } from '../exchange/take-along-button.js'
import { IconButton } from '../shared/icon-button.js'
import { Icon } from '../shared/icons.js'
import { formatCallCost, formatTokens } from '../state/format.js'

interface ChatHeaderProps {
  isSidebarOpen: boolean
  onToggleSidebar: () => void
}

/** The name of the chat, what it has cost, and whether another provider could take it over. */
export function ChatHeader({ isSidebarOpen, onToggleSidebar }: ChatHeaderProps) {
  const { thread, sessions, info, finding, openSession, openPanel } = useChat()
  const state = useObserved(thread.state)
  const list = useObserved(sessions.state)
  const item = list.sessions.find(({ sessionId }) => sessionId === state.sessionId)
  const isThere = state.sessionId !== undefined && state.status === 'ready'
  const known = state.title ?? item?.title ?? item?.preview ?? (isThere ? 'New chat' : '')
  const title = state.status === 'missing' ? '' : known
  const { usage } = state
  return (
    <header className="chat-header">
      {isSidebarOpen ? null : (
        <>
          <IconButton icon="panel" label="Show the chats" onClick={onToggleSidebar} />
          <IconButton icon="plus" label="New chat" onClick={() => openSession(undefined)} />
        </>
      )}
      <h1 className="chat-title" dir="auto" title={title}>
        {title || (
          <span className="visually-hidden">{state.status === 'missing' ? 'No chat' : 'New chat'}</span>
        )}
      </h1>
      {usage && usage.totalTokens > 0 ? (
        <p className="chat-usage" title="All answers of this chat">
          {formatTokens(usage.totalTokens)} tokens
          {usage.cost === undefined ? '' : ` · ${formatCallCost(usage.cost)}`}
        </p>
      ) : null}
      {isThere && state.sessionId !== undefined ? (
        <>
          <IconButton icon="search" label="Find in this chat" onClick={() => finding.set(true)} />
          <TakeAlongButton sessionId={state.sessionId} title={title} />
        </>
      ) : null}
      {isThere && info.memory ? (
        <button
          type="button"
          className="quiet-button lint-button"
          aria-label="Memory"
          title="What is noted about this chat"
          onClick={() => openPanel({ type: 'memory' })}
        >
          <Icon name="bookmark" />
          <span>Memory</span>
        </button>
      ) : null}
      {isThere ? (
        <button
          type="button"
          className="quiet-button lint-button"
          aria-label="Check on every model"
          title="What every provider would say of this chat"
          onClick={() => openPanel({ type: 'lint' })}
        >
          <Icon name="shield" />
          <span>Check on every model</span>
        </button>
      ) : null}
    </header>
  )
}
