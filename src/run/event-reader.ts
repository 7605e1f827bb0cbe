import type { Event } from '../adk/sdk.js'
import { isToolError } from '../session/message.js'
import {
  emptyUsage,
  fromUsageMetadata,
  type PriceOf,
  type RunUsage,
  sumUsage,
  withCost,
} from '../session/usage.js'
import type { RunEventBody } from './run-event.js'

/**
 * Reads ADK's events and says what they mean to a listener. Keeps the answer and the usage as it goes; what
 * to do about limits and failures is decided elsewhere.
 */
export class EventReader {
  readonly answer = new AnswerText()
  private readonly steps: RunUsage[] = []
  private last: { model: string; step?: number } = { model: '' }

  constructor(
    private readonly agentNames: ReadonlySet<string>,
    private readonly priceOf: PriceOf = () => undefined,
  ) {}

  /** The sum of all model calls so far. */
  get usage(): RunUsage {
    return this.steps.length === 0 ? emptyUsage() : sumUsage(this.steps)
  }

  /** The call that the next usage belongs to. */
  modelCalled(model: string, step: number): void {
    this.last = { model, step }
  }

  /** The usage of an agent inside a tool, whose events ADK does not pass on. */
  nestedUsage(model: string, step: number, usage: RunUsage): RunEventBody {
    return { type: 'usage', author: '', model, step, usage: this.add(model, usage) }
  }

  read(event: Event): RunEventBody[] {
    // What a model said before it failed is not an answer.
    if (event.errorCode || event.errorMessage) this.answer.dropStep(event)
    const author = event.author ?? ''
    const { text, reasoning } = this.answer.add(event)
    const found: RunEventBody[] = []
    if (reasoning !== '') found.push({ type: 'reasoning-delta', author, text: reasoning })
    if (text !== '') found.push({ type: 'text-delta', author, text })
    if (event.partial) return found
    if (event.usageMetadata) {
      const { model, step } = this.last
      const usage = this.add(model, fromUsageMetadata(event.usageMetadata))
      found.push({ type: 'usage', author, model, usage, ...(step === undefined ? {} : { step }) })
    }
    found.push(...readCalls(event), ...readConfirmations(event), ...readResults(event))
    const target = event.actions?.transferToAgent
    if (target && this.agentNames.has(target))
      found.push({ type: 'agent-transfer', from: author, to: target })
    return found
  }

  private add(model: string, reported: RunUsage): RunUsage {
    const usage = withCost(reported, this.priceOf(model))
    this.steps.push(usage)
    return usage
  }
}

/** ADK's own way to ask for approval: a long-running call that a function response answers. */
const ADK_CONFIRMATION = 'adk_request_confirmation'

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
          },
        ]
      : [],
  )
}

function readConfirmations(event: Event): RunEventBody[] {
  return (event.content?.parts ?? []).flatMap(({ functionCall: call }): RunEventBody[] => {
    if (call?.name !== ADK_CONFIRMATION) return []
    const { originalFunctionCall: original, toolConfirmation } = (call.args ?? {}) as ConfirmationArgs
    const reason = toolConfirmation?.hint
    return [
      {
        type: 'approval-request',
        id: call.id ?? '',
        name: original?.name ?? '',
        args: original?.args ?? {},
        ...(reason ? { reason } : {}),
      },
    ]
  })
}

interface ConfirmationArgs {
  originalFunctionCall?: { name?: string; args?: Record<string, unknown> }
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

/** The little of an ADK event that the answer is made of. */
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
 * Collects the answer of a run. Each model step is heard once: from its partials when there were any,
 * otherwise from its final event, never from both. Agents that speak side by side have steps of their own. The
 * answer is what the final author said last; thoughts are not part of it.
 */
export class AnswerText {
  private readonly open = new Map<string, SpokenText>()
  private lastText = ''
  private lastAuthor = ''

  /** Takes one event and returns what it adds for a listener. */
  add(event: SpokenEvent): SpokenText {
    if (!event.author || event.author === 'user') return { text: '', reasoning: '' }
    const step = stepOf(event)
    const said = { text: spoken(event, false), reasoning: spoken(event, true) }
    const heard = this.open.get(step) ?? { text: '', reasoning: '' }
    if (event.partial) {
      this.open.set(step, { text: heard.text + said.text, reasoning: heard.reasoning + said.reasoning })
      return said
    }
    this.open.delete(step)
    this.endStep(event.author, heard.text || said.text)
    return {
      text: heard.text === '' ? said.text : '',
      reasoning: heard.reasoning === '' ? said.reasoning : '',
    }
  }

  /** Forgets steps that broke off, or that of one event: their partials are not an answer. */
  dropStep(event?: SpokenEvent): void {
    if (event) this.open.delete(stepOf(event))
    else this.open.clear()
  }

  /** What the final author said last. */
  get text(): string {
    return this.lastText
  }

  private endStep(author: string, text: string): void {
    if (author !== this.lastAuthor) this.lastText = ''
    this.lastAuthor = author
    if (text !== '') this.lastText = text
  }
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
