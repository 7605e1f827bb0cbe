/**
 * Puts every part into a message of the role it belongs to: calls and reasoning are an assistant's, results
 * a tool's, and what a tool or a system message cannot hold is a user's. Where the profile lets a user
 * message carry results, it stays as it is.
 */
import type { ProviderMessage, ProviderPart } from '../provider.js'
import type { Profile } from './profile.js'
import { type Entry, newEntry, replaceEntries, type StepContext } from './receipt.js'

/** Splits messages whose parts belong to different roles. */
export function separateParts(entries: readonly Entry[], context: StepContext): readonly Entry[] {
  return replaceEntries(entries, entry =>
    isUniform(entry.message) || mayHoldResults(entry.message, context.profile)
      ? entry
      : split(entry, context),
  )
}

function isUniform({ role, parts }: ProviderMessage): boolean {
  for (const part of parts) if (roleOf(part, role) !== role) return false
  return true
}

function roleOf(part: ProviderPart, role: string): string {
  switch (part.type) {
    case 'tool-call':
    case 'reasoning':
      return 'assistant'
    case 'tool-result':
      return 'tool'
    case 'text':
      return role === 'tool' ? 'user' : role
    case 'media':
    case 'vendor':
      return role === 'assistant' ? role : 'user'
  }
}

/** Whether this is a user message of a shape in which the profile accepts results. */
function mayHoldResults({ role, parts }: ProviderMessage, { results }: Profile): boolean {
  if (role !== 'user' || results.inUser === 'no') return false
  const other = parts.findIndex(part => part.type !== 'tool-result')
  if (other === -1) return true
  if (results.inUser === 'alone' || other === 0) return false
  return parts.slice(other).every(part => roleOf(part, role) === 'user')
}

function split(entry: Entry, { report }: StepContext): readonly Entry[] {
  const { message, at } = entry
  const pieces: { role: string; parts: ProviderPart[] }[] = []
  for (const part of message.parts) {
    const role = roleOf(part, message.role)
    const last = pieces.at(-1)
    if (last?.role === role) last.parts.push(part)
    else pieces.push({ role, parts: [part] })
  }
  const roles = pieces.map(piece => piece.role).join(', ')
  report(
    pieces.length === 1
      ? {
          step: 'separate-parts',
          kind: 'rename-role',
          at,
          detail: `Sent as ${roles}: its parts belong there.`,
        }
      : { step: 'separate-parts', kind: 'split', at, detail: `Split by the roles of its parts: ${roles}.` },
  )
  return pieces.map(piece => newEntry(piece.role, piece.parts, at))
}
