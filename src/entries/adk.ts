/** `lango/adk`: the bridge in pieces, each usable alone with ADK's own `Runner`. */
export type { RecordedCall } from '../adk/agent/adopt-tools.js'
export { callOf } from '../adk/agent/adopt-tools.js'
export type { ApprovalRequest, ToolAdapterOptions } from '../adk/agent/tool-adapter.js'
export { ToolAdapter } from '../adk/agent/tool-adapter.js'
export type { HistoryGuardOptions, HistoryGuardReport } from '../adk/history-guard.js'
export { historyGuard } from '../adk/history-guard.js'
export { messagesToProvider } from '../adk/messages-to-provider.js'
export { convertMessages } from '../adk/model/convert-messages.js'
export type {
  Calibration,
  ModelAdapterOptions,
  ModelReport,
  ModelReportListener,
} from '../adk/model/model-adapter.js'
export { ModelAdapter, onModelRequest } from '../adk/model/model-adapter.js'
export { eventToMessage } from '../adk/session/event-to-message.js'
export type { RestoreOptions } from '../adk/session/messages-to-events.js'
export { messagesToEvents } from '../adk/session/messages-to-events.js'
export type { Fence } from '../adk/session/session-fence.js'
export type { SessionServiceOptions } from '../adk/session/session-service-adapter.js'
export { SessionServiceAdapter } from '../adk/session/session-service-adapter.js'
export type { AgentErrorCode, AgentErrorOptions } from '../errors.js'
export { AgentError } from '../errors.js'
export { isReplay } from '../run/run-scope.js'
export type { Tool, ToolContext } from '../tool.js'
export { defineTool } from '../tool.js'
