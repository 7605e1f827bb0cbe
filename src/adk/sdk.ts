/**
 * Everything that Lango takes from `@google/adk` and `@google/genai`. Importing a value from here loads ADK
 * (over a second); importing a type costs nothing. `test/contract` pins the behaviour that we rely on.
 */
import {
  BaseLlm,
  BasePlugin,
  BaseSessionService,
  BaseTool,
  createEvent,
  isAgentTool,
  isBaseTool,
  isBaseToolset,
  isLlmAgent,
  LlmAgent,
  PluginManager,
  Runner,
  StreamingMode,
  setLogger,
} from '@google/adk'

export type {
  AppendEventRequest,
  BaseAgent,
  BaseArtifactService,
  BaseCredentialService,
  BaseLlmConnection,
  BaseMemoryService,
  BaseToolset,
  Context,
  CreateSessionRequest,
  Event,
  EventActions,
  GetSessionRequest,
  InvocationContext,
  ListSessionsRequest,
  ListSessionsResponse,
  LlmRequest,
  LlmResponse,
  RunAsyncToolRequest,
  RunConfig,
  Session as AdkSession,
  ToolProcessLlmRequest,
} from '@google/adk'
export type {
  Content,
  FinishReason as AdkFinishReason,
  FunctionCall,
  FunctionDeclaration,
  FunctionResponse,
  GenerateContentConfig,
  Part,
} from '@google/genai'
export {
  BaseLlm,
  BasePlugin,
  BaseSessionService,
  BaseTool,
  createEvent,
  isAgentTool,
  isBaseTool,
  isBaseToolset,
  isLlmAgent,
  LlmAgent,
  PluginManager,
  Runner,
  StreamingMode,
  setLogger,
}
