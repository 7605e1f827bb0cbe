/** A run as a completion: run events in, the steps of an answer out. */

import { setTimeout as sleep } from 'node:timers/promises'
import { AgentError } from '../../../errors.js'
import { firstSeqOf, isDelta } from '../../../run/event-numbers.js'
import type { SessionKey } from '../../../session/message.js'
import { sumUsage } from '../../../session/usage.js'
import type { Problem, RunEvent, RunUsage, StartedRun } from '../../chat-protocol.js'
import type { ServerContext } from '../../server-context.js'
import {
  type ModelFinish,
  modelFinish,
  runProblem,
  streamTruncated,
  type WaitingRun,
  waitingRun,
} from '../start-run.js'
import { runPartId } from './client-calls.js'
import { KEYED_MS, throwAway, wasRepeated } from './throwaway.js'

/** One piece of a completion. */
export type CompletionStep = StepBody & StepPlace

/** A place among the numbers of the run. It does not depend on the pieces in which a text comes. */
export interface StepPlace {
  /** The first number of the event that the step stands for; without one, the number of the last event before it. */
  at: number
  /** The number of the last character of the step, if it is text of an event. */
  textSeq?: number
}

/** `busy`: the agent works, and the client receives nothing. */
export type StepBody =
  | { type: 'text' | 'reasoning'; text: string }
  | { type: 'busy' }
  /** The model has ended one answer; the agent may go on. */
  | { type: 'complete' }
  /** So many characters of the texts before are void: the model writes the answer of its last step again. */
  | { type: 'restart'; text: number; reasoning: number }
  /** The run waits for the results of these calls of the client's tools. */
  | { type: 'calls'; calls: readonly CompletionCall[]; usage: RunUsage }
  /** The run waits for a person. */
  | { type: 'waiting'; run: WaitingRun; usage: RunUsage }
  /** `output`: the answer as data, where there is a schema. */
  | { type: 'end'; finish: CompletionFinish; usage: RunUsage; isAborted?: boolean; output?: unknown }
  | { type: 'problem'; problem: Problem }

export type CompletionFinish = 'stop' | 'length' | 'content_filter'

/** A call of a client's tool, with the id that the client gets. */
export interface CompletionCall {
  callId: string
  /** Its number among the calls of the run. */
  number: number
  name: string
  args: Record<string, unknown>
}

export interface CompletionRunParts {
  key: SessionKey
  started: StartedRun
  /** The names of the client's tools. */
  tools: readonly string[]
  /** Set for an answer to results: what came before it. */
  earlier?: { afterSeq: number; calls: number; model: string } | undefined
  /** The session is deleted after the run, and a caller that disconnects and does not come back stops the run. */
  isThrowaway: boolean
  /** The request has a key: its session is kept for a day. */
  isKeyed: boolean
}

export type CutEvents = (events: readonly RunEvent[]) => Iterable<RunEvent>

/** One run on behalf of one request. */
export class CompletionRun {
  /** Why the model ended. Resolves when the run has ended. */
  readonly #over: Promise<ModelFinish>
  readonly #context: ServerContext
  readonly #parts: CompletionRunParts
  readonly #gone = new AbortController()
  readonly #paragraphs = new Paragraphs()
  /** The characters of steps that are not complete. */
  #draft = { text: 0, reasoning: 0 }
  /** Who has written them. */
  readonly #drafting = new Set<string>()
  readonly #used: RunUsage[] = []
  #model: string
  /** The calls of the client's tools that have no result, by the ids that the model gave them. */
  readonly #open = new Map<string, CompletionCall>()
  #calls: number
  #hasEnded = false
  #isCut = false
  readonly #delivery: Promise<boolean>
  #deliver: (delivery: Promise<boolean>) => void = () => {}

  constructor(context: ServerContext, parts: CompletionRunParts) {
    this.#context = context
    this.#parts = parts
    this.#model = parts.earlier?.model ?? ''
    this.#calls = parts.earlier?.calls ?? 0
    this.#delivery = new Promise(resolve => {
      this.#deliver = resolve
    })
    this.#over = this.#whenOver()
  }

  /** The model that answers, once the run has begun. */
  get model(): string {
    return this.#model
  }

  get started(): StartedRun {
    return this.#parts.started
  }

  /** The number of the last event before this answer. */
  get afterSeq(): number {
    return this.#parts.earlier?.afterSeq ?? 0
  }

  get isThrowaway(): boolean {
    return this.#parts.isThrowaway
  }

  /** The promise resolves when the response is over: whether the caller got all of it. */
  deliveredBy(delivery: Promise<boolean>): void {
    this.#deliver(delivery)
  }

  /** True if the caller has to repeat the request. */
  get isCut(): boolean {
    return this.#isCut
  }

  /** A stream cannot take text back: it breaks off, and the request returns the whole answer when it is repeated. */
  breakOff(): void {
    this.#isCut = true
  }

  /** The signal fires when the caller disconnects. */
  leaveOn(signal: AbortSignal): void {
    if (signal.aborted) this.#leave()
    else signal.addEventListener('abort', () => this.#leave(), { once: true })
  }

  /** `cut`: the events with their texts in the pieces that the reader needs. Default: as they come. */
  async *steps(cut: CutEvents = events => events): AsyncGenerator<CompletionStep> {
    let at = this.afterSeq
    for await (const event of this.#events(cut)) {
      if (event.type === 'run-start') this.#model = event.model
      if (this.#isAnswered(event)) return yield { ...this.#waitsForClient(), at }
      this.#noteCall(event)
      const step = await this.#stepOf(event)
      at = event.seq
      if (step) yield { ...step, at: firstSeqOf(event), ...(isDelta(event) ? { textSeq: event.seq } : {}) }
      if (step?.type === 'end' || step?.type === 'problem') return
    }
    if (this.#gone.signal.aborted) return
    if (this.#open.size > 0) return yield { ...this.#waitsForClient(), at }
    const run = await waitingRun(this.#context, this.started.runId)
    if (run) yield { type: 'waiting', run, usage: sumUsage(this.#used), at }
    else yield { type: 'problem', problem: streamTruncated(), at }
  }

  async *#events(cut: CutEvents): AsyncGenerator<RunEvent> {
    const { hub } = this.#context
    const { runId } = this.started
    const follow = { signal: this.#gone.signal, withoutVoid: true, after: this.#parts.earlier?.afterSeq ?? 0 }
    // A run that was just given its results is still waiting, until a process continues it.
    if (this.#parts.earlier) for await (const _event of hub.follow(runId, follow)) break
    for await (const { events } of hub.followBatches(runId, { ...follow, untilWaiting: true }))
      yield* cut(events)
  }

  /** Whether the client has answered the calls of this answer: what follows belongs to another request. */
  #isAnswered(event: RunEvent): boolean {
    if (event.type === 'tool-result') return event.given === true && this.#open.has(event.id)
    // Once every call is open, only results continue the run.
    return event.type === 'run-resumed' && this.#open.size > 0
  }

  #noteCall(event: RunEvent): void {
    if (event.type === 'tool-result') this.#open.delete(event.id)
    if (event.type !== 'tool-call' || !event.pending || !this.#parts.tools.includes(event.name)) return
    const number = this.#calls
    this.#calls += 1
    const callId = runPartId('call', this.started.runId, number)
    this.#open.set(event.id, { callId, number, name: event.name, args: event.args })
  }

  #waitsForClient(): StepBody {
    return { type: 'calls', calls: [...this.#open.values()], usage: sumUsage(this.#used) }
  }

  async #stepOf(event: RunEvent): Promise<StepBody | undefined> {
    switch (event.type) {
      case 'text-delta':
        this.#drafting.add(event.author)
        return this.#said(event.text)
      case 'reasoning-delta':
        this.#drafting.add(event.author)
        this.#draft.reasoning += event.text.length
        return { type: 'reasoning', text: event.text }
      case 'tool-call':
      case 'agent-transfer':
        this.#complete()
        this.#paragraphs.pause()
        return { type: 'busy' }
      case 'error':
        // Sent at once: the run-finish that follows adds nothing.
        return { type: 'problem', problem: runProblem(event.error) }
      case 'run-finish': {
        const finish = await this.#over
        // Of a request without a session nobody else reads the answer: a part of it must not pass for all of it.
        if (event.finishReason === 'aborted' && this.isThrowaway)
          return { type: 'problem', problem: runProblem(stopped()) }
        const usage = this.#parts.earlier ? sumUsage(this.#used) : event.usage
        const isAborted = event.finishReason === 'aborted'
        const { output } = event
        return { type: 'end', finish: finishOf(event.finishReason, finish), usage, isAborted, output }
      }
      case 'usage':
        this.#used.push(event.usage)
        this.#complete()
        return { type: 'complete' }
      case 'step-restart':
        return this.#restart(event.author)
      case 'run-resumed':
        // Everything that is not complete is written again.
        this.#drafting.clear()
        return undefined
      case 'run-queued':
      case 'run-scheduled':
      case 'run-start':
      case 'tool-unknown':
      case 'sources':
      case 'code':
      case 'tool-result':
      case 'turn-warning':
      case 'wrap-up':
      case 'model-switch':
      case 'model-wait':
      case 'tools-missing':
      case 'repair':
      case 'history-cut':
      case 'approval-request':
      case 'approval-answer':
        return undefined
      default:
        event satisfies never
        return undefined
    }
  }

  #said(delta: string): StepBody {
    const text = this.#paragraphs.next(delta)
    this.#draft.text += text.length
    return { type: 'text', text }
  }

  #complete(): void {
    this.#draft = { text: 0, reasoning: 0 }
    this.#drafting.clear()
    this.#paragraphs.keep()
  }

  #restart(author: string | undefined): StepBody {
    const draft = this.#draft
    // The texts of agents that write at the same time are mixed: one of them cannot be taken out.
    const others = [...this.#drafting].filter(name => author !== undefined && name !== author)
    if (others.length > 0) {
      this.#isCut = true
      return { type: 'problem', problem: writtenAgain() }
    }
    this.#draft = { text: 0, reasoning: 0 }
    this.#drafting.clear()
    this.#paragraphs.back()
    return { type: 'restart', ...draft }
  }

  /** Follows the run until it ends or waits. Without a session nobody can approve a call, so it is refused. */
  async #whenOver(): Promise<ModelFinish> {
    const { hub } = this.#context
    const { key, started, isThrowaway, tools, earlier } = this.#parts
    const { runId } = started
    const open = new Set<string>()
    let last: RunEvent | undefined
    let after = earlier?.afterSeq ?? 0
    try {
      if (earlier) for await (const _event of hub.follow(runId, { after })) break
      for (;;) {
        for await (const event of hub.follow(runId, { after, untilWaiting: true })) {
          if (isThrowaway) await this.#refuse(event)
          if (event.type === 'tool-call' && event.pending && tools.includes(event.name)) open.add(event.id)
          if (event.type === 'tool-result') open.delete(event.id)
          last = event
          after = event.seq
        }
        const isOver = last?.type === 'run-finish' || !isThrowaway || open.size > 0
        if (isOver || this.#context.isClosing() || !(await hub.find(runId))) break
        // The refusals are on their way.
        await sleep(WAIT_MS)
      }
      return await modelFinish(this.#context, key, runId)
    } catch {
      return 'stop'
    } finally {
      this.#hasEnded = true
      if (isThrowaway && last?.type === 'run-finish') void this.#discard(isAnswer(last.finishReason))
      else if (isThrowaway && open.size > 0) void throwAway(this.#context, key, KEYED_MS)
    }
  }

  async #refuse(event: RunEvent): Promise<void> {
    const { hub } = this.#context
    const { runId } = this.started
    if (event.type === 'approval-request') await hub.approve(runId, event.id, 'no').catch(() => {})
    if (event.type === 'tool-unknown' && event.asks)
      await hub.approve(runId, event.id, 'leave').catch(() => {})
  }

  /** Deletes the session of the request: once its caller has the answer, otherwise when it is not repeated. */
  async #discard(isAnswered: boolean): Promise<void> {
    const { key, isKeyed } = this.#parts
    const isDelivered = await this.#delivery
    const isOver = isAnswered && isDelivered && !(await wasRepeated(this.#context, key).catch(() => true))
    const laterMs = isOver ? 0 : this.#context.limits.retryMs
    await throwAway(this.#context, key, isKeyed ? KEYED_MS : laterMs)
  }

  /** Ends a run that nobody can continue. */
  async abandon(): Promise<void> {
    await this.#context.hub.stop(this.started.runId)
    void throwAway(this.#context, this.#parts.key, this.#context.limits.retryMs)
  }

  /** A caller that disconnects may repeat its request in a moment. */
  #leave(): void {
    if (this.#gone.signal.aborted) return
    this.#gone.abort()
    if (!this.isThrowaway || this.#hasEnded || this.#isCut) return
    const stop = async () => {
      if (!(await wasRepeated(this.#context, this.#parts.key)))
        await this.#context.hub.stop(this.started.runId)
    }
    setTimeout(() => void stop().catch(() => {}), this.#context.limits.retryMs * STOP_SHARE).unref()
  }
}

function isAnswer(finishReason: string): boolean {
  return finishReason !== 'error' && finishReason !== 'aborted'
}

const WAIT_MS = 100

/** OpenAI's client repeats a request after 8 s at most, LangChain and the AI SDK after 2 s. */
const STOP_SHARE = 0.25

function writtenAgain(): Problem {
  const message =
    'The model writes a part of this answer again. Repeat the request: it returns the whole answer and starts no second run.'
  return runProblem(new AgentError('run-interrupted', message, { retryable: true }))
}

function stopped(): AgentError {
  const message =
    'The run of this request was stopped. Send the request with a change, or later, to start anew.'
  return new AgentError('aborted', message)
}

/** A completion is one text: what the agent writes between tool calls becomes paragraphs. */
class Paragraphs {
  #hasText = false
  #isPaused = false
  #kept = { hasText: false, isPaused: false }

  next(text: string): string {
    const gap = this.#hasText && this.#isPaused ? '\n\n' : ''
    this.#hasText = true
    this.#isPaused = false
    return `${gap}${text}`
  }

  pause(): void {
    this.#isPaused = true
    this.keep()
  }

  /** What was written so far stays. */
  keep(): void {
    this.#kept = { hasText: this.#hasText, isPaused: this.#isPaused }
  }

  /** What was written since `keep` is written again. */
  back(): void {
    this.#hasText = this.#kept.hasText
    this.#isPaused = this.#kept.isPaused
  }
}

function finishOf(reason: string, finish: ModelFinish): CompletionFinish {
  if (reason === 'turn-limit' || reason === 'budget') return 'length'
  return finish === 'content-filter' ? 'content_filter' : finish
}
