export type { AgentDefinition, AgentTool } from './adk/agent/build-agent.js'
export { redact } from './base/redact.js'
export type { TraceContext } from './base/trace-context.js'
export type { LangoConfig, LangoConfigInput } from './config/config.js'
export { defineConfig, loadConfig, loadRootAgent } from './config/load-config.js'
export { AgentError, type AgentErrorCode, type AgentErrorJson } from './errors.js'
export type { Logger } from './logger.js'
export type { InspectedCall, InspectedStep, RunInspection } from './observe/inspect.js'
export { createLogger, type LogOptions } from './observe/log.js'
export type { ModelCall } from './observe/model-calls.js'
export { createTelemetry, type Telemetry, type TelemetryOptions } from './observe/telemetry.js'
export type { RunResult, WaitingCall } from './run/run-and-collect.js'
export type { ApprovalAsk, OnApproval } from './run/run-approvals.js'
export type { RunEvent, RunEventType, RunFinishReason, RunRepair } from './run/run-event.js'
export type { AdkOptions, RunInput } from './run/run-host.js'
export type { HistoryOptions, RetentionOptions, RuntimeOptions, ToolsOptions } from './runtime/options.js'
export { createRuntime, type Runtime } from './runtime/runtime.js'
export type { RunUsage } from './session/usage.js'
export {
  type ApprovalAnswer,
  type ApprovalOutcome,
  type CallResponse,
  defineTool,
  type RunAnswer,
  type Tool,
  type ToolContext,
  type ToolEffect,
} from './tool.js'
