import { useCallback, useState } from 'react'
import type { LangoClient } from '../../../src/client/client.js'
import type { UsageLine } from '../state/api.js'
import { formatCallCost, formatCost, formatTokens } from '../state/format.js'
import { PanelFrame } from './panel-frame.js'
import { PanelState } from './panel-state.js'
import './usage.css'
import { useLoaded } from './use-loaded.js'
import { plural } from './words.js'

const PERIODS = [7, 30, 90] as const

/** What the reader's model calls have cost, by day and model. */
export function UsagePanel({ client, onClose }: { client: LangoClient; onClose: () => void }) {
  const [days, setDays] = useState<number>(30)
  const load = useCallback(() => client.usage({ from: dayBefore(days - 1) }), [client, days])
  const [loaded, reload] = useLoaded(load)
  const period = (
    <label className="usage-period">
      Period
      <select value={days} onChange={event => setDays(Number(event.target.value))}>
        {PERIODS.map(each => (
          <option key={each} value={each}>
            {each} days
          </option>
        ))}
      </select>
    </label>
  )
  return (
    <PanelFrame
      title="What was spent"
      subtitle="Your model calls, by day of UTC"
      onClose={onClose}
      head={period}
    >
      {loaded.state === 'done' ? (
        <UsageView lines={loaded.value.lines} days={days} />
      ) : (
        <PanelState loaded={loaded} what="usage" onRetry={reload} />
      )}
    </PanelFrame>
  )
}

function UsageView({ lines, days }: { lines: readonly UsageLine[]; days: number }) {
  const models = byCost(lines)
  const unpriced = lines.reduce((sum, line) => sum + line.unpricedCalls, 0)
  if (lines.length === 0) return <p className="usage-view">Nothing was spent in this time.</p>
  return (
    <div className="usage-view">
      <p className="usage-total">
        <strong>{formatCost(costOf(lines))}</strong> in {plural(days, 'day')}
        {unpriced > 0 ? `, and ${plural(unpriced, 'call')} of models without a known price` : ''}
      </p>
      <CostPlot lines={lines} models={models} days={days} />
      <UsageTable lines={lines} models={models} />
    </div>
  )
}

const HEIGHT = 150
const WIDTH = 600

/** One bar for each day, in parts by model. The table below says the same in words. */
function CostPlot({
  lines,
  models,
  days,
}: {
  lines: readonly UsageLine[]
  models: readonly string[]
  days: number
}) {
  const names = Array.from({ length: days }, (_, index) => dayBefore(days - 1 - index))
  const most = Math.max(...names.map(day => costOf(lines.filter(line => line.day === day)))) || 1
  const step = WIDTH / days
  return (
    <figure className="usage-plot">
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="img"
        aria-label={`Cost by day; the highest is ${formatCost(most)}`}
      >
        {names.map((day, index) => (
          <DayBar
            key={day}
            lines={lines.filter(line => line.day === day)}
            models={models}
            scale={(HEIGHT - 4) / most}
            x={index * step + step * 0.12}
            width={step * 0.76}
          />
        ))}
        <line x1="0" x2={WIDTH} y1={HEIGHT - 0.5} y2={HEIGHT - 0.5} className="usage-axis" />
      </svg>
      <figcaption>
        <span>{names[0]}</span>
        <span>{formatCost(most)} at most</span>
        <span>{names.at(-1)}</span>
      </figcaption>
    </figure>
  )
}

interface DayBarProps {
  lines: readonly UsageLine[]
  models: readonly string[]
  scale: number
  x: number
  width: number
}

function DayBar({ lines, models, scale, x, width }: DayBarProps) {
  let below = 0
  return models.map((model, index) => {
    const own = lines.filter(line => line.model === model)
    const height = costOf(own) * scale
    if (height === 0) return null
    below += height
    return (
      <rect key={model} x={x} y={HEIGHT - below} width={width} height={height} data-colour={index % COLOURS}>
        <title>{`${own[0]?.day} ${model}: ${formatCost(costOf(own))}`}</title>
      </rect>
    )
  })
}

/** As many as `usage.css` has. */
const COLOURS = 6

function UsageTable({ lines, models }: { lines: readonly UsageLine[]; models: readonly string[] }) {
  const newest = [...lines].sort((one, other) => other.day.localeCompare(one.day))
  return (
    <>
      <ul className="usage-models" aria-label="Models">
        {models.map((model, index) => (
          <li key={model}>
            <span className="usage-colour" data-colour={index % COLOURS} />
            <span className="usage-model">{model}</span>
            <span>{modelCost(lines.filter(line => line.model === model))}</span>
          </li>
        ))}
      </ul>
      <table className="usage-table">
        <thead>
          <tr>
            <th scope="col">Day</th>
            <th scope="col">Model</th>
            <th scope="col">Calls</th>
            <th scope="col">Tokens</th>
            <th scope="col">Cost</th>
          </tr>
        </thead>
        <tbody>
          {newest.map(line => (
            <tr key={`${line.day} ${line.model} ${line.kind}`}>
              <td>{line.day}</td>
              <td>
                {line.model}
                {line.kind === 'memory' ? ' (memory)' : ''}
              </td>
              <td>{line.calls}</td>
              <td>{formatTokens(line.usage.totalTokens)}</td>
              <td>{line.usage.cost === undefined ? 'not known' : formatCallCost(line.usage.cost)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  )
}

function byCost(lines: readonly UsageLine[]): string[] {
  const names = [...new Set(lines.map(({ model }) => model))]
  const cost = (model: string) => costOf(lines.filter(line => line.model === model))
  return names.sort((one, other) => cost(other) - cost(one))
}

function modelCost(lines: readonly UsageLine[]): string {
  if (lines.some(({ usage }) => usage.cost !== undefined)) return formatCallCost(costOf(lines))
  return 'not known'
}

function costOf(lines: readonly UsageLine[]): number {
  return lines.reduce((sum, { usage }) => sum + (usage.cost ?? 0), 0)
}

function dayBefore(days: number): string {
  return new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10)
}
