import { isObject, type JsonObject, listOf, objectOf, textOf } from '../json.js'
import type { RequestSummary, SummaryMessage } from '../script.js'
import { type ReadMessage, readMessages } from './messages.js'

export function summarizeAnthropic(body: JsonObject): RequestSummary {
  const messages = readMessages(body)
  const lastUser = messages
    .filter(message => message.role === 'user' && blockText(message.blocks) !== '')
    .at(-1)
  return {
    model: textOf(body.model),
    stream: body.stream === true,
    system: typeof body.system === 'string' ? body.system : blockText(listOf(body.system).map(objectOf)),
    messages: messages.map(summarizeMessage),
    lastUserText: blockText(lastUser?.blocks ?? []),
    tools: listOf(body.tools).flatMap(tool => {
      const { name, input_schema: parameters } = objectOf(tool)
      return parameters === undefined ? [] : [{ name: textOf(name), parameters }]
    }),
    toolChoice: toolChoiceOf(body.tool_choice),
    body,
  }
}

function summarizeMessage(message: ReadMessage): SummaryMessage {
  const results = message.blocks.filter(block => block.type === 'tool_result')
  const calls = message.blocks.filter(block => block.type === 'tool_use')
  return {
    role: results.length > 0 ? 'tool' : message.role === 'assistant' ? 'assistant' : 'user',
    text: blockText(message.blocks),
    toolCalls: calls.map(block => ({ id: textOf(block.id), name: textOf(block.name), args: block.input })),
    toolResults: results.map(block => ({
      id: textOf(block.tool_use_id),
      content: resultText(block.content),
    })),
  }
}

function resultText(content: unknown): string {
  return typeof content === 'string' ? content : blockText(listOf(content).map(objectOf))
}

function blockText(blocks: readonly JsonObject[]): string {
  return blocks.map(block => (block.type === 'text' ? textOf(block.text) : '')).join('')
}

function toolChoiceOf(choice: unknown): RequestSummary['toolChoice'] {
  if (!isObject(choice)) return 'auto'
  if (choice.type === 'none') return 'none'
  if (choice.type === 'any') return 'required'
  return choice.type === 'tool' ? { name: textOf(choice.name) } : 'auto'
}
