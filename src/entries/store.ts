/**
 * `lango/store`: sessions and their stores, usable alone.
 *
 * ```ts
 * import { openStore } from 'lango/store'
 * const store = await openStore('memory:')
 * const key = { appName: 'app', userId: 'ann', sessionId: 'trip' }
 * await store.createSession(key)
 * await store.appendMessage(key, { role: 'user', content: 'Hello', timestamp: Date.now() })
 * console.log((await store.loadSession(key))?.totalMessages)
 * await store.close()
 * ```
 */
export { AgentError, type AgentErrorCode } from '../errors.js'
export {
  DEFAULT_BUDGET_TOKENS,
  DEFAULT_MAX_MESSAGES,
  OBSERVATIONAL_BUDGET_TOKENS,
  type Truncated,
  type TruncateOptions,
  tokenBudgetTruncate,
} from '../session/budget.js'
export type {
  AnyRole,
  HistoryCut,
  LegacyRole,
  Message,
  Role,
  Session,
  SessionKey,
  ShortenedOutput,
  State,
  StoredMessage,
  ToolCall,
} from '../session/message.js'
export type { PrunedCounts, PruneOptions, RunEventRecord, RunSignal, RunStore } from '../session/run-store.js'
export type {
  AppendOptions,
  BackupOptions,
  BackupReceipt,
  CalibrationStore,
  EraseOptions,
  EraseReceipt,
  ExpireOptions,
  ExpireReceipt,
  Lease,
  LeaseOptions,
  ListQuery,
  LoadOptions,
  ReadOptions,
  SessionPage,
  SessionStore,
  SessionSummary,
  UserKey,
} from '../session/session-store.js'
export { countMessageTokens } from '../session/tokens.js'
export { openStore } from '../store/open-store.js'
