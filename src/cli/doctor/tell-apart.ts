/**
 * Two calls that share an id cannot be told apart by every provider. The first keeps it; a later one gets the
 * id with a number, exactly as a session is restored (`search`, `search_2`), and its result with it.
 */
import type { ProviderMessage, ToolCallPart } from '../../provider/provider.js'
import type { Change } from './oddities.js'
import type { View, ViewPart } from './view.js'

/** Numbers repeated ids. Results stand right behind their calls and in their order: the pipeline saw to it. */
export function tellApart(
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

function sameId(part: ViewPart, before: ViewPart | undefined): boolean {
  return part === before || ('id' in part && before !== undefined && 'id' in before && part.id === before.id)
}

/** `numbers` remembers where to go on, so that many stay cheap. */
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
