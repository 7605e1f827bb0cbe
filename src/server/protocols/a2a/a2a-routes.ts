/**
 * A2A, the Agent2Agent protocol: version 1.0 over JSON-RPC and REST, and 0.3 over JSON-RPC, which ADK's own agents speak. A
 * context is a session and a task is a run; a run that asks is a task that requires input.
 */
import { type Context, Hono } from 'hono'
import { isRecord } from '../../../base/is-record.js'
import { digest, uuidOf } from '../../../runtime/derived-id.js'
import type { SessionKey } from '../../../session/message.js'
import type { Problem, RunItem } from '../../chat-protocol.js'
import { readClientJson } from '../../client-json.js'
import { Refusal } from '../../refusal.js'
import type { ServerContext, ServerEnv } from '../../server-context.js'
import { dataFrames, type StreamChunk, streamResponse } from '../../sse.js'
import { checked, checkParts } from '../read-body.js'
import { type RequestMark, watchDelivery } from '../repeated-request.js'
import { followUntilAsked } from '../run-readers.js'
import {
  afterStoring,
  lastSeqOf,
  runHeaders,
  startRun,
  startStreamedRun,
  streamTruncated,
} from '../start-run.js'
import { type Answer, answerContext, answerTask } from './a2a-answers.js'
import { a2aErrorResponse, codeOf, restError, rpcFailure } from './a2a-error.js'
import { historyOf, RunTask } from './a2a-task.js'
import {
  type A2aVersion,
  a2aError,
  inputParts,
  NO_PUSH,
  NOT_CANCELABLE,
  SendParams,
  TASK_NOT_FOUND,
  type Task,
  TaskParams,
  taskToWire,
  toWire,
  UNKNOWN_METHOD,
  UNSUPPORTED,
  type Update,
  WRONG_VERSION,
} from './a2a-wire.js'

/** A request, with how its answer is written. */
interface Call {
  c: Context<ServerEnv>
  context: ServerContext
  version: A2aVersion
  params: unknown
  /** A result, or one event of a stream, in the envelope of the binding. */
  wrap(result: unknown): unknown
  /** A failure in a stream. */
  fail(problem: Problem): StreamChunk
}

export function a2aRoutes(context: ServerContext): Hono<ServerEnv> {
  const app = new Hono<ServerEnv>()
  app.onError((error, c) => a2aErrorResponse(error, context, c))
  app.post('/a2a', c => rpc(c, context))
  const rest = (c: Context<ServerEnv>, params: unknown): Call => {
    checkVersion(c)
    const fail = (problem: Problem) => {
      const frame = `event: error\ndata: ${JSON.stringify(restError(problem))}\n\n`
      return { bytes: Buffer.from(frame), events: 1 }
    }
    return { c, context, version: '1.0', params, wrap: result => result, fail }
  }
  app.post('/a2a/:operation{message:(send|stream)}', async c => {
    const call = rest(c, await readClientJson(c))
    return c.req.path.endsWith(':send') ? send(call) : stream(call)
  })
  app.get('/a2a/tasks', c => list(rest(c, c.req.query())))
  app.get('/a2a/tasks/:id', c => get(rest(c, { ...c.req.query(), id: c.req.param('id') })))
  app.post('/a2a/tasks/:id{[^/:]+:(cancel|subscribe)}', c => {
    const [id, operation] = c.req.param('id').split(':')
    const call = rest(c, { id })
    return operation === 'cancel' ? cancel(call) : subscribe(call)
  })
  return app
}

type Operation = (call: Call) => Promise<Response>

const METHODS: Readonly<Record<string, readonly [A2aVersion, Operation]>> = {
  SendMessage: ['1.0', send],
  SendStreamingMessage: ['1.0', stream],
  GetTask: ['1.0', get],
  CancelTask: ['1.0', cancel],
  SubscribeToTask: ['1.0', subscribe],
  ListTasks: ['1.0', list],
  'message/send': ['0.3', send],
  'message/stream': ['0.3', stream],
  'tasks/get': ['0.3', get],
  'tasks/cancel': ['0.3', cancel],
  'tasks/resubscribe': ['0.3', subscribe],
}

async function rpc(c: Context<ServerEnv>, context: ServerContext): Promise<Response> {
  const body = await readClientJson(c)
  if (!isRecord(body) || body.jsonrpc !== '2.0' || typeof body.method !== 'string')
    throw a2aError(-32600, 'The body must be one request of JSON-RPC 2.0.')
  checkVersion(c)
  const { id = null, method, params } = body
  const [version, operation] = (Object.hasOwn(METHODS, method) ? METHODS[method] : undefined) ?? []
  if (/push_?notification/i.test(method)) throw noPush()
  if (!version || !operation) throw a2aError(UNKNOWN_METHOD, `There is no method "${method.slice(0, 100)}".`)
  const wrap = (result: unknown) => ({ jsonrpc: '2.0', id, result })
  const fail = (problem: Problem) => dataFrames([rpcFailure(id, problem, codeOf(problem))])
  return operation({ c, context, version, params, wrap, fail })
}

/** Clients of 0.3 send no version. */
function checkVersion(c: Context<ServerEnv>): void {
  const version = c.req.header('a2a-version') ?? ''
  if (/^$|^(0\.3|1\.0)(\.\d+)?$/.test(version)) return
  throw a2aError(
    WRONG_VERSION,
    `The version ${version.slice(0, 20)} of A2A is not spoken here: 1.0 and 0.3 are.`,
  )
}

function noPush(): Error {
  return a2aError(NO_PUSH, 'Push notifications are not supported: stream, or ask for the task.')
}

async function send(call: Call): Promise<Response> {
  const { c, context, version, wrap } = call
  const params = checkedSend(call)
  const answer = await begin(call, params, startRun)
  return afterStoring(async () => {
    void watchDelivery(c, answer.runId)
    const { returnImmediately, blocking, historyLength } = params.configuration ?? {}
    const isBlocking = returnImmediately !== true && blocking !== false
    const task = isBlocking
      ? await finished(context, answer, c.req.raw.signal)
      : await taskOf(context, answer)
    const whole = await withHistory(context, answer, task, historyLength ?? undefined)
    const sent = version === '1.0' ? { task: whole } : taskToWire(version, whole)
    return c.json(wrap(sent), 200, runHeaders({ sessionId: answer.key.sessionId, runId: answer.runId }))
  })
}

async function stream(call: Call): Promise<Response> {
  const answer = await begin(call, checkedSend(call), startStreamedRun)
  return afterStoring(() => streamed(call, answer))
}

async function get(call: Call): Promise<Response> {
  const { c, context, version, wrap } = call
  const { id, historyLength } = checked(TaskParams, call.params)
  const run = await ownTask(call, id)
  const answer = { key: run.key, runId: run.item.runId, knownSeq: run.item.lastSeq }
  const task = await withHistory(context, answer, await taskOf(context, answer), historyLength ?? undefined)
  return c.json(wrap(taskToWire(version, task)))
}

async function cancel(call: Call): Promise<Response> {
  const { c, context, version, wrap } = call
  const { key, item } = await ownTask(call, checked(TaskParams, call.params).id)
  if (item.status === 'finished')
    throw a2aError(NOT_CANCELABLE, 'The task has ended, so it cannot be canceled.')
  await context.hub.stop(item.runId)
  const { signal } = c.req.raw
  const task = await finished(context, { key, runId: item.runId, knownSeq: 0 }, signal, true)
  return c.json(wrap(taskToWire(version, task)))
}

async function subscribe(call: Call): Promise<Response> {
  const { key, item } = await ownTask(call, checked(TaskParams, call.params).id)
  if (item.status === 'finished' && call.version === '1.0')
    throw a2aError(UNSUPPORTED, 'The task has ended: GetTask has its result.')
  return streamed(call, { key, runId: item.runId, knownSeq: item.lastSeq })
}

/** The tasks of a context, newest first. */
async function list({ c, context, params, wrap }: Call): Promise<Response> {
  const contextId = isRecord(params) ? params.contextId : undefined
  if (typeof contextId !== 'string' || contextId === '')
    throw a2aError(UNSUPPORTED, 'Tasks are listed by their context: send a contextId.')
  const key = context.keyOf(c, contextId)
  const tasks: Task[] = []
  for (const { runId, lastSeq } of await context.hub.list(key))
    tasks.push(await taskOf(context, { key, runId, knownSeq: lastSeq }))
  return c.json(wrap({ tasks, nextPageToken: '', pageSize: tasks.length, totalSize: tasks.length }))
}

function checkedSend({ params, context }: Call): SendParams {
  const request = checked(SendParams, params)
  checkParts(request.message, 'message', context.limits)
  if (request.tenant) throw a2aError(UNSUPPORTED, 'This server has no tenants: omit it.')
  const { taskPushNotificationConfig, pushNotificationConfig } = request.configuration ?? {}
  if (taskPushNotificationConfig || pushNotificationConfig) throw noPush()
  return request
}

/** The caller's run. Those of others look like those that do not exist. */
async function ownTask({ c, context }: Call, id: string): Promise<{ key: SessionKey; item: RunItem }> {
  const found = UUID.test(id) ? await context.hub.find(id.toLowerCase()) : undefined
  const isOwn = found?.key.userId === context.userOf(c) && found.key.appName === context.info.app
  if (found && isOwn) return found
  throw new Refusal('not-found', 'There is no such task.', { details: { a2aCode: TASK_NOT_FOUND } })
}

const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i

/** The run that answers a message: one that asks, one that the message has started before, or a new one. */
async function begin(call: Call, { message, metadata }: SendParams, start: typeof startRun): Promise<Answer> {
  const { c, context } = call
  const { app } = context.info
  const named = [app, context.userOf(c), message.messageId]
  if (message.taskId) return answerTask(context, message, await ownTask(call, message.taskId))
  const key = context.keyOf(c, message.contextId || uuidOf(['a2a context', ...named]))
  const runId = uuidOf(['a2a', ...named])
  const fingerprint = digest(['a2a', ...named, key.sessionId, JSON.stringify(message.parts)])
  const known = await context.hub.find(runId)
  if (known) {
    const first = await context.runtime.store.runs.readEvents(runId, { limit: 2 })
    if (first.some(({ request }) => request !== undefined && request !== fingerprint))
      throw a2aError(-32602, 'The messageId was sent before, with another message. Use a new one.')
    return { key: known.key, runId, knownSeq: known.item.lastSeq }
  }
  const parts = inputParts(message)
  const answer = await answerContext(context, message, key)
  if (answer) return answer
  const mark: RequestMark = { fingerprint, isRetry: false }
  const note = { a2a: { messageId: message.messageId, metadata: metadata ?? message.metadata ?? null } }
  const input = { sessionId: key.sessionId, parts, whenBusy: 'queue' as const, note }
  const started = await start(c, context, input, { mark, runId })
  return { key, runId: started.runId, knownSeq: 0 }
}

function emptyTask({ key, runId, answered }: Answer): RunTask {
  return new RunTask({ taskId: runId, contextId: key.sessionId }, answered)
}

/** The task as it is stored. */
async function taskOf({ hub }: ServerContext, answer: Answer): Promise<Task> {
  const task = emptyTask(answer)
  for await (const event of hub.stored(answer.runId)) task.add(event)
  return task.task()
}

/** The task when it has ended or asks. */
async function finished(
  { hub }: ServerContext,
  answer: Answer,
  signal: AbortSignal,
  isStopped = false,
): Promise<Task> {
  const task = emptyTask(answer)
  const isAsking = () => !isStopped && task.isAsking
  const batches = isStopped
    ? hub.followBatches(answer.runId, { signal, withoutVoid: true })
    : followUntilAsked(hub, answer.runId, { signal, isAsking })
  for await (const { events } of batches) for (const event of events) task.add(event)
  return task.task()
}

async function withHistory(
  context: ServerContext,
  { key, runId }: Answer,
  task: Task,
  length = Number.POSITIVE_INFINITY,
): Promise<Task> {
  const run = await context.hub.find(runId)
  if (length === 0 || run?.item.afterSeq === undefined) return task
  const beforeSeq = (await lastSeqOf(context, key, runId)) + 1
  const stored = await context.runtime.messages(key, {
    afterSeq: run.item.afterSeq,
    beforeSeq,
    limit: HISTORY,
  })
  const messages = historyOf(stored, { taskId: runId, contextId: key.sessionId })
  return { ...task, history: length === Number.POSITIVE_INFINITY ? messages : messages.slice(-length) }
}

/** The most stored messages of a task that are sent with it. */
const HISTORY = 500

function streamed(call: Call, answer: Answer): Response {
  const { c, context } = call
  void watchDelivery(c, answer.runId)
  return streamResponse(c, context, {
    headers: runHeaders({ sessionId: answer.key.sessionId, runId: answer.runId }),
    source: signal => frames(call, answer, signal),
  })
}

/** The task as far as it is known, then its updates, to its end or until it asks. */
async function* frames(
  { context, version, wrap, fail }: Call,
  answer: Answer,
  signal: AbortSignal,
): AsyncGenerator<StreamChunk> {
  const { hub } = context
  const { runId, knownSeq } = answer
  const task = emptyTask(answer)
  const framed = (updates: readonly Update[]) => dataFrames(updates.map(each => wrap(toWire(version, each))))
  let isSent = knownSeq === 0
  if (isSent) yield framed([{ task: task.task() }])
  for await (const { events } of followUntilAsked(hub, runId, { signal, isAsking: () => task.isAsking })) {
    const sent: Update[] = []
    for (const event of events) {
      const made = task.add(event)
      if (isSent) sent.push(...made)
      if (isSent || event.seq < knownSeq) continue
      isSent = true
      sent.push({ task: task.task() })
    }
    if (sent.length > 0) yield framed(sent)
  }
  if (signal.aborted || task.hasEnded) return
  yield task.isAsking ? framed(task.asking()) : fail(streamTruncated())
}
