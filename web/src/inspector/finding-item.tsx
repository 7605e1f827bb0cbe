import { useCallback, useState } from 'react'
import type { LangoClient } from '../../../src/client/client.js'
import { StoredCard } from './compare-row.js'
import { loadHistory } from './load-history.js'
import { PanelState } from './panel-state.js'
import type { LintFinding } from './types.js'
import { useLoaded } from './use-loaded.js'

export interface FindingItemProps {
  finding: LintFinding
  client: LangoClient
  sessionId: string
  onReveal: (seq: number) => void
}

/** What is wrong, what repair does about it, and the message itself. */
export function FindingItem({ finding, client, sessionId, onReveal }: FindingItemProps) {
  const [isOpen, setIsOpen] = useState(false)
  const { seq } = finding
  return (
    <li className={`inspect-finding inspect-finding-${finding.severity}`}>
      <p className="inspect-finding-head">
        <span
          className={`inspect-mark ${finding.severity === 'breaks' ? 'inspect-mark-cut' : 'inspect-mark-mapped'}`}
        >
          {finding.severity === 'breaks' ? 'refused' : 'rewritten'}
        </span>
        <code>{finding.code}</code>
        {seq === undefined ? null : (
          <button
            type="button"
            className="inspect-message-link"
            aria-expanded={isOpen}
            onClick={() => setIsOpen(!isOpen)}
          >
            message {seq}
          </button>
        )}
      </p>
      <p dir="auto">{finding.message}</p>
      <p className="inspect-finding-repair" dir="auto">
        <span aria-hidden="true">→</span> {finding.repair}
      </p>
      {isOpen && seq !== undefined ? (
        <>
          <Message client={client} sessionId={sessionId} seq={seq} />
          <button type="button" className="inspect-message-link" onClick={() => onReveal(seq)}>
            Show it in the chat
          </button>
        </>
      ) : null}
    </li>
  )
}

function Message({ client, sessionId, seq }: { client: LangoClient; sessionId: string; seq: number }) {
  const load = useCallback(
    () => loadHistory(client, sessionId, { fromSeq: seq, throughSeq: seq }),
    [client, sessionId, seq],
  )
  const [loaded, reload] = useLoaded(load)
  if (loaded.state !== 'done') return <PanelState loaded={loaded} what="message" onRetry={reload} />
  const [message] = loaded.value
  return message ? (
    <StoredCard message={message} />
  ) : (
    <p className="inspect-card-remark">The message is gone.</p>
  )
}
