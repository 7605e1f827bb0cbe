import { isObject, type JsonObject, listOf, objectOf } from './json.js'
import type { RequestSummary, ScriptStep, SummaryMessage } from './script.js'

const ASKS_FOR_A_TOOL = /\b(use|call|run|invoke|tool|search|find|look up|check|weather|calculate)\b/i

/**
 * The model that answers when there is no script: it calls a tool once when it is asked to, reports what the
 * tool said, and otherwise repeats what it heard.
 */
export function defaultModel(request: RequestSummary): ScriptStep {
  const last = request.messages.at(-1)
  if (last !== undefined && last.toolResults.length > 0) return { text: reportResults(last) }
  const name = toolAskedFor(request)
  if (name === undefined) return { text: `You said: ${request.lastUserText || '(nothing)'}` }
  const tool = request.tools.find(candidate => candidate.name === name)
  return { toolCalls: [{ name, args: objectOf(plausibleValue(tool?.parameters, request.lastUserText)) }] }
}

function reportResults(message: SummaryMessage): string {
  return message.toolResults
    .map(result => `The tool${result.name ? ` ${result.name}` : ''} returned: ${result.content}`)
    .join('\n')
}

function toolAskedFor(request: RequestSummary): string | undefined {
  const { toolChoice, tools, lastUserText } = request
  if (toolChoice === 'none' || tools.length === 0) return undefined
  if (typeof toolChoice === 'object') return toolChoice.name
  const mentioned = tools.find(tool => tool.name !== '' && lastUserText.includes(tool.name))
  if (mentioned !== undefined) return mentioned.name
  return toolChoice === 'required' || ASKS_FOR_A_TOOL.test(lastUserText) ? tools[0]?.name : undefined
}

/** A value that a JSON schema (or Gemini's upper-case subset of one) accepts. */
function plausibleValue(schema: unknown, hint: string): unknown {
  if (!isObject(schema)) return {}
  if (schema.default !== undefined) return schema.default
  const choices = listOf(schema.enum)
  if (choices.length > 0) return choices[0]
  const alternative = listOf(schema.anyOf)[0] ?? listOf(schema.oneOf)[0]
  if (alternative !== undefined) return plausibleValue(alternative, hint)
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type
  switch (String(type).toLowerCase()) {
    case 'string':
      return hint.slice(0, 80) || 'example'
    case 'number':
    case 'integer':
      return typeof schema.minimum === 'number' ? schema.minimum : 1
    case 'boolean':
      return true
    case 'array':
      return []
    case 'null':
      return null
    default:
      return plausibleObject(schema, hint)
  }
}

function plausibleObject(schema: JsonObject, hint: string): JsonObject {
  const properties = objectOf(schema.properties)
  const required = new Set(listOf(schema.required))
  const names = Object.keys(properties).filter(name => required.size === 0 || required.has(name))
  return Object.fromEntries(names.map(name => [name, plausibleValue(properties[name], hint)]))
}
