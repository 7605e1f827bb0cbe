import { useState } from 'react'
import type { ToolItem, ToolStatus } from '../../../src/transcript/item.js'
import { useChat } from '../chat-context.js'
import { CopyButton } from '../shared/copy-button.js'
import { useFold } from '../shared/folds.js'
import { Icon } from '../shared/icons.js'
import type { ApprovalAnswer } from '../state/api.js'
import { formatDuration, formatValue, summarize } from '../state/format.js'

/** A call and its answer: one line when it is folded, everything when it is open. */
export function ToolCard({ entry }: { entry: ToolItem }) {
  const isAsking = entry.status === 'waiting'
  const [isOpen, setOpen] = useFold(`tool:${entry.callId}`, entry.status === 'failed' && isShort(entry))
  const shown = isOpen || isAsking
  return (
    <article className="tool-card" data-status={entry.status} aria-label={`Tool ${entry.name}`}>
      <button type="button" className="tool-head" aria-expanded={shown} onClick={() => setOpen(!isOpen)}>
        <span className="tool-icon">
          <Icon name={isAsking ? 'shield' : entry.status === 'failed' ? 'warning' : 'tool'} />
        </span>
        <span className="tool-name">{entry.name}</span>
        <span className="tool-summary">{shown ? '' : summarize(entry.args)}</span>
        <span className="tool-status">{statusText(entry)}</span>
        <span className="fold-arrow">
          <Icon name="chevron" size={12} />
        </span>
      </button>
      {shown ? <Details entry={entry} /> : null}
      {isAsking ? <Approval entry={entry} /> : null}
    </article>
  )
}

const STATUS: Readonly<Record<ToolStatus, string>> = {
  running: 'Running',
  waiting: 'Asks first',
  pending: 'Pending',
  done: 'Done',
  failed: 'Failed',
  unanswered: 'No answer',
}

function statusText({ status, durationMs, approval }: ToolItem): string {
  if (approval === 'no' && status !== 'running') return 'Refused'
  const word = STATUS[status]
  if (durationMs === undefined) return word
  return status === 'failed' ? `${word} · ${formatDuration(durationMs)}` : formatDuration(durationMs)
}

function isShort(entry: ToolItem): boolean {
  return formatValue(entry.result).length < 400
}

function Details({ entry }: { entry: ToolItem }) {
  return (
    <div className="tool-details">
      {summarize(entry.args) === '' ? null : <Value label="Arguments" value={entry.args} />}
      {entry.result === undefined ? null : (
        <Value label={entry.status === 'failed' ? 'Error' : 'Result'} value={entry.result} />
      )}
    </div>
  )
}

/** Beyond this a value is shown in part; copying gives all of it. */
const SHOWN_LENGTH = 4000

function Value({ label, value }: { label: string; value: unknown }) {
  const [isWhole, setWhole] = useState(false)
  const text = formatValue(value)
  const isLong = text.length > SHOWN_LENGTH && !isWhole
  return (
    <div className="tool-value">
      <div className="tool-value-head">
        <span>{label}</span>
        <CopyButton text={text} isIcon label={`Copy ${label.toLowerCase()}`} />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard. */}
      <pre dir="auto" tabIndex={0}>
        {isLong ? `${text.slice(0, SHOWN_LENGTH)}…` : text}
      </pre>
      {isLong ? (
        <button type="button" className="quiet-button" onClick={() => setWhole(true)}>
          Show all {text.length.toLocaleString('en-US')} characters
        </button>
      ) : null}
    </div>
  )
}

const ANSWERS: readonly { answer: ApprovalAnswer; label: string; className: string }[] = [
  { answer: 'once', label: 'Allow once', className: 'button primary' },
  { answer: 'always', label: 'Always in this chat', className: 'button' },
  { answer: 'no', label: 'Refuse', className: 'button' },
]

function Approval({ entry }: { entry: ToolItem }) {
  const { thread } = useChat()
  const [isSent, setSent] = useState(false)
  const answer = async (choice: ApprovalAnswer) => {
    setSent(true)
    await thread.approve(entry.callId, choice)
    setSent(false)
  }
  return (
    <div className="approval">
      <p>{entry.reason ?? `May ${entry.name} run with these arguments?`}</p>
      <div className="approval-buttons">
        {ANSWERS.map(({ answer: choice, label, className }) => (
          <button
            key={choice}
            type="button"
            className={className}
            disabled={isSent}
            onClick={() => void answer(choice)}
          >
            {label}
          </button>
        ))}
      </div>
    </div>
  )
}
