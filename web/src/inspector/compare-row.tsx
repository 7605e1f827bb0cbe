import './compare.css'
import type { DescribedRow } from './describe-rows.js'
import { LongText } from './long-text.js'
import { storedText } from './match-keys.js'
import type { StoredMessage, StoredPart } from './types.js'
import type { WireMessage, WirePart } from './wire-messages.js'
import { countText } from './words.js'

/** What is stored, what was sent of it, and what happened in between. */
export function CompareRow({ row, isTarget }: { row: DescribedRow; isTarget: boolean }) {
  return (
    <article className={`inspect-compare-row inspect-fate-${row.fate}${isTarget ? ' is-target' : ''}`}>
      <div className="inspect-compare-side">
        {row.stored.map(message => (
          <StoredCard key={message.seq} message={message} />
        ))}
        {row.stored.length === 0 ? <p className="inspect-compare-none">not stored</p> : null}
      </div>
      <div className="inspect-compare-side">
        {row.sent.map(message => (
          <SentCard key={message.index} message={message} />
        ))}
        {row.sent.length === 0 ? <p className="inspect-compare-none">not sent</p> : null}
      </div>
      {row.notes.length > 0 ? (
        <ul className="inspect-compare-notes">
          {row.notes.map((note, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: notes of a row never change places
            <li key={index} className={`inspect-note inspect-note-${note.kind}`} dir="auto">
              {note.text}
            </li>
          ))}
        </ul>
      ) : null}
    </article>
  )
}

/** A stored message as the inspector and the lint show it. */
export function StoredCard({ message }: { message: StoredMessage }) {
  return (
    <div className="inspect-card">
      <p className="inspect-card-head">
        <span className={`inspect-role inspect-role-${message.role}`}>{message.role}</span>
        <span className="inspect-card-author" dir="auto">
          {message.author === message.role ? '' : message.author}
        </span>
        <span className="inspect-card-figure">
          {message.seq} · {countText(message.tokens)} tokens
        </span>
      </p>
      {message.synthetic ? <p className="inspect-card-remark">Written by Lango, hidden in the chat</p> : null}
      {message.parts.map((part, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: parts of a stored message never change places
        <Part key={index} part={fromStored(part)} />
      ))}
      {message.parts.length === 0 ? <p className="inspect-card-remark">empty</p> : null}
    </div>
  )
}

function SentCard({ message }: { message: WireMessage }) {
  return (
    <div className="inspect-card">
      <p className="inspect-card-head">
        <span className={`inspect-role inspect-role-${message.role}`}>{message.label}</span>
        <span className="inspect-card-figure">[{message.index}]</span>
      </p>
      {message.parts.map((part, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: parts of a sent message never change places
        <Part key={index} part={part} />
      ))}
      {message.parts.length === 0 ? <p className="inspect-card-remark">empty</p> : null}
    </div>
  )
}

function Part({ part }: { part: WirePart }) {
  if (part.type === 'text') return <LongText text={part.text} />
  const title = PART_TITLES[part.type]
  return (
    <div className={`inspect-part inspect-part-${part.type}`}>
      <p className="inspect-part-head">
        <span>{title}</span>
        {part.name ? <code className="inspect-part-name">{part.name}</code> : null}
        {part.callId ? <code className="inspect-part-id">{part.callId}</code> : null}
        {part.isError ? <span className="inspect-mark inspect-mark-cut">error</span> : null}
        {part.signed ? <span className="inspect-mark inspect-mark-signed">signed</span> : null}
      </p>
      {part.text === '' ? null : <LongText text={part.text} limit={160} className="inspect-part-text" />}
    </div>
  )
}

const PART_TITLES: Record<Exclude<WirePart['type'], 'text'>, string> = {
  reasoning: 'reasoning',
  'tool-call': 'calls',
  'tool-result': 'result',
  media: 'media',
  other: 'other',
}

function fromStored(part: StoredPart): WirePart {
  const text = storedText(part)
  if (part.type === 'tool-call') {
    return {
      type: part.type,
      text,
      callId: part.id,
      name: part.name,
      ...(part.signed ? { signed: true } : {}),
    }
  }
  if (part.type === 'tool-result') {
    return {
      type: part.type,
      text,
      callId: part.id,
      name: part.name,
      ...(part.isError ? { isError: true } : {}),
    }
  }
  return { type: part.type === 'code' ? 'other' : part.type, text }
}
