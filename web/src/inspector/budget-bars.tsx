import type { BudgetPicture } from './step-facts.js'
import { countText, plural, shortCount } from './words.js'

/** What the request was made of, against the history's budget and against the model's window. */
export function BudgetBars({ picture }: { picture: BudgetPicture }) {
  const { system, tools, kept, cut, budget, window, answer } = picture
  const room = budget === undefined ? 0 : Math.max(0, budget - kept)
  const request = system + tools + kept
  return (
    <figure className="inspect-budget" aria-label="Where the tokens went">
      <Bar
        label="History"
        summary={historyText(picture)}
        parts={[
          { name: 'kept', label: 'sent', tokens: kept },
          { name: 'room', label: 'room left', tokens: room },
          { name: 'cut', label: 'cut', tokens: cut },
        ]}
      />
      <Bar
        label="Request"
        summary={requestText(picture)}
        parts={[
          { name: 'system', label: 'instruction', tokens: system },
          { name: 'tools', label: 'tools', tokens: tools },
          { name: 'kept', label: 'history', tokens: kept },
          ...(window === undefined || answer === undefined
            ? []
            : [
                { name: 'answer', label: 'kept free for the answer', tokens: Math.min(answer, window / 2) },
                {
                  name: 'room',
                  label: 'unused',
                  tokens: Math.max(0, window - request - Math.min(answer, window / 2)),
                },
              ]),
        ]}
      />
    </figure>
  )
}

function historyText({ kept, cut, cutMessages, budget }: BudgetPicture): string {
  const limit = budget === undefined ? '' : ` of ${countText(budget)}`
  const left =
    cut > 0
      ? `; ${plural(cutMessages, 'message')} left out would have cost ${countText(cut)} more`
      : '; nothing was cut'
  return `${countText(kept)}${limit} tokens${left}`
}

function requestText({ system, tools, kept, window, counted }: BudgetPicture): string {
  const all = system + tools + kept
  const share = window === undefined ? '' : `, ${percent(all / window)} of a window of ${shortCount(window)}`
  const real = counted === undefined ? '' : `; the provider counted ${countText(counted)}`
  return `about ${countText(all)} tokens${share}${real}`
}

function percent(share: number): string {
  return share < 0.01 ? 'less than 1 %' : `${Math.round(share * 100)} %`
}

interface BarPart {
  name: string
  label: string
  tokens: number
}

function Bar({ label, summary, parts }: { label: string; summary: string; parts: readonly BarPart[] }) {
  const visible = parts.filter(part => part.tokens > 0)
  return (
    <div className="inspect-budget-bar">
      <p className="inspect-budget-line">
        <strong>{label}</strong> {summary}
      </p>
      <div className="inspect-budget-track" aria-hidden="true">
        {visible.map(part => (
          <span
            key={part.name}
            className={`inspect-budget-part inspect-budget-${part.name}`}
            style={{ flexGrow: part.tokens }}
          />
        ))}
      </div>
      <ul className="inspect-budget-legend">
        {visible.map(part => (
          <li key={part.name}>
            <span className={`inspect-budget-dot inspect-budget-${part.name}`} aria-hidden="true" />
            {part.label} {shortCount(part.tokens)}
          </li>
        ))}
      </ul>
    </div>
  )
}
