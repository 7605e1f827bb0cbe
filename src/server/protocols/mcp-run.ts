/** A run as a call of a tool: its progress, its questions, and its answer. */
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js'
import type { CallToolResult, ServerNotification, ServerRequest } from '@modelcontextprotocol/sdk/types.js'
import { AgentError } from '../../errors.js'
import { joinDeltas } from '../../run/event-numbers.js'
import { OpenQuestions, type RunQuestion } from '../../run/open-questions.js'
import type { RunEvent } from '../../run/run-event.js'
import type { Runtime } from '../../runtime/runtime.js'
import type { RunAnswer } from '../../tool.js'
import { isHiddenCall } from '../../transcript/item.js'
import { questionText } from '../../transcript/questions.js'

export type CallContext = RequestHandlerExtra<ServerRequest, ServerNotification>

export class McpRun {
  readonly #server: McpServer
  readonly #runtime: Runtime
  readonly #runId: string
  readonly #questions = new OpenQuestions()
  #lastSeq = 0
  #sessionId = ''
  #finish: Extract<RunEvent, { type: 'run-finish' }> | undefined
  #error: string | undefined

  constructor(server: McpServer, runtime: Runtime, runId: string) {
    this.#server = server
    this.#runtime = runtime
    this.#runId = runId
  }

  /** To the end of the run, or until it waits for an answer that this client cannot be asked for. */
  async follow(extra: CallContext): Promise<CallToolResult> {
    const release = this.#stopOnCancel(extra.signal)
    try {
      do {
        const options = { afterSeq: this.#lastSeq, untilWaiting: true, signal: extra.signal }
        for await (const events of this.#runtime.followLists(this.#runId, options)) {
          await this.#report(events, extra)
          for (const event of events) this.#take(event)
        }
      } while (!this.#finish && !extra.signal.aborted && (await this.#askOpen(extra)))
    } finally {
      release()
    }
    return this.#result()
  }

  /** Answers a call, and continues the run here if no process works on it. */
  async answer(callId: string, answer: RunAnswer): Promise<void> {
    await this.#runtime.answer(this.#runId, callId, answer)
    await this.#runtime.ready()
    await this.#runtime.resume(this.#runId).catch(ignoreEnded)
  }

  #take(event: RunEvent): void {
    this.#lastSeq = event.seq
    this.#sessionId = event.sessionId
    this.#questions.add(event)
    if (event.type === 'error') this.#error = event.error.message
    if (event.type === 'run-finish' && event.finishReason !== 'waiting') this.#finish = event
  }

  /** A cancelled call stops its run. A lost connection does not: the run goes on. */
  #stopOnCancel(signal: AbortSignal): () => void {
    const stop = () =>
      // A connection that closes aborts its calls, too, and is known to be closed right after.
      setImmediate(() => {
        if (this.#server.isConnected()) this.#runtime.stop(this.#runId).catch(() => {})
      })
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
    return () => signal.removeEventListener('abort', stop)
  }

  async #report(
    events: readonly RunEvent[],
    { _meta, sendNotification, signal }: CallContext,
  ): Promise<void> {
    const progressToken = _meta?.progressToken
    if (progressToken === undefined) return
    for (const { seq: progress, message } of progressOf(events)) {
      if (signal.aborted) return
      const params = { progressToken, progress, message }
      await sendNotification({ method: 'notifications/progress', params })
    }
  }

  /** Asks a client that can ask its user. Whether anything was answered. */
  async #askOpen(extra: CallContext): Promise<boolean> {
    const open = this.#questions.list.filter(({ asks }) => asks !== 'result')
    if (open.length === 0 || !this.#server.server.getClientCapabilities()?.elicitation) return false
    let isAnswered = false
    for (const question of open) {
      const answer = await this.#elicit(question, extra)
      if (answer === undefined) continue
      await this.answer(question.callId, answer).catch(ignoreAnswered)
      isAnswered = true
    }
    return isAnswered
  }

  async #elicit(question: RunQuestion, { requestId, signal }: CallContext): Promise<RunAnswer | undefined> {
    const choices = question.asks === 'approval' ? APPROVALS : OUTCOMES
    const { action, content } = await this.#server.server.elicitInput(
      {
        mode: 'form',
        message: `${questionText(question)}: ${JSON.stringify(question.args).slice(0, 4000)}`,
        requestedSchema: {
          type: 'object',
          properties: { answer: { type: 'string', title: 'Answer', enum: [...choices] } },
          required: ['answer'],
        },
      },
      { relatedRequestId: requestId, signal, timeout: ASK_MS },
    )
    if (action === 'cancel') return undefined
    if (action === 'decline') return question.asks === 'approval' ? 'no' : 'leave'
    return choices.find(choice => choice === content?.answer)
  }

  #result(): CallToolResult {
    const finish = this.#finish
    const waitsFor = this.#questions.list
    const facts = {
      sessionId: this.#sessionId,
      runId: this.#runId,
      ...(finish
        ? { finishReason: finish.finishReason }
        : { status: waitsFor.length > 0 ? 'waiting' : 'running' }),
      ...(finish || waitsFor.length === 0 ? {} : { waitsFor }),
    }
    if (finish?.finishReason === 'error')
      throw new AgentError('internal', `${this.#error ?? 'The run failed.'} (run ${this.#runId})`)
    const text = finish ? finish.text : waitingText(waitsFor)
    return {
      content: [
        { type: 'text', text },
        { type: 'text', text: JSON.stringify(facts) },
      ],
      structuredContent: facts,
    }
  }
}

/** Somebody else was faster, or the run has ended. */
function ignoreAnswered(error: unknown): void {
  if (!(error instanceof AgentError && error.code === 'run-not-found')) throw error
}

/** The run has ended meanwhile: its events say how. */
function ignoreEnded(error: unknown): void {
  if (!(error instanceof AgentError && error.code === 'invalid-argument')) throw error
}

const APPROVALS = ['once', 'always', 'no'] as const
const OUTCOMES = ['happened', 'run', 'leave'] as const

/** A person may take long to answer. */
const ASK_MS = 3_600_000

function waitingText(questions: readonly RunQuestion[]): string {
  if (questions.length === 0) return 'The run goes on. follow_run returns its answer.'
  return `The run waits: ${questions.map(questionText).join('; ')}. Call answer with its runId and callId.`
}

/** Progress messages for events, with their numbers: one for each text, one for each call. */
function progressOf(events: readonly RunEvent[]): { seq: number; message: string }[] {
  return joinDeltas(events).flatMap(event => {
    const message = progressText(event)
    return message === undefined ? [] : [{ seq: event.seq, message }]
  })
}

function progressText(event: RunEvent): string | undefined {
  if (event.type === 'text-delta') return event.text
  if ((event.type !== 'tool-call' && event.type !== 'tool-result') || isHiddenCall(event.name))
    return undefined
  if (event.type === 'tool-call') return `→ ${event.name} ${JSON.stringify(event.args).slice(0, 200)}`
  return `← ${event.name}${event.isError ? ' failed' : ''}`
}
