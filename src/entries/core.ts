/**
 * `lango-core`: stores, providers, repair and lint without ADK; the parts that most programs use. The rest is in its entries
 * `lango-core/store`, `lango-core/provider` and `lango-core/testing`.
 */
export { messagesToProvider } from '../adk/messages-to-provider.js'
export { AgentError, type AgentErrorCode } from '../errors.js'
export type { Provider, ProviderMessage } from '../provider/provider.js'
export { createProvider, createRegistry } from '../provider/provider-registry.js'
export type { Finding } from '../provider/repair/finding.js'
export { lintHistory } from '../provider/repair/lint-history.js'
export { profileForModel } from '../provider/repair/profile-for-model.js'
export { type RepairedHistory, repairHistory } from '../provider/repair/repair-history.js'
export type { Message, SessionKey } from '../session/message.js'
export type { SessionStore } from '../session/session-store.js'
export { openStore } from '../store/open-store.js'
