/**
 * Messages of A2A that answer what a task asks. A message that is sent again answers nothing a second time: it gets the
 * task that it has answered. It is recognised by its id in the process that took it, and elsewhere by the answers that
 * the run has recorded.
 */
import { isDeepStrictEqual } from 'node:util'
import { digest } from '../../../runtime/derived-id.js'
import type { SessionKey } from '../../../session/message.js'
import type { RunAnswer } from '../../../tool.js'
import type { RunItem, RunQuestion } from '../../chat-protocol.js'
import type { ServerContext } from '../../server-context.js'
import { awaitAnswered, giveAnswer, recordedAnswers } from '../asked-questions.js'
import { unfinishedIn } from '../run-readers.js'
import { answersIn, namedAnswers } from './a2a-task.js'
import { a2aError, type SentMessage, UNSUPPORTED } from './a2a-wire.js'

/** A part of a run that is the answer to a request. */
export interface Answer {
  key: SessionKey
  runId: string
  /** The events up to this number are in the task that is sent first. */
  knownSeq: number
  answered?: ReadonlySet<string>
}

interface OwnRun {
  key: SessionKey
  item: RunItem
}

/** Answers what a task asks. */
export async function answerTask(context: ServerContext, message: SentMessage, run: OwnRun): Promise<Answer> {
  const { runId, status } = run.item
  if (message.contextId && message.contextId !== run.key.sessionId)
    throw a2aError(-32602, 'The task belongs to another context.')
  const mark = markOf(run.key, message)
  const again = await repeated(context, mark)
  if (again) return again
  const questions = status === 'finished' ? [] : await context.hub.questions(runId)
  if (await isRecorded(context, runId, questions, message)) return soFar(run)
  if (status === 'finished')
    throw a2aError(
      UNSUPPORTED,
      'The task has ended. Send the message with its contextId and without a taskId.',
    )
  if (questions.length === 0)
    throw a2aError(UNSUPPORTED, 'The task works and asks nothing. Follow it, or cancel it first.')
  const answers = answersIn(questions, message)
  if (!answers || answers.size === 0) {
    const ids = questions.map(({ callId }) => callId).join(', ')
    const form =
      'a data part { "answers": { "<id>": { "approved": true } } }, or "yes" or "no" for one approval'
    throw a2aError(-32602, `The task requires answers to ${ids}. Send ${form}.`)
  }
  return give(context, run, answers, mark)
}

/** Answers the run of a context that asks. Any other message ends a run that waits for an answer. */
export async function answerContext(
  context: ServerContext,
  message: SentMessage,
  key: SessionKey,
): Promise<Answer | undefined> {
  const mark = markOf(key, message)
  const again = await repeated(context, mark)
  if (again) return again
  const asking = await askingRun(context, key)
  if (!asking) return answeredRun(context, message, key)
  const run = { key, item: asking.item }
  if (await isRecorded(context, asking.item.runId, asking.questions, message)) return soFar(run)
  const answers = answersIn(asking.questions, message)
  if (answers) return give(context, run, answers, mark)
  await context.hub.stop(asking.item.runId)
  return undefined
}

function soFar({ key, item: { runId, lastSeq } }: OwnRun): Answer {
  return { key, runId, knownSeq: lastSeq }
}

/** The newest runs of a context among which those of answers without a taskId are looked for. */
const LOOKED_AT = 5

/** The run that has recorded the named answers of a message. */
async function answeredRun(
  context: ServerContext,
  message: SentMessage,
  key: SessionKey,
): Promise<Answer | undefined> {
  if (!namedAnswers(message)) return undefined
  for (const item of await context.hub.list(key, LOOKED_AT))
    if (await isRecorded(context, item.runId, [], message)) return soFar({ key, item })
  return undefined
}

/**
 * Whether a run has recorded the answers of a message: those that name their questions; or, when nothing is asked, the
 * words that were the last answer.
 */
async function isRecorded(
  context: ServerContext,
  runId: string,
  open: readonly RunQuestion[],
  message: SentMessage,
): Promise<boolean> {
  const named = Object.keys(namedAnswers(message) ?? {})
  if (named.some(id => open.some(({ callId }) => callId === id))) return false
  const recorded = await recordedAnswers(context, runId)
  const last = [...recorded.values()].at(-1)
  const before = named.length > 0 ? named.map(id => recorded.get(id)) : open.length === 0 ? [last] : []
  const known = before.filter(each => each !== undefined)
  if (known.length === 0 || known.length < before.length) return false
  const answers = answersIn(
    known.map(({ question }) => question),
    message,
  )
  return (
    answers !== undefined &&
    known.every(({ question, answer }) => isDeepStrictEqual(answers.get(question.callId), answer))
  )
}

async function give(
  context: ServerContext,
  { key, item }: OwnRun,
  answers: ReadonlyMap<string, RunAnswer>,
  mark: string,
): Promise<Answer> {
  const { runId, lastSeq } = item
  const answered = new Set(answers.keys())
  remember(mark, { runId, key, answered })
  for (const [callId, answer] of answers) await giveAnswer(context, runId, callId, answer)
  await awaitAnswered(context, runId, lastSeq)
  return { key, runId, knownSeq: lastSeq, answered }
}

/** The newest messages of this process that have answered something. */
const given = new Map<string, Omit<Answer, 'knownSeq'>>()
const MOST_GIVEN = 10_000

function remember(mark: string, answer: Omit<Answer, 'knownSeq'>): void {
  given.set(mark, answer)
  const [oldest] = given.keys()
  if (given.size > MOST_GIVEN && oldest !== undefined) given.delete(oldest)
}

async function repeated({ hub }: ServerContext, mark: string): Promise<Answer | undefined> {
  const answer = given.get(mark)
  const run = answer && (await hub.find(answer.runId))
  return run ? { ...answer, knownSeq: run.item.lastSeq } : undefined
}

function markOf({ appName, userId, sessionId }: SessionKey, { messageId, parts }: SentMessage): string {
  return digest([appName, userId, sessionId, messageId, JSON.stringify(parts)])
}

async function askingRun(
  context: ServerContext,
  key: SessionKey,
): Promise<{ item: RunItem; questions: RunQuestion[] } | undefined> {
  for (const item of await unfinishedIn(context, key)) {
    if (item.status === 'queued') continue
    const questions = await context.hub.questions(item.runId)
    if (questions.length > 0) return { item, questions }
  }
  return undefined
}
