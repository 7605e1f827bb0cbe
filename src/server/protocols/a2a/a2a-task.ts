/** A run as a task of A2A: run events in, the task and its updates out. */
import { isRecord } from '../../../base/is-record.js'
import { firstSeqOf } from '../../../run/event-numbers.js'
import type { RunAnswer } from '../../../tool.js'
import { questionText } from '../../../transcript/questions.js'
import type { ChatMessage, RunEvent, RunQuestion } from '../../chat-protocol.js'
import { AskedQuestions, answerFrom, answerSchema } from '../asked-questions.js'
import { badField } from '../read-body.js'
import { runProblem } from '../start-run.js'
import {
  type AgentMessage,
  type Artifact,
  contentOf,
  isTerminal,
  type Part,
  type SentMessage,
  type Task,
  type TaskState,
  type TaskStatus,
  type Update,
} from './a2a-wire.js'

type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>

/** Every stretch of text is an artifact; what the agent does besides is metadata of a status. */
export class RunTask {
  readonly #id: { taskId: string; contextId: string }
  #state: TaskState = 'TASK_STATE_SUBMITTED'
  #words: Part[] = []
  readonly #artifacts = new Map<string, Artifact>()
  /** The artifact that is being written. */
  #open: string | undefined
  /** Artifacts of answers that are not complete. */
  #drafts: string[] = []
  readonly #asked = new AskedQuestions()
  readonly #answered: ReadonlySet<string>
  #metadata: Record<string, unknown> = {}
  #timestamp = new Date().toISOString()

  constructor(id: { taskId: string; contextId: string }, answered: ReadonlySet<string> = new Set()) {
    this.#id = id
    this.#answered = answered
  }

  get hasEnded(): boolean {
    return isTerminal(this.#state)
  }

  /** Whether the run waits for an answer. */
  get isAsking(): boolean {
    return this.#questions.length > 0
  }

  get #questions(): RunQuestion[] {
    return this.#asked.list
      .map(({ question }) => question)
      .filter(({ callId }) => !this.#answered.has(callId))
  }

  add(event: RunEvent): Update[] {
    this.#asked.add(event)
    this.#timestamp = new Date().toISOString()
    switch (event.type) {
      case 'run-start':
        return this.#to('TASK_STATE_WORKING')
      case 'text-delta':
        return this.#text(event)
      case 'tool-call':
      case 'tool-result':
      case 'agent-transfer': {
        this.#drafts = []
        const { sessionId: _sessionId, runId: _runId, seq: _seq, ...facts } = event
        return [...this.#close(), this.#update({ lango: facts })]
      }
      case 'usage':
        this.#drafts = []
        return this.#close()
      case 'step-restart':
        return this.#restart()
      case 'error':
        this.#words = [{ text: runProblem(event.error).detail }]
        return this.#close()
      case 'run-finish':
        return this.#finish(event)
      case 'code':
      case 'reasoning-delta':
      case 'repair':
      case 'sources':
      case 'run-queued':
      case 'run-scheduled':
      case 'run-resumed':
      case 'model-switch':
      case 'model-wait':
      case 'tools-missing':
      case 'turn-warning':
      case 'wrap-up':
      case 'history-cut':
      case 'approval-request':
      case 'approval-answer':
      case 'tool-unknown':
        return []
      default:
        return event satisfies never
    }
  }

  /** The status of a run that asks: what it asks for, in words and as data. */
  asking(): Update[] {
    return [...this.#close(), { statusUpdate: { ...this.#id, status: this.#status(this.isAsking) } }]
  }

  task(history?: AgentMessage[]): Task {
    const { taskId: id, contextId } = this.#id
    const artifacts = [...this.#artifacts.values()]
    const more = { ...(history ? { history } : {}), metadata: { lango: this.#metadata } }
    return { id, contextId, status: this.#status(this.isAsking), artifacts, ...more }
  }

  /** While more questions may come, the run still works: a stream ends with the first status that asks. */
  #status(isAsking = false): TaskStatus {
    const parts = isAsking ? this.#questionParts() : this.#words
    const state = isAsking ? 'TASK_STATE_INPUT_REQUIRED' : this.#state
    const message: AgentMessage = {
      ...{ messageId: `${this.#id.taskId}-status`, ...this.#id, role: 'ROLE_AGENT', parts },
    }
    return { state, timestamp: this.#timestamp, ...(parts.length > 0 ? { message } : {}) }
  }

  #questionParts(): Part[] {
    const questions = this.#questions.map(question => {
      const { callId: id, tool, args, asks } = question
      return {
        id,
        asks,
        tool,
        args,
        schema: answerSchema(question),
        text: question.reason ?? questionText(question),
      }
    })
    return [{ text: questions.map(({ text }) => text).join('\n') }, { data: { questions } }]
  }

  #update(metadata?: Record<string, unknown>): Update {
    return { statusUpdate: { ...this.#id, status: this.#status(), ...(metadata ? { metadata } : {}) } }
  }

  #to(state: TaskState): Update[] {
    this.#state = state
    return [this.#update()]
  }

  #text(event: Of<'text-delta'>): Update[] {
    const { runId, text } = event
    const isNew = this.#open === undefined
    this.#open ??= `${runId}-${firstSeqOf(event)}`
    const artifactId = this.#open
    if (isNew) this.#drafts.push(artifactId)
    const before = this.#artifacts.get(artifactId)?.parts[0]?.text ?? ''
    this.#artifacts.set(artifactId, { artifactId, parts: [{ text: `${before}${text}` }] })
    return [this.#written({ artifactId, parts: [{ text }] }, { append: !isNew, lastChunk: false })]
  }

  #written(artifact: Artifact, place: { append: boolean; lastChunk: boolean }): Update {
    return { artifactUpdate: { ...this.#id, artifact, ...place } }
  }

  #close(): Update[] {
    const artifactId = this.#open
    this.#open = undefined
    if (artifactId === undefined) return []
    return [this.#written({ artifactId, parts: [{ text: '' }] }, { append: true, lastChunk: true })]
  }

  /** The half answer is void: its artifact is replaced by an empty one. */
  #restart(): Update[] {
    this.#open = undefined
    const drafts = this.#drafts
    this.#drafts = []
    return drafts.map(artifactId => {
      this.#artifacts.delete(artifactId)
      return this.#written({ artifactId, parts: [{ text: '' }] }, { append: false, lastChunk: true })
    })
  }

  #finish({ runId, finishReason, output, usage }: Of<'run-finish'>): Update[] {
    if (finishReason === 'waiting') return []
    this.#metadata = { finishReason, usage }
    const closed = this.#close()
    if (output !== undefined) {
      const artifact = { artifactId: `${runId}-output`, parts: [{ data: output }] }
      this.#artifacts.set(artifact.artifactId, artifact)
      closed.push(this.#written(artifact, { append: false, lastChunk: true }))
    }
    this.#state = ENDS[finishReason] ?? 'TASK_STATE_COMPLETED'
    return [...closed, this.#update({ lango: this.#metadata })]
  }
}

const ENDS: Readonly<Record<string, TaskState>> = {
  aborted: 'TASK_STATE_CANCELED',
  error: 'TASK_STATE_FAILED',
}

/** The messages of a task: what its user has said, and what the agent has. */
export function historyOf(
  messages: readonly ChatMessage[],
  id: { taskId: string; contextId: string },
): AgentMessage[] {
  return messages.flatMap(({ seq, role, parts, synthetic }): AgentMessage[] => {
    const text = parts.flatMap(part => (part.type === 'text' ? [part.text] : [])).join('')
    if (synthetic || text === '' || (role !== 'user' && role !== 'assistant')) return []
    const who = role === 'user' ? ('ROLE_USER' as const) : ('ROLE_AGENT' as const)
    return [{ messageId: `message-${seq}`, ...id, role: who, parts: [{ text }] }]
  })
}

/**
 * The answers in a message: a data part `{ answers: { <id>: … } }`, or for a single question the data or the words
 * themselves. `undefined` when it is none.
 */
export function answersIn(
  questions: readonly RunQuestion[],
  message: SentMessage,
): Map<string, RunAnswer> | undefined {
  const { words, data } = contentOf(message)
  const named = namedAnswers(message)
  const field = 'message.parts'
  if (named) {
    const unknown = Object.keys(named).filter(id => !questions.some(({ callId }) => callId === id))
    if (unknown.length > 0)
      throw badField(field, `The task asks no questions with these ids: ${unknown.join(', ')}.`)
    const given = questions.filter(({ callId }) => Object.hasOwn(named, callId))
    return new Map(
      given.map(question => [question.callId, answerFrom(question, named[question.callId], field)]),
    )
  }
  const [question, another] = questions
  if (!question || another) return undefined
  const payload = data ?? (question.asks === 'result' ? words : WORDS.get(words.trim().toLowerCase()))
  if (payload === undefined) return undefined
  return new Map([[question.callId, answerFrom(question, payload, field)]])
}

/** The answers of a message that name their questions. */
export function namedAnswers(message: SentMessage): Record<string, unknown> | undefined {
  const { data } = contentOf(message)
  return isRecord(data) && isRecord(data.answers) ? data.answers : undefined
}

const WORDS: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ...['yes', 'y', 'ok', 'approve', 'approved', 'allow', 'once'].map(word => [word, true] as const),
  ...['no', 'n', 'deny', 'denied', 'refuse', 'reject'].map(word => [word, false] as const),
  ...['always', 'happened', 'run', 'leave'].map(word => [word, word] as const),
])
