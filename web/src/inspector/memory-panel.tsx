import { type FormEvent, useCallback, useState } from 'react'
import type { LangoClient } from '../../../src/client/client.js'
import './memory.css'
import { PanelFrame } from './panel-frame.js'
import { PanelState } from './panel-state.js'
import { useLoaded } from './use-loaded.js'
import { countText, plural } from './words.js'

type MemoryPage = Awaited<ReturnType<LangoClient['memory']>>
type Note = MemoryPage['notes'][number]

export interface MemoryPanelProps {
  client: LangoClient
  sessionId: string
  /** Shows a message in the chat. */
  onReveal: (seq: number) => void
  onClose: () => void
}

/** What is noted about a session and where it comes from; each note can be put in other words or forgotten. */
export function MemoryPanel({ client, sessionId, onReveal, onClose }: MemoryPanelProps) {
  const load = useCallback(() => readNotes(client, sessionId), [client, sessionId])
  const [loaded, reload] = useLoaded(load)
  if (loaded.state !== 'done') {
    return (
      <PanelFrame title={TITLE} onClose={onClose}>
        <PanelState loaded={loaded} what="notes" onRetry={reload} />
      </PanelFrame>
    )
  }
  const { notes, isWhole } = loaded.value
  const forgetAll = async () => {
    if (!window.confirm(`Forget ${plural(notes.length, 'note')}? The messages stay.`)) return
    await client.forget(sessionId)
    reload()
  }
  return (
    <PanelFrame title={TITLE} subtitle={plural(notes.length, 'note')} onClose={onClose}>
      <div className="inspect-memory">
        <Progress page={loaded.value} />
        {notes.length === 0 ? <p>Nothing is noted yet.</p> : null}
        <ul className="inspect-memory-list" aria-label="Notes">
          {notes.map(note => (
            <NoteItem
              key={note.number}
              note={note}
              onReveal={onReveal}
              onEdit={text => client.editNote(sessionId, note.number, text).then(reload)}
              onForget={() => client.forget(sessionId, note.number).then(reload)}
            />
          ))}
        </ul>
        {isWhole ? null : <p className="inspect-memory-remark">The oldest notes are shown.</p>}
        {notes.length > 1 ? (
          <button type="button" className="inspect-panel-button" onClick={() => void forgetAll()}>
            Forget all notes
          </button>
        ) : null}
      </div>
    </PanelFrame>
  )
}

const TITLE = 'What is remembered'

/** The largest page of the server. */
const PAGE = 1000

async function readNotes(client: LangoClient, sessionId: string) {
  const page = await client.memory(sessionId, { limit: PAGE })
  return { ...page, isWhole: page.notes.length < PAGE }
}

function Progress({ page: { totalMessages, indexedSeq, observedSeq } }: { page: MemoryPage }) {
  return (
    <div className="inspect-memory-remark">
      <p>
        {countText(indexedSeq)} of {plural(totalMessages, 'message')} can be searched,{' '}
        {countText(observedSeq)} are noted.
      </p>
      <p>Notes stand for messages that are no longer sent. The messages themselves stay as they are.</p>
    </div>
  )
}

interface NoteItemProps {
  note: Note
  onReveal: (seq: number) => void
  onEdit: (text: string) => Promise<void>
  onForget: () => Promise<void>
}

function NoteItem({ note, onReveal, onEdit, onForget }: NoteItemProps) {
  const [isEditing, setEditing] = useState(false)
  const [problem, setProblem] = useState('')
  const attempt = (work: () => Promise<void>) =>
    work().catch(error => setProblem(error instanceof Error ? error.message : 'The server did not answer.'))
  const { number, text, kind, time, fromSeq, toSeq, origin } = note
  return (
    <li className="inspect-memory-note">
      {isEditing ? (
        <NoteForm
          text={text}
          onCancel={() => setEditing(false)}
          onSave={words => attempt(() => onEdit(words))}
        />
      ) : (
        <p dir="auto">{text}</p>
      )}
      <p className="inspect-memory-facts">
        <span>
          {number} · {kind} · {new Date(time).toLocaleDateString()} ·{' '}
          {ORIGINS[origin] ?? `noted by ${origin}`}
        </span>
        <button type="button" className="inspect-memory-link" onClick={() => onReveal(fromSeq)}>
          {fromSeq === toSeq ? `message ${fromSeq}` : `messages ${fromSeq}–${toSeq}`}
        </button>
        {isEditing ? null : (
          <button
            type="button"
            className="inspect-memory-link"
            aria-label={`Edit note ${number}`}
            onClick={() => setEditing(true)}
          >
            Edit
          </button>
        )}
        <button
          type="button"
          className="inspect-memory-link"
          aria-label={`Forget note ${number}`}
          onClick={() => void attempt(onForget)}
        >
          Forget
        </button>
      </p>
      {problem === '' ? null : <p role="alert">{problem}</p>}
    </li>
  )
}

const ORIGINS: Readonly<Record<string, string>> = { digest: 'quoted by rule', person: 'written by a person' }

interface NoteFormProps {
  text: string
  onSave: (text: string) => Promise<void>
  onCancel: () => void
}

function NoteForm({ text, onSave, onCancel }: NoteFormProps) {
  const [words, setWords] = useState(text)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (words.trim() !== '') void onSave(words.trim())
  }
  return (
    <form className="inspect-memory-form" onSubmit={submit}>
      <textarea
        aria-label="The note in your words"
        dir="auto"
        rows={3}
        maxLength={2000}
        value={words}
        onChange={event => setWords(event.target.value)}
      />
      <div>
        <button type="submit" className="inspect-panel-button">
          Save
        </button>
        <button type="button" className="inspect-panel-button" onClick={onCancel}>
          Cancel
        </button>
      </div>
    </form>
  )
}
