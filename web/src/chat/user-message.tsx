import { useEffect, useRef, useState } from 'react'
import type { UserItem } from '../../../src/transcript/item.js'
import { useChat } from '../chat-context.js'
import { CopyButton } from '../shared/copy-button.js'
import { useFold } from '../shared/folds.js'
import { IconButton } from '../shared/icon-button.js'
import { Media } from './media.js'
import { askAgain } from './resend.js'
import { Variants } from './variants.js'

/** A message of the user; it can be changed and sent again, which leaves the original as it is. */
export function UserMessage({ entry }: { entry: UserItem }) {
  const [isEditing, setEditing] = useState(false)
  if (isEditing) return <Editor entry={entry} onClose={() => setEditing(false)} />
  return (
    <div className="user-message">
      {entry.media.length > 0 ? (
        <div className="user-media">
          {entry.media.map((media, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: attachments of a sent message never move.
            <Media key={index} media={media} />
          ))}
        </div>
      ) : null}
      {entry.text ? <Bubble entry={entry} /> : null}
      <div className="user-foot">
        <div className="row-actions">
          <CopyButton text={entry.text} isIcon />
          {entry.seq === undefined ? null : (
            <IconButton icon="pencil" label="Edit and send again" onClick={() => setEditing(true)} />
          )}
        </div>
        {entry.seq === undefined ? null : <Variants userSeq={entry.seq} />}
      </div>
    </div>
  )
}

/** Beyond this a message is shown in part: a pasted log must not bury the answer. */
const SHOWN_LENGTH = 1500

function Bubble({ entry }: { entry: UserItem }) {
  const { text } = entry
  const [isWhole, setWhole] = useFold(`user:${entry.key}`, false)
  const isLong = text.length > SHOWN_LENGTH * 1.5
  return (
    <div className="bubble">
      <p dir="auto">{isLong && !isWhole ? `${text.slice(0, SHOWN_LENGTH)}…` : text}</p>
      {isLong ? (
        <button
          type="button"
          className="quiet-button"
          aria-expanded={isWhole}
          onClick={() => setWhole(!isWhole)}
        >
          {isWhole ? 'Show less' : `Show all ${text.length.toLocaleString('en-US')} characters`}
        </button>
      ) : null}
    </div>
  )
}

function Editor({ entry, onClose }: { entry: UserItem; onClose: () => void }) {
  const chat = useChat()
  const [text, setText] = useState(entry.text)
  const area = useRef<HTMLTextAreaElement>(null)
  useEffect(() => {
    area.current?.focus()
    area.current?.setSelectionRange(entry.text.length, entry.text.length)
  }, [entry.text])
  const submit = () => {
    if (text.trim() === '' || entry.seq === undefined) return
    onClose()
    void askAgain(chat, { seq: entry.seq, text, media: entry.media, isEdited: text !== entry.text })
  }
  return (
    <form
      className="editor"
      onSubmit={event => {
        event.preventDefault()
        submit()
      }}
      onKeyDown={event => {
        if (event.nativeEvent.isComposing) return
        if (event.key === 'Escape') {
          event.stopPropagation()
          onClose()
        } else if (event.key === 'Enter' && !event.shiftKey) {
          event.preventDefault()
          submit()
        }
      }}
    >
      <textarea
        ref={area}
        aria-label="Edit your message"
        dir="auto"
        rows={Math.min(12, text.split('\n').length + 1)}
        value={text}
        onChange={event => setText(event.target.value)}
      />
      <div className="editor-actions">
        <span className="hint">The version before stays: the arrows below the message lead back to it.</span>
        <button type="button" className="button" onClick={onClose}>
          Cancel
        </button>
        <button type="submit" className="button primary" disabled={text.trim() === ''}>
          Send
        </button>
      </div>
    </form>
  )
}
