import type { AgentDefinition } from '../adk/agent/build-agent.js'
import type { App, BaseContextCompactor, RunnableNode } from '../adk/sdk.js'
import type { EngineOption } from '../engine/engine-options.js'
import type { Logger } from '../logger.js'
import type { TelemetryOptions } from '../observe/telemetry.js'
import type { RepairMode } from '../provider/provider.js'
import type { ProvidersConfig } from '../provider/provider-registry.js'
import type { LoopLimit } from '../run/loop-guard.js'
import type { AdkOptions } from '../run/run-host.js'
import type { TurnLimitOptions } from '../run/run-limits.js'
import type { SessionStore } from '../session/session-store.js'
import type { Budget } from '../session/usage.js'
import type { EffectOfTool } from '../tool.js'
import type { BuiltInToolOptions } from '../tools/built-in-tools.js'
import type { McpServerConfig } from '../tools/mcp.js'

/** What `createRuntime` takes. */
export interface RuntimeOptions {
  /**
   * The name under which sessions are kept. Default `lango`, or the name of the ADK app. Or an ADK `App`: its root agent
   * runs, its plugins are called, and its other settings count.
   */
  app?: string | App | undefined
  /** `sqlite:./lango.db` (the default), `memory:`, `postgres://…`, or a store, which its owner closes. */
  store?: string | SessionStore | undefined
  /** By name, as in `name/model`. Keys default to the usual environment variables. */
  providers?: ProvidersConfig | undefined
  /** The agent as data, or … */
  agent?: (AgentDefinition & TurnLimitOptions) | undefined
  /**
   * … an agent or a workflow of ADK that you already have, unchanged. A node, a tool or a function is a workflow of one.
   * Or an `App` whose sessions are kept under the name in `app`.
   */
  rootAgent?: RunnableNode | App | undefined
  /** A model reference that runs use instead of the root agent's own, unless they name another. */
  model?: string | undefined
  /** How far a run may go, for both kinds of agent. Before what `agent` says. */
  limits?: LimitOptions | undefined
  /** How much model calls may cost. Default: nothing is limited. A run may have a budget of its own. */
  budget?: Budget | undefined
  history?: HistoryOptions | undefined
  /** How the runs of this process are limited. */
  runs?: RunsOptions | undefined
  /**
   * What decides when and where runs are executed: every process executes what is free (`leases`, the default), or DBOS
   * dispatches them over a fleet (`dbos`, on PostgreSQL).
   */
  engine?: EngineOption | undefined
  /** Built-in tools by name, and how tools are run. Agents name them in `tools`; a root that names none gets all. */
  tools?: ToolsOptions | undefined
  /** Servers of the Model Context Protocol, whose tools agents may name as `server_tool`. */
  mcpServers?: Readonly<Record<string, McpServerConfig>> | undefined
  /**
   * Where the artifacts of agents are kept: with the sessions (`store`, the default), in this process (`memory:`), or in
   * a folder.
   */
  artifacts?: string | ArtifactOptions | undefined
  /** How long data is kept. Default: sessions without end. */
  retention?: RetentionOptions | undefined
  /** Messages that are sent by a calendar, while the runtime is `ready`. An empty list forgets all of them. */
  schedules?: readonly ScheduleOptions[] | undefined
  /** Spans for a collector. Default: none. */
  telemetry?: TelemetryOptions | undefined
  /** Handed to ADK as they are. */
  adk?: (AdkOptions & AgentAdkOptions) | undefined
  logger?: Logger | undefined
}

/** A message that is sent by a calendar. */
export interface ScheduleOptions {
  /** Unique in the app. */
  name: string
  /** Five fields: minute, hour, day of the month, month, day of the week. */
  cron: string
  /** The time zone of the fields. Default `UTC`. */
  timeZone?: string | undefined
  /** The session that gets the message, or `new` for a session of its own for each tick. */
  session: string
  text: string
  /** The user of the session. Default `user`. */
  user?: string | undefined
  model?: string | undefined
  /** What to do about ticks that no process was there for. Default `skip`. */
  missed?: 'skip' | 'latest' | 'all' | undefined
  /** What to do when the run of the tick before has not ended. Default `queue`. */
  overlap?: 'queue' | 'skip' | undefined
}

/** The options after their check: what an ADK app says is in its own places. */
export interface CheckedOptions extends Omit<RuntimeOptions, 'app' | 'rootAgent'> {
  app: string
  rootAgent?: RunnableNode | undefined
  /** The ADK app that `rootAgent` belongs to. */
  adkApp?: App | undefined
}

export interface ArtifactOptions {
  /** `store`, `memory:`, or the path of a folder. Default `store`. */
  place?: string | undefined
  /** The most bytes of one artifact. Default 33,554,432. */
  maxBytes?: number | undefined
}

/** What ADK takes for agents and not for the runner. */
export interface AgentAdkOptions {
  /** ADK's compaction of long histories, for the agents of `agent`; an agent made in code has its own. */
  contextCompactors?: readonly BaseContextCompactor[] | undefined
}

/**
 * The limits of a run.
 *
 * ```ts
 * import { createRuntime } from 'lango'
 *
 * const runtime = await createRuntime({
 *   agent: { model: 'demo/demo' },
 *   limits: { maxTurns: 40, maxDelegations: 8, loop: { warnAfter: 5, stopAfter: 20 } },
 * })
 * await runtime.close()
 * ```
 */
export interface LimitOptions {
  /** Turns with tool calls. Default 25, or 50 with several agents. */
  maxTurns?: number | undefined
  /** Transfers between agents. Default 32. */
  maxDelegations?: number | undefined
  /** Tool calls in one answer; further ones are neither stored nor run, and the model reads how many. Default 128. */
  maxCallsPerAnswer?: number | undefined
  /** When equal calls with equal results count as a loop. `false`: never. Default: a warning after 3, the end after 5. */
  loop?: LoopLimit | false | undefined
}

export interface HistoryOptions {
  /** Tokens of history that a model is sent. 0 or absent: 32,000. `'off'`: the message limit holds instead. */
  maxMessageTokenBudget?: number | 'off' | undefined
  /** Default: none, or 100 when the budget is off. */
  maxMessages?: number | undefined
  /** The most characters of one answer; a longer one ends there with the finish reason `length`. Default 4,194,304. */
  maxAnswerLength?: number | undefined
  /** Memory with its defaults, and 8,000 as the default budget. */
  observationalMemory?: boolean | undefined
  /** What was said stays known, also what is no longer sent: notes about it, and the tool `recall`. Default: off. */
  memory?: MemoryOptions | undefined
  /** What to do with a history that a model would refuse. Default `repair`. */
  repair?: RepairMode | undefined
}

export interface MemoryOptions {
  /** The model that takes notes, as `provider/model`. Default: none, notes are quotations chosen by rules. */
  observer?: string | undefined
  /** Whether agents get the tool `recall`. Default true. */
  recall?: boolean | undefined
  /** What `recall` searches: the session, or all sessions of its user. Default `session`. */
  scope?: 'session' | 'user' | undefined
}

export interface RunsOptions {
  /** How many runs may work at once in this process; the others wait. Default: by cores and memory. */
  maxRunning?: number | undefined
  /** Whether a run whose process is gone is continued by another process. Default true. */
  resume?: boolean | undefined
  /** How often a run may begin or be continued without storing anything more. Default 3. */
  maxAttempts?: number | undefined
}

export interface RetentionOptions {
  /** Deletes sessions that were not changed for this many days and have no active run. */
  sessionsDays?: number | undefined
  /** Deletes run events and sent requests that are older than this many days. */
  runsDays?: number | undefined
  /** Deletes the records of model calls that are older than this many days. Budgets keep what was spent. */
  usageDays?: number | undefined
}

export interface ToolsOptions extends Partial<BuiltInToolOptions> {
  /** Names such as `read_file`; none is there unless it is named. */
  builtIn?: readonly string[] | undefined
  /**
   * What calls of tools change, by the tool's name: for ADK's own tools, for those of MCP servers, and instead of what a
   * tool says itself. Default: `once`, or what an MCP server says.
   */
  effects?: Readonly<Record<string, EffectOfTool>> | undefined
  /** How long a request for approval waits before it counts as a no. Default: without end. */
  approvalTimeoutMs?: number | undefined
  /** Results over this are shortened for the model. Default 16,000. */
  outputLimitTokens?: number | undefined
  /** Keep shortened results whole and offer `read_output`. Default: when there are built-in or MCP tools. */
  keepOutputs?: boolean | undefined
}
