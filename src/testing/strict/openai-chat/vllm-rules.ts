/**
 * vLLM asks for little, but it parses the arguments of old calls with Python, and the model's chat template
 * may insist on alternating roles. Tool messages stand between turns and do not count.
 */
import { listOf, objectOf, textOf } from '../json.js'
import { firstOf, type Rule, type Violation } from '../violation.js'
import { readMessages } from './messages.js'
import { pythonJsonError } from './python-json.js'

export const vllmRequest: Rule = body => {
  if (body.messages === undefined) {
    return refuse('X-schema', "[{'type': 'missing', 'loc': ('body', 'messages'), 'msg': 'Field required'}]")
  }
  const roles = readMessages(body).find(message => textOf(message.role) === '')
  if (roles === undefined) return undefined
  const place = `('body', 'messages', ${roles.index}, 'role')`
  return refuse('X-schema', `[{'type': 'missing', 'loc': ${place}, 'msg': 'Field required'}]`)
}

/** X5. */
export const vllmArguments: Rule = body =>
  firstOf(readMessages(body), message =>
    firstOf(message.calls, call => {
      if (call.arguments === undefined || call.arguments === '') return undefined
      if (typeof call.arguments !== 'string') {
        return refuse('X-schema', 'the JSON object must be str, bytes or bytearray, not dict')
      }
      const fault = pythonJsonError(call.arguments)
      return fault === undefined ? undefined : refuse('X5', fault)
    }),
  )

/** X6, when the template insists: the first turn is the user's, and no role speaks twice in a row. */
export const vllmAlternates: Rule = (body, context) => {
  if (context.reading === 'lenient') return undefined
  const spoken = readMessages(body).filter(message => message.role !== 'system')
  return firstOf(spoken, (message, index) => {
    const previous = spoken[index - 1]?.role
    const starts = index > 0 || message.role === 'user'
    const repeats = message.role !== 'tool' && message.role === previous
    return starts && !repeats
      ? undefined
      : refuse('X6', 'Conversation roles must alternate user/assistant/user/assistant/...')
  })
}

/** Images in tool messages have no place in a template. */
export const vllmImages: Rule = body =>
  firstOf(readMessages(body), message => {
    const image = listOf(message.content).some(part => objectOf(part).type === 'image_url')
    return image && message.role !== 'user'
      ? refuse('X-schema', 'Only user messages can contain images for this model.')
      : undefined
  })

function refuse(code: string, message: string): Violation {
  return { code, status: 400, message, param: null, errorCode: 400, errorType: 'BadRequestError' }
}
