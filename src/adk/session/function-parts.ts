import { parseJson } from '../../session/json.js'
import type { Message } from '../../session/message.js'
import { normalizeRole } from '../../session/message.js'
import { CallIds } from '../call-id.js'
import type { Part } from '../sdk.js'

/** What a walk through the history found out about the parts of one message. */
export interface PairedParts {
  parts: Part[]
  /** Who made the call that the first answer among the parts belongs to. */
  callAuthor?: string | undefined
}

/**
 * Gives calls and answers their ids, walking from the first message to the last: every call another id,
 * every answer the id and, where it has none, the name of its call.
 */
export class FunctionParts {
  readonly #ids: CallIds
  readonly #faithful: boolean

  /** `faithful`: doubled ids stay doubled, and arguments and results are whatever their JSON says. */
  constructor(messages: readonly Message[], options: { faithful?: boolean } = {}) {
    const existing = messages.flatMap(message => (message.toolCalls ?? []).flatMap(call => call.id || []))
    this.#faithful = options.faithful ?? false
    this.#ids = new CallIds({ existing, unique: !this.#faithful })
  }

  /** `author` is who speaks if the parts hold calls; `place` grows from message to message. */
  pair(message: Message, parts: readonly Part[], author: string, place: number): PairedParts {
    if (isLegacyResult(message)) return this.#pairLegacy(message)
    if (normalizeRole(message.role) === 'user' && parts.some(part => part.text)) this.#ids.newTurn()
    let callAuthor: string | undefined
    const paired = parts.map((part): Part => {
      if (part.functionCall) {
        const { functionCall } = part
        const id = this.#ids.call(functionCall.id, functionCall.name ?? '', { author, group: place })
        return { ...part, functionCall: { ...withId(functionCall, id), ...this.#args(functionCall.args) } }
      }
      if (!part.functionResponse) return part
      const { id, name, response } = part.functionResponse
      const call = this.#ids.answer(id, name, place)
      callAuthor ??= call?.from.author
      const named = { ...part.functionResponse, ...(name || !call ? {} : { name: call.name }) }
      const withCallId = withId(named, call?.id ?? this.#ids.orphan(id, name))
      return { ...part, functionResponse: { ...withCallId, ...this.#response(response) } }
    })
    return { parts: paired, callAuthor }
  }

  #args(args: unknown): { args?: Record<string, unknown> } {
    return this.#faithful ? {} : objectArgs(args)
  }

  #response(response: unknown): { response?: Record<string, unknown> } {
    return this.#faithful ? { response: response as Record<string, unknown> } : objectResponse(response)
  }

  /** Rows from before results had metadata: the answer belongs to the next open call before it. */
  #pairLegacy(message: Message): PairedParts {
    const call = this.#ids.answer(undefined, undefined)
    if (!call) return { parts: message.content === '' ? [] : [{ text: message.content }] }
    const { id, name } = call
    const response = this.#response(parseJson(message.content))
    return { parts: [{ functionResponse: { id, name, ...response } }], callAuthor: call.from.author }
  }
}

/** A tool's result of which nothing but the text is known. */
export function isLegacyResult(message: Message): boolean {
  if (normalizeRole(message.role) !== 'tool' || (message.toolCalls ?? []).length > 0) return false
  return message.extra?.parts === undefined
}

/** Sets the id: where it stood, or first. */
function withId<Fields extends { id?: string }>(fields: Fields, id: string): Fields {
  return fields.id === undefined ? Object.assign({ id }, fields, { id }) : { ...fields, id }
}

/** ADK and the wires want objects. Whatever else a row holds is kept inside one. */
function objectArgs(args: unknown): { args?: Record<string, unknown> } {
  if (args === undefined || args === null) return {}
  return { args: isObject(args) ? args : { input: args } }
}

function objectResponse(response: unknown): { response?: Record<string, unknown> } {
  if (response === undefined) return {}
  if (isObject(response)) return { response }
  return { response: Array.isArray(response) ? { results: response } : { result: response } }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
