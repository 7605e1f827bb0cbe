/** The answer to a request of AG-UI: one run of the protocol, with what one or several runs of the agent do. */
import { isDeepStrictEqual } from 'node:util'
import type { ContentPart, Message } from '@ag-ui/core'
import type { Context } from 'hono'
import type { SessionKey, State } from '../../../session/message.js'
import type { ChatMessage, ChatPart, RunEvent } from '../../chat-protocol.js'
import type { ServerContext, ServerEnv } from '../../server-context.js'
import { dataFrames, type StreamChunk, streamResponse } from '../../sse.js'
import { watchDelivery } from '../repeated-request.js'
import { followUntilAsked, type RunReaders } from '../run-readers.js'
import { runHeaders, streamTruncated, waitingRun } from '../start-run.js'
import type { AguiRequest } from './agui-input.js'
import { type AguiEvent, AguiWriter, failedRun, isWritten, runError } from './agui-writer.js'

/** A part of a run of the agent that is an answer to the request. */
export interface Segment {
  runId: string
  /** The number of the last event before it. Default 0. */
  after?: number
  /** Calls that the request has just answered. */
  answered?: ReadonlySet<string>
  /** The client may have a part of it: events up to this number are sent as a snapshot of the messages. */
  knownSeq?: number
}

export interface AguiStream {
  key: SessionKey
  request: Pick<AguiRequest, 'threadId' | 'runId' | 'parentRunId' | 'state'>
  /** What the client has, as far as it stays. */
  messages: readonly Message[]
  segments: readonly Segment[]
  readers: RunReaders
}

/** Answers with a stream of AG-UI's events. */
export function streamAgui(c: Context<ServerEnv>, context: ServerContext, stream: AguiStream): Response {
  const { key, segments } = stream
  const last = segments.at(-1)
  for (const { runId } of segments) void watchDelivery(c, runId)
  return streamResponse(c, context, {
    headers: last ? runHeaders({ sessionId: key.sessionId, runId: last.runId }) : {},
    source: signal => frames(context, stream, signal),
  })
}

async function* frames(
  context: ServerContext,
  stream: AguiStream,
  signal: AbortSignal,
): AsyncGenerator<StreamChunk> {
  const { request, segments } = stream
  const { threadId, runId, parentRunId } = request
  const started: AguiEvent = { type: 'RUN_STARTED', threadId, runId, protocolVersion: '1.0' }
  yield dataFrames([parentRunId === undefined ? started : { ...started, parentRunId }])
  let { messages } = stream
  if (segments.length === 0) {
    const finished: AguiEvent = { type: 'RUN_FINISHED', threadId, runId, outcome: { type: 'success' } }
    return yield dataFrames([{ type: 'MESSAGES_SNAPSHOT', messages }, finished])
  }
  for (const [index, segment] of segments.entries()) {
    const shown = new ShownSegment(segment, messages)
    yield* follow(context, stream, shown, signal)
    if (signal.aborted) return
    const isLast = index === segments.length - 1
    if (isLast) return yield dataFrames(await shown.end(context, stream))
    // A message that follows ends a run that waits once more.
    if (!shown.hasEnded) await context.hub.stop(segment.runId)
    messages = shown.all
  }
}

async function* follow(
  { hub }: ServerContext,
  { readers }: AguiStream,
  shown: ShownSegment,
  signal: AbortSignal,
): AsyncGenerator<StreamChunk> {
  const { runId } = shown.segment
  readers.enter(runId)
  try {
    const isAsking = () => shown.writer.isAsking
    for await (const batch of followUntilAsked(hub, runId, { signal, isAsking })) {
      const events = batch.events.flatMap(event => shown.add(event))
      if (events.length > 0) yield dataFrames(events)
    }
    const last = shown.catchUp()
    if (last.length > 0) yield dataFrames(last)
  } finally {
    readers.leave(runId)
  }
}

/** A segment as its client sees it. */
class ShownSegment {
  readonly segment: Segment
  readonly writer: AguiWriter
  readonly #before: readonly Message[]
  #isCaughtUp: boolean
  #error: Extract<RunEvent, { type: 'error' }> | undefined
  #finish: Extract<RunEvent, { type: 'run-finish' }> | undefined

  constructor(segment: Segment, before: readonly Message[]) {
    this.segment = segment
    this.writer = new AguiWriter(segment.answered)
    this.#before = before
    this.#isCaughtUp = segment.knownSeq === undefined
  }

  get hasEnded(): boolean {
    return this.#finish !== undefined
  }

  /** The client's messages and those of the segment, which replace the client's copies of them. */
  get all(): Message[] {
    const { runId, after = 0 } = this.segment
    const written = this.writer.messages
    const answers = new Set(written.flatMap(message => (message.role === 'tool' ? [message.toolCallId] : [])))
    const isReplaced = (message: Message) =>
      isWritten(message.id, runId, after) || (message.role === 'tool' && answers.has(message.toolCallId))
    return [...this.#before.filter(message => !isReplaced(message)), ...written]
  }

  add(event: RunEvent): AguiEvent[] {
    const { after = 0, knownSeq = 0 } = this.segment
    if (event.seq <= after) {
      this.writer.write(event)
      this.writer.forget()
      return []
    }
    if (event.type === 'error') this.#error = event
    if (event.type === 'run-finish' && event.finishReason !== 'waiting') this.#finish = event
    if (event.seq <= knownSeq) {
      this.writer.write(event)
      return event.seq === knownSeq ? this.catchUp() : []
    }
    const caughtUp = this.catchUp()
    const events = this.writer.write(event)
    return [...caughtUp, ...events, ...(event.type === 'step-restart' ? [this.#snapshot()] : [])]
  }

  /** What a client that has lost its stream, or has none of it, gets first. */
  catchUp(): AguiEvent[] {
    if (this.#isCaughtUp) return []
    this.#isCaughtUp = true
    return [this.#snapshot(), ...this.writer.reopen()]
  }

  #snapshot(): AguiEvent {
    return { type: 'MESSAGES_SNAPSHOT', messages: this.all }
  }

  /** The last events: the state if it is not the client's, and how the run ended or what it waits for. */
  async end(context: ServerContext, { key, request }: AguiStream): Promise<AguiEvent[]> {
    const { runId } = this.segment
    const { usage } = this.writer
    const closed = this.writer.close()
    if (this.#error) return [...closed, { ...failedRun(this.#error), usage }]
    const isWaiting =
      !this.#finish && (this.writer.isAsking || (await waitingRun(context, runId)) !== undefined)
    if (!this.#finish && !isWaiting) return [...closed, { ...runError(streamTruncated()), usage }]
    const { finishReason = 'waiting', output } = this.#finish ?? {}
    const outcome = this.#finish ? ended(finishReason) : this.writer.outcome(runId)
    const finished: AguiEvent = {
      ...{ type: 'RUN_FINISHED', threadId: request.threadId, runId: request.runId, usage },
      ...(outcome ? { outcome } : {}),
      ...(output === undefined ? {} : { result: output }),
      metadata: { lango: { sessionId: key.sessionId, runId, finishReason } },
    }
    return [...closed, ...(await changedState(context, key, request.state)), finished]
  }
}

function ended(finishReason: string): Extract<AguiEvent, { type: 'RUN_FINISHED' }>['outcome'] {
  return finishReason === 'aborted' ? { type: 'cancelled' } : { type: 'success' }
}

/** The state of the session as a client may have it, when it is not what the client has sent. */
async function changedState(
  { runtime }: ServerContext,
  key: SessionKey,
  sent: Readonly<Record<string, unknown>>,
): Promise<AguiEvent[]> {
  const session = await runtime.store.loadSession(key, { maxMessages: 1 })
  const snapshot = publicState(session?.state ?? {})
  return isDeepStrictEqual(snapshot, { ...sent }) ? [] : [{ type: 'STATE_SNAPSHOT', snapshot }]
}

/** Without the keys that a client may not send back, and those that are not kept. */
function publicState(state: State): State {
  return Object.fromEntries(Object.entries(state).filter(([key]) => !/^(lango|app|temp):/i.test(key)))
}

/** Stored messages as AG-UI's, for a thread that is opened again. */
export function toAguiMessages(messages: readonly ChatMessage[]): Message[] {
  const calls = new Map<string, string>()
  return messages.flatMap(message =>
    message.synthetic || message.role === 'system' ? [] : message.parts.flatMap(partMessages(message, calls)),
  )
}

/** A message for each part. Ids of calls repeat in long threads: theirs are those of the stored parts. */
function partMessages({ seq, role }: ChatMessage, calls: Map<string, string>) {
  return (part: ChatPart, index: number): Message[] => {
    const id = `message-${seq}-${index}`
    switch (part.type) {
      case 'text':
      case 'other':
        return [{ id, role: role === 'user' ? 'user' : 'assistant', content: part.text }]
      case 'reasoning':
        return part.text === '' ? [] : [{ id, role: 'reasoning', content: part.text }]
      case 'tool-call': {
        calls.set(part.id, id)
        const called = { name: part.name, arguments: JSON.stringify(part.args) }
        return [{ id, role: 'assistant', toolCalls: [{ id, type: 'function', function: called }] }]
      }
      case 'tool-result':
        return [
          {
            id,
            role: 'tool',
            toolCallId: calls.get(part.id) ?? part.id,
            content: JSON.stringify(part.result),
          },
        ]
      case 'media':
        return [{ id, role: 'user', content: [mediaContent(part)] }]
      case 'code':
        return []
    }
  }
}

function mediaContent({ mimeType, data, url }: Extract<ChatPart, { type: 'media' }>): ContentPart {
  const [kind] = mimeType.split('/')
  const type = (['image', 'audio', 'video'] as const).find(each => each === kind) ?? 'document'
  const source = url
    ? { type: 'url' as const, value: url, mimeType }
    : { type: 'data' as const, value: data ?? '', mimeType }
  return { type, source }
}
