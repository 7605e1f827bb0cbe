/** OpenAI's Responses API: a response is an answer of a run, and `previous_response_id` names its session. */

import { type Context, Hono } from 'hono'
import { AgentError } from '../../../errors.js'
import { readClientJson } from '../../client-json.js'
import { Refusal } from '../../refusal.js'
import type { ServerContext, ServerEnv } from '../../server-context.js'
import { checkMessages, readBody } from '../read-body.js'
import { watchDelivery } from '../repeated-request.js'
import { afterStoring, lastSeqOf } from '../start-run.js'
import { type AgentRequest, beginRun, sessionIn } from './begin-run.js'
import { type ClientRun, digestOf, findClientRun, parsePartId, runPartId } from './client-calls.js'
import { modelOf, sortMessages } from './completion-request.js'
import { jsonAnswer } from './json-answer.js'
import { openaiErrorResponse } from './openai-error.js'
import { refuseUnknown } from './request-options.js'
import { headersOf, storedResponse, streamed, whole } from './response-answer.js'
import { answerOfItem, type ResponseHead, ResponseWriter, toFunctionCall } from './response-writer.js'
import {
  echoOf,
  InputItem,
  itemsToMessages,
  type ResponseOptions,
  ResponseRequest,
  responseOptions,
} from './responses-request.js'
import { mountStoredResponses } from './stored-responses.js'

export function responsesRoutes(context: ServerContext): Hono<ServerEnv> {
  const app = new Hono<ServerEnv>()
  app.onError(error => openaiErrorResponse(error, context))
  app.post('/v1/responses', c => respond(c, context))
  mountStoredResponses(app, context)
  return app
}

async function respond(c: Context<ServerEnv>, context: ServerContext): Promise<Response> {
  refuseUnknown(await readClientJson(c, { optional: true }), ResponseRequest)
  const request = await readBody(c, ResponseRequest)
  const options = responseOptions(request)
  const echo = echoOf(request)
  const run = await beginRun(c, context, await agentRequest(c, context, request, { options, echo }))
  return afterStoring(async () => {
    const found = await findClientRun(context, run.started.runId, context.userOf(c))
    const head: ResponseHead = {
      ...{ runId: run.started.runId, afterSeq: run.afterSeq, echo },
      createdAt: Math.floor((found?.item.startedAt ?? Date.now()) / 1000),
    }
    if (request.background && !request.stream) {
      const response = { ...new ResponseWriter(head).response(), status: 'queued', model: found?.model ?? '' }
      return c.json(response, 200, headersOf(run))
    }
    const isStreamed = request.stream === true
    run.leaveOn(c.req.raw.signal)
    run.deliveredBy(watchDelivery(c, run.started.runId, () => run.isCut))
    const steps = options.isStructured ? jsonAnswer(run.steps(), { isStreamed }) : run.steps()
    return request.stream
      ? streamed(c, context, { run, steps, head })
      : whole(c, run, steps, new ResponseWriter(head))
  })
}

/** The request with its session: the one that it names, that of an earlier response, or one of its own. */
async function agentRequest(
  c: Context<ServerEnv>,
  context: ServerContext,
  request: ResponseRequest,
  { options, echo }: { options: ResponseOptions; echo: Record<string, unknown> },
): Promise<AgentRequest> {
  const { instructions, previous_response_id: previousId } = request
  const { clientTools, asked, schema, isStructured } = options
  const items = await inputItems(c, context, request)
  const place = await sessionOf(c, context, options, previousId ?? undefined)
  const system = instructions ? [{ role: 'system' as const, content: instructions }] : []
  // The instructions of a session's newest run are there.
  const isKnown = place.previous?.note.response?.instructions === instructions
  const sorted = await sortMessages([...(isKnown ? [] : system), ...itemsToMessages(items)])
  const hasResults = sorted.results.length > 0
  if (place.previous && !hasResults && isContinued(place.previous, previousId ?? '')) throw olderResponse()
  const model = modelOf(request, context.info)
  const { metadata, user, safety_identifier } = request
  return {
    ...{ ...sorted, ...place, isKept: options.isKept, model, options: { clientTools, ...asked }, schema },
    note: {
      tools: (clientTools?.tools ?? []).map(({ name }) => name),
      history: sorted.history,
      options: digestOf({ model, clientTools, asked, instructions, metadata, user, safety_identifier }),
      response: { ...echo, ...(isStructured ? { isStructured } : {}) },
    },
    stream: request.stream === true,
  }
}

interface Place extends Pick<AgentRequest, 'sessionId' | 'forkOf'> {
  /** The run that the request continues from. */
  previous?: ClientRun
}

async function sessionOf(
  c: Context<ServerEnv>,
  context: ServerContext,
  { conversation }: ResponseOptions,
  previousId: string | undefined,
): Promise<Place> {
  if (previousId === undefined) {
    const sessionId = conversation ?? sessionIn(c)
    const isThere =
      conversation && (await context.runtime.store.describeSession(context.keyOf(c, conversation)))
    if (conversation !== undefined && !isThere)
      throw new Refusal('not-found', `Conversation with id '${conversation}' not found.`)
    return { sessionId, ...(sessionId === undefined ? {} : await newestRun(c, context, sessionId)) }
  }
  const id = parsePartId('resp', previousId)
  const previous = id && (await findClientRun(context, id.runId, context.userOf(c)))
  if (!previous) throw noPrevious(previousId)
  const [newest] = await context.hub.list(previous.key, 1)
  if (newest?.runId === previous.runId) return { sessionId: previous.key.sessionId, previous }
  const throughSeq = await lastSeqOf(context, previous.key, previous.runId)
  return { sessionId: undefined, forkOf: { key: previous.key, throughSeq }, previous }
}

async function newestRun(
  c: Context<ServerEnv>,
  context: ServerContext,
  sessionId: string,
): Promise<Pick<Place, 'previous'>> {
  const [newest] = await context.hub.list(context.keyOf(c, sessionId), 1)
  const previous = newest && (await findClientRun(context, newest.runId, context.userOf(c)))
  return previous ? { previous } : {}
}

/** Whether results have continued the run after that response. */
function isContinued({ calls }: ClientRun, previousId: string): boolean {
  const { number = 0 } = parsePartId('resp', previousId) ?? {}
  return (
    previousId !== '' &&
    calls.some(call => call.seq > number && call.answeredSeq !== undefined && !call.isOwn)
  )
}

function olderResponse(): AgentError {
  const message =
    'Results have continued this response. Send the id of the newest response of its run as `previous_response_id`.'
  return new AgentError('invalid-argument', message, { details: { field: 'previous_response_id' } })
}

function noPrevious(id: string): AgentError {
  const details = { field: 'previous_response_id', openaiCode: 'previous_response_not_found' }
  return new AgentError('invalid-argument', `Previous response with id '${id}' not found.`, { details })
}

async function inputItems(
  c: Context<ServerEnv>,
  context: ServerContext,
  { input }: ResponseRequest,
): Promise<InputItem[]> {
  if (typeof input === 'string') return [{ role: 'user', content: input }]
  const items = await checkMessages(input ?? [], InputItem, context.limits, 'input')
  const resolved: InputItem[] = []
  for (const item of items) {
    const isReference = !('role' in item) && (item.type ?? 'item_reference') === 'item_reference'
    if (!isReference || !('id' in item)) resolved.push(item)
    else resolved.push(...(await referenced(c, context, item.id)))
  }
  return resolved
}

/** An item that an earlier response has. Reasoning stays with its run. */
async function referenced(c: Context<ServerEnv>, context: ServerContext, id: string): Promise<InputItem[]> {
  const [prefix = ''] = id.split('_', 1)
  const found = ['msg', 'rs', 'fc'].includes(prefix) ? parsePartId(prefix, id) : undefined
  const run = found && (await findClientRun(context, found.runId, context.userOf(c)))
  if (!run || !found) throw noItem(id)
  if (prefix === 'rs') return [{ type: 'reasoning' }]
  if (prefix === 'fc') {
    const call = run.calls[found.number]
    if (!call) throw noItem(id)
    const callId = runPartId('call', run.runId, found.number)
    const {
      call_id,
      name,
      arguments: args,
    } = toFunctionCall(run.runId, { ...call, callId, number: found.number })
    return [{ type: 'function_call', call_id, name, arguments: args }]
  }
  const { output } = await storedResponse(context, run, answerOfItem(found.number))
  const message = (output as { id: string; content?: { text: string }[] }[]).find(item => item.id === id)
  if (!message) throw noItem(id)
  return [{ role: 'assistant', content: (message.content ?? []).map(({ text }) => text).join('') }]
}

function noItem(id: string): AgentError {
  const details = { field: 'input', openaiCode: 'item_not_found' }
  const message = `Item with id '${id}' not found. Items are not persisted when \`store\` is set to false.`
  return new AgentError('invalid-argument', message, { details })
}
