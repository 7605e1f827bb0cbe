import { useEffect, useState } from 'react'
import { useChat } from '../chat-context.js'
import type { FoundMessage } from '../state/api.js'
import { problemOf } from '../state/problem-of.js'

type Found =
  | { status: 'searching'; found: readonly FoundMessage[] }
  | { status: 'done'; found: readonly FoundMessage[]; nextCursor?: string | undefined }
  | { status: 'failed'; found: readonly FoundMessage[]; message: string }

/** Messages of all chats that hold the words of the search. A click opens the chat at the message. */
export function FoundMessages({ text }: { text: string }) {
  const { client, thread, openSession } = useChat()
  const [state, setState] = useState<Found>({ status: 'searching', found: [] })
  const [cursor, setCursor] = useState<string>()
  useEffect(() => {
    let isCurrent = true
    setState(({ found }) => ({ status: 'searching', found: cursor === undefined ? [] : found }))
    client.search({ text, ...(cursor === undefined ? {} : { cursor }) }).then(
      answer =>
        isCurrent &&
        setState(({ found }) => ({
          status: 'done',
          found: [...found, ...answer.found],
          nextCursor: answer.nextCursor,
        })),
      (error: unknown) =>
        isCurrent &&
        setState(({ found }) => ({ status: 'failed', found, message: problemOf(error).message })),
    )
    return () => {
      isCurrent = false
    }
  }, [client, text, cursor])
  const open = async ({ sessionId, seq }: FoundMessage) => {
    openSession(sessionId)
    await thread.open(sessionId)
    await thread.reveal(seq)
  }
  return (
    <section className="found" aria-labelledby="found-title">
      <h2 id="found-title">In messages</h2>
      <ul>
        {state.found.map(item => (
          <li key={`${item.sessionId} ${item.seq}`}>
            <button type="button" onClick={() => void open(item)}>
              <span className="found-title" dir="auto">
                {item.title || 'New chat'}
              </span>
              <span className="found-text" dir="auto">
                {item.before}
                <mark>{item.match}</mark>
                {item.after}
              </span>
            </button>
          </li>
        ))}
      </ul>
      <FoundEnd state={state} onMore={setCursor} />
    </section>
  )
}

function FoundEnd({ state, onMore }: { state: Found; onMore: (cursor: string) => void }) {
  if (state.status === 'searching') return <p role="status">Searching …</p>
  if (state.status === 'failed') return <p role="alert">{state.message}</p>
  const { nextCursor } = state
  if (nextCursor !== undefined) {
    return (
      <button type="button" className="quiet-button" onClick={() => onMore(nextCursor)}>
        Search older messages
      </button>
    )
  }
  return state.found.length === 0 ? <p role="status">No message holds these words.</p> : null
}
