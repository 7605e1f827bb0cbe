import type { Context, Hono } from 'hono'
import { z } from 'zod'
import type { RunInput } from '../../../runtime/runtime.js'
import type { SessionKey } from '../../../session/message.js'
import type { StartedRun } from '../../chat-protocol.js'
import { clientState, JsonObject } from '../../routes/client-state.js'
import type { ServerContext, ServerEnv } from '../../server-context.js'
import { streamResponse } from '../../sse.js'
import { badField, readBody } from '../read-body.js'
import { dataFrames } from '../server-sent.js'
import { runHeaders, startRun, startStreamedRun } from '../start-run.js'
import { ownKey, ownSession } from './adk-owner.js'
import { type AdkEvent, type AdkRunOptions, adkRunEvents } from './adk-run-events.js'

/** `/run` and `/run_sse`. The run goes on when the caller leaves; what came of it is in the session. */
export function mountAdkRuns(app: Hono<ServerEnv>, context: ServerContext): void {
  app.post('/run', async c => {
    const { key, input } = await readRun(c, context)
    const started = await startRun(c, context, input)
    return collect(c, context, started, key)
  })
  app.post('/run_sse', async c => {
    const { key, input, streaming } = await readRun(c, context)
    const started = await startStreamedRun(c, context, input)
    return streamResponse(c, context, {
      headers: runHeaders(started),
      source: signal => frames(context, { key, runId: started.runId, streaming, signal }),
    })
  })
}

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

/** ADK for Python also takes the names with underscores. */
const RunRequest = z.preprocess(withoutUnderscores, RunBody)

function withoutUnderscores(body: unknown): unknown {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return body
  return Object.fromEntries(
    Object.entries(body).map(([name, value]) => [
      name.replaceAll(/_([a-z])/g, (_match, letter: string) => letter.toUpperCase()),
      value,
    ]),
  )
}

async function readRun(
  c: Context<ServerEnv>,
  context: ServerContext,
): Promise<{ key: SessionKey; input: RunInput; streaming: boolean }> {
  const request = await readBody(c, RunRequest)
  const key = ownKey(c, context, request)
  await ownSession(context, key)
  if (!request.newMessage) throw badField('newMessage', 'A run needs a message: send `newMessage`.')
  const input: RunInput = {
    sessionId: key.sessionId,
    // A part is whatever ADK's content may hold; the runtime checks what it is given.
    parts: request.newMessage.parts as NonNullable<RunInput['parts']>,
    whenBusy: 'queue',
    ...(request.stateDelta ? { stateDelta: clientState(request.stateDelta) } : {}),
  }
  return { key, input, streaming: request.streaming === true }
}

async function collect(
  c: Context<ServerEnv>,
  context: ServerContext,
  started: StartedRun,
  key: SessionKey,
): Promise<Response> {
  const events: AdkEvent[] = []
  const { signal } = c.req.raw
  for await (const step of adkRunEvents(context, { key, runId: started.runId, streaming: false, signal })) {
    if ('events' in step) events.push(...step.events)
    else {
      const { status, detail, code } = step.problem
      const body = JSON.stringify({ error: detail, detail, code, events })
      const headers = { 'content-type': 'application/json; charset=utf-8', ...runHeaders(started) }
      return new Response(body, { status, headers })
    }
  }
  return c.json(events, 200, runHeaders(started))
}

async function* frames(context: ServerContext, options: AdkRunOptions) {
  for await (const step of adkRunEvents(context, options)) {
    if ('events' in step) yield dataFrames(step.events)
    else yield dataFrames([{ error: step.problem.detail, code: step.problem.code }])
  }
}
