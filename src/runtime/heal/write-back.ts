/**
 * The healed history as stored messages again. A message that nothing happened to is the very one that was
 * given. Of the others the first piece keeps identity and metadata; what a message carried besides its words
 * (usage, actions, errors) survives even when its words moved elsewhere.
 */

import { eventToMessage } from '../../adk/session/event-to-message.js'
import { defined } from '../../base/defined.js'
import type { ProviderMessage } from '../../provider/provider.js'
import { type Message, normalizeRole } from '../../session/message.js'
import { isRequestToPerson } from '../lint.js'
import type { Part, View, ViewPart } from './view.js'

/** A message of the healed history and the stored message that it descends from. */
export interface Piece {
  readonly message: ProviderMessage
  /** Place of the stored message; of a neighbour when the pipeline made it. */
  readonly index: number
  readonly made: boolean
}

/** Which stored message each message of the healed history descends from. */
export function piecesOf(history: readonly ProviderMessage[], view: View): Piece[] {
  const pieces: Piece[] = []
  const untouched = new Map(view.messages.map((message, place) => [message, view.origins[place] ?? 0]))
  for (const message of history) {
    const first = message.parts.find((part: ViewPart) => part.from !== undefined) as ViewPart | undefined
    const source = first?.from === undefined ? undefined : view.sources[first.from]?.index
    const known = source ?? untouched.get(message)
    pieces.push({ message, index: known ?? pieces.at(-1)?.index ?? 0, made: known === undefined })
  }
  return pieces
}

/** Stored messages for the pieces, and between them those that are never sent. */
export function writeBack(
  messages: readonly Message[],
  pieces: readonly Piece[],
  view: View,
  odd: ReadonlySet<number>,
): Message[] {
  const claimed = new Set<number>()
  const asStored = new Set<ProviderMessage>(view.messages)
  const written = pieces.map(piece => {
    const isFirst = !piece.made && !claimed.has(piece.index)
    if (!piece.made) claimed.add(piece.index)
    const stored = messages[piece.index]
    if (stored && isFirst && asStored.has(piece.message) && !odd.has(piece.index)) return stored
    return rewritten(piece, stored, isFirst, view)
  })
  return withSilent(messages, pieces, written, claimed)
}

/** Puts back what is never sent, and what is left of messages whose words are gone, where they stood. */
function withSilent(
  messages: readonly Message[],
  pieces: readonly Piece[],
  written: readonly Message[],
  claimed: ReadonlySet<number>,
): Message[] {
  const silent = messages.flatMap((message, index) => {
    if (claimed.has(index)) return []
    const kept = isSilent(message) ? message : carrierOf(message)
    return kept ? [{ index, kept }] : []
  })
  if (silent.length === 0) return [...written]
  // The last place at which something older than each message stands.
  const lastAt = new Map<number, number>()
  for (const [place, { index }] of pieces.entries()) lastAt.set(index, place)
  const following = new Map<number, Message[]>()
  let place = -1
  let older = 0
  for (const { index, kept } of silent) {
    for (; older < index; older++) place = Math.max(place, lastAt.get(older) ?? -1)
    const there = following.get(place)
    if (there) there.push(kept)
    else following.set(place, [kept])
  }
  return [
    ...(following.get(-1) ?? []),
    ...written.flatMap((message, at) => [message, ...(following.get(at) ?? [])]),
  ]
}

function isSilent(message: Message): boolean {
  return message.extra?.content === false || isRequestToPerson(message)
}

/** A message without its words, if it carries anything else. */
function carrierOf(message: Message): Message | undefined {
  const { toolCalls: _calls, extra = {}, ...rest } = message
  const { role: _role, parts: _parts, content: _content, partsFirst: _order, ...others } = extra
  if (Object.keys(others).length === 0) return undefined
  const role = message.author === 'user' ? 'user' : 'assistant'
  return { ...rest, role, content: '', extra: { ...others, content: false } }
}

function rewritten(piece: Piece, stored: Message | undefined, isFirst: boolean, view: View): Message {
  const { role } = piece.message
  const parts = piece.message.parts.flatMap((part: ViewPart) => storedParts(part, view))
  const {
    role: _role,
    parts: _parts,
    content: _content,
    partsFirst: _order,
    actions,
    ...others
  } = stored?.extra ?? {}
  const author = authorFor(role, stored, piece.made)
  const event = {
    ...(isFirst ? others : {}),
    ...(piece.made ? { customMetadata: { lango: { synthetic: true } } } : {}),
    ...defined({ author, invocationId: stored?.invocationId, branch: stored?.branch }),
    timestamp: stored?.timestamp ?? 0,
    content: { role: role === 'assistant' ? 'model' : 'user', parts },
    ...(isFirst && actions ? { actions } : {}),
  }
  // Only the fields that are there are read; a message from elsewhere has no more.
  const message = eventToMessage(event as unknown as Parameters<typeof eventToMessage>[0])
  const { id: _id, ...rest } = message as Message
  const id = isFirst ? stored?.id : undefined
  return { ...rest, role: role === 'system' ? role : rest.role, ...defined({ id }) }
}

/** Who says it: a role that healing gave cannot be kept by an author of another. */
function authorFor(role: string, stored: Message | undefined, made: boolean): string | undefined {
  if (role === 'user') {
    const wasUser = stored !== undefined && normalizeRole(stored.role) === 'user' && !made
    return wasUser ? stored.author : 'user'
  }
  return stored?.author === 'user' ? undefined : stored?.author
}

function storedParts(part: ViewPart, view: View): Part[] {
  const source = part.from === undefined ? undefined : view.sources[part.from]
  if (!source) return [newPart(part, view)]
  return [...source.before, changedPart(part, source.part, view), ...source.after]
}

function changedPart(part: ViewPart, stored: Part, view: View): Part {
  const real = (id: string) => view.realIds.get(id) ?? id
  if (part.type === 'tool-call') {
    const args = part.args as Record<string, unknown>
    return { ...stored, functionCall: { ...stored.functionCall, id: real(part.id), args } }
  }
  if (part.type === 'tool-result') {
    const response = part.result as Record<string, unknown>
    const { id: _id, ...functionResponse } = stored.functionResponse ?? {}
    return {
      ...stored,
      functionResponse: { id: real(part.id), ...functionResponse, name: part.name, response },
    }
  }
  if (part.type === 'text' || part.type === 'reasoning') return { ...stored, text: part.text }
  return stored
}

function newPart(part: ViewPart, view: View): Part {
  switch (part.type) {
    case 'tool-result': {
      const id = view.realIds.get(part.id) ?? part.id
      const response = part.result as Record<string, unknown>
      return { functionResponse: { id, name: part.name, response } }
    }
    case 'media': {
      const { mimeType, data, url } = part
      return data ? { inlineData: { mimeType, data } } : { fileData: { mimeType, fileUri: url ?? '' } }
    }
    case 'text':
    case 'reasoning':
    case 'vendor':
      return { text: part.text }
    case 'tool-call':
      return { text: '' }
  }
}
