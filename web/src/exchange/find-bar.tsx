import { useEffect, useRef, useState } from 'react'
import { useChat } from '../chat-context.js'
import { IconButton } from '../shared/icon-button.js'
import { problemOf } from '../state/problem-of.js'
import { useMarkedWords } from './marked-words.js'

/** A pause in typing before the server is asked. */
const PAUSE_MS = 200
const MOST = 200

interface Hits {
  seqs: readonly number[]
  at: number
  hasMore: boolean
  problem?: string
}

const NOTHING: Hits = { seqs: [], at: 0, hasMore: false }

/** Finds words in the whole chat: the browser's own search sees only what is drawn. Newest first. */
export function FindBar({ sessionId, onClose }: { sessionId: string; onClose: () => void }) {
  const { client, thread } = useChat()
  const field = useRef<HTMLInputElement>(null)
  const [text, setText] = useState('')
  const [hits, setHits] = useState<Hits>()
  useEffect(() => field.current?.focus(), [])
  useMarkedWords(text)
  const show = (next: Hits) => {
    setHits(next)
    const seq = next.seqs[next.at]
    if (seq !== undefined) void thread.reveal(seq)
  }
  const reveal = useRef(show)
  reveal.current = show
  useEffect(() => {
    setHits(undefined)
    if (text.trim() === '') return
    let isCurrent = true
    const timer = setTimeout(() => {
      client.search({ text, sessionId, limit: MOST }).then(
        ({ found, nextCursor }) => {
          const seqs = found.map(({ seq }) => seq)
          if (isCurrent) reveal.current({ seqs, at: 0, hasMore: nextCursor !== undefined })
        },
        (error: unknown) => isCurrent && setHits({ ...NOTHING, problem: problemOf(error).message }),
      )
    }, PAUSE_MS)
    return () => {
      isCurrent = false
      clearTimeout(timer)
    }
  }, [client, sessionId, text])
  const step = (by: number) => {
    if (!hits || hits.seqs.length === 0) return
    show({ ...hits, at: (hits.at + by + hits.seqs.length) % hits.seqs.length })
  }
  const isEmpty = !hits || hits.seqs.length === 0
  return (
    <search className="find-bar">
      <input
        ref={field}
        type="search"
        aria-label="Find in this chat"
        placeholder="Find in this chat"
        value={text}
        maxLength={200}
        onChange={event => setText(event.target.value)}
        onKeyDown={event => {
          if (event.key === 'Enter') {
            event.preventDefault()
            step(event.shiftKey ? -1 : 1)
          } else if (event.key === 'Escape') {
            event.stopPropagation()
            onClose()
          }
        }}
      />
      <output aria-live="polite">{text.trim() === '' ? '' : placeOf(hits)}</output>
      <IconButton icon="up" label="Newer place" disabled={isEmpty} onClick={() => step(-1)} />
      <IconButton icon="down" label="Older place" disabled={isEmpty} onClick={() => step(1)} />
      <IconButton icon="close" label="Close the search" onClick={onClose} />
    </search>
  )
}

function placeOf(hits: Hits | undefined): string {
  if (!hits) return '…'
  if (hits.problem !== undefined) return hits.problem
  const { seqs, at, hasMore } = hits
  if (seqs.length === 0) return hasMore ? 'Not in the newest' : 'Not found'
  return `${at + 1} of ${seqs.length}${hasMore ? '+' : ''}`
}
