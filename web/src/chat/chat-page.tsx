import type { RefObject } from 'react'
import { useChat, useObserved } from '../chat-context.js'
import { FindBar } from '../exchange/find-bar.js'
import { Icon, type IconName } from '../shared/icons.js'
import { SERVER_LOST } from '../state/problem-of.js'
import type { ThreadState } from '../state/thread-state.js'
import { ChatHeader } from './chat-header.js'
import { Composer } from './composer.js'
import { EmptyState } from './empty-state.js'
import { BrokenNotice } from './gallery.js'
import { ThreadView } from './thread-view.js'

interface ChatPageProps {
  area: RefObject<HTMLTextAreaElement | null>
  isSidebarOpen: boolean
  onToggleSidebar: () => void
}

/** One session: its head, its messages, and where to write. */
export function ChatPage({ area, isSidebarOpen, onToggleSidebar }: ChatPageProps) {
  const { thread, finding } = useChat()
  const isFinding = useObserved(finding)
  const state = useObserved(thread.state)
  const isReadable = state.status !== 'missing' && state.status !== 'failed'
  return (
    <main className="chat">
      <ChatHeader isSidebarOpen={isSidebarOpen} onToggleSidebar={onToggleSidebar} />
      {isFinding && state.sessionId !== undefined && state.status === 'ready' ? (
        <FindBar key={state.sessionId} sessionId={state.sessionId} onClose={() => finding.set(false)} />
      ) : null}
      <ChatBody state={state} />
      {isReadable ? (
        <div className="chat-foot">
          <BrokenNotice />
          <Notices state={state} />
          <Composer area={area} />
        </div>
      ) : null}
    </main>
  )
}

function ChatBody({ state }: { state: ThreadState }) {
  const { thread, link, openSession } = useChat()
  const isLost = useObserved(link) === 'lost'
  if (state.status === 'missing') {
    return (
      <div className="empty-state">
        <h2>This chat is not here</h2>
        <p>It was deleted, or it belongs to somebody else.</p>
        <button type="button" className="button primary" onClick={() => openSession(undefined)}>
          Start a new chat
        </button>
      </div>
    )
  }
  if (state.status === 'failed') {
    return (
      <div className="empty-state" role="alert">
        <h2>{isLost ? SERVER_LOST : 'The chat could not be opened'}</h2>
        <p>{state.problem?.message}</p>
        <button type="button" className="button primary" onClick={() => void thread.reload()}>
          Try again
        </button>
      </div>
    )
  }
  if (state.status === 'loading') return <Skeleton />
  if (state.messages.length === 0 && !state.live) return <EmptyState />
  return <ThreadView key={state.sessionId} />
}

function Skeleton() {
  return (
    <div className="skeleton" role="status" aria-label="Loading the chat">
      <i />
      <i />
      <i />
      <i />
    </div>
  )
}

/** What stands quietly over the composer: a lost connection, a refused message, the demo. */
function Notices({ state }: { state: ThreadState }) {
  const { info, model, thread, link } = useChat()
  const isLost = useObserved(link) === 'lost' || state.connection === 'lost'
  const isSaid = isLost && state.problem?.code === 'unreachable'
  const isDemo = info.demo && (model ?? info.model).startsWith('demo/')
  return (
    <>
      {isLost ? (
        <Notice icon="info" tone="quiet" role="status">
          {SERVER_LOST}
        </Notice>
      ) : null}
      {state.problem && state.status !== 'failed' && !isSaid ? (
        <Notice icon="warning" tone="error" role="alert" onClose={() => thread.dismissProblem()}>
          {state.problem.message}
        </Notice>
      ) : null}
      {isDemo ? (
        <Notice icon="spark" tone="demo" role="note">
          <strong>Demo model</strong>: real tools, no intelligence.{' '}
          {info.keyHint ? <KeyHint text={info.keyHint} /> : null}
        </Notice>
      ) : null}
    </>
  )
}

/** The line that sets a key: what is to be typed; what follows it after a gap is shown on hovering. */
function KeyHint({ text }: { text: string }) {
  const [command = '', ...rest] = text.split(/ {2,}/)
  return (
    <span className="key-hint" title={rest.join(' ')}>
      For real answers: <code>{command}</code> and start again.
    </span>
  )
}

interface NoticeProps {
  icon: IconName
  tone: string
  role: string
  children: React.ReactNode
  onClose?: () => void
}

function Notice({ icon, tone, role, children, onClose }: NoticeProps) {
  return (
    <div className="notice" data-tone={tone} role={role}>
      <Icon name={icon} />
      <p>{children}</p>
      {onClose ? (
        <button type="button" className="icon-button" aria-label="Dismiss" onClick={onClose}>
          <Icon name="close" />
        </button>
      ) : null}
    </div>
  )
}
