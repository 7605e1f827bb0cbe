import type { Event } from '../adk/sdk.js'
import { CONFIRMATION_TOOL, isRequestTool } from '../base/names.js'
import { isToolError, restartOf } from '../session/message.js'
import { sourcesOf } from '../session/sources.js'
import {
  emptyUsage,
  fromUsageMetadata,
  type PriceOf,
  type RunUsage,
  sumUsage,
  withCost,
} from '../session/usage.js'
import { endsInPair } from './event-numbers.js'
import type { RunEventBody } from './run-event.js'

/**
 * Turns ADK's events into the events of a run, and keeps the answer and the usage of the run. Limits and
 * failures are decided elsewhere.
 */
export class EventReader {
  readonly answer = new AnswerText()
  readonly #agentNames: ReadonlySet<string>
  readonly #priceOf: PriceOf
  readonly #steps: RunUsage[] = []
  /** What was emitted of the code in the open step of each author. */
  readonly #code = new Map<string, readonly RunEventBody[]>()
  #last: ReportedCall = { model: '' }
  /** The last call of each agent and branch: parallel agents call models side by side. */
  readonly #calls = new Map<string, ReportedCall>()

  constructor(agentNames: ReadonlySet<string>, priceOf: PriceOf = () => undefined) {
    this.#agentNames = agentNames
    this.#priceOf = priceOf
  }

  /** The sum of all model calls so far. */
  get usage(): RunUsage {
    return this.#steps.length === 0 ? emptyUsage() : sumUsage(this.#steps)
  }

  /** Takes what earlier attempts of the run have used. */
  resume(steps: readonly RunUsage[]): void {
    this.#steps.push(...steps)
  }

  /** Takes an event that earlier attempts of the run have reported. */
  replay(event: Event): void {
    this.answer.add(event)
  }

  /** A model was called: the next usage of this agent and branch is its. */
  modelCalled(call: ReportedCall, place?: { agent: string; branch: string }): void {
    this.#last = call
    if (place) this.#calls.set(stepOf({ ...place, author: place.agent }), call)
  }

  /** The usage of an agent inside a tool, whose events ADK does not pass on. */
  nestedUsage(model: string, step: number, usage: RunUsage): RunEventBody {
    return { type: 'usage', author: '', model, step, usage: this.#add(model, usage) }
  }

  read(event: Event): RunEventBody[] {
    // The text before a model's failure is not an answer.
    if (event.errorCode || event.errorMessage) this.answer.dropStep(event)
    const author = event.author ?? ''
    const restarted = restartOf(event.customMetadata)
    if (restarted !== undefined) {
      this.answer.dropStep(event)
      this.#code.delete(author)
      return [{ type: 'step-restart', step: restarted, author }]
    }
    const { text, reasoning } = this.answer.add(event)
    const found: RunEventBody[] = []
    if (reasoning !== '') found.push({ type: 'reasoning-delta', author, text: reasoning })
    found.push(...this.#newCode(event, author))
    if (text !== '') found.push({ type: 'text-delta', author, text })
    if (event.partial) return found
    const sources = sourcesOf(event)
    if (sources.length > 0) found.push({ type: 'sources', author, sources })
    if (event.usageMetadata) {
      const { model, step } = this.#calls.get(stepOf(event)) ?? this.#last
      const usage = this.#add(model, fromUsageMetadata(event.usageMetadata))
      found.push({ type: 'usage', author, model, usage, ...(step === undefined ? {} : { step }) })
    }
    found.push(...readCalls(event), ...readConfirmations(event), ...readResults(event))
    const target = event.actions?.transferToAgent
    if (target && this.#agentNames.has(target))
      found.push({ type: 'agent-transfer', from: author, to: target })
    return found
  }

  /** Code comes in a partial event, in its place among the text, and again in the complete one. */
  #newCode(event: Event, author: string): RunEventBody[] {
    const found = readCode(event, author)
    const seen = this.#code.get(author) ?? []
    if (event.partial) this.#code.set(author, [...seen, ...found])
    else this.#code.delete(author)
    return event.partial ? found : found.slice(seen.length)
  }

  #add(model: string, reported: RunUsage): RunUsage {
    const usage = withCost(reported, this.#priceOf(model))
    this.#steps.push(usage)
    return usage
  }
}

/** A model call, as its usage is reported. */
interface ReportedCall {
  model: string
  step?: number
}

function readCode(event: Event, author: string): RunEventBody[] {
  return (event.content?.parts ?? []).flatMap(({ executableCode, codeExecutionResult }): RunEventBody[] => {
    if (executableCode) {
      const { code = '', language } = executableCode
      return [{ type: 'code', author, code, ...(language ? { language: language.toLowerCase() } : {}) }]
    }
    const { output, outcome } = codeExecutionResult ?? {}
    return codeExecutionResult ? [{ type: 'code', author, output: output ?? String(outcome ?? '') }] : []
  })
}

function readCalls(event: Event): RunEventBody[] {
  const longRunning = new Set(event.longRunningToolIds ?? [])
  return (event.content?.parts ?? []).flatMap(({ functionCall: call }): RunEventBody[] =>
    call
      ? [
          {
            type: 'tool-call',
            author: event.author ?? '',
            id: call.id ?? '',
            name: call.name ?? '',
            args: call.args ?? {},
            ...(call.id && longRunning.has(call.id) ? { pending: true } : {}),
            ...(isRequestTool(call.name) ? callsOfBranch(event.branch) : {}),
          },
        ]
      : [],
  )
}

/** The calls that a branch belongs to: a node as a tool works on a branch `name@id`. */
function callsOfBranch(branch = ''): { inside?: string[] } {
  const inside = Array.from(branch.matchAll(/@([^@.]+)/g), ([, id = '']) => id)
  return inside.length > 0 ? { inside } : {}
}

/** ADK requests approval by a long-running call that a function response answers. */
function readConfirmations(event: Event): RunEventBody[] {
  return (event.content?.parts ?? []).flatMap(({ functionCall: call }): RunEventBody[] => {
    if (call?.name !== CONFIRMATION_TOOL) return []
    const { originalFunctionCall: original, toolConfirmation } = (call.args ?? {}) as ConfirmationArgs
    const reason = toolConfirmation?.hint
    return [
      {
        type: 'approval-request',
        id: call.id ?? '',
        name: original?.name ?? '',
        args: original?.args ?? {},
        ...(reason ? { reason } : {}),
        ...(original?.id ? { callId: original.id } : {}),
      },
    ]
  })
}

/** The arguments of a request for confirmation. */
export interface ConfirmationArgs {
  originalFunctionCall?: { id?: string; name?: string; args?: Record<string, unknown> }
  toolConfirmation?: { hint?: string }
}

function readResults(event: Event): RunEventBody[] {
  return (event.content?.parts ?? []).flatMap(({ functionResponse: answer }): RunEventBody[] =>
    answer
      ? [
          {
            type: 'tool-result',
            author: event.author ?? '',
            id: answer.id ?? '',
            name: answer.name ?? '',
            result: answer.response ?? {},
            isError: isToolError(answer.response),
          },
        ]
      : [],
  )
}

/** The fields of an ADK event that the answer is read from. */
interface SpokenEvent {
  author?: string | undefined
  branch?: string | undefined
  partial?: boolean | undefined
  content?:
    | {
        role?: string | undefined
        parts?: readonly { text?: string | undefined; thought?: boolean | undefined }[] | undefined
      }
    | undefined
}

/** What is new to the user in one event. */
interface SpokenText {
  text: string
  reasoning: string
}

/**
 * The text of a run, step by step: everything that the last author who said anything said in it, in order. Steps are
 * paragraphs. A step without text changes nothing, so that a silent last agent does not hide the answer.
 */
export class SaidText {
  readonly #steps: { author: string; text: string }[] = []

  /** Adds the text of one step. */
  add(author: string, text: string): void {
    if (text !== '') this.#steps.push({ author, text })
  }

  get text(): string {
    const author = this.#steps.at(-1)?.author
    const own = this.#steps.filter(step => step.author === author)
    return own.map(({ text }) => text).join('\n\n')
  }

  /** Who said it. */
  get author(): string {
    return this.#steps.at(-1)?.author ?? ''
  }

  /** The last step that said anything. */
  get lastText(): string {
    return this.#steps.at(-1)?.text ?? ''
  }
}

/** Reads the text of a run from its events, in order: of a run that did not live to write its last event. */
export class SaidInEvents {
  readonly #said = new SaidText()
  readonly #open = new Map<string, string>()

  add(event: RunEventBody): void {
    if (event.type === 'text-delta') {
      this.#open.set(event.author, (this.#open.get(event.author) ?? '') + event.text)
    } else if (event.type === 'usage' || event.type === 'tool-call') this.#endStep(event.author)
    else if (event.type === 'step-restart') {
      if (event.author === undefined) this.#open.clear()
      else this.#open.delete(event.author)
    }
  }

  /** `text` and `lastText` of the run's last event; a step that was truncated counts as it is. */
  end(): Pick<SaidText, 'text' | 'lastText'> {
    for (const author of [...this.#open.keys()]) this.#endStep(author)
    return { text: this.#said.text, lastText: this.#said.lastText }
  }

  #endStep(author: string): void {
    this.#said.add(author, this.#open.get(author) ?? '')
    this.#open.delete(author)
  }
}

/**
 * Collects the answer of a run. Each model step is read once: from its partials when there were any,
 * otherwise from its final event, never from both. Parallel agents have steps of their own. Thoughts are not part of
 * the answer.
 */
export class AnswerText {
  readonly #open = new Map<string, OpenStep>()
  readonly #said = new SaidText()

  /** Takes one event and returns what it adds for a listener. */
  add(event: SpokenEvent): SpokenText {
    if (!event.author || event.author === 'user') return { text: '', reasoning: '' }
    const step = stepOf(event)
    const said = { text: spoken(event, false), reasoning: spoken(event, true) }
    const before = this.#open.get(step) ?? NOTHING_SAID
    if (event.partial) {
      const text = wholeCharacters(before.kept.text + said.text)
      const reasoning = wholeCharacters(before.kept.reasoning + said.reasoning)
      this.#open.set(step, {
        text: before.text + said.text,
        reasoning: before.reasoning + said.reasoning,
        kept: { text: text.rest, reasoning: reasoning.rest },
      })
      return { text: text.whole, reasoning: reasoning.whole }
    }
    this.#open.delete(step)
    this.#said.add(event.author, before.text || said.text)
    return {
      text: before.text === '' ? said.text : before.kept.text,
      reasoning: before.reasoning === '' ? said.reasoning : before.kept.reasoning,
    }
  }

  /** Drops unfinished steps, or that of one event: their partials are not an answer. */
  dropStep(event?: SpokenEvent): void {
    if (event) this.#open.delete(stepOf(event))
    else this.#open.clear()
  }

  get text(): string {
    return this.#said.text
  }

  get lastText(): string {
    return this.#said.lastText
  }

  get author(): string {
    return this.#said.author
  }
}

/** A step of which partial events have come. */
interface OpenStep extends SpokenText {
  /** Half a surrogate pair at the end of a piece: the next piece has the other half. */
  kept: SpokenText
}

const NOTHING_SAID: OpenStep = { text: '', reasoning: '', kept: { text: '', reasoning: '' } }

/** No piece ends inside of a character: a client that reconnects there would get half of it. */
function wholeCharacters(text: string): { whole: string; rest: string } {
  const end = endsInPair(text) ? text.length - 1 : text.length
  return { whole: text.slice(0, end), rest: text.slice(end) }
}

function stepOf({ author = '', branch = '' }: SpokenEvent): string {
  return `${branch}\n${author}`
}

function spoken(event: SpokenEvent, thought: boolean): string {
  return (event.content?.parts ?? [])
    .filter(part => Boolean(part.thought) === thought)
    .map(part => part.text ?? '')
    .join('')
}

/** An agent as far as its place in the tree goes. */
export interface NamedAgent {
  readonly name: string
  readonly subAgents?: readonly NamedAgent[] | undefined
}

/** The names of all agents below this one, depth first. */
export function subAgentNames(agent: NamedAgent): string[] {
  return (agent.subAgents ?? []).flatMap(child => [child.name, ...subAgentNames(child)])
}

/** Events that arise outside the main loop, such as a repair reported while a model call is under way. */
export class Outbox<T> {
  #items: T[] = []
  #wake: () => void = () => {}

  put(item: T): void {
    this.#items.push(item)
    this.#wake()
  }

  /** Resolves `ready` although there is nothing to take. */
  wakeUp(): void {
    this.#wake()
  }

  /** Takes everything that has arrived. */
  take(): readonly T[] {
    if (this.#items.length === 0) return NOTHING
    const taken = this.#items
    this.#items = []
    return taken
  }

  /** Resolves as soon as there is something to take. */
  ready(): Promise<void> {
    if (this.#items.length > 0) return Promise.resolve()
    return new Promise(resolve => {
      this.#wake = resolve
    })
  }
}

const NOTHING: readonly never[] = []
