/**
 * Makes stored messages healthy: what comes out is refused by no provider. The rules are those of the repair
 * pipeline with a profile that is the strictest in everything; what is mapped on every send (ids, names,
 * signatures, media) stays as it is stored. Three laws hold, each tested:
 *
 * 1. Healthy: lint finds nothing that breaks, but for neighbours that different agents said.
 * 2. Still: healing twice is healing once, and what is healthy comes out as the very list that was given.
 * 3. Honest: every change is listed, and what a user or a tool said is kept, if need be as text.
 */
import { findingsOf } from '../../provider/repair/finding.js'
import { repairHistory } from '../../provider/repair/repair-history.js'
import type { Message } from '../../session/message.js'
import { HEALTHY } from './heal-profile.js'
import { joinNeighbours } from './join-neighbours.js'
import { type Change, odditiesOf } from './oddities.js'
import { tellApart } from './tell-apart.js'
import { type View, viewOf } from './view.js'
import { type Piece, piecesOf, writeBack } from './write-back.js'

export type { Change }

export interface Healed {
  /** The very list that was given when nothing had to be changed. */
  messages: readonly Message[]
  changes: Change[]
}

/** Heals a history. The messages that are given are never changed. */
export function heal(messages: readonly Message[]): Healed {
  let healed: Healed = { messages, changes: [] }
  // Leaving out an empty message can bring two neighbours together, which then are joined: two rounds at most.
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const next = healOnce(healed.messages)
    if (next.changes.length === 0) break
    healed = { messages: next.messages, changes: round === 0 ? next.changes : healed.changes }
  }
  return healed
}

const MAX_ROUNDS = 4

function healOnce(messages: readonly Message[]): Healed {
  const view = viewOf(messages)
  const changes = odditiesOf(messages, view)
  const odd = new Set(changes.map(change => change.index))
  const { messages: repaired, repairs } = repairHistory(view.messages, HEALTHY, { next: 'user' })
  changes.push(...changesOf(repairs, view))
  const distinct = tellApart(repaired, view, changes)
  const pieces = withoutLoneThoughts(joinNeighbours(piecesOf(distinct, view), messages, changes), changes)
  if (changes.length === 0) return { messages, changes }
  const unique = [...new Map(changes.map(change => [`${change.index} ${change.code}`, change])).values()]
  return {
    messages: writeBack(messages, pieces, view, odd),
    changes: unique.sort((left, right) => left.index - right.index),
  }
}

/** Thoughts that lead to what another agent says lead, for their own, to nothing. */
function withoutLoneThoughts(pieces: readonly Piece[], changes: Change[]): Piece[] {
  return pieces.filter(({ message, index }) => {
    if (!message.parts.every(part => part.type === 'reasoning')) return true
    const remedy = 'It is left out.'
    changes.push({
      code: 'reasoning-without-follower',
      index,
      problem: 'Reasoning leads to nothing.',
      remedy,
    })
    return false
  })
}

function changesOf(repairs: ReturnType<typeof repairHistory>['repairs'], view: View): Change[] {
  return findingsOf(repairs, HEALTHY).map(({ code, at, message, repair }) => {
    return { code, index: view.origins[at] ?? 0, problem: message, remedy: repair }
  })
}
