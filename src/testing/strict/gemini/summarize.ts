import { isObject, type JsonObject, listOf, objectOf, textOf } from '../json.js'
import type { RequestSummary, SummaryMessage } from '../script.js'
import { field, type ReadContent, readContents, readDeclarations } from './contents.js'

export function summarizeGemini(body: JsonObject, model: string, stream: boolean): RequestSummary {
  const contents = readContents(body)
  const lastUser = contents
    .filter(content => content.role === 'user' && content.responses.length === 0)
    .at(-1)
  return {
    model,
    stream,
    system: joinText(listOf(objectOf(field(body, 'systemInstruction')).parts)),
    messages: contents.map(summarizeContent),
    lastUserText: lastUser === undefined ? '' : joinText(lastUser.parts.map(part => part.raw)),
    tools: readDeclarations(body).map(({ declaration }) => ({
      name: textOf(declaration.name),
      parameters: field(declaration, 'parametersJsonSchema') ?? declaration.parameters,
    })),
    toolChoice: toolChoiceOf(body),
    body,
  }
}

function summarizeContent(content: ReadContent): SummaryMessage {
  const role = content.responses.length > 0 ? 'tool' : content.role === 'model' ? 'assistant' : 'user'
  return {
    role,
    text: joinText(content.parts.filter(part => part.raw.thought !== true).map(part => part.raw)),
    toolCalls: content.calls.map(({ call }) => ({
      ...identity(call),
      name: textOf(call?.name),
      args: call?.args ?? {},
    })),
    toolResults: content.responses.map(({ response }) => ({
      ...identity(response),
      name: textOf(response?.name),
      content: JSON.stringify(response?.response ?? null),
    })),
  }
}

function identity(part: JsonObject | undefined): { id?: string } {
  return typeof part?.id === 'string' ? { id: part.id } : {}
}

function joinText(parts: readonly unknown[]): string {
  return parts.map(part => textOf(objectOf(part).text)).join('')
}

function toolChoiceOf(body: JsonObject): RequestSummary['toolChoice'] {
  const config = field(objectOf(field(body, 'toolConfig')), 'functionCallingConfig')
  if (!isObject(config)) return 'auto'
  const mode = textOf(config.mode).toUpperCase()
  if (mode === 'NONE') return 'none'
  if (mode !== 'ANY') return 'auto'
  const only = listOf(field(config, 'allowedFunctionNames'))[0]
  return typeof only === 'string' ? { name: only } : 'required'
}
