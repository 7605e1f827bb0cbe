/**
 * AG-UI, the Agent-User Interaction Protocol 1.0: a thread is a session, and one run of the protocol is the answer to one
 * request. A run of the agent that asks its client ends that answer; the next request brings what was asked for, and the
 * same run of the agent goes on.
 */
import { type Context, Hono } from 'hono'
import { defined } from '../../../base/defined.js'
import { stableJson } from '../../../base/stable-json.js'
import { AgentError } from '../../../errors.js'
import { digest, uuidOf } from '../../../runtime/derived-id.js'
import type { RunInput } from '../../../runtime/runtime.js'
import type { SessionKey, State } from '../../../session/message.js'
import type { Problem, RunItem } from '../../chat-protocol.js'
import { errorResponse } from '../../error-response.js'
import type { ServerContext, ServerEnv } from '../../server-context.js'
import {
  AskedQuestions,
  type AskedRun,
  abandonedAnswer,
  answerFrom,
  awaitAnswered,
  findAsked,
  giveAnswer,
} from '../asked-questions.js'
import { parsePartId, runPartId } from '../openai/client-calls.js'
import { titleOf } from '../openai/completion-request.js'
import { fillSession } from '../openai/throwaway.js'
import { badField } from '../read-body.js'
import { markOf } from '../repeated-request.js'
import { RunReaders, stopWhenLeft, unfinishedIn } from '../run-readers.js'
import { afterStoring, startStreamedRun } from '../start-run.js'
import { type AguiRequest, LOOKED_AT, readInput, requestOf } from './agui-input.js'
import { type Segment, streamAgui, toAguiMessages } from './agui-stream.js'
import { clientToolNames, INTERRUPT, runError } from './agui-writer.js'

export function aguiRoutes(context: ServerContext): Hono<ServerEnv> {
  const app = new Hono<ServerEnv>()
  const readers = new RunReaders()
  app.onError(error => aguiError(error, context))
  app.post('/agui', async c => {
    const request = await readInput(c, context)
    const thread = { request, key: context.keyOf(c, request.threadId), readers }
    const asked = await givenAnswers(context, thread)
    const news = request.sorted?.parts.length ? await newMessage(c, context, thread, asked) : undefined
    if (!news && !asked) checkResults(request)
    const segments = [...(asked ? [asked] : []), ...(news ?? [])]
    return segments.length > 0
      ? streamAgui(c, context, { ...thread, messages: request.messages, segments })
      : reopened(c, context, thread)
  })
  return app
}

/** The protocol leaves the body of an error status open: it is the event that a failed run ends with. */
export async function aguiError(error: unknown, { logger }: ServerContext): Promise<Response> {
  const answer = errorResponse(error, logger)
  const problem = (await answer.json()) as Problem
  const headers = new Headers(answer.headers)
  headers.set('content-type', 'application/json; charset=utf-8')
  return new Response(JSON.stringify(runError(problem)), { status: answer.status, headers })
}

interface Thread {
  request: AguiRequest
  key: SessionKey
  readers: RunReaders
}

/** What a client says to one question: the number of its event, and where in the request the answer is. */
interface ClientAnswer {
  id: string
  seq: number
  field: string
  /** Absent: the client abandons the question. */
  payload?: { value: unknown }
}

/** Gives a run that waits the answers of the request: the segment with what it does then. */
async function givenAnswers(context: ServerContext, { request, key }: Thread): Promise<Segment | undefined> {
  const { run, answers } = await askedRun(context, key, answersIn(request))
  const { logger } = context
  const unknown = answers.filter(({ seq }) => !run?.questions.has(seq)).map(({ id }) => id)
  if (unknown.length > 0)
    logger.warn('An AG-UI request answers what was not asked', { ids: unknown.slice(0, 10) })
  if (!run) return undefined
  const given = answers.flatMap(({ seq, field, payload }) => {
    const asked = run.questions.get(seq)
    if (!asked || asked.answeredSeq !== undefined) return []
    const { question } = asked
    const answer = payload ? answerFrom(question, payload.value, field) : abandonedAnswer(question)
    return [{ callId: question.callId, answer }]
  })
  const { runId, item, afterSeq: after, isAnswered } = run
  if (isAnswered || item.status === 'finished') return { runId, after, knownSeq: item.lastSeq }
  for (const { callId, answer } of given) await giveAnswer(context, runId, callId, answer)
  await awaitAnswered(context, runId, item.lastSeq)
  return { runId, after, answered: new Set(given.map(({ callId }) => callId)) }
}

type NamedAnswer = ClientAnswer & { runId: string }

/** Resume entries and results of tools, with the runs that their ids name. */
function answersIn({ resume, sorted }: AguiRequest): NamedAnswer[] {
  const entries = resume.map(({ interruptId: id, status, payload }, index) => ({
    ...{ id, prefix: INTERRUPT, field: `resume.${index}.payload` },
    ...(status === 'resolved' ? { payload: { value: payload } } : {}),
  }))
  const results = (sorted?.results ?? []).map(({ callId: id, response }) => ({
    ...{ id, prefix: 'call', field: 'messages', payload: { value: response } },
  }))
  return [...entries, ...results].map(({ prefix, ...answer }) => {
    const { runId = '', number = -1 } = parsePartId(prefix, answer.id) ?? {}
    return { ...answer, runId, seq: number }
  })
}

/** The run of the thread that the first known answer is for. Results of the agent's own tools are not answers. */
async function askedRun(
  context: ServerContext,
  { userId, appName, sessionId }: SessionKey,
  answers: readonly NamedAnswer[],
): Promise<{ run?: AskedRun; answers: readonly NamedAnswer[] }> {
  for (const runId of new Set(answers.map(each => each.runId).filter(id => id !== ''))) {
    const found = await context.hub.find(runId)
    const isOwn = found?.key.userId === userId && found.key.appName === appName
    if (!found || !isOwn || found.key.sessionId !== sessionId) continue
    const own = answers.filter(answer => answer.runId === runId)
    const run = await findAsked(
      context,
      found.item,
      own.map(({ seq }) => seq),
    )
    if (run)
      return { run, answers: answers.filter(({ id, seq }) => run.questions.has(seq) || isInterrupt(id)) }
  }
  return { answers: answers.filter(({ id }) => isInterrupt(id)) }
}

function isInterrupt(id: string): boolean {
  return parsePartId('call', id) === undefined
}

/** A client sends the results of the agent's own tools back with the history. Others must belong to a call. */
function checkResults({ sorted }: AguiRequest): void {
  const isOurs = (id: string) => parsePartId('call', id) !== undefined || /^message-\d+-\d+$/.test(id)
  const unknown = (sorted?.results ?? []).map(({ callId }) => callId).filter(id => !isOurs(id))
  if (unknown.length === 0) return
  throw badField('messages', `No call of this thread waits for these results: ${unknown.join(', ')}.`)
}

/** The segments of a new message: of the run that it has started before, or of a new one. */
async function newMessage(
  c: Context<ServerEnv>,
  context: ServerContext,
  thread: Thread,
  asked: Segment | undefined,
): Promise<Segment[]> {
  const { request, key } = thread
  const { fingerprint } = request
  const mark = { ...(await markOf(c, context)), fingerprint }
  const runId = mark.keyedRunId ?? runIdOf(key, request.runId)
  // A page that sends its message twice at once, with two run ids, has one run.
  return oneByOne(fingerprint, async () => {
    const known = await knownRun(context, key, { runId, fingerprint, isNew: request.regenerates })
    if (known) return known.runId === asked?.runId ? [] : [{ runId: known.runId, knownSeq: known.lastSeq }]
    await leaveEarlier(context, thread, asked?.runId)
    const input = await inputOf(context, thread)
    const started = await startStreamedRun(c, context, input, { mark, runId })
    return afterStoring(() => [{ runId: started.runId }])
  })
}

/** The last work of each name. */
const works = new Map<string, Promise<unknown>>()

async function oneByOne<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
  const mine = (works.get(name) ?? Promise.resolve()).catch(() => {}).then(work)
  works.set(name, mine)
  try {
    return await mine
  } finally {
    if (works.get(name) === mine) works.delete(name)
  }
}

const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i

/** Runs have UUIDs: a client's own id is the run's where it is one. */
function runIdOf({ appName, userId, sessionId }: SessionKey, id: string): string {
  return UUID.test(id) ? id.toLowerCase() : uuidOf(['agui', appName, userId, sessionId, id])
}

/**
 * The run of a message that was sent before: with the same run id; or with the same message id, for a client that has lost
 * its stream, which sends it with a new run id. With a new run id a client may ask for another answer.
 */
async function knownRun(
  context: ServerContext,
  key: SessionKey,
  { runId, fingerprint, isNew }: { runId: string; fingerprint: string; isNew: boolean },
): Promise<RunItem | undefined> {
  const { hub } = context
  const same = await hub.find(runId)
  const isSame = async (id: string) => (await requestOf(context, id)) === fingerprint
  if (same) {
    const isOwn = same.key.userId === key.userId && same.key.sessionId === key.sessionId
    if (isOwn && (await isSame(runId))) return same.item
    throw badField(
      'runId',
      'The runId was used before, for another message. Use a new one for a new message.',
    )
  }
  if (isNew) return undefined
  for (const item of await hub.list(key, LOOKED_AT)) if (await isSame(item.runId)) return item
  return undefined
}

/**
 * What becomes of earlier runs when a new message comes. One that asks its client is not passed over silently; one that
 * waits for the client's own tools only, or that the client has left, is stopped. Others are waited for.
 */
async function leaveEarlier(
  context: ServerContext,
  { key, request, readers }: Thread,
  answered = '',
): Promise<void> {
  const { hub } = context
  const [before] = request.messages
    .slice(0, -1)
    .filter(({ role }) => role !== 'activity')
    .slice(-1)
  for (const [index, { runId, status }] of (await unfinishedIn(context, key)).entries()) {
    if (runId === answered || status === 'queued') continue
    const questions = new AskedQuestions()
    let tools: string[] = []
    for await (const event of hub.stored(runId)) {
      questions.add(event)
      if (event.type === 'run-start') tools = clientToolNames(event.note)
    }
    const open = questions.list.filter(
      ({ question: { asks, tool } }) => asks !== 'result' || !tools.includes(tool),
    )
    if (open.length > 0) throw unanswered(open.map(({ seq }) => runPartId(INTERRUPT, runId, seq)))
    const isRead = request.messages.some(({ id }) => id.startsWith(`${runId}-`))
    if (questions.list.length > 0) await hub.stop(runId)
    else if (isRead || (index === 0 && before?.role === 'user')) stopWhenLeft(context, runId, readers)
  }
}

function unanswered(ids: readonly string[]): AgentError {
  const advice = 'Answer them with `resume`, or abandon them there with the status "cancelled".'
  const message = `The thread waits for answers to these interrupts: ${ids.join(', ')}. ${advice}`
  return new AgentError('invalid-argument', message, { details: { field: 'resume', interruptIds: ids } })
}

/** The input of a new run. Information for the model that the thread does not have yet is stored before the message. */
async function inputOf(context: ServerContext, { key, request }: Thread): Promise<RunInput> {
  const { runtime } = context
  const { clientTools, model, forwardedProps, parentRunId, sorted } = request
  const { parts = [], earlier = [], instructions = [] } = sorted ?? {}
  const title = titleOf(parts)
  if (earlier.length > 0) await fillSession(context, key, earlier, title)
  const contextDigest = digest([request.context])
  const isKnown = request.context === '' || (await newestContext(context, key)) === contextDigest
  const information = { role: 'system' as const, author: 'user', content: `[System: ${request.context}]` }
  const added = [...instructions, ...(isKnown ? [] : [{ ...information, timestamp: Date.now() }])]
  const session = await runtime.store.loadSession(key, { maxMessages: 1 })
  if (added.length > 0) {
    if (!session) await fillSession(context, key, [], title)
    const lease = await runtime.store.acquireLease(key, { waitMs: WAIT_MS })
    try {
      for (const message of added) await runtime.store.appendMessage(key, message, { fence: lease.fence })
    } finally {
      await lease.release()
    }
  }
  const tools = (clientTools?.tools ?? []).map(({ name }) => name)
  const agui = { tools, context: contextDigest, ...defined({ forwardedProps, parentRunId }) }
  return {
    ...{ sessionId: key.sessionId, parts, model, whenBusy: 'queue', clientTools, note: { agui } },
    stateDelta: changed(session?.state ?? {}, request.state),
  }
}

/** For a run that was just stopped, and holds the session for a moment. */
const WAIT_MS = 10_000

async function newestContext({ hub, runtime }: ServerContext, key: SessionKey): Promise<unknown> {
  const [newest] = await hub.list(key, 1)
  const events = newest ? await runtime.store.runs.readEvents(newest.runId, { limit: 2 }) : []
  const start = events.find(({ type }) => type === 'run-start') as
    | { note?: { agui?: { context?: unknown } } }
    | undefined
  return start?.note?.agui?.context
}

function changed(stored: State, sent: State): State | undefined {
  const news = Object.entries(sent).filter(([key, value]) => stableJson(stored[key]) !== stableJson(value))
  return news.length > 0 ? Object.fromEntries(news) : undefined
}

/** The most stored messages that a thread begins with when it is opened again. */
const SHOWN = 500

/** A request with nothing new: the messages of the thread, and the run that works on it, to its end. */
async function reopened(c: Context<ServerEnv>, context: ServerContext, thread: Thread): Promise<Response> {
  const { key, request } = thread
  const unfinished = await unfinishedIn(context, key)
  const runs = unfinished.length > 0 ? unfinished.toReversed() : await context.hub.list(key, 1)
  const [first] = runs
  if (!first)
    throw badField('messages', 'There is nothing to answer: the thread has no run, and no new message.')
  // The events of old runs are deleted; their messages are kept.
  const followed = runs.filter(({ status, lastSeq }) => status !== 'finished' || lastSeq > 0)
  const stored = await context.runtime.messages(key, { limit: SHOWN, beforeSeq: Number.MAX_SAFE_INTEGER })
  const afterSeq = (followed.length > 0 ? first.afterSeq : undefined) ?? Number.POSITIVE_INFINITY
  // A client that has messages keeps them, with their ids.
  const isEmpty = request.messages.length === 0
  const history = toAguiMessages(stored.filter(({ seq, role }) => seq <= afterSeq || role === 'user'))
  const segments = followed.map(({ runId, lastSeq }) => ({ runId, knownSeq: lastSeq }))
  return streamAgui(c, context, { ...thread, messages: isEmpty ? history : request.messages, segments })
}
