/** What a run records of its events while it works, and what it is given again when it is resumed. */
import { modelOfSeveral } from '../adk/adk-quirks.js'
import type { Context, Event, LlmRequest, LlmResponse } from '../adk/sdk.js'
import { defined } from '../base/defined.js'
import { toJsonData } from '../base/json.js'
import { Scope } from '../base/scope.js'
import { AgentError, type AgentErrorJson } from '../errors.js'
import type { SessionKey, State } from '../session/message.js'
import type { JournalEntry, RunStep } from '../session/run-store.js'
import type {
  AdoptedEvent,
  JournalledAppend,
  SessionJournal,
  SessionView,
} from '../session/session-journal.js'
import { followCall, type ModelCall } from './model-answers.js'
import type { Lane, Replay } from './replay.js'
import type { RunFinishReason } from './run-event.js'

/** The tool call, as the ledger names it, whose agents are at work. */
export const callScope = new Scope<string>('call')

/** The tool call, as the ledger names it, whose code is at work. */
export const workScope = new Scope<string>('work')

/** The node of a workflow, by its path, that is at work. */
export const nodeScope = new Scope<string>('node')

export interface JournalParts {
  key: SessionKey
  /** What earlier attempts of the run have recorded. */
  replay: Replay | undefined
  /** Sees to it that every call of an answer has a tool to go to, as the model's adapter does for new answers. */
  answerUnknownTools(request: LlmRequest, response: LlmResponse): unknown
  /** The failure of a model that an event of ADK's reports. */
  failureOf(event: Event): Error | undefined
  /** Stores a step. One that ends the run is not waited for. */
  write(
    step: Pick<RunStep, 'message' | 'stateDelta' | 'at' | 'journal'>,
    endsRun: boolean,
  ): Promise<unknown> | undefined
  /** Whether nothing comes after an answer of a model, neither of ADK's nor of the user's. */
  isLast(event: Event): boolean
}

export class RunJournal implements SessionJournal<Event> {
  readonly #parts: JournalParts
  /** The changes of state of model steps: ADK's event of the answer has the same object. */
  readonly #steps = new WeakSet<object>()
  /** The model steps whose answers have not been appended. */
  readonly #asking = new Set<object>()
  /** Events that are answers of model steps. A plugin may replace the event, and keeps its id. */
  readonly #answers = new Set<string>()
  /** The model steps whose last answer is not the only one to come. */
  readonly #unfinished = new WeakSet<object>()
  /** The model steps whose models may give several answers. */
  readonly #followed = new WeakSet<object>()
  /** Answers that come from the record. */
  readonly #recorded = new WeakSet<object>()
  /** Where the events of nodes were made, by their ids. */
  readonly #madeIn = new Map<string, string>()
  #isHeld = false

  constructor(parts: JournalParts) {
    this.#parts = parts
  }

  /** Whether models are being asked. */
  get isAsking(): boolean {
    return this.#asking.size > 0
  }

  /** Whether code on a branch is driven through what earlier attempts did. */
  isReplaying(branch: string): boolean {
    return this.#parts.replay?.isReplaying(currentScope(), branch) ?? false
  }

  /** No model is asked from now on. */
  hold(): void {
    this.#isHeld = true
  }

  /** Whether the next thing that the record has of an agent is an answer of its model. */
  hasAnswer({ invocationContext, agentName }: Context): boolean {
    return this.#parts.replay?.hasAnswer(laneOf(invocationContext.branch, agentName)) ?? false
  }

  isAnswered(agentName: string, branch: string | undefined): boolean {
    return this.#parts.replay?.hasOnlyAnswer(laneOf(branch, agentName)) ?? false
  }

  /** Whether the next thing that the record has of an agent is a notice to its model. */
  hasNotice({ invocationContext, agentName }: Context): boolean {
    return this.#parts.replay?.hasNotice(laneOf(invocationContext.branch, agentName)) ?? false
  }

  /**
   * Begins a model step. Returns the recorded answer, if there is one; `several`: the model gives the recorded answers,
   * because there is more than one.
   */
  beginStep(context: Context, request: LlmRequest): Event | 'several' | Promise<undefined> | undefined {
    const { replay } = this.#parts
    const { invocationContext, agentName } = context
    const lane = laneOf(invocationContext.branch, agentName)
    const answer = replay?.nextAnswer(lane)
    const ask = () => this.#beginAsking(context)
    if (answer && replay?.hasMore(answer) && this.#follow(context, request, { lane, first: answer, ask }))
      return 'several'
    if (answer) {
      invocationContext.incrementLlmCallCount()
      return this.#give(request, answer)
    }
    const follow = () => {
      this.#follow(context, request, { lane, first: undefined, ask: () => undefined })
      return undefined
    }
    const asked = ask()
    return asked ? asked.then(follow) : follow()
  }

  /** Whether the model of a step was made in code, so that it may give several answers. */
  isFollowed({ actions }: Context): boolean {
    return this.#followed.has(actions.stateDelta)
  }

  /** Whether an answer comes from the record. */
  isRecorded(response: LlmResponse): boolean {
    return this.#recorded.has(response)
  }

  #follow(
    context: Context,
    request: LlmRequest,
    { lane, first, ask }: { lane: Lane; first: Event | undefined; ask: ModelCall['ask'] },
  ): boolean {
    const { replay } = this.#parts
    const step = context.actions.stateDelta
    const model = modelOfSeveral(context.invocationContext.agent)
    if (!model) return false
    this.#followed.add(step)
    let next = first
    followCall(model, request, {
      recorded: () => {
        const event = next ?? (first && replay?.nextAnswer(lane))
        next = undefined
        return event && { event: this.#give(request, event), hasMore: replay?.hasMore(event) ?? false }
      },
      ask,
      answered: hasMore => void (hasMore ? this.#unfinished.add(step) : this.#unfinished.delete(step)),
    })
    return true
  }

  #give(request: LlmRequest, answer: Event): Event {
    this.#parts.answerUnknownTools(request, answer)
    this.#recorded.add(answer)
    return answer
  }

  #beginAsking({ agentName, actions }: Context): Promise<void> | undefined {
    const begin = () => {
      // The run is continued elsewhere.
      if (this.#isHeld) return new Promise<never>(() => {})
      this.#steps.add(actions.stateDelta)
      this.#asking.add(actions.stateDelta)
      return undefined
    }
    const live = this.untilLive(`agent "${agentName}" calls the model`)
    return live ? live.then(begin) : begin()
  }

  /** Inside a node of a workflow: resolves when nothing that is recorded is left. */
  untilLive(what: string): Promise<void> | undefined {
    return currentNode() === '' ? undefined : this.#parts.replay?.untilLive(what)
  }

  /** Called with every event before plugins of the user's get it. */
  see(event: Event): void {
    if (!event.partial && this.#steps.has(event.actions.stateDelta)) this.#answers.add(event.id)
  }

  viewOf(key: SessionKey): SessionView | undefined {
    return this.#parts.replay?.viewOf(this.#scopeOf(key))
  }

  adopt(key: SessionKey, event: Event): AdoptedEvent | undefined {
    return this.#parts.replay?.adopt({ scope: this.#scopeOf(key), node: this.#nodeOf(event) }, event)
  }

  async append({ key, isNested, event, ...append }: JournalledAppend<Event>): Promise<void> {
    const { message, stateDelta, delta, before } = append
    const step = event.actions.stateDelta
    const isAnswer = this.#steps.has(step) || this.#answers.delete(event.id)
    const hasDelta = Object.keys(delta).length > 0
    const failure = this.#parts.failureOf(event)
    const entry: JournalEntry = {
      id: event.id,
      kind: isAnswer ? 'model' : 'event',
      scope: this.#scopeOf(key),
      author: event.author ?? '',
      branch: event.branch ?? '',
      ...defined({ node: this.#nodeOf(event) || undefined }),
      ...(isNested ? { at: key } : {}),
      ...(isAnswer && this.#unfinished.has(step) ? { more: true } : {}),
      ...(failure instanceof AgentError ? { error: { ...failure.toJSON() } } : {}),
      ...(hasDelta ? { delta: toJsonData(delta) as State, before: toJsonData(before) as State } : {}),
    }
    // The opening of the run needs no entry of its own.
    if (!message && !hasDelta) return this.#answered(step)
    const isPlain = isAnswer && message && !hasDelta && !isNested && !failure && !entry.more
    await this.#parts.write(
      {
        journal: [entry],
        ...defined({ message }),
        ...(Object.keys(stateDelta).length > 0 ? { stateDelta } : {}),
        ...(isNested ? { at: key } : {}),
      },
      isPlain === true && this.#parts.isLast(event),
    )
    this.#answered(step)
  }

  #answered(step: object): void {
    if (!this.#unfinished.has(step)) this.#asking.delete(step)
  }

  /** The node that made an event: the innermost one, because those around it pass it on as theirs. */
  made({ id }: Event, node: string): void {
    if (!this.#madeIn.has(id)) this.#madeIn.set(id, node)
  }

  #nodeOf({ id, nodeInfo }: Event): string {
    return this.#madeIn.get(id) ?? nodeInfo?.path ?? currentNode()
  }

  #scopeOf({ appName }: SessionKey): string {
    return appName === this.#parts.key.appName ? '' : currentScope()
  }
}

/** How a run ends that has begun to answer its open calls. */
export interface RunEnding {
  finishReason: RunFinishReason
  error?: AgentErrorJson
}

/** Stored with the first answer that ends a run: from then on it is not continued, but ended. */
export function endEntry(finishReason: RunFinishReason, error: AgentError | undefined): JournalEntry {
  const delta = { finishReason, ...(error ? { error: error.toJSON() } : {}) }
  return { id: 'end', kind: 'end', scope: '', author: '', branch: '', delta: toJsonData(delta) as State }
}

function laneOf(branch: string | undefined, author: string): Lane {
  return { scope: currentScope(), author, branch: branch ?? '', node: currentNode() }
}

function currentScope(): string {
  return callScope.getStore() ?? ''
}

function currentNode(): string {
  return nodeScope.getStore() ?? ''
}
