import { useState } from 'react'
import {
  isWait,
  type Mark,
  type MarkItem,
  missingText,
  resumedText,
  switchText,
  waitText,
} from '../../../src/transcript/item.js'
import { breakText } from '../../../src/transcript/receipt-marks.js'
import { useChat, useObserved } from '../chat-context.js'
import { Icon, type IconName } from '../shared/icons.js'
import type { QueuedEntry } from '../state/entry.js'
import { formatCost, formatTokens } from '../state/format.js'

/** What happened around an answer, in one small line. When its run is known, it opens the inspector. */
export function MarkLine({ entry }: { entry: MarkItem }) {
  const { openPanel } = useChat()
  const { icon, text } = describe(entry.mark)
  const { mark } = entry
  const receipts = mark.type === 'repair' ? mark.repairs : mark.type === 'break' ? mark.breaks : undefined
  const title = receipts?.map(({ detail }) => detail).join('\n')
  const content = (
    <>
      <Icon name={icon} size={14} />
      <span>{text}</span>
    </>
  )
  // Nothing was sent for a run that has not begun.
  const runId = isWait(mark) ? undefined : entry.runId
  return (
    <>
      <div className="mark-line" data-mark={entry.mark.type}>
        {runId ? (
          <button type="button" title={title} onClick={() => openPanel({ type: 'inspector', runId })}>
            {content}
          </button>
        ) : (
          <span className="mark-text">{content}</span>
        )}
      </div>
      {mark.type === 'wrap-up' && mark.reason === 'budget' && entry.runId ? (
        <GoOn runId={entry.runId} budget={mark.budget} />
      ) : null}
    </>
  )
}

/** What a run has spent of its budget, and the way to continue with another one. */
function GoOn({ runId, budget }: { runId: string; budget: Budget }) {
  const { client, thread } = useChat()
  const { live, lastRun } = useObserved(thread.state)
  const [amount, setAmount] = useState(() => String(nextBudget(budget)))
  const [isSent, setSent] = useState(false)
  // Later messages have continued it.
  if (live || (lastRun && lastRun.runId !== runId) || budget?.scope !== 'run') return null
  const perRunUsd = Number(amount)
  const isValid = perRunUsd > 0 && Number.isFinite(perRunUsd)
  const goOn = async () => {
    setSent(true)
    try {
      await client.goOn(runId, { perRunUsd })
      await thread.refresh()
    } catch (error) {
      thread.showError(error)
    }
    setSent(false)
  }
  return (
    <form
      className="go-on"
      aria-label="Go on with another budget"
      onSubmit={event => {
        event.preventDefault()
        if (isValid) void goOn()
      }}
    >
      <span>
        {formatCost(budget.limitUsd - budget.leftUsd)} of {formatCost(budget.limitUsd)} spent.
      </span>
      <label>
        New limit in $
        <input inputMode="decimal" value={amount} onChange={event => setAmount(event.target.value)} />
      </label>
      <button type="submit" disabled={isSent || !isValid}>
        Go on
      </button>
    </form>
  )
}

type Budget = Extract<Mark, { type: 'wrap-up' }>['budget']

/** Twice as much, as people write it. */
function nextBudget(budget: Budget): number {
  return Number(((budget?.limitUsd ?? 0.5) * 2).toPrecision(2))
}

/** A run that waits, and that can be stopped before it begins. */
export function QueuedLine({ entry }: { entry: QueuedEntry }) {
  const { thread } = useChat()
  const [isSent, setSent] = useState(false)
  const { place, dueAt } = entry
  const { icon, text } = describe(
    dueAt === undefined ? { type: 'queued', place } : { type: 'scheduled', dueAt },
  )
  const stop = async () => {
    setSent(true)
    await thread.stopQueued(entry.runId)
    setSent(false)
  }
  return (
    <div className="mark-line" data-mark="queued">
      <span className="mark-text">
        <Icon name={icon} size={14} />
        <span>{text}</span>
      </span>
      <button
        type="button"
        aria-label={dueAt === undefined ? `Stop the run at place ${place}` : `Stop the run: ${text}`}
        disabled={isSent}
        onClick={() => void stop()}
      >
        Stop
      </button>
    </div>
  )
}

function describe(mark: Mark): { icon: IconName; text: string } {
  switch (mark.type) {
    case 'transfer':
      return { icon: 'transfer', text: `${mark.from} handed over to ${mark.to}` }
    case 'question':
      return { icon: 'shield', text: questionText(mark) }
    case 'warning':
      return { icon: 'warning', text: `${mark.turns} of ${mark.maxTurns} turns are used` }
    case 'wrap-up':
      return {
        icon: 'warning',
        text: `${WRAP_UP[mark.reason]}: one last answer`,
      }
    case 'model-switch':
      return { icon: 'transfer', text: switchText(mark) }
    case 'model-wait':
      return { icon: 'clock', text: waitText(mark) }
    case 'tools-missing':
      return { icon: 'warning', text: missingText(mark) }
    case 'repair':
      return { icon: 'tool', text: `${counted(mark.repairs.length, 'repair')} to fit ${mark.profile}` }
    case 'break':
      return { icon: 'cut', text: breakText(mark.breaks) }
    case 'history-cut':
      return { icon: 'cut', text: cutText(mark.cuts) }
    case 'queued':
      return { icon: 'clock', text: `Waits: place ${mark.place} in the queue of this chat` }
    case 'scheduled':
      return { icon: 'clock', text: `Scheduled for ${new Date(mark.dueAt).toLocaleString()}` }
    case 'resumed':
      return { icon: 'clock', text: resumedText(mark) }
    case 'stopped':
      return { icon: 'stop', text: 'Stopped' }
    case 'note':
      return { icon: 'info', text: mark.text }
  }
}

const WRAP_UP: Readonly<Record<Extract<Mark, { type: 'wrap-up' }>['reason'], string>> = {
  'turn-limit': 'The turn limit is reached',
  'delegation-limit': 'The limit of hand-overs is reached',
  loop: 'The agent repeats itself',
  budget: 'The budget is used up',
}

function questionText({ call, tool }: Extract<Mark, { type: 'question' }>): string {
  return tool === '' ? `${call} waits for an answer` : `${tool} waits for a confirmation`
}

function cutText(cuts: Extract<Mark, { type: 'history-cut' }>['cuts']): string {
  const sum = (count: (cut: (typeof cuts)[number]) => number) =>
    cuts.reduce((total, cut) => total + count(cut), 0)
  const messages = sum(cut => cut.messages)
  const tokens = sum(cut => cut.tokens)
  const shortened = sum(cut => cut.shortened.length)
  const left =
    messages > 0 ? `${counted(messages, 'older message')} left out (${formatTokens(tokens)} tokens)` : ''
  const short = shortened > 0 ? `${counted(shortened, 'tool result')} shortened` : ''
  return [left, short].filter(Boolean).join(', ') || 'The history was fitted to the budget'
}

function counted(count: number, noun: string): string {
  return `${count.toLocaleString('en-US')} ${noun}${count === 1 ? '' : 's'}`
}
