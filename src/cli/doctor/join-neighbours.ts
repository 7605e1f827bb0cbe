/** Two messages of one role in a row are refused by some; they become one where the same author said both. */
import { type Message, normalizeRole } from '../../session/message.js'
import type { Change } from './oddities.js'
import type { Piece } from './write-back.js'

/** Joins neighbours of one role, author and branch. No part is joined with another: signatures stay valid. */
export function joinNeighbours(
  pieces: readonly Piece[],
  messages: readonly Message[],
  changes: Change[],
): Piece[] {
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

/** Who speaks: `undefined` when the row leaves it open. */
function speaker({ message, made }: Piece, stored: Message): string | undefined {
  if (message.role === 'user') {
    return made || normalizeRole(stored.role) !== 'user' ? 'user' : (stored.author ?? 'user')
  }
  return stored.author === 'user' ? undefined : stored.author
}
