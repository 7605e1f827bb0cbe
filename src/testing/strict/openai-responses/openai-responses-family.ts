import {
  type Answer,
  type AnswerRequest,
  type Family,
  type Frame,
  type Route,
  splitEvery,
} from '../family.js'
import { estimateTokens, isObject, type JsonObject, listOf, objectOf, textOf } from '../json.js'
import { openaiMedia } from '../media/media-words.js'
import { chatFault, chatNotFound, chatRefusal } from '../openai-chat/errors.js'
import { describeModel, routeModels } from '../openai-chat/openai-chat-family.js'
import { contentText, parsed } from '../openai-chat/summarize.js'
import type { RequestSummary, SummaryMessage } from '../script.js'
import { freshNonce, freshToken } from '../seal.js'
import { applyRules, type Rule } from '../violation.js'
import {
  callsHaveOutputs,
  callsUnique,
  fitsWindow,
  itemsExist,
  itemsUnique,
  outputsHaveCalls,
  previousExists,
  reasoningFollowed,
  reasoningGenuine,
  reasoningPresent,
  responsesOverflow,
} from './conversation-rules.js'
import { mintEncryptedContent, mintItemId, readItems, typeOf } from './items.js'
import { hasInput, hasModel, inputTypes, keysKnown, optionsInBounds, toolTypes } from './shape-rules.js'

const RULES: readonly Rule[] = [
  hasModel,
  hasInput,
  keysKnown,
  inputTypes,
  optionsInBounds,
  toolTypes,
  openaiMedia,
  previousExists,
  itemsExist,
  reasoningGenuine,
  itemsUnique,
  callsUnique,
  reasoningFollowed,
  reasoningPresent,
  outputsHaveCalls,
  callsHaveOutputs,
  fitsWindow,
]

/** OpenAI's Responses API. */
export const openaiResponsesFamily: Family = {
  baseUrl: origin => `${origin}/v1`,
  route: routeResponses,
  keyOf: headers => headers.authorization?.replace(/^Bearer /i, '') ?? headers['api-key'],
  judge: (body, context) => applyRules(RULES, body, context),
  summarize: summarizeResponses,
  render: renderResponses,
  countTokens: (body: JsonObject) => ({
    object: 'response.input_tokens',
    input_tokens: estimateTokens(body),
  }),
  listModels: (model, only) =>
    only === undefined ? { object: 'list', data: [describeModel(model)] } : describeModel(only),
  refusal: chatRefusal,
  fault: (fault, context) =>
    fault.kind === 'context-overflow' ? chatRefusal(responsesOverflow(), context) : chatFault(fault, context),
  streamError: () =>
    responsesFrame({
      type: 'error',
      sequence_number: 99,
      error: {
        type: 'server_error',
        code: 'server_error',
        message: 'The server had an error while processing your request. Sorry about that!',
        param: null,
      },
    }),
  notFound: chatNotFound,
}

function routeResponses(method: string, path: string): Route | undefined {
  if (method === 'POST' && path.endsWith('/responses')) return { kind: 'generate' }
  if (method === 'POST' && path.endsWith('/responses/input_tokens')) return { kind: 'count-tokens' }
  return routeModels(method, path)
}

function summarizeResponses(body: JsonObject): RequestSummary {
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

/** A response: whole, and as named events without `[DONE]`. */
/** One output item: how it looks when it is opened, the events in between, and how it ends. */
interface Writing {
  readonly opened: JsonObject
  readonly events: readonly JsonObject[]
  readonly done: JsonObject
}

function renderResponses(request: AnswerRequest): Answer {
  const writings = request.plan.finish === 'blocked' ? [] : itemsOf(request)
  const output = writings.map(writing => writing.done)
  const head = headOf(request)
  const ending = endingOf(request)
  const json = { ...head, ...ending, output, usage: usageOf(request) }
  if (request.body.store !== false) {
    const earlier = request.context.stored.get(String(request.body.previous_response_id)) ?? []
    request.remember(String(head.id), [...earlier, ...readItems(request.body), ...output])
  }
  return {
    json,
    unfinished: { ...head, status: 'in_progress', output, usage: null },
    frames: framesOf(head, writings, json),
  }
}

function headOf({ summary, body }: AnswerRequest): JsonObject {
  return {
    id: `resp_${freshNonce(48)}`,
    object: 'response',
    created_at: Math.floor(Date.now() / 1000),
    background: false,
    error: null,
    incomplete_details: null,
    instructions: body.instructions ?? null,
    max_output_tokens: body.max_output_tokens ?? null,
    model: summary.model,
    parallel_tool_calls: body.parallel_tool_calls ?? true,
    previous_response_id: body.previous_response_id ?? null,
    reasoning: { effort: objectOf(body.reasoning).effort ?? null, summary: null },
    store: body.store ?? true,
    temperature: body.temperature ?? 1,
    text: body.text ?? { format: { type: 'text' } },
    tool_choice: body.tool_choice ?? 'auto',
    tools: body.tools ?? [],
    top_p: body.top_p ?? 1,
    truncation: body.truncation ?? 'disabled',
    metadata: body.metadata ?? {},
  }
}

function endingOf({ plan }: AnswerRequest): JsonObject {
  if (plan.finish === 'blocked') return incomplete('content_filter')
  if (plan.finish === 'length' || plan.finish === 'malformed-call') return incomplete('max_output_tokens')
  return { status: 'completed', incomplete_details: null }
}

function incomplete(reason: string): JsonObject {
  return { status: 'incomplete', incomplete_details: { reason } }
}

function usageOf({ plan }: AnswerRequest): JsonObject {
  const { usage } = plan
  return {
    input_tokens: usage.input,
    input_tokens_details: { cached_tokens: usage.cached },
    output_tokens: usage.output,
    output_tokens_details: { reasoning_tokens: usage.reasoning },
    total_tokens: usage.input + usage.output,
  }
}

function itemsOf(request: AnswerRequest): Writing[] {
  const { plan, body } = request
  const reasoned = plan.thinking !== ''
  const identity = { group: freshNonce(20), stored: body.store !== false, reasoned }
  const writings: Writing[] = []
  if (reasoned) writings.push(reasoning(request, mintItemId({ ...identity, prefix: 'rs', index: 0 })))
  writings.push(...serverTools(request))
  if (plan.text !== '' || plan.toolCalls.length === 0) {
    writings.push(message(request, mintItemId({ ...identity, prefix: 'msg', index: writings.length })))
  }
  plan.toolCalls.forEach((_call, at) => {
    const id = mintItemId({ ...identity, prefix: 'fc', index: writings.length })
    writings.push(functionCall(request, id, at))
  })
  return writings
}

function reasoning({ plan, body, context }: AnswerRequest, id: string): Writing {
  const encrypted = listOf(body.include).includes('reasoning.encrypted_content')
  const maker = { maker: context.profile, account: context.account }
  const blob = (stage: 'added' | 'done') =>
    encrypted ? { encrypted_content: mintEncryptedContent(id, stage, freshNonce(16), maker) } : {}
  const shown = objectOf(body.reasoning).summary != null
  const part = { type: 'summary_text', text: plan.thinking }
  const place = { item_id: id, summary_index: 0 }
  const events = [
    {
      type: 'response.reasoning_summary_part.added',
      ...place,
      part: { ...part, text: '' },
    },
    ...splitEvery(plan.thinking, 16).map(delta => ({
      type: 'response.reasoning_summary_text.delta',
      ...place,
      delta,
    })),
    { type: 'response.reasoning_summary_text.done', ...place, text: plan.thinking },
    { type: 'response.reasoning_summary_part.done', ...place, part },
  ]
  return {
    opened: { id, type: 'reasoning', summary: [], ...blob('added') },
    events: shown ? events : [],
    done: { id, type: 'reasoning', summary: shown ? [part] : [], ...blob('done') },
  }
}

/** Searches and code that ran on the server. */
function serverTools({ plan, summary, body }: AnswerRequest): Writing[] {
  const includes = (name: string) => listOf(body.include).includes(name)
  const writings: Writing[] = []
  if (plan.sources.length > 0 && declares(body, 'web_search')) {
    const found = plan.sources.map(({ url }) => ({ type: 'url', url }))
    const sources = includes('web_search_call.action.sources') ? { sources: found } : {}
    const action = { type: 'search', query: summary.lastUserText, ...sources }
    writings.push(serverTool({ id: `ws_${freshNonce(48)}`, type: 'web_search_call', action }))
  }
  if (plan.code !== undefined && declares(body, 'code_interpreter')) {
    const logs = [{ type: 'logs', logs: plan.code.output }]
    const outputs = includes('code_interpreter_call.outputs') ? logs : null
    const container_id = `cntr_${freshNonce(48)}`
    const item = { id: `ci_${freshNonce(48)}`, type: 'code_interpreter_call', container_id }
    writings.push(serverTool({ ...item, code: plan.code.code, outputs }))
  }
  return writings
}

function serverTool(item: JsonObject): Writing {
  return { opened: { ...item, status: 'in_progress' }, events: [], done: { ...item, status: 'completed' } }
}

function declares(body: JsonObject, type: string): boolean {
  return listOf(body.tools).some(tool => objectOf(tool).type === type)
}

function message({ plan, body }: AnswerRequest, id: string): Writing {
  const item = { id, type: 'message', role: 'assistant', ...(plan.phase ? { phase: plan.phase } : {}) }
  const annotations = declares(body, 'web_search')
    ? plan.sources.map(({ url, title, text = plan.text }) => {
        const start_index = Math.max(0, plan.text.indexOf(text))
        return { type: 'url_citation', url, title, start_index, end_index: start_index + text.length }
      })
    : []
  const part = { type: 'output_text', annotations, logprobs: [], text: plan.text }
  const place = { item_id: id, content_index: 0 }
  return {
    opened: { ...item, status: 'in_progress', content: [] },
    events: [
      { type: 'response.content_part.added', ...place, part: { ...part, text: '' } },
      ...plan.deltas.map(delta => ({ type: 'response.output_text.delta', ...place, delta, logprobs: [] })),
      { type: 'response.output_text.done', ...place, text: plan.text, logprobs: [] },
      { type: 'response.content_part.done', ...place, part },
    ],
    done: { ...item, status: plan.finish === 'length' ? 'incomplete' : 'completed', content: [part] },
  }
}

function functionCall({ plan }: AnswerRequest, id: string, at: number): Writing {
  const call = plan.toolCalls[at]
  const broken = plan.finish === 'malformed-call'
  const whole = JSON.stringify(call?.args ?? {})
  const text = broken ? whole.slice(0, Math.max(1, whole.length - 2)) : whole
  const item = {
    id,
    type: 'function_call',
    call_id: call?.id ?? `call_${freshToken(24)}`,
    name: call?.name ?? '',
  }
  const deltas = splitEvery(text, 8).map(delta => ({
    type: 'response.function_call_arguments.delta',
    item_id: id,
    delta,
  }))
  const done = {
    type: 'response.function_call_arguments.done',
    item_id: id,
    name: item.name,
    arguments: text,
  }
  return {
    opened: { ...item, status: 'in_progress', arguments: '' },
    // A call that was cut off has no `done` for its arguments.
    events: broken ? deltas : [...deltas, done],
    done: { ...item, status: broken ? 'incomplete' : 'completed', arguments: text },
  }
}

function framesOf(head: JsonObject, writings: readonly Writing[], json: JsonObject): Frame[] {
  const begun = { ...head, status: 'in_progress', output: [], usage: null }
  const events: JsonObject[] = [
    { type: 'response.created', response: begun },
    { type: 'response.in_progress', response: begun },
  ]
  writings.forEach((writing, index) => {
    events.push({ type: 'response.output_item.added', output_index: index, item: writing.opened })
    for (const event of writing.events) events.push({ ...event, output_index: index })
    events.push({ type: 'response.output_item.done', output_index: index, item: writing.done })
  })
  events.push({ type: `response.${json.status}`, response: json })
  return events.map((event, at) => ({
    text: responsesFrame({ ...event, sequence_number: at }),
    terminal: at === events.length - 1,
  }))
}

function responsesFrame(event: JsonObject): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
}
