/** ADK's `/run` and `/run_sse`. */

import type { Context, Hono } from 'hono'
import { z } from 'zod'
import { isRecord } from '../../../base/is-record.js'
import { orTimeout } from '../../../base/pause.js'
import { messageOf } from '../../../errors.js'
import { camelCase } from '../../../formats/adk-events.js'
import type { RunInput } from '../../../runtime/runtime.js'
import type { SessionKey } from '../../../session/message.js'
import type { StartedRun } from '../../chat-protocol.js'
import { clientState, JsonObject } from '../../client-json.js'
import { notFound } from '../../refusal.js'
import type { ServerContext, ServerEnv } from '../../server-context.js'
import { dataFrames, streamResponse } from '../../sse.js'
import { badField, checkParts, readBody } from '../read-body.js'
import { markOf, runOfRequest, watchDelivery } from '../repeated-request.js'
import { RunReaders } from '../run-readers.js'
import {
  afterStoring,
  type RunRequestOf,
  runHeaders,
  startRun,
  startStreamedRun,
  waitingRun,
} from '../start-run.js'
import { ownKey, ownSession } from './adk-place.js'
import {
  type AdkEvent,
  type AdkRunOptions,
  type AdkRunStep,
  adkRunEvents,
  askedBy,
  errorEvent,
  isAsked,
} from './adk-run.js'

/** `/run` and `/run_sse`. The run continues when the caller disconnects; its result is in the session. */
export function mountAdkRuns(app: Hono<ServerEnv>, context: ServerContext): void {
  const readers = new RunReaders()
  app.post('/run', async c => {
    const { key, input } = await readRun(c, context)
    const answered = await answerAsked(context, key, input)
    if (answered)
      return afterStoring(() => collect(c, context, answered, { key, readers, answered: answered.answered }))
    const start = (request: RunRequestOf) => startRun(c, context, input, request)
    const started = await startOnce(c, context, { key, readers, start })
    return afterStoring(() => collect(c, context, started, { key, readers }))
  })
  app.post('/run_sse', async c => {
    const { key, input, streaming } = await readRun(c, context)
    const start = (request: RunRequestOf) => startStreamedRun(c, context, input, request)
    const started: StartedRun & { answered?: readonly string[] } =
      (await answerAsked(context, key, input)) ?? (await startOnce(c, context, { key, readers, start }))
    const { runId, answered } = started
    return afterStoring(() =>
      streamResponse(c, context, {
        headers: runHeaders(started),
        source: signal => frames(context, { key, runId, streaming, signal, answered, readers }),
      }),
    )
  })
}

/**
 * Passes answers to confirmations that Lango asked for in ADK's name to their run, which goes on. The same answers again
 * change nothing and get the same events. A message cannot hold such answers and something else.
 */
async function answerAsked(
  context: ServerContext,
  key: SessionKey,
  { parts = [] }: RunInput,
): Promise<(StartedRun & { answered: readonly string[] }) | undefined> {
  const answers = parts.flatMap(({ functionResponse }) => {
    const asked = askedBy(functionResponse?.id)
    return asked ? [{ ...asked, isConfirmed: isConfirmed(functionResponse?.response) }] : []
  })
  const [first] = answers
  if (!first) return undefined
  if (answers.length < parts.length || answers.some(({ runId }) => runId !== first.runId))
    throw badField('newMessage', 'An answer to a confirmation is a message of its own, without other parts.')
  const run = await context.hub.find(first.runId)
  if (run?.key.userId !== key.userId || run.key.sessionId !== key.sessionId)
    throw notFound(`run "${first.runId}" in this session that asked for a confirmation`)
  const open = new Set((await context.hub.questions(first.runId)).map(({ callId }) => callId))
  for (const { callId, isConfirmed: isAllowed } of answers)
    if (open.has(callId)) await context.hub.approve(first.runId, callId, isAllowed ? 'once' : 'no')
  return { runId: first.runId, sessionId: key.sessionId, answered: answers.map(({ callId }) => callId) }
}

/** ADK's clients send the fields, or, as ADK for Python does, their JSON in `response`. */
function isConfirmed(response: unknown): boolean {
  if (!isRecord(response)) return false
  if (typeof response.response !== 'string') return response.confirmed === true
  try {
    return isConfirmed(JSON.parse(response.response))
  } catch {
    return false
  }
}

interface NewRun {
  key: SessionKey
  readers: RunReaders
  start(request: RunRequestOf): Promise<StartedRun>
}

/** The run that a request repeats, or a new one. */
async function startOnce(
  c: Context<ServerEnv>,
  context: ServerContext,
  { key, readers, start }: NewRun,
): Promise<StartedRun> {
  const mark = await markOf(c, context)
  const { known, runId } = await runOfRequest(context, mark, key)
  if (!known) await stopPassed(context, key, readers)
  const started = known ? { runId, sessionId: known.sessionId } : await start({ mark, runId })
  void watchDelivery(c, started.runId)
  return started
}

/**
 * Stops the runs that a new message leaves behind: one that waits for an approval, which would block the session, and one
 * whose client has closed its stream, which is how ADK's clients stop an answer. A stream that is just being closed is
 * waited for beside the new run, which is queued meanwhile.
 */
async function stopPassed(context: ServerContext, key: SessionKey, readers: RunReaders): Promise<void> {
  const { hub } = context
  for (const { runId, status } of await hub.list(key, UNFINISHED)) {
    if (status === 'waiting' && (await asksHere(context, key, runId))) await hub.stop(runId)
    if (status !== 'running' || !readers.knows(runId)) continue
    const left = orTimeout(readers.gone(runId), CLOSING_MS)
    const stopped = left.then(isGone => (isGone === 'timeout' ? undefined : hub.stop(runId)))
    stopped.catch(error => {
      context.logger.warn('A run that a client has left could not be stopped', {
        runId,
        reason: messageOf(error),
      })
    })
  }
}

/** Whether the run waits for an approval of Lango's own: a message ends one that waits for ADK in any case. */
async function asksHere(context: ServerContext, key: SessionKey, runId: string): Promise<boolean> {
  const waiting = await waitingRun(context, runId)
  return waiting !== undefined && !isAsked(await context.runtime.events(key), waiting)
}

/** Among as many of the newest runs those are looked for that have not ended. */
const UNFINISHED = 25
/** How long after a message the stream before it may be closed. */
const CLOSING_MS = 1000

const Content = z.object({
  role: z.string().optional(),
  parts: z.array(JsonObject).min(1),
})

const RunBody = z.object({
  appName: z.string(),
  userId: z.string(),
  sessionId: z.string().min(1).max(256),
  newMessage: Content.optional(),
  streaming: z.boolean().nullish(),
  stateDelta: JsonObject.nullish(),
})

/** ADK for Python also accepts the names in snake_case. */
const RunRequest = z.preprocess(camelCaseKeys, RunBody)

function camelCaseKeys(body: unknown): unknown {
  if (!isRecord(body)) return body
  return Object.fromEntries(Object.entries(body).map(([name, value]) => [camelCase(name), value]))
}

async function readRun(
  c: Context<ServerEnv>,
  context: ServerContext,
): Promise<{ key: SessionKey; input: RunInput; streaming: boolean }> {
  const request = await readBody(c, RunRequest)
  const key = ownKey(c, context, request)
  await ownSession(context, key)
  checkParts(request.newMessage, 'newMessage', context.limits)
  if (!request.newMessage) throw badField('newMessage', 'A run needs a message: send `newMessage`.')
  const input: RunInput = {
    sessionId: key.sessionId,
    // Any part of ADK's content; the runtime checks it.
    parts: request.newMessage.parts as NonNullable<RunInput['parts']>,
    whenBusy: 'queue',
    ...(request.stateDelta ? { stateDelta: clientState(request.stateDelta, context.limits) } : {}),
  }
  return { key, input, streaming: request.streaming === true }
}

async function collect(
  c: Context<ServerEnv>,
  context: ServerContext,
  started: StartedRun,
  { readers, ...place }: Pick<AdkRunOptions, 'key' | 'answered'> & { readers: RunReaders },
): Promise<Response> {
  const events: AdkEvent[] = []
  const { signal } = c.req.raw
  const options = { ...place, runId: started.runId, streaming: false, signal }
  for await (const step of readRunEvents(context, options, readers)) {
    if ('events' in step) events.push(...step.events)
    else {
      const { status, detail, code } = step.problem
      const body = JSON.stringify({ error: detail, detail, code, events })
      const headers = {
        'content-type': 'application/json; charset=utf-8',
        'x-should-retry': 'false',
        ...runHeaders(started),
      }
      return new Response(body, { status, headers })
    }
  }
  return c.json(events, 200, runHeaders(started))
}

/** The error of a run is reported once: with the event that ADK stored of it, or with an event of its own. */
async function* frames(
  context: ServerContext,
  { readers, ...options }: AdkRunOptions & { readers: RunReaders },
) {
  let held: AdkEvent[] = []
  for await (const step of readRunEvents(context, options, readers)) {
    if ('events' in step) {
      const events = [...held, ...step.events]
      const { errorCode, errorMessage } = events.at(-1) ?? {}
      held = (errorCode ?? errorMessage) ? events.splice(-1) : []
      if (events.length > 0) yield dataFrames(events)
    } else {
      const { detail, code } = step.problem
      yield dataFrames([{ ...(held[0] ?? errorEvent(step.problem)), error: detail, code }])
      held = []
    }
  }
  if (held.length > 0) yield dataFrames(held)
}

/** The events of a run for one client, which counts as a reader meanwhile. */
async function* readRunEvents(
  context: ServerContext,
  options: AdkRunOptions,
  readers: RunReaders,
): AsyncGenerator<AdkRunStep> {
  readers.enter(options.runId)
  try {
    yield* adkRunEvents(context, options)
  } finally {
    readers.leave(options.runId)
  }
}
