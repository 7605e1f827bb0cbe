/**
 * `lango/testing`: a scripted model, and servers that judge requests as strictly as the vendors do.
 *
 * ```ts
 * import { createRuntime } from 'lango'
 * import { ScriptedProvider } from 'lango/testing'
 * const provider = new ScriptedProvider([{ text: 'Hello.' }])
 * const runtime = await createRuntime({
 *   store: 'memory:',
 *   providers: { play: provider },
 *   agent: { name: 'root', model: 'play/model' },
 * })
 * for await (const event of runtime.run({ sessionId: 's1', text: 'Hi' })) console.log(event.type)
 * await runtime.close()
 * ```
 */
export { AgentError, type AgentErrorCode } from '../errors.js'
export {
  type Script,
  type ScriptedCall,
  ScriptedProvider,
  type ScriptedProviderOptions,
  type ScriptStep,
} from '../testing/scripted-provider.js'
export {
  type StrictProvider,
  type StrictProviderOptions,
  startStrictProvider,
} from '../testing/start-strict-provider.js'
export { type JudgeOptions, judge } from '../testing/strict/judge.js'
export {
  type AnthropicSubject,
  type GeminiSubject,
  mintReasoningId,
  mintSignature,
  type OpenaiSubject,
} from '../testing/strict/mint-signature.js'
export { type Reading, STRICT_PROFILES, type StrictProfile } from '../testing/strict/profile.js'
export {
  FAULT_KINDS,
  type Fault,
  type FaultKind,
  QUIRKS,
  type Quirk,
  type RequestSummary,
  type Script as StrictScript,
  type ScriptedCall as StrictCall,
  type ScriptFinish,
  type ScriptStep as StrictStep,
  type ScriptUsage,
  type SummaryMessage,
} from '../testing/strict/script.js'
export type { RecordedRequest, RecordedViolation } from '../testing/strict/strict-server.js'
export type { Violation } from '../testing/strict/violation.js'
