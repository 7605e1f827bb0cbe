import { own } from '../../../src/base/own.js'
import { useChat } from '../chat-context.js'
import { Icon, type IconName } from '../shared/icons.js'
import type { Mark, MarkEntry } from '../state/entry.js'
import { formatTokens } from '../state/format.js'

/** Something that happened on the way, in one small line. With a run behind it, it opens the inspector. */
export function MarkLine({ entry }: { entry: MarkEntry }) {
  const { openPanel } = useChat()
  const { icon, text } = describe(entry.mark)
  const title = entry.mark.type === 'repair' ? entry.mark.detail : undefined
  const content = (
    <>
      <Icon name={icon} size={14} />
      <span>{text}</span>
    </>
  )
  const { runId } = entry
  return (
    <div className="mark-line" data-mark={entry.mark.type}>
      {runId ? (
        <button type="button" title={title} onClick={() => openPanel({ type: 'inspector', runId })}>
          {content}
        </button>
      ) : (
        <span className="mark-text">{content}</span>
      )}
    </div>
  )
}

function describe(mark: Mark): { icon: IconName; text: string } {
  switch (mark.type) {
    case 'transfer':
      return { icon: 'transfer', text: `${mark.from} handed over to ${mark.to}` }
    case 'warning':
      return { icon: 'warning', text: `${mark.turns} of ${mark.maxTurns} turns are used` }
    case 'wrap-up':
      return {
        icon: 'warning',
        text: `${own(WRAP_UP, mark.reason) ?? 'A limit is reached'}: one last answer`,
      }
    case 'repair':
      return { icon: 'tool', text: `${counted(mark.count, 'repair')} to fit ${mark.profile}` }
    case 'history-cut':
      return { icon: 'cut', text: cutText(mark) }
    case 'stopped':
      return { icon: 'stop', text: 'Stopped' }
    case 'note':
      return { icon: 'info', text: mark.text }
  }
}

const WRAP_UP: Readonly<Record<string, string>> = {
  'turn-limit': 'The turn limit is reached',
  'delegation-limit': 'The limit of hand-overs is reached',
  loop: 'The agent repeats itself',
}

function cutText({ messages, tokens, shortened }: Extract<Mark, { type: 'history-cut' }>): string {
  const left =
    messages > 0 ? `${counted(messages, 'older message')} left out (${formatTokens(tokens)} tokens)` : ''
  const short = shortened > 0 ? `${counted(shortened, 'tool result')} shortened` : ''
  return [left, short].filter(Boolean).join(', ') || 'The history was fitted to the budget'
}

function counted(count: number, noun: string): string {
  return `${count.toLocaleString('en-US')} ${noun}${count === 1 ? '' : 's'}`
}
