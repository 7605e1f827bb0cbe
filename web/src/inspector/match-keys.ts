/**
 * By what a stored part and a sent part know each other. Every part has keys in order of preference; a call
 * goes by its id, or, where the wire has no ids, by its name and arguments.
 */
import type { StoredMessage, StoredPart } from './types.js'
import { jsonText, type WireMessage, type WirePart } from './wire-part.js'

/** The keys of a stored message, one list per part. */
export function storedKeys(message: StoredMessage): string[][] {
  const keys = message.parts.map(part => storedPartKeys(part, message.role)).filter(list => list.length > 0)
  return withWhole(
    keys,
    message.role,
    message.parts.flatMap(part => (part.type === 'text' ? [part.text] : [])),
  )
}

/** The keys of a sent message, its ids translated back to the stored ones. */
export function sentKeys(message: WireMessage, wireToStored: ReadonlyMap<string, string>): string[][] {
  return message.parts
    .map(part => sentPartKeys(part, message.role, wireToStored))
    .filter(list => list.length > 0)
}

/** What a stored part says, as the wire would show it. */
export function storedText(part: StoredPart): string {
  switch (part.type) {
    case 'tool-call':
      return jsonText(part.args ?? {})
    case 'tool-result':
      return jsonText(part.result)
    case 'media':
      return part.name ?? part.url ?? part.mimeType
    case 'code':
      return part.code ?? part.output ?? ''
    case 'text':
    case 'reasoning':
    case 'other':
      return part.text
  }
}

/** What may be left of a message that was rewritten. */
export function traceOf(message: StoredMessage): string[] {
  return message.parts.flatMap(part => {
    const text = storedText(part).trim()
    if (part.type === 'tool-call') return [`called tool \`${part.name}\``]
    if (part.type === 'tool-result') return text.length < 2 ? [] : [text, `tool \`${part.name}\` returned`]
    return text.length < 2 ? [] : [text]
  })
}

/** Hands out places by key, the last first, each part of a place once. */
export function matchKeys(
  keysOfPlaces: readonly string[][][],
): (keys: readonly string[]) => number | undefined {
  const stacks = new Map<string, { place: number; part: string }[]>()
  keysOfPlaces.forEach((parts, place) => {
    parts.forEach((keys, part) => {
      for (const key of keys) {
        const entry = { place, part: `${place}/${part}` }
        const stack = stacks.get(key)
        if (stack) stack.push(entry)
        else stacks.set(key, [entry])
      }
    })
  })
  const used = new Set<string>()
  return keys => {
    for (const key of keys) {
      const stack = stacks.get(key)
      while (stack && stack.length > 0) {
        const entry = stack.pop()
        if (!entry || used.has(entry.part)) continue
        used.add(entry.part)
        return entry.place
      }
    }
    return undefined
  }
}

function storedPartKeys(part: StoredPart, role: string): string[] {
  switch (part.type) {
    case 'text':
    case 'reasoning':
      return textKeys(part.type, role, part.text)
    case 'tool-call':
    case 'tool-result':
      return callKeys(part.type, part.id, part.name, storedText(part))
    case 'media':
      return part.url ? [`media ${part.url}`] : []
    case 'code':
    case 'other':
      return textKeys('text', role, storedText(part))
  }
}

function sentPartKeys(part: WirePart, role: string, wireToStored: ReadonlyMap<string, string>): string[] {
  switch (part.type) {
    case 'text':
    case 'reasoning':
      return textKeys(part.type, role, part.text)
    case 'tool-call':
    case 'tool-result': {
      const id = part.callId ?? ''
      return callKeys(part.type, wireToStored.get(id) ?? id, part.name ?? '', part.text)
    }
    case 'media':
      return [`media ${part.text}`]
    case 'other':
      return textKeys('text', role, part.text)
  }
}

/** The same words of the same role first; a role may have been changed on the way. */
function textKeys(type: string, role: string, text: string): string[] {
  const trimmed = text.trim()
  return trimmed === '' ? [] : [`${type} of ${role} ${trimmed}`, `${type} ${trimmed}`]
}

/** An id that the wire has is believed: content decides only where there is none. */
function callKeys(type: string, id: string, name: string, text: string): string[] {
  return [...(id === '' ? [] : [`${type} ${id}`]), `${type} = ${name} ${text}`]
}

/** Some wires join the texts of a message into one. */
function withWhole(keys: string[][], role: string, texts: readonly string[]): string[][] {
  return texts.length < 2 ? keys : [...keys, textKeys('text', role, texts.join('\n'))]
}
