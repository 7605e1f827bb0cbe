/** A Messages request as the rules read it: content is always a list of blocks. */
import { type JsonObject, listOf, objectOf } from '../json.js'
import { readOnce } from '../violation.js'

export interface ReadMessage {
  readonly index: number
  readonly raw: JsonObject
  readonly role: unknown
  readonly blocks: readonly JsonObject[]
}

export const readMessages: (body: JsonObject) => readonly ReadMessage[] = readOnce(body =>
  listOf(body.messages).map((message, index) => {
    const raw = objectOf(message)
    return { index, raw, role: raw.role, blocks: blocksOf(raw.content) }
  }),
)

function blocksOf(content: unknown): JsonObject[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }]
  return listOf(content).map(objectOf)
}

export function lastAssistant(messages: readonly ReadMessage[]): ReadMessage | undefined {
  return messages.filter(message => message.role === 'assistant').at(-1)
}
