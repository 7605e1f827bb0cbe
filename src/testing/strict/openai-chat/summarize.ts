import { isObject, type JsonObject, listOf, objectOf, textOf } from '../json.js'
import type { RequestSummary, SummaryMessage } from '../script.js'
import { type ReadMessage, readMessages } from './messages.js'

export function summarizeChat(body: JsonObject): RequestSummary {
  const messages = readMessages(body)
  const system = messages.filter(message => message.role === 'system' || message.role === 'developer')
  const lastUser = messages.filter(message => message.role === 'user').at(-1)
  return {
    model: textOf(body.model),
    stream: body.stream === true,
    system: system.map(message => contentText(message.content)).join('\n'),
    messages: messages.filter(message => !system.includes(message)).map(summarizeMessage),
    lastUserText: contentText(lastUser?.content),
    tools: listOf(body.tools).map(tool => {
      const declared = objectOf(objectOf(tool).function)
      return { name: textOf(declared.name), parameters: declared.parameters }
    }),
    toolChoice: toolChoiceOf(body.tool_choice),
    body,
  }
}

function summarizeMessage(message: ReadMessage): SummaryMessage {
  const { raw } = message
  const role = message.role === 'assistant' ? 'assistant' : message.role === 'tool' ? 'tool' : 'user'
  const text = contentText(message.content)
  const id = typeof raw.tool_call_id === 'string' ? { id: raw.tool_call_id } : {}
  return {
    role,
    text,
    toolCalls: message.calls.map(call => ({
      ...(typeof call.id === 'string' ? { id: call.id } : {}),
      name: textOf(call.name),
      args: parsed(call.arguments),
    })),
    toolResults: role === 'tool' ? [{ ...id, content: text }] : [],
  }
}

/** Content is a string or a list of parts; what is not text is left out. */
export function contentText(content: unknown): string {
  if (typeof content === 'string') return content
  return listOf(content)
    .map(part => textOf(objectOf(part).text))
    .join('')
}

export function parsed(text: unknown): unknown {
  if (typeof text !== 'string') return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function toolChoiceOf(choice: unknown): RequestSummary['toolChoice'] {
  if (choice === 'none') return 'none'
  if (choice === 'required' || choice === 'any') return 'required'
  const name = isObject(choice) ? textOf(objectOf(choice.function).name) : ''
  return name === '' ? 'auto' : { name }
}
