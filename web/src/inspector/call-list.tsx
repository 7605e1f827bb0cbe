import { OUTCOME_WORDS } from '../../../src/transcript/item.js'
import type { InspectedCall } from './types.js'
import { plural } from './words.js'

/** The tool calls of an answer as the ledger has them. Open at once when the outcome of one is unknown. */
export function CallList({ calls }: { calls: readonly InspectedCall[] }) {
  const unknown = calls.filter(({ status }) => status === 'unknown').length
  return (
    <details className="inspect-calls" open={unknown > 0}>
      <summary>
        Tool calls <span className="inspect-step-tabs-count">{calls.length}</span>
        {unknown > 0 ? <span className="inspect-calls-note">{unknown} with an unknown outcome</span> : null}
      </summary>
      <ol>
        {calls.map((call, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: models may use a call id twice, and rows are not moved.
          <li key={index} data-status={call.status}>
            <p className="inspect-calls-head">
              <code>{call.tool}</code>
              <span className="inspect-calls-status">{STATUS[call.status]}</span>
              <span>{factsOf(call)}</span>
            </p>
            <p className="inspect-calls-key">
              Arguments <code dir="auto">{JSON.stringify(call.args)}</code>
            </p>
            <p className="inspect-calls-key">
              Idempotency key <code>{call.idempotencyKey}</code>
            </p>
          </li>
        ))}
      </ol>
    </details>
  )
}

const STATUS: Readonly<Record<InspectedCall['status'], string>> = {
  intent: 'Not started',
  started: 'Started',
  done: 'Done',
  failed: 'Failed',
  unknown: 'Outcome unknown',
}

const EFFECTS: Readonly<Record<InspectedCall['effect'], string>> = {
  read: 'only reads',
  idempotent: 'may be repeated',
  once: 'runs once',
}

function factsOf({ effect, attempt, answer }: InspectedCall): string {
  const started = attempt === 0 ? [] : [plural(attempt, 'attempt')]
  return [EFFECTS[effect], ...started, ...(answer ? [`answered: ${OUTCOME_WORDS[answer]}`] : [])].join(' · ')
}
