import {
  type MediaPart,
  type ProviderMessage,
  type ProviderPart,
  type Repair,
  type RepairMode,
  sealSignature,
} from '../provider/provider.js'
import type { Profile, ProfileName } from '../provider/repair/profile.js'
import { profileForModel } from '../provider/repair/profile-for-model.js'
import { repairHistory } from '../provider/repair/repair-history.js'
import { effectiveLimits } from '../session/budget.js'
import { fitToBudget } from '../session/fit-to-budget.js'
import type { HistoryCut } from '../session/message.js'
import { convertMessages, joinNeighbours } from './model/convert-messages.js'
import { lensFor } from './model/fit-request.js'
import { ModelAdapter } from './model/model-adapter.js'
import { BasePlugin, type Content, type Context, isLlmAgent, type LlmRequest, type Part } from './sdk.js'

export interface HistoryGuardOptions {
  /** How much history a request may hold. 0 or absent: 32,000. `'off'`: all of it. */
  budgetTokens?: number | 'off' | undefined
  /** The rules to repair to. Default: those that the request's model name implies. */
  profile?: ProfileName | Profile | undefined
  /** `strict` refuses with `history-illegal`, `explain` only reports. Default `repair`. */
  mode?: RepairMode | undefined
  /** Called with what was left out and what was repaired, if anything was. */
  onGuard?: ((report: HistoryGuardReport) => void) | undefined
}

export interface HistoryGuardReport {
  cut?: HistoryCut
  repairs: readonly Repair[]
}

/**
 * An ADK plugin for agents that use ADK's own Gemini model: before each model call the history is fitted to a
 * budget and repaired to the model's rules. `ModelAdapter` does both itself.
 *
 * ```ts
 * import { InMemoryRunner, LlmAgent } from '@google/adk'
 * import { historyGuard } from 'lango/adk'
 *
 * const agent = new LlmAgent({ name: 'root', model: 'gemini-3.5-flash' })
 * export const runner = new InMemoryRunner({
 *   agent,
 *   appName: 'app',
 *   plugins: [historyGuard({ budgetTokens: 16_000, onGuard: ({ repairs }) => console.log(repairs.length) })],
 * })
 * ```
 */
export function historyGuard(options: HistoryGuardOptions = {}): BasePlugin {
  return new HistoryGuard(options)
}

class HistoryGuard extends BasePlugin {
  readonly #options: HistoryGuardOptions

  constructor(options: HistoryGuardOptions) {
    super('lango-history-guard')
    this.#options = options
  }

  override async beforeModelCallback({
    callbackContext,
    llmRequest,
  }: {
    callbackContext?: Context
    llmRequest: LlmRequest
  }): Promise<undefined> {
    if (usesOurModel(callbackContext)) return undefined
    const { mode, profile = profileForModel('gemini', llmRequest.model ?? ''), onGuard } = this.#options
    const { budgetTokens } = effectiveLimits(this.#options.budgetTokens, undefined)
    const given = convertMessages(llmRequest.contents)
    const joined = joinNeighbours(given)
    const { items, cut } = fitToBudget(joined, { budgetTokens, dropWithinTurn: true }, lensFor(joined))
    const { messages, repairs } = repairHistory(items, profile, mode === undefined ? {} : { mode })
    const isUnchanged = !cut && repairs.length === 0
    if (isUnchanged && joined.length === given.length) return undefined
    const unchanged = plainContents(given, llmRequest.contents)
    llmRequest.contents = messages.flatMap(message => unchanged.get(message) ?? toContents([message]))
    if (!isUnchanged) onGuard?.({ ...(cut ? { cut } : {}), repairs })
    return undefined
  }
}

function usesOurModel(context: Context | undefined): boolean {
  const agent = context?.invocationContext?.agent
  return agent !== undefined && isLlmAgent(agent) && agent.model instanceof ModelAdapter
}

/**
 * Contents that may be sent as they were, found by the message they became. Those with calls or results are
 * written anew, because both halves of a pair must name their id the same way.
 */
function plainContents(
  messages: readonly ProviderMessage[],
  contents: readonly Content[],
): ReadonlyMap<ProviderMessage, Content> {
  const plain = new Map<ProviderMessage, Content>()
  let position = 0
  for (const content of contents) {
    const message = messages[position]
    const count = convertMessages([content]).length
    const isPlain = !content.parts?.some(part => part.functionCall || part.functionResponse)
    const hasRole = content.role === 'user' || content.role === 'model'
    if (message && count === 1 && isPlain && hasRole) plain.set(message, content)
    position += count
  }
  return plain
}

/** Neutral messages as ADK's contents: the way back from `convertMessages`. */
function toContents(messages: readonly ProviderMessage[]): Content[] {
  return messages.map(message => ({
    role: message.role === 'assistant' ? 'model' : 'user',
    parts: message.parts.flatMap(toParts),
  }))
}

function toParts(part: ProviderPart): Part[] {
  switch (part.type) {
    case 'text':
      return [{ text: part.text, ...signatureOf(part) }]
    case 'reasoning':
      return [{ text: part.text, thought: true, ...signatureOf(part) }]
    case 'tool-call': {
      const args = (part.args ?? {}) as Record<string, unknown>
      return [{ functionCall: { id: part.id, name: part.name, args }, ...signatureOf(part) }]
    }
    case 'tool-result': {
      const response = (part.result ?? {}) as Record<string, unknown>
      const media = (part.media ?? []).map(toMedia)
      return [{ functionResponse: { id: part.id, name: part.name, response } }, ...media]
    }
    case 'media':
      return [{ ...toMedia(part), ...signatureOf(part) }]
    case 'vendor':
      return part.vendor === 'gemini'
        ? [{ ...(part.value as Part), ...signatureOf(part) }]
        : [{ text: part.text }]
  }
}

function signatureOf(part: Exclude<ProviderPart, { type: 'tool-result' }>): { thoughtSignature?: string } {
  if (part.signature === undefined) return {}
  const redacted = part.type === 'reasoning' && part.redacted === true
  return { thoughtSignature: sealSignature(part.signature, part.origin ?? { vendor: 'gemini' }, redacted) }
}

function toMedia(part: MediaPart): Part {
  const named = part.name === undefined ? {} : { displayName: part.name }
  if (part.data !== undefined) return { inlineData: { mimeType: part.mimeType, data: part.data, ...named } }
  return { fileData: { mimeType: part.mimeType, fileUri: part.url ?? '', ...named } }
}
