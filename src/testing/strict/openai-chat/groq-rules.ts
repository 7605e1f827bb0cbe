/** Groq checks each message against the shape of its role and lists what is missing, wrong or unsupported. */
import { own } from '../../../base/own.js'
import { listOf, objectOf, textOf } from '../json.js'
import { firstOf, type Rule, type Violation } from '../violation.js'
import { hasCalls, type ReadMessage, readMessages } from './messages.js'

const PROPERTIES: Readonly<Record<string, readonly string[]>> = {
  system: ['role', 'content', 'name'],
  developer: ['role', 'content', 'name'],
  user: ['role', 'content', 'name'],
  assistant: ['role', 'content', 'name', 'tool_calls', 'reasoning', 'refusal', 'annotations'],
  tool: ['role', 'content', 'tool_call_id', 'name'],
}

export const groqRequest: Rule = body => {
  if (textOf(body.model) === '') return refuse('X-schema', "property 'model' is missing")
  if (body.messages === undefined) return refuse('X-schema', "property 'messages' is missing")
  if (!Array.isArray(body.messages)) return refuse('X-schema', "'messages' : value must be an array")
  if (body.messages.length === 0) {
    return refuse('X-schema', "'messages' : minimum number of items is 1")
  }
  return undefined
}

/** X4 and its kin. */
export const groqProperties: Rule = body =>
  firstOf(readMessages(body), message => {
    const role = textOf(message.role)
    const path = `messages.${message.index}`
    const known = own(PROPERTIES, role)
    if (known === undefined)
      return refuse('X-schema', `'${path}' : discriminator property 'role' has invalid value`)
    const unknown = Object.keys(message.raw).find(key => !known.includes(key))
    if (unknown !== undefined) {
      return unsatisfied('X4', role, path, `'${path}' : property '${unknown}' is unsupported`)
    }
    const fault = propertyFault(message, path)
    return fault === undefined ? undefined : unsatisfied('X-schema', role, path, fault)
  })

function propertyFault(message: ReadMessage, path: string): string | undefined {
  if (message.role === 'tool' && textOf(message.raw.tool_call_id) === '') {
    return `'${path}.tool_call_id' : property 'tool_call_id' is missing`
  }
  if (message.content == null && !hasCalls(message))
    return `'${path}.content' : property 'content' is missing`
  const image = listOf(message.content).some(part => objectOf(part).type === 'image_url')
  if (message.role === 'tool' && image) return `'${path}.content' : value must be a string`
  return firstOf(message.calls, call => {
    const at = `${path}.tool_calls.${call.index}`
    if (textOf(call.id) === '') return `'${at}.id' : property 'id' is missing`
    if (call.raw.type === undefined) return `'${at}.type' : property 'type' is missing`
    if (textOf(call.name) === '') return `'${at}.function.name' : property 'name' is missing`
    return typeof call.arguments === 'string'
      ? undefined
      : `'${at}.function.arguments' : value must be a string`
  })
}

function unsatisfied(code: string, role: string, path: string, fault: string): Violation {
  return refuse(code, `'${path}' : for 'role:${role}' the following must be satisfied[(${fault})]`)
}

function refuse(code: string, message: string): Violation {
  return { code, status: 400, message }
}
