import { eventToMessage } from '../../src/adk/session/event-to-message.js'
import { type ProviderMessage, type ProviderPart, sealSignature } from '../../src/provider/provider.js'
import type { Message } from '../../src/session/message.js'

type Event = Parameters<typeof eventToMessage>[0]
type Part = NonNullable<NonNullable<Event['content']>['parts']>[number]

/** A neutral history as the messages that a store would hold: roles, ids and arguments as odd as they were. */
export function storedHistory(history: readonly ProviderMessage[]): Message[] {
  return history.map((message, index) => {
    const author = message.role === 'user' ? 'user' : 'root'
    const role = message.role === 'assistant' ? 'model' : 'user'
    const event = {
      id: `event-${index + 1}`,
      invocationId: 'run-1',
      author,
      timestamp: 1_700_000_000_000 + index,
      content: { role, parts: message.parts.map(toPart) },
    }
    const stored = eventToMessage(event as unknown as Event) as Message
    const bare = stored.role === 'tool' && message.role === 'user'
    return withGivenIds(bare ? stored : { ...stored, role: message.role }, message)
  })
}

/** Storing gives missing ids; a history from elsewhere may still lack them. */
function withGivenIds(stored: Message, message: ProviderMessage): Message {
  const given = message.parts.filter(part => part.type === 'tool-call' || part.type === 'tool-result')
  if (!stored.toolCalls) return stored
  const toolCalls = stored.toolCalls.map((call, place) => ({ ...call, id: given[place]?.id ?? call.id }))
  return { ...stored, toolCalls }
}

function toPart(part: ProviderPart): Part {
  const signed =
    'origin' in part && part.origin && (part.signature !== undefined || part.origin.vendor !== 'gemini')
      ? { thoughtSignature: sealSignature(part.signature, part.origin) }
      : {}
  switch (part.type) {
    case 'text':
      return { text: part.text, ...signed }
    case 'reasoning':
      return { text: part.text, thought: true, ...signed }
    case 'tool-call':
      return {
        functionCall: { id: part.id, name: part.name, args: part.args as Record<string, unknown> },
        ...signed,
      }
    case 'tool-result': {
      const response = part.result as Record<string, unknown>
      const media = part.media?.map(item => toPart(item)) ?? []
      return {
        functionResponse: {
          id: part.id,
          name: part.name,
          response,
          ...(media.length > 0 ? { parts: media } : {}),
        },
      } as Part
    }
    case 'media':
      return part.data === undefined
        ? { fileData: { mimeType: part.mimeType, fileUri: part.url ?? '' } }
        : { inlineData: { mimeType: part.mimeType, data: part.data } }
    case 'vendor':
      return { ...(part.value as Part) }
    default:
      return {}
  }
}
