import type { Event } from '../adk/sdk.js'
import { AnswerText } from './answer-text.js'
import { emptyUsage, type RunEventBody, type RunUsage } from './run-event.js'
import type { StepPrice } from './run-host.js'
import { fromUsageMetadata } from './usage-metadata.js'

/**
 * Reads ADK's events and says what they mean to a listener. Keeps the answer and the usage as it goes; what
 * to do about limits and failures is decided elsewhere.
 */
export class EventReader {
  readonly answer = new AnswerText()
  readonly usage: RunUsage = emptyUsage()
  private last: { model: string; step?: number; cacheWriteTokens?: number } = { model: '' }
  private priceUnknown = false

  constructor(
    private readonly agentNames: ReadonlySet<string>,
    private readonly priceOf: (reference: string) => StepPrice | undefined = () => undefined,
  ) {}

  /** The call that the next usage belongs to. */
  modelCalled(model: string, step: number): void {
    this.last = { model, step }
  }

  /** ADK's usage has no word for what was written to a cache. */
  cacheWritten(tokens: number): void {
    this.last.cacheWriteTokens = tokens
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
      const usage = this.addUsage(event)
      found.push({ type: 'usage', author, model, usage, ...(step === undefined ? {} : { step }) })
    }
    found.push(...readCalls(event), ...readConfirmations(event), ...readResults(event))
    const target = event.actions?.transferToAgent
    if (target && this.agentNames.has(target))
      found.push({ type: 'agent-transfer', from: author, to: target })
    return found
  }

  private addUsage(event: Event): RunUsage {
    const reported = fromUsageMetadata(event.usageMetadata ?? {})
    return this.add(this.last.model, { ...reported, cacheWriteTokens: this.last.cacheWriteTokens ?? 0 })
  }

  private add(model: string, usage: RunUsage): RunUsage {
    for (const field of USAGE_FIELDS) this.usage[field] += usage[field]
    return this.priced(model, usage)
  }

  /** Adds what the call cost. One call without a known price makes the sum of the run unknown. */
  private priced(model: string, usage: RunUsage): RunUsage {
    const price = this.priceOf(model)
    const cost = price?.(usage)
    if (cost === undefined) this.priceUnknown = true
    if (this.priceUnknown) delete this.usage.cost
    else this.usage.cost = (this.usage.cost ?? 0) + (cost ?? 0)
    return cost === undefined ? usage : { ...usage, cost }
  }
}

/** ADK's own way to ask for approval: a long-running call that a function response answers. */
const ADK_CONFIRMATION = 'adk_request_confirmation'

const USAGE_FIELDS = [
  'inputTokens',
  'outputTokens',
  'cachedInputTokens',
  'cacheWriteTokens',
  'reasoningTokens',
  'totalTokens',
] as const

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
            isError: Boolean(answer.response && 'error' in answer.response),
          },
        ]
      : [],
  )
}
