/** What happened around an answer, each in one quiet line. */
import type { RunEvent } from '../../run/run-event.js'
import type { HistoryCut } from '../../session/message.js'
import { count } from '../wording.js'
import { formatCount } from './format.js'

type EventOf<Type extends RunEvent['type']> = Extract<RunEvent, { type: Type }>

/** Most turns are used. */
export function turnNotice({ turns, maxTurns }: EventOf<'turn-warning'>): string {
  return `turn ${turns} of ${maxTurns}: the run is near its limit`
}

/** The last turn has begun. */
export function wrapUpNotice({ reason, turns, maxTurns }: EventOf<'wrap-up'>): string {
  if (reason === 'turn-limit') return `turn ${turns} of ${maxTurns} is used: one last answer, without tools`
  if (reason === 'delegation-limit') return 'the agents handed over too often: one last answer, without tools'
  return 'the same call was repeated again and again: one last answer, without tools'
}

/** The history was made legal for a model. */
export function repairNotice({ profile, repairs }: EventOf<'repair'>): string {
  const counts = new Map<string, number>()
  for (const { step } of repairs) counts.set(step, (counts.get(step) ?? 0) + 1)
  const steps = [...counts].map(([step, count]) => (count === 1 ? step : `${step} ×${count}`))
  return `history repaired for ${profile}: ${steps.join(', ')} · /inspect`
}

/** A budget left something out. */
export function cutNotice(cut: HistoryCut): string {
  const found: string[] = []
  if (cut.messages > 0) {
    const limit =
      cut.reason === 'token-budget' && cut.budgetTokens !== undefined
        ? `to fit ${formatCount(cut.budgetTokens)} tokens`
        : `to keep ${cut.maxMessages ?? cut.keptMessages} messages`
    found.push(`${count(cut.messages, 'older message')} left out ${limit}`)
  }
  if (cut.shortened.length > 0) found.push(`${count(cut.shortened.length, 'tool output')} shortened`)
  return `${found.join(', ') || 'history cut'} · /inspect`
}

/** How a run ended, when not in the ordinary way. Failures have told themselves. */
export function finishNotice({ finishReason }: EventOf<'run-finish'>): string | undefined {
  return {
    stop: undefined,
    error: undefined,
    aborted: 'stopped',
    'turn-limit': 'ended at the turn limit: send another message to go on',
    loop: 'ended because a call was repeated: send another message to go on',
  }[finishReason]
}
