import { useCallback, useEffect, useState } from 'react'
import { readStored, writeStored } from '../shared/stored.js'

const PREFIX = 'lango-draft:'
/** A pause in typing before the draft is kept. */
const KEEP_PAUSE_MS = 300
/** A pasted book is kept by the page alone, not by the browser. */
const MAXIMUM_KEPT = 100_000

type Change = string | ((text: string) => string)

/** What was written in each chat and not sent yet; a chat without an address yet has one too. */
const drafts = new Map<string, string>()

/** The draft of one chat. It is there again after another chat was open, and after a reload. */
export function useDraft(sessionId: string | undefined): [string, (change: Change) => void] {
  const name = sessionId ?? ''
  const [draft, setDraft] = useState(() => ({ name, text: readDraft(name) }))
  const current = draft.name === name ? draft : { name, text: readDraft(name) }
  if (current !== draft) setDraft(current)
  const change = useCallback((next: Change) => {
    setDraft(({ name: mine, text }) => {
      const changed = typeof next === 'string' ? next : next(text)
      drafts.set(mine, changed)
      return { name: mine, text: changed }
    })
  }, [])
  useEffect(() => {
    const keep = () => keepDraft(current.name, current.text)
    const timer = setTimeout(keep, KEEP_PAUSE_MS)
    window.addEventListener('pagehide', keep)
    return () => {
      clearTimeout(timer)
      window.removeEventListener('pagehide', keep)
    }
  }, [current.name, current.text])
  // The chat that is left keeps what was typed in the last moment.
  useEffect(() => () => keepDraft(name, drafts.get(name) ?? ''), [name])
  return [current.text, change]
}

/** Keeps a text as the draft of a chat that has none. A composer shows it when the chat is opened. */
export function offerDraft(sessionId: string, text: string): void {
  if (readDraft(sessionId) !== '') return
  drafts.set(sessionId, text)
  keepDraft(sessionId, text)
}

function readDraft(name: string): string {
  return drafts.get(name) ?? readStored(PREFIX + name) ?? ''
}

function keepDraft(name: string, text: string): void {
  if (!drafts.has(name)) return
  if (text === (readStored(PREFIX + name) ?? '')) return
  writeStored(PREFIX + name, text !== '' && text.length <= MAXIMUM_KEPT ? text : undefined)
}
