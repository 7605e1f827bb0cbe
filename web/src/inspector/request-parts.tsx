import './memory.css'
import './request.css'
import { LongText } from './long-text.js'
import { sentNotes } from './sent-notes.js'
import type { WireRequest } from './wire-messages.js'
import { plural } from './words.js'

export interface RequestPartsProps {
  request: WireRequest
  /** Shows a stored message. */
  onMessage: (seq: number) => void
}

/** What goes with the history: the instruction, the notes of memory, the declared tools, the settings. */
export function RequestParts({ request, onMessage }: RequestPartsProps) {
  const settings = Object.entries(request.settings)
  return (
    <div className="inspect-request-parts">
      <section>
        <h3>System instruction</h3>
        {request.system === '' ? (
          <p className="inspect-repair-reason">This request has none.</p>
        ) : (
          <LongText className="inspect-request-system" text={request.system} limit={4000} />
        )}
      </section>
      <Notes request={request} onMessage={onMessage} />
      <section>
        <h3>
          {request.tools.length === 0
            ? 'No tools declared'
            : `${plural(request.tools.length, 'tool')} declared`}
        </h3>
        {request.tools.map(tool => (
          <details key={tool.name} className="inspect-request-tool">
            <summary>
              <code>{tool.name}</code> <span dir="auto">{tool.description}</span>
            </summary>
            <pre>{JSON.stringify(tool.parameters ?? {}, null, 2)}</pre>
          </details>
        ))}
      </section>
      {settings.length > 0 ? (
        <section>
          <h3>Settings</h3>
          <dl className="inspect-request-settings">
            {settings.map(([name, value]) => (
              <div key={name}>
                <dt>
                  <code>{name}</code>
                </dt>
                <dd>
                  <code>{JSON.stringify(value)}</code>
                </dd>
              </div>
            ))}
          </dl>
        </section>
      ) : null}
    </div>
  )
}

/** What memory says in place of the messages that were left out, and which of them each note stands for. */
function Notes({ request, onMessage }: RequestPartsProps) {
  const found = sentNotes(request)
  if (!found) return null
  const { throughSeq, notes } = found
  return (
    <section>
      <h3>{plural(notes.length, 'note')} of memory</h3>
      <p className="inspect-repair-reason">
        {notes.length === 0
          ? `Messages 1 to ${throughSeq} are not in this request, and nothing was noted about them.`
          : `They stand for messages 1 to ${throughSeq}, which are not in this request.`}
      </p>
      <ul className="inspect-memory-list" aria-label="Notes of memory">
        {notes.map(({ number, text, fromSeq, toSeq }) => (
          <li key={number} className="inspect-memory-note">
            <p dir="auto">{text}</p>
            <p className="inspect-memory-facts">
              <span>{number}</span>
              <button type="button" className="inspect-memory-link" onClick={() => onMessage(fromSeq)}>
                {fromSeq === toSeq ? `message ${fromSeq}` : `messages ${fromSeq}–${toSeq}`}
              </button>
            </p>
          </li>
        ))}
      </ul>
    </section>
  )
}
