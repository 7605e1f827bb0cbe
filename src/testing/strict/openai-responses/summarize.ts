import { isObject, type JsonObject, listOf, objectOf, textOf } from '../json.js'
import { contentText, parsed } from '../openai-chat/summarize.js'
import type { RequestSummary, SummaryMessage } from '../script.js'
import { readItems, typeOf } from './items.js'

export function summarizeResponses(body: JsonObject): RequestSummary {
  const items = readItems(body)
  const lastUser = items.filter(item => item.role === 'user').at(-1)
  const system = items.filter(item => item.role === 'system' || item.role === 'developer')
  return {
    model: textOf(body.model),
    stream: body.stream === true,
    system: [textOf(body.instructions), ...system.map(item => contentText(item.content))]
      .filter(text => text !== '')
      .join('\n'),
    messages: items.flatMap(summarizeItem),
    lastUserText: contentText(lastUser?.content),
    tools: listOf(body.tools).flatMap(tool => {
      const { type, name, parameters } = objectOf(tool)
      return type === 'function' ? [{ name: textOf(name), parameters }] : []
    }),
    toolChoice: toolChoiceOf(body.tool_choice),
    body,
  }
}

function summarizeItem(item: JsonObject): SummaryMessage[] {
  const empty = { text: '', toolCalls: [], toolResults: [] }
  const id = { id: textOf(item.call_id) }
  switch (typeOf(item)) {
    case 'function_call': {
      const call = { ...id, name: textOf(item.name), args: parsed(item.arguments) }
      return [{ ...empty, role: 'assistant', toolCalls: [call] }]
    }
    case 'function_call_output':
      return [{ ...empty, role: 'tool', toolResults: [{ ...id, content: contentText(item.output) }] }]
    case 'message': {
      if (item.role !== 'user' && item.role !== 'assistant') return []
      return [{ ...empty, role: item.role, text: contentText(item.content) }]
    }
    default:
      return []
  }
}

function toolChoiceOf(choice: unknown): RequestSummary['toolChoice'] {
  if (choice === 'none') return 'none'
  if (choice === 'required') return 'required'
  const name = isObject(choice) ? textOf(choice.name) : ''
  return name === '' ? 'auto' : { name }
}
