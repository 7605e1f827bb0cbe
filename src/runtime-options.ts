import type { AgentDefinition } from './adk/agent/build-agent.js'
import type {
  BaseAgent,
  BaseArtifactService,
  BaseCredentialService,
  BaseMemoryService,
  BasePlugin,
  RunConfig,
} from './adk/sdk.js'
import type { Logger } from './logger.js'
import type { RepairMode } from './provider/provider.js'
import type { ProvidersConfig } from './provider/provider-registry.js'
import type { TurnLimitOptions } from './run/turn-limit.js'
import type { SessionStore } from './session/session-store.js'

/** What `createRuntime` takes. */
export interface RuntimeOptions {
  /** The name under which sessions are kept. Default `lango`. */
  app?: string | undefined
  /** `sqlite:./lango.db` (the default), `memory:`, `postgres://…`, or a store, which its owner closes. */
  store?: string | SessionStore | undefined
  /** By name, as in `name/model`. Keys default to the usual environment variables. */
  providers?: ProvidersConfig | undefined
  /** The agent as data, or … */
  agent?: (AgentDefinition & TurnLimitOptions) | undefined
  /** … an ADK agent that you already have, unchanged. */
  rootAgent?: BaseAgent | undefined
  history?: HistoryOptions | undefined
  /** Handed to ADK as they are. */
  adk?: AdkOptions | undefined
  logger?: Logger | undefined
}

export interface HistoryOptions {
  /** Tokens of history that a model is sent. 0 or absent: 32,000. `'off'`: the message limit holds instead. */
  maxMessageTokenBudget?: number | 'off' | undefined
  /** Default: none, or 100 when the budget is off. */
  maxMessages?: number | undefined
  /** Makes 8,000 the default budget. */
  observationalMemory?: boolean | undefined
  /** What to do with a history that a model would refuse. Default `repair`. */
  repair?: RepairMode | undefined
}

export interface AdkOptions {
  plugins?: readonly BasePlugin[] | undefined
  artifactService?: BaseArtifactService | undefined
  memoryService?: BaseMemoryService | undefined
  credentialService?: BaseCredentialService | undefined
  runConfig?: Partial<RunConfig> | undefined
}
