import { BasePlugin, type LlmRequest, type LlmResponse, type Part } from '../adk/sdk.js'

/** Why the next model call is the last one. */
export type WrapUpReason = 'turn-limit' | 'delegation-limit' | 'loop'

export interface WrapUp {
  reason: WrapUpReason
  /** What the model is told. */
  notice: string
  /** The answer when the model still will not give one. */
  fallback: string
}

/**
 * The run's hand inside ADK. It keeps the original error of a failed model call, tells the model what the run
 * has decided, and sees to it that a last turn really ends with words. What it tells goes into the request
 * only; nothing of it is stored.
 */
export class RunPlugin extends BasePlugin {
  /** The error that ADK is about to flatten to a text. */
  modelError: Error | undefined
  private wrapUp: WrapUp | undefined
  private wrapUpStarted = false
  private warning: string | undefined
  private nestedFailure: Error | undefined
  private readonly requests = new WeakSet<object>()

  constructor() {
    super('lango-run')
  }

  /** Whether a request went through this plugin: nested runners have no plugins. */
  owns(request: object): boolean {
    return this.requests.has(request)
  }

  /** Makes the next model call the last one. Granted once. */
  grantWrapUp(wrapUp: WrapUp): void {
    this.wrapUp ??= wrapUp
  }

  /** Adds a note to the next request. */
  warn(notice: string): void {
    this.warning = notice
  }

  override async beforeModelCallback({
    llmRequest,
  }: {
    llmRequest: LlmRequest
  }): Promise<LlmResponse | undefined> {
    this.requests.add(llmRequest)
    if (this.warning) tell(llmRequest, this.warning)
    this.warning = undefined
    if (!this.wrapUp) return undefined
    if (this.wrapUpStarted) return spoken(this.wrapUp.fallback)
    this.wrapUpStarted = true
    tell(llmRequest, this.wrapUp.notice)
    forbidTools(llmRequest)
    return undefined
  }

  override async afterModelCallback({
    llmResponse,
  }: {
    llmResponse: LlmResponse
  }): Promise<LlmResponse | undefined> {
    if (!this.wrapUp || !this.wrapUpStarted || llmResponse.errorCode || llmResponse.partial) return undefined
    const parts = llmResponse.content?.parts ?? []
    const words = parts.filter(part => !part.functionCall)
    if (words.some(hasText) && words.length === parts.length) return undefined
    const kept = words.some(hasText) ? words : [...words, { text: this.wrapUp.fallback }]
    return { ...llmResponse, content: { role: 'model', parts: kept } }
  }

  /** Remembers why an agent inside a tool has nothing to say. */
  noteNestedFailure(error: Error): void {
    this.nestedFailure = error
  }

  /** An agent inside a tool that failed answers with an empty text; its caller is told why instead. */
  override async afterToolCallback({
    result,
  }: {
    result: unknown
  }): Promise<Record<string, unknown> | undefined> {
    const failure = this.nestedFailure
    this.nestedFailure = undefined
    return failure && isEmptyResult(result) ? { error: failure.message } : undefined
  }

  override async onModelErrorCallback({ error }: { error: Error }): Promise<LlmResponse | undefined> {
    this.modelError = error
    return undefined
  }
}

function isEmptyResult(result: unknown): boolean {
  if (result === undefined || result === null || result === '') return true
  return typeof result === 'object' && 'result' in result && result.result === ''
}

function hasText(part: Part): boolean {
  return !part.thought && (part.text ?? '').trim() !== ''
}

function spoken(text: string): LlmResponse {
  return { content: { role: 'model', parts: [{ text }] }, turnComplete: true, partial: false }
}

/** Notes go to the end of the system instruction: a further user turn would change which turn is the current one. */
function tell(request: LlmRequest, notice: string): void {
  request.config ??= {}
  const before = request.config.systemInstruction
  if (before === undefined || before === '') request.config.systemInstruction = notice
  else if (typeof before === 'string') request.config.systemInstruction = `${before}\n\n${notice}`
  else request.config.systemInstruction = [...systemParts(before), { text: notice }]
}

function systemParts(instruction: object): Part[] {
  if (Array.isArray(instruction))
    return instruction.map(part => (typeof part === 'string' ? { text: part } : part))
  return 'parts' in instruction ? (instruction.parts as Part[]) : [instruction as Part]
}

/** The tools stay declared, because the history speaks of them; they just may not be called. */
function forbidTools(request: LlmRequest): void {
  request.config ??= {}
  // The mode is an enumeration of the SDK whose value is this very word.
  request.config.toolConfig = { functionCallingConfig: { mode: 'NONE' as never } }
}
