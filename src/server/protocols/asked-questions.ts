/**
 * What a run asks of its client, and what the client answers, for protocols in which the answer is another request. A
 * question is named by its run and the number of the event that asks it, so that every process on the store finds it.
 */
import { isRecord } from '../../base/is-record.js'
import { AgentError } from '../../errors.js'
import { isAnswer, OpenQuestions, questionIn } from '../../run/open-questions.js'
import type { RunAnswer } from '../../tool.js'
import type { RunEvent, RunItem, RunQuestion } from '../chat-protocol.js'
import { Refusal } from '../refusal.js'
import type { ServerContext } from '../server-context.js'
import { badField } from './read-body.js'

export interface AskedQuestion {
  /** The number of the event that asks. */
  seq: number
  question: RunQuestion
  /** The number of the event that reports an answer. */
  answeredSeq?: number
}

/** The open questions of a run, from its events in order. */
export class AskedQuestions {
  readonly #open = new OpenQuestions()
  readonly #seqs = new Map<string, number>()

  add(event: RunEvent): void {
    this.#open.add(event)
    const question = questionIn(event)
    if (question) this.#seqs.set(question.callId, event.seq)
  }

  /** Oldest first. */
  get list(): AskedQuestion[] {
    return this.#open.list.map(question => ({ seq: this.#seqs.get(question.callId) ?? 0, question }))
  }
}

/** Questions of one run that a request answers. */
export interface AskedRun {
  runId: string
  item: RunItem
  /** By the numbers of their events. */
  questions: ReadonlyMap<number, AskedQuestion>
  /** The number of the last event before the answers: what follows is the answer to this request. */
  afterSeq: number
  /** All of them were answered before. */
  isAnswered: boolean
}

/** The questions of a run with these numbers; `undefined` when none of them is one. */
export async function findAsked(
  { hub }: ServerContext,
  item: RunItem,
  seqs: readonly number[],
): Promise<AskedRun | undefined> {
  const { runId } = item
  const questions = new Map<number, AskedQuestion>()
  let resumedSeq = 0
  let answersFrom = Number.POSITIVE_INFINITY
  for await (const event of hub.stored(runId)) {
    if (event.type === 'run-resumed') resumedSeq = event.seq
    const question = seqs.includes(event.seq) ? questionIn(event) : undefined
    if (question) questions.set(event.seq, { seq: event.seq, question })
    if (!isAnswer(event)) continue
    const found = [...questions.values()].find(
      ({ question: { callId }, answeredSeq }) => callId === event.id && answeredSeq === undefined,
    )
    if (!found) continue
    found.answeredSeq = event.seq
    if (answersFrom < event.seq) continue
    // The run was resumed for the answer.
    const isResumed = resumedSeq > Math.max(...questions.keys())
    answersFrom = isResumed ? resumedSeq : event.seq
  }
  if (questions.size === 0) return undefined
  const isAnswered = [...questions.values()].every(({ answeredSeq }) => answeredSeq !== undefined)
  return { runId, item, questions, afterSeq: Math.min(item.lastSeq, answersFrom - 1), isAnswered }
}

/** Gives an answer. One that was given meanwhile, by another request or client, is in the events of the run. */
export async function giveAnswer(
  { hub }: ServerContext,
  runId: string,
  callId: string,
  answer: RunAnswer,
): Promise<void> {
  try {
    await hub.approve(runId, callId, answer)
  } catch (error) {
    const isGone = error instanceof AgentError && error.code === 'run-not-found'
    if (!isGone && !(error instanceof Refusal && error.code === 'not-found')) throw error
  }
}

/** A question that was answered, and the answer as its run has recorded it. */
export interface GivenAnswer {
  question: RunQuestion
  answer: RunAnswer
}

/** The answers that a run was given, by the ids of their calls, oldest first. */
export async function recordedAnswers(
  { hub }: ServerContext,
  runId: string,
): Promise<Map<string, GivenAnswer>> {
  const questions = new OpenQuestions()
  const given = new Map<string, GivenAnswer>()
  for await (const event of hub.stored(runId)) {
    const question = isAnswer(event) ? questions.find(event.id) : undefined
    questions.add(event)
    if (!question) continue
    const answer = recorded(event)
    if (answer === undefined || given.has(question.callId)) continue
    given.set(question.callId, { question, answer })
  }
  return given
}

function recorded(event: RunEvent): RunAnswer | undefined {
  if (event.type === 'tool-unknown')
    return event.result === undefined ? event.answer : { happened: true, result: event.result }
  if (event.type === 'tool-result') return isRecord(event.result) ? event.result : { result: event.result }
  if (event.type !== 'approval-answer') return undefined
  return event.response ?? (ANSWERS.find(each => each === event.answer) as RunAnswer | undefined)
}

const ANSWERS = ['once', 'always', 'no'] as const

/** Waits until a process continues a run that was just answered: until then it is still one that waits. */
export async function awaitAnswered({ hub }: ServerContext, runId: string, after: number): Promise<void> {
  for await (const _event of hub.follow(runId, { after })) return
}

/** The JSON Schema of an answer, for clients that make a form of it. */
export function answerSchema({ asks, needsResult, resultSchema }: RunQuestion): Record<string, unknown> {
  if (asks === 'result') return { type: 'object' }
  const [name, property] =
    asks === 'approval'
      ? ['approved', { type: 'boolean' }]
      : ['outcome', { type: 'string', enum: [...OUTCOMES] }]
  const always = asks === 'approval' ? { always: { type: 'boolean', default: false } } : {}
  const result = needsResult ? { result: resultSchema ?? {} } : {}
  return { type: 'object', properties: { [name]: property, ...always, ...result }, required: [name] }
}

const OUTCOMES = ['happened', 'run', 'leave'] as const

/** The answer that a client has sent, in the form of `answerSchema` or as the value alone. */
export function answerFrom({ asks, tool }: RunQuestion, payload: unknown, field: string): RunAnswer {
  if (asks === 'result') return isRecord(payload) ? payload : { result: payload ?? null }
  if (asks === 'outcome') {
    const said = isRecord(payload) ? payload.outcome : payload
    const outcome = OUTCOMES.find(each => each === said)
    if (outcome === 'happened' && isRecord(payload) && payload.result !== undefined)
      return { happened: true, result: payload.result }
    if (outcome) return outcome
    throw badField(field, `${field} must be { "outcome": … } with one of ${OUTCOMES.join(', ')}.`)
  }
  if (isRecord(payload) && typeof payload.confirmed === 'boolean') return payload
  const said = isRecord(payload) ? payload.approved : payload
  if (said === true) return isRecord(payload) && payload.always === true ? 'always' : 'once'
  if (said === false) return 'no'
  const named = ANSWERS.find(each => each === said)
  if (named) return named
  throw badField(
    field,
    `${field} must be { "approved": true } or { "approved": false }: ${tool} needs approval.`,
  )
}

/** The answer of a client that abandons a question. */
export function abandonedAnswer({ asks }: RunQuestion): RunAnswer {
  if (asks === 'result') return { error: 'The user has not answered this.' }
  return asks === 'approval' ? 'no' : 'leave'
}
