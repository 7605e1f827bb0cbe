import { type FormEvent, useState } from 'react'
import { isRecord } from '../../../src/base/is-record.js'
import { parseJson } from '../../../src/base/json.js'
import { NOT_RUN_AGAIN } from '../../../src/base/markers.js'
import { OUTCOME_WORDS, type ToolItem, type ToolStatus } from '../../../src/transcript/item.js'
import { useChat, useObserved } from '../chat-context.js'
import { CopyButton } from '../shared/copy-button.js'
import { useFold } from '../shared/folds.js'
import { Icon, type IconName } from '../shared/icons.js'
import type { ApprovalAnswer, OutcomeAnswer } from '../state/api.js'
import { formatDuration, formatValue, summarize } from '../state/format.js'
import { asksPerson } from '../state/live-run.js'
import { Media } from './media.js'
import { QuestionFields } from './question-fields.js'

/** A call and its answer: one line when it is folded, everything when it is open. */
export function ToolCard({ entry }: { entry: ToolItem }) {
  const isAsking = asksPerson(entry)
  const [isOpen, setOpen] = useFold(`tool:${entry.callId}`, entry.status === 'failed' && isShort(entry))
  const shown = isOpen || isAsking
  return (
    <article className="tool-card" data-status={entry.status} aria-label={`Tool ${entry.name}`}>
      <button type="button" className="tool-head" aria-expanded={shown} onClick={() => setOpen(!isOpen)}>
        <span className="tool-icon">
          <Icon name={iconOf(entry.status)} />
        </span>
        <span className="tool-name">{entry.name}</span>
        <span className="tool-summary">{shown ? '' : summarize(entry.args)}</span>
        <span className="tool-status">{statusText(entry)}</span>
        <span className="fold-arrow">
          <Icon name="chevron" size={12} />
        </span>
      </button>
      {shown ? <Details entry={entry} /> : null}
      {entry.status === 'waiting' ? <Approval entry={entry} /> : null}
      {entry.status === 'pending' ? <ResultForm entry={entry} /> : null}
      {entry.status === 'unknown' || entry.outcome ? <Outcome entry={entry} /> : null}
    </article>
  )
}

function iconOf(status: ToolStatus): IconName {
  if (status === 'waiting') return 'shield'
  if (status === 'unknown') return 'question'
  return status === 'failed' ? 'warning' : 'tool'
}

const STATUS: Readonly<Record<ToolStatus, string>> = {
  running: 'Running',
  waiting: 'Asks first',
  pending: 'Pending',
  done: 'Done',
  failed: 'Failed',
  unanswered: 'No answer',
  unknown: 'Outcome unknown',
}

function statusText({ status, durationMs, approval, outcome }: ToolItem): string {
  if (status === 'unknown' && outcome?.resolved) return 'Found out'
  if (status === 'unknown' && outcome?.answer === 'happened') return 'It happened'
  if (status === 'unknown' && outcome?.answer === 'run') return 'To be run again'
  if (approval === 'no' && status !== 'running') return 'Refused'
  const word = STATUS[status]
  if (durationMs === undefined || status === 'unknown') return word
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
      {entry.media?.map((media, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the media of a result never change
        <Media key={index} media={media} />
      ))}
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

interface Choice<Answer> {
  answer: Answer
  label: string
  className: string
}

const ANSWERS: readonly Choice<ApprovalAnswer>[] = [
  { answer: 'once', label: 'Allow once', className: 'button primary' },
  { answer: 'always', label: 'Always in this chat', className: 'button' },
  { answer: 'no', label: 'Refuse', className: 'button' },
]

/** ADK's confirmations know no approval for a whole chat. */
const ONCE = ANSWERS.filter(({ answer }) => answer !== 'always')

function Approval({ entry }: { entry: ToolItem }) {
  const { thread } = useChat()
  if (entry.form) return <QuestionFields form={entry.form} entry={entry} />
  return (
    <div className="approval">
      <p>{entry.reason ?? `May ${entry.name} run with these arguments?`}</p>
      <Choices
        choices={entry.onceOnly ? ONCE : ANSWERS}
        onAnswer={answer => thread.approve(entry.callId, answer)}
      />
    </div>
  )
}

/** What a tool that answers later returns: the run that waits for it continues with this. */
function ResultForm({ entry }: { entry: ToolItem }) {
  const { thread } = useChat()
  const { live } = useObserved(thread.state)
  const [text, setText] = useState('')
  const [isSent, setSent] = useState(false)
  if (!live) return null
  const result = readResult(text)
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setSent(true)
    await thread.approve(entry.callId, result)
    setSent(false)
  }
  return (
    <form className="approval" onSubmit={event => void submit(event)}>
      <p>{entry.name} answers later. When its result is known, enter it here: an object, or a text.</p>
      <textarea
        className="result-text"
        aria-label={`Result of ${entry.name}`}
        dir="auto"
        rows={3}
        placeholder='{"status": "done"}'
        value={text}
        onChange={event => setText(event.target.value)}
      />
      <div className="approval-buttons">
        <button type="submit" className="button primary" disabled={isSent || text.trim() === ''}>
          Send the result
        </button>
      </div>
    </form>
  )
}

/** An object as it is; anything else is the text of a result, as ADK wraps one. */
function readResult(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    if (isRecord(value)) return value
    return { result: value }
  } catch {
    return { result: text.trim() }
  }
}

interface ChoicesProps<Answer> {
  choices: readonly Choice<Answer>[]
  isDisabled?: boolean
  onAnswer: (answer: Answer) => Promise<void>
}

function Choices<Answer extends string>({ choices, isDisabled = false, onAnswer }: ChoicesProps<Answer>) {
  const [isSent, setSent] = useState(false)
  const send = async (answer: Answer) => {
    setSent(true)
    await onAnswer(answer)
    setSent(false)
  }
  return (
    <div className="approval-buttons">
      {choices.map(({ answer, label, className }) => (
        <button
          key={answer}
          type="button"
          className={className}
          disabled={isSent || isDisabled}
          onClick={() => void send(answer)}
        >
          {label}
        </button>
      ))}
    </div>
  )
}

/** None of them is safe to press by accident, so none stands out. */
const OUTCOMES = (['happened', 'run', 'leave'] as const).map((answer): Choice<OutcomeAnswer> => {
  const words = OUTCOME_WORDS[answer]
  return { answer, label: `${words.charAt(0).toUpperCase()}${words.slice(1)}`, className: 'button' }
})

/** What is known about a call whose outcome is unknown, and the question whether it took effect. */
function Outcome({ entry }: { entry: ToolItem }) {
  const { thread } = useChat()
  const { live } = useObserved(thread.state)
  const [isChanging, setChanging] = useState(false)
  const { outcome, callId } = entry
  const isOver = outcome !== undefined && live?.runId !== outcome.runId
  const isOpen = entry.status === 'unknown' && outcome?.resolved === undefined
  const isAsked = outcome?.asks || (isOver && isOpen && outcome.policy !== 'retry')
  const isAnswered = outcome?.answer !== undefined && !isChanging
  const isSaid = isOpen && isAnswered && outcome?.answer !== 'leave'
  const isExplained = entry.status === 'unknown' && !isSaid
  const [returned, setReturned] = useState('')
  const needsResult = outcome?.asks && outcome.needsResult
  const answer = async (word: OutcomeAnswer) => {
    const isGiven = word === 'happened' && needsResult && returned.trim() !== ''
    const reply = isGiven ? { happened: true as const, result: parseJson(returned) } : word
    if (outcome) await thread.answerOutcome(outcome, callId, reply)
    setChanging(false)
  }
  return (
    <div className="approval outcome">
      {isExplained ? <p>{explain(entry)}</p> : null}
      {isAnswered ? (
        <p className="outcome-given">
          Answered: {OUTCOME_WORDS[outcome.answer ?? 'leave']}.
          {isAsked ? (
            <button type="button" className="quiet-button" onClick={() => setChanging(true)}>
              Change
            </button>
          ) : null}
        </p>
      ) : null}
      {isAsked && !isAnswered ? (
        <>
          <p>
            {outcome?.asks
              ? 'Did it take effect?'
              : 'Did it take effect? The answer counts when it is repeated.'}
          </p>
          {needsResult ? (
            <textarea
              className="result-text"
              aria-label={`Output of ${entry.name}`}
              dir="auto"
              rows={3}
              placeholder="If it happened: what it returned, as JSON. The next step gets it."
              value={returned}
              onChange={event => setReturned(event.target.value)}
            />
          ) : null}
          <Choices choices={OUTCOMES} isDisabled={isOver && live !== undefined} onAnswer={answer} />
        </>
      ) : null}
    </div>
  )
}

function explain({ outcome, result }: ToolItem): string {
  if (outcome?.resolved === 'done') return 'Found out since: it took effect.'
  if (outcome?.resolved === 'failed') return 'Found out since: it had no effect, or it was run again.'
  if (result !== undefined && formatValue(result).includes(NOT_RUN_AGAIN))
    return 'An equal call was started before, and it is not known whether that took effect, so this one was not run.'
  if (outcome?.asks) return 'An equal call was started before, and it is not known whether that took effect.'
  return 'The call was started, and it is not known whether it took effect.'
}
