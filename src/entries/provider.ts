/** `lango/provider`: any model behind one contract, and the repair of histories on its own. */
export { messagesToProvider } from '../adk/messages-to-provider.js'
export type { AgentErrorCode, AgentErrorOptions } from '../errors.js'
export { AgentError } from '../errors.js'
export { sanitize } from '../provider/gemini/sanitize.js'
export type { DescribeOptions, ModelOverride } from '../provider/model-catalog.js'
export { describeModel } from '../provider/model-catalog.js'
export type {
  GenerateRequest,
  GenerationOptions,
  LeftOut,
  MediaPart,
  ModelCapabilities,
  ModelInfo,
  Origin,
  Provider,
  ProviderMessage,
  ProviderPart,
  ProviderRole,
  ReasoningPart,
  Repair,
  RepairMode,
  TextPart,
  ToolCallPart,
  ToolDeclaration,
  ToolResultPart,
  Vendor,
  VendorPart,
} from '../provider/provider.js'
export { breakReasoning, openSignature, sealSignature } from '../provider/provider.js'
export type {
  ModelReference,
  ProviderRegistry,
  ProvidersConfig,
  ResolvedModel,
} from '../provider/provider-registry.js'
export { createProvider, createRegistry, parseModelReference } from '../provider/provider-registry.js'
export type { ProviderOptions } from '../provider/provider-settings.js'
export type { Finding } from '../provider/repair/finding.js'
export type { LintOptions } from '../provider/repair/lint-history.js'
export { lintHistory } from '../provider/repair/lint-history.js'
export type { LimitReading, LimitsReading, MediaKind, MediaLimit } from '../provider/repair/media-limits.js'
export type { Profile, ProfileName } from '../provider/repair/profile.js'
export { PROFILES } from '../provider/repair/profile.js'
export { profileForModel } from '../provider/repair/profile-for-model.js'
export type { RepairedHistory, RepairOptions } from '../provider/repair/repair-history.js'
export { repairHistory } from '../provider/repair/repair-history.js'
export type { RetryPolicy } from '../provider/retry.js'
export type { FinishReason, RequestEvent, StreamEvent } from '../provider/stream-event.js'
export type { CompatibleServer, ProviderType } from '../provider/vendors.js'
export { COMPATIBLE_SERVERS } from '../provider/vendors.js'
export type { ModelPrice, Usage } from '../session/usage.js'
