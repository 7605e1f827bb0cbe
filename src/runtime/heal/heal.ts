/**
 * Makes stored messages healthy: what comes out is refused by no provider. The rules are those of the repair
 * pipeline with a profile that is the strictest in everything; what is mapped on every send (ids, names,
 * signatures, media) stays as it is stored. Three laws hold, each tested:
 *
 * 1. Healthy: lint finds nothing that breaks, but for neighbours that different agents said.
 * 2. Still: healing twice is healing once, and what is healthy comes out as the very list that was given.
 * 3. Honest: every change is listed, and what a user or a tool said is kept, if need be as text.
 */

import type { ProviderMessage, ToolCallPart } from '../../provider/provider.js'
import { findingsOf } from '../../provider/repair/finding.js'
import type { Profile } from '../../provider/repair/profile.js'
import { repairHistory } from '../../provider/repair/repair-history.js'
import { type Message, normalizeRole } from '../../session/message.js'
import { type Change, odditiesOf } from './oddities.js'
import { type View, type ViewPart, viewOf } from './view.js'
import { type Piece, piecesOf, writeBack } from './write-back.js'

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

/**
 * What every provider accepts, as one profile: each rule is the strictest that any of them has. What satisfies
 * it is refused by nobody. Joining neighbours is left to a step of its own, because only the stored messages
 * know whether the same agent said both; ids, names, signatures and media are mapped on every send and stay.
 */
const HEALTHY: Profile = {
  name: 'healthy',
  vendor: 'lango',
  ids: { unique: 'no', onWire: 'sent' },
  names: /^/,
  first: 'user',
  needsTurn: false,
  last: 'any',
  alternation: false,
  system: 'one-leading',
  pairing: 'next',
  results: { inUser: 'no', grouped: true, inCallOrder: true, object: true, named: true, empty: false },
  callsLast: true,
  dropText: 'blank',
  reasoning: { keep: 'own', needs: 'follower', requiredWithCalls: false },
  signatures: 'optional',
  media: { types: /^/, inResult: true, inAssistant: true, remote: true, limits: [] },
  vendorParts: true,
  toolsRequired: false,
}

function healOnce(messages: readonly Message[]): Healed {
  const view = viewOf(messages)
  const changes = odditiesOf(messages, view)
  const odd = new Set(changes.map(change => change.index))
  const { messages: repaired, repairs } = repairHistory(view.messages, HEALTHY, {
    next: 'user',
    mediaLimits: 'none',
  })
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

function changesOf(repairs: ReturnType<typeof repairHistory>['repairs'], view: View): Change[] {
  return findingsOf(repairs, HEALTHY).map(({ code, at, message, repair }) => {
    return { code, index: view.origins[at] ?? 0, problem: message, remedy: repair }
  })
}

/**
 * Some providers cannot distinguish two calls with one id. The first keeps it; a later one gets the
 * id with a number, exactly as a session is restored (`search`, `search_2`), and its result with it.
 */
/** Numbers repeated ids. Results follow their calls directly and in the same order: the pipeline ensures it. */
function tellApart(
  history: readonly ProviderMessage[],
  view: View,
  changes: Change[],
): readonly ProviderMessage[] {
  const real = (id: string) => view.realIds.get(id) ?? id
  const calls = history.flatMap(({ parts }) => parts.filter(isCall))
  const taken = new Set(calls.map(call => real(call.id)))
  if (taken.size === calls.length) return history
  const used = new Set<string>()
  const numbers = new Map<string, number>()
  let ids: string[] | undefined
  return history.map(message => {
    if (message.parts.some(isCall)) ids = undefined
    const given = ids ?? []
    const parts = message.parts.map((part: ViewPart, place) => {
      if (part.type === 'tool-result') return { ...part, id: given[place] ?? part.id }
      if (part.type !== 'tool-call') return part
      const id = real(part.id)
      const free = used.has(id) ? firstFree(id, taken, numbers) : part.id
      used.add(real(free))
      taken.add(real(free))
      ids = [...(ids ?? []), free]
      if (free === part.id) return part
      changes.push(changeOf(part, id, free, view))
      return { ...part, id: free }
    })
    return parts.every((part, place) => sameId(part, message.parts[place])) ? message : { ...message, parts }
  })
}

function isCall(part: ViewPart): part is ToolCallPart {
  return part.type === 'tool-call'
}

/** `numbers` stores the last number of each id, so that the search does not start again at 1. */
function firstFree(id: string, taken: ReadonlySet<string>, numbers: Map<string, number>): string {
  let number = numbers.get(id) ?? 2
  // At most `taken.size` candidates are refused.
  while (taken.has(`${id}_${number}`)) number += 1
  numbers.set(id, number + 1)
  return `${id}_${number}`
}

function changeOf(part: ViewPart & ToolCallPart, id: string, free: string, view: View): Change {
  const index = part.from === undefined ? 0 : (view.sources[part.from]?.index ?? 0)
  const problem = `A call of ${part.name || 'a tool'} shares its id "${id}" with an earlier one.`
  return { code: 'duplicate-id', index, problem, remedy: `The call and its result get the id "${free}".` }
}

function sameId(part: ViewPart, before: ViewPart | undefined): boolean {
  return part === before || ('id' in part && before !== undefined && 'id' in before && part.id === before.id)
}

/** Two messages of one role in a row are refused by some; they become one where the same author said both. */
/** Joins neighbours of one role, author and branch. No part is joined with another: signatures stay valid. */
function joinNeighbours(pieces: readonly Piece[], messages: readonly Message[], changes: Change[]): Piece[] {
  const joined: Piece[] = []
  for (const piece of pieces) {
    const last = joined.at(-1)
    if (!last || !belongTogether(last, piece, messages)) {
      joined.push(piece)
      continue
    }
    const { role } = piece.message
    // What the pipeline made has no metadata of its own to keep.
    const { index, made } = last.made ? piece : last
    const parts = [...last.message.parts, ...piece.message.parts]
    joined[joined.length - 1] = { message: { role, parts }, index, made }
    if (piece.made || last.made) continue
    const problem = `Two ${role} messages follow each other.`
    const remedy = 'It is joined with the message before it; no part of either changes.'
    changes.push({ code: 'repeated-role', index: piece.index, problem, remedy })
  }
  return joined
}

function belongTogether(left: Piece, right: Piece, messages: readonly Message[]): boolean {
  const { role } = right.message
  if (role !== left.message.role || (role !== 'user' && role !== 'assistant')) return false
  const [first, second] = [messages[left.index], messages[right.index]]
  if (!first || !second) return false
  if (!left.made && !right.made && first.branch !== second.branch) return false
  const [one, other] = [speaker(left, first), speaker(right, second)]
  return one === undefined || other === undefined || one === other
}

/** The author; `undefined` when the row does not name one. */
function speaker({ message, made }: Piece, stored: Message): string | undefined {
  if (message.role === 'user') {
    return made || normalizeRole(stored.role) !== 'user' ? 'user' : (stored.author ?? 'user')
  }
  return stored.author === 'user' ? undefined : stored.author
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
