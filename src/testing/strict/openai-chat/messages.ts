/** A chat request as the rules read it. */
import { type JsonObject, listOf, objectOf } from '../json.js'
import { readOnce } from '../violation.js'

export interface ReadMessage {
  readonly index: number
  readonly raw: JsonObject
  readonly role: unknown
  readonly content: unknown
  readonly calls: readonly ReadCall[]
}

export interface ReadCall {
  readonly index: number
  readonly raw: JsonObject
  readonly id: unknown
  readonly name: unknown
  readonly arguments: unknown
}

export const readMessages: (body: JsonObject) => readonly ReadMessage[] = readOnce(body =>
  listOf(body.messages).map((message, index) => {
    const raw = objectOf(message)
    return { index, raw, role: raw.role, content: raw.content, calls: listOf(raw.tool_calls).map(readCall) }
  }),
)

function readCall(call: unknown, index: number): ReadCall {
  const raw = objectOf(call)
  const called = objectOf(raw.function)
  return { index, raw, id: raw.id, name: called.name, arguments: called.arguments }
}

export function hasCalls(message: ReadMessage): boolean {
  return message.role === 'assistant' && message.calls.length > 0
}
