import type { Content } from '../adk/sdk.js'
import type { WrapUp, WrapUpReason } from './run-plugin.js'

/** What a run has done so far, for the words of its end. */
export interface RunTally {
  turns: number
  maxTurns: number
  delegations: number
  maxDelegations: number
  /** Names of the tools that were called, in order. */
  toolNames: readonly string[]
}

/** The words for the last turn: what the model is told, and what the user is told if the model stays silent. */
export function wrapUpFor(reason: WrapUpReason, tally: RunTally): WrapUp {
  const why = {
    'turn-limit': `the limit of ${tally.maxTurns} tool turns is reached`,
    'delegation-limit': `the limit of ${tally.maxDelegations} transfers between agents is reached`,
    loop: 'the same tool call was repeated again and again with the same arguments',
  }[reason]
  return {
    reason,
    notice:
      `[System: This is your last turn, because ${why}. No tool can be called any more. ` +
      'Answer the user now: say what was done, what was found, and what is still missing.]',
    fallback: `I had to stop here, because ${why}. ${doneSoFar(tally)} Send another message to go on.`,
  }
}

/** Told to a model that makes the same call a third time. */
export function loopWarning(times: number): string {
  return (
    `[System: The same tool call with the same arguments was made ${times} times in a row and gives the same result. ` +
    'Do something else, or answer with what you have.]'
  )
}

/** Stored and hidden: asks for the answer that did not come. */
export const EMPTY_ANSWER_NUDGE =
  '[System: Your last reply was empty. Please answer the user now, using the results above.]'

/** Stored and hidden: tells the next turn what became of the last one. */
export const ABORTED_MARKER = '[The user stopped this answer before it was complete.]'

function doneSoFar({ toolNames, delegations }: RunTally): string {
  if (toolNames.length === 0) {
    return delegations > 0
      ? `So far the question was passed between agents ${delegations} times.`
      : 'Nothing was done yet.'
  }
  const counts = new Map<string, number>()
  for (const name of toolNames) counts.set(name, (counts.get(name) ?? 0) + 1)
  const list = [...counts].map(([name, count]) => (count === 1 ? name : `${name} (${count} times)`))
  return `So far these tools were called: ${list.join(', ')}.`
}

/** What Lango says, as a message of the user. */
export function asUser(text: string): Content {
  return { role: 'user', parts: [{ text }] }
}
