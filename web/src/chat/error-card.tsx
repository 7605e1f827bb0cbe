import { textOf } from '../../../src/transcript/from-messages.js'
import type { ErrorItem } from '../../../src/transcript/item.js'
import { useChat, useObserved } from '../chat-context.js'
import { Icon } from '../shared/icons.js'
import { adviceFor, errorTitle } from '../state/problem-of.js'
import { filesOf } from './resend.js'

/** Why an answer failed and what to do now. */
export function ErrorCard({ entry, isLast }: { entry: ErrorItem; isLast: boolean }) {
  const chat = useChat()
  const state = useObserved(chat.thread.state)
  const { code, message } = entry.error
  const { runId } = entry
  const isInterrupted = code === 'run-interrupted'
  const last = state.messages.findLast(({ role, synthetic }) => role === 'user' && !synthetic)
  const isFree = isLast && !state.live
  const retry = () => {
    if (!last) return
    const files = filesOf(last.parts.filter(part => part.type === 'media'))
    void chat.thread.send({ text: textOf(last.parts), files, options: chat.options })
  }
  const advice = adviceFor(code)
  return (
    <div className="error-card" role="alert">
      <Icon name="warning" />
      <div>
        <p className="error-title">{errorTitle(code)}</p>
        {isInterrupted ? null : <p dir="auto">{message}</p>}
        {advice ? <p>{advice}</p> : null}
        <div className="error-actions">
          {isFree && isInterrupted ? (
            <button
              type="button"
              className="button primary"
              onClick={() => void chat.thread.send({ text: 'Continue', options: chat.options })}
            >
              Continue
            </button>
          ) : null}
          {isFree && !isInterrupted && last ? (
            <button type="button" className="button primary" onClick={retry}>
              Try again
            </button>
          ) : null}
          {runId ? (
            <button
              type="button"
              className="button"
              onClick={() => chat.openPanel({ type: 'inspector', runId })}
            >
              Inspect
            </button>
          ) : null}
          <code className="error-code">{code}</code>
        </div>
      </div>
    </div>
  )
}
