/** Ollama's OpenAI door, after its source: no pairing, but content, arguments and images must be readable. */
import { isObject, listOf, objectOf, textOf } from '../json.js'
import { firstOf, type Rule, type Violation } from '../violation.js'
import { hasCalls, readMessages } from './messages.js'

export const ollamaRequest: Rule = body => {
  if (listOf(body.messages).length === 0) return refuse('X-schema', "[] is too short - 'messages'")
  return textOf(body.model) === '' ? refuse('X-schema', 'model is required') : undefined
}

/** X7. */
export const ollamaContent: Rule = body =>
  firstOf(readMessages(body), message => {
    const { content } = message
    if (typeof content === 'string' || Array.isArray(content) || hasCalls(message)) return undefined
    return refuse('X7', `invalid message content type: ${goType(content)}`)
  })

function goType(value: unknown): string {
  if (value === undefined || value === null) return '<nil>'
  if (typeof value === 'number') return 'float64'
  return isObject(value) ? 'map[string]interface {}' : 'bool'
}

/** X8: arguments are the JSON text of an object. */
export const ollamaArguments: Rule = body =>
  firstOf(readMessages(body), message =>
    firstOf(message.calls, call => {
      if (typeof call.arguments !== 'string') {
        return refuse(
          'X8',
          `json: cannot unmarshal ${isObject(call.arguments) ? 'object' : typeof call.arguments} into Go struct field .function.arguments of type string`,
        )
      }
      return isObjectText(call.arguments) ? undefined : refuse('X8', 'invalid tool call arguments')
    }),
  )

function isObjectText(text: string): boolean {
  try {
    return isObject(JSON.parse(text))
  } catch {
    return false
  }
}

/** Remote images are refused, and inline ones must be of a known type. */
export const ollamaImages: Rule = body =>
  firstOf(readMessages(body), message =>
    firstOf(listOf(message.content), part => {
      if (objectOf(part).type !== 'image_url') return undefined
      const image = objectOf(part).image_url
      const url = textOf(isObject(image) ? image.url : image)
      if (/^https?:/.test(url)) {
        return refuse(
          'X-schema',
          'image URLs are not currently supported, please use base64 encoded data instead',
        )
      }
      return /^data:image\/(jpeg|jpg|png|webp);base64,/.test(url)
        ? undefined
        : refuse('X-schema', 'invalid image input')
    }),
  )

/** Not refused, but a list as the content of a tool message makes Ollama forget which call it answers. */
export const ollamaToolText: Rule = (body, context) => {
  if (context.reading === 'lenient') return undefined
  const lost = readMessages(body).find(message => message.role === 'tool' && Array.isArray(message.content))
  if (lost === undefined) return undefined
  const message = `messages[${lost.index}]: a list as tool content loses its tool_call_id.`
  return { code: 'X10', status: 200, message }
}

function refuse(code: string, message: string): Violation {
  return { code, status: 400, message, param: null, errorCode: null }
}
