/** The half of the runtime that needs ADK: joins agents, models, tools, sessions and observers for its runs. */

import { type AdoptedTools, adoptTools } from '../adk/agent/adopt-tools.js'
import { agentsOf, nodesOf, toolsOf } from '../adk/agent/agent-tree.js'
import {
  type AgentDefinition,
  answerForRegistry,
  buildAgent,
  resolveAgentModels,
} from '../adk/agent/build-agent.js'
import { checkClientTools, clientRequests } from '../adk/agent/client-tools.js'
import { followTools, type WantedTools } from '../adk/agent/late-tools.js'
import { checkedOutput } from '../adk/agent/tool-parameters.js'
import { ArtifactServiceAdapter, boundedService } from '../adk/artifact-service.js'
import { answerUnknownTools } from '../adk/model/unknown-tools.js'
import {
  asRunnableRoot,
  InMemoryCredentialService,
  isAgentTool,
  isBaseAgent,
  type RunnableRoot,
  setLogger,
} from '../adk/sdk.js'
import {
  contentOf,
  eventOf,
  noteAppender,
  openingMessage,
  SessionServiceAdapter,
  type SessionServiceOptions,
} from '../adk/session/session-service-adapter.js'
import { defined } from '../base/defined.js'
import { DEFAULT_AGENT_NAME } from '../base/names.js'
import { titleOfMessage } from '../base/title.js'
import type { AgentConfig } from '../config/config.js'
import { resolveTools } from '../config/resolve-tools.js'
import { AgentError } from '../errors.js'
import { type Logger, silentLogger } from '../logger.js'
import { joinObservers, logRuns } from '../observe/log.js'
import { type CallWatch, type RunListeners, watchedProvider } from '../observe/model-calls.js'
import { hideContentFromAdkSpans, type RunTelemetry, traceRuntime } from '../observe/telemetry.js'
import type { Provider } from '../provider/provider.js'
import type { ProviderRegistry } from '../provider/provider-registry.js'
import { Runs } from '../run/run.js'
import { defaultMaxRunning } from '../run/run-admission.js'
import type { RunEvent } from '../run/run-event.js'
import type { RunFollower } from '../run/run-follower.js'
import type { AdkOptions, RunHost, RunInput } from '../run/run-host.js'
import type { RunLimitOptions } from '../run/run-limits.js'
import { reportLoaded, runScope } from '../run/run-scope.js'
import { DEFAULT_BUDGET_TOKENS } from '../session/budget.js'
import type { CheckedOutput } from '../session/model-options.js'
import type { SessionStore } from '../session/session-store.js'
import type { ExecuteCall } from '../session/tool-calls.js'
import type { Tool } from '../tool.js'
import { artifactPlace, folderOf, isFolder, savedOnce } from './artifact-place.js'
import { createEngine } from './engine.js'
import { type AgentTree, describeAgent } from './info.js'
import { budgetOf, createMemory, memoryOptions, memoryServiceOf, type RuntimeMemory } from './memory.js'
import { firstReference, ModelRoutes, modelInRun, referenceOf } from './model-routes.js'
import type { CheckedOptions } from './options.js'
import { gatherTools, type RuntimeTools, reportEffects } from './tools.js'

export interface RuntimeHost {
  /** The root agent's name and the reference of its model, empty when it brings one of its own. */
  readonly agentName: string
  readonly agents: AgentTree
  readonly model: string
  readonly runs: Runs
  /** Refuses what the agents cannot do for the caller of a run. */
  check(input: RunInput): Promise<void>
  /** Loads what the first run would load. */
  load(): Promise<void>
  /** Ends what was started for the runs: tool servers, the sending of spans. */
  close(): Promise<void>
}

export interface HostParts {
  options: CheckedOptions
  registry: ProviderRegistry
  store: SessionStore
  logger: Logger
  follower: RunFollower
  /** Called with the events and the model calls of all runs of this process. */
  listeners: RunListeners
}

/** Builds the agents and returns what runs need of them. */
export async function createHost(parts: HostParts): Promise<RuntimeHost> {
  const { options, store, logger } = parts
  joinLoggers(logger)
  if (!options.telemetry?.content) hideContentFromAdkSpans()
  const telemetry = await traceRuntime({ logger, ...options.telemetry })
  const isWatched = () => telemetry !== undefined || parts.listeners.calls.size > 0
  const watch = watchCalls(parts, telemetry, isWatched)
  const memory = createMemory({ ...parts, watch, pay: async provider => models.paid(provider, true) })
  const models = makeModels(parts, { watch, isWatched }, memory)
  const tools = await gatherTools(options, store, logger, models)
  const rootAgent = makeRootAgent(options, models, tools, memory?.tool)
  models.rootAgent = rootAgent
  answerForRegistry(modelInRun)
  const adopted = adoptTools(rootAgent, () => runScope.getStore()?.ledger, executorOf(telemetry))
  reportEffects(rootAgent, options, logger)
  if (tools.servers && !options.rootAgent) followServers(rootAgent, options.agent, tools, adopted)
  const ofSessions: SessionServiceOptions = {
    ...sessionOptions(options, store),
    rootAgentName: rootAgent.name,
    steady: true,
    onLoad: session => {
      reportLoaded(session)
      memory?.onLoad(session)
    },
    onNode: adopterOf(rootAgent, models, adopted),
    isNumbered: memory !== undefined,
  }
  const engine = await createEngine(parts, describeAgent(rootAgent), defaultMaxRunning())
  const runHost: RunHost = {
    appName: options.app,
    ...{ store, logger, rootAgent, models, engine },
    agentNames: new Set([rootAgent.name, ...agentsOf(rootAgent).map(({ name }) => name)]),
    outputs: outputsOf(options.agent),
    checkOutput: checkedOutput,
    limits: limitsOf(options, rootAgent),
    budget: options.budget,
    adk: { ...services(options, store), ...adkOptions(parts) },
    app: options.adkApp,
    ...runSettings(options),
    tools: { ...adopted, effects: options.tools?.effects },
    ...{ openingMessage, contentOf, answerUnknownTools },
    clientOf: input => (input.clientTools || input.generation ? clientRequests(input) : undefined),
    eventOf: message => eventOf(message, rootAgent.name),
    sessionService: (gated, fence, hooks) =>
      new SessionServiceAdapter(gated, { ...hooks, fence, ...ofSessions }),
    observe: watchRuns(parts, telemetry, memory),
    tracing: telemetry,
    appendNote: noteAppender(store),
  }
  const runs = new Runs(runHost, parts.follower)
  if (runs.work) await engine?.open(runs.work)
  return {
    agentName: rootAgent.name,
    get agents() {
      return describeAgent(rootAgent)
    },
    model: models.rootReference,
    runs,
    check: async ({ clientTools }) => clientTools && checkClientTools(rootAgent, clientTools),
    load: () => models.load(),
    close: async () => {
      await engine?.close()
      await memory?.keeper.close()
      await tools.close()
      await telemetry?.shutdown()
    },
  }
}

function runSettings({ runs = {}, tools = {} }: CheckedOptions) {
  const { maxRunning, resume, maxAttempts } = runs
  return { maxRunning, resume, maxAttempts, approvalTimeoutMs: tools.approvalTimeoutMs }
}

/** Watches the calls of providers. Each is wrapped once: a wrapped one cannot be distinguished from another. */
function watchCalls(
  { listeners, logger }: HostParts,
  telemetry: RunTelemetry | undefined,
  isWatched: () => boolean,
) {
  const known = new WeakMap<Provider, Provider>()
  const watch: CallWatch = {
    isWatched,
    ended: call => joinObservers([...listeners.calls], logger)(call),
    place: () => {
      const run = runScope.getStore()
      return run && { runId: run.runId, sessionId: run.key.sessionId }
    },
    ...(telemetry ? { trace: call => telemetry.modelCall(call) } : {}),
  }
  return (provider: Provider): Provider => {
    const watched = known.get(provider) ?? watchedProvider(provider, watch)
    known.set(provider, watched)
    return watched
  }
}

function executorOf(telemetry: RunTelemetry | undefined): ExecuteCall | undefined {
  return telemetry && ((call, work) => telemetry.tool(runScope.getStore()?.runId, call, work))
}

function makeModels(
  parts: HostParts,
  watching: { watch(provider: Provider): Provider; isWatched(): boolean },
  memory: RuntimeMemory | undefined,
): ModelRoutes {
  const { options, registry, store, logger } = parts
  const { repair: repairMode, maxAnswerLength } = options.history ?? {}
  const { maxCallsPerAnswer } = options.limits ?? {}
  const budgetTokens = budgetOf(options)
  return new ModelRoutes({
    ...{ registry, store, logger, budgetTokens, repairMode, maxAnswerLength, maxCallsPerAnswer, ...watching },
    memory: memory && ((key, throughSeq) => memory.keeper.logFor(key, throughSeq)),
  })
}

function sessionOptions(options: CheckedOptions, store: SessionStore): SessionServiceOptions {
  return {
    budgetTokens: openingBudget(budgetOf(options)),
    maxMessages: options.history?.maxMessages,
    // A plugin that removes a secret from the message removes it from the title that was made of the message.
    onOpeningChanged: async (key, { message, seq }, before) => {
      if (seq !== 1 || message.content === before.content) return
      const session = await store.loadSession(key, { budgetTokens: 'off', maxMessages: 1 })
      // A title that somebody gave is theirs.
      if (session?.title !== titleOfMessage(before.content)) return
      await store.renameSession(key, titleOfMessage(message.content))
    },
  }
}

/** Passes the events of runs to the log, the spans, the listeners and memory. */
function watchRuns(
  { logger, listeners }: HostParts,
  telemetry: RunTelemetry | undefined,
  memory: RuntimeMemory | undefined,
): (event: RunEvent) => void {
  const observers = [
    ...(logger === silentLogger ? [] : [logRuns(logger)]),
    ...(telemetry ? [(event: RunEvent) => telemetry.observeRun(event)] : []),
  ]
  const tell = (event: RunEvent) => {
    for (const listener of listeners.events) listener(event)
    memory?.onEvent(event)
  }
  return observers.length > 0 ? joinObservers([...observers, tell], logger) : tell
}

function makeRootAgent(
  options: CheckedOptions,
  models: ModelRoutes,
  tools: RuntimeTools,
  recall: Tool | undefined,
): RunnableRoot {
  if (options.rootAgent) {
    const root = resolveAgentModels(
      asRunnableRoot(options.rootAgent),
      name => models.forAgent(name),
      referenceOf,
    )
    refuseNameOfApp(root, options.app)
    models.rootReference = firstReference(root)
    return root
  }
  const agent = options.agent ?? {}
  models.rootReference = typeof agent.model === 'string' ? agent.model : ''
  // A root agent that names no tools gets all configured ones; sub-agents get the tools that they name.
  const mayCome = (name: string) => tools.servers?.mayCome(name) ?? false
  const resolved = resolveTools(agent as AgentConfig, tools.available, mayCome) as AgentDefinition
  return buildAgent(recall ? withTool(resolved, recall) : resolved, {
    resolveModel: (model, chosen) => (typeof model === 'string' ? models.routed(model, chosen) : model),
    toolOptions: tools.adapterOptions,
    contextCompactors: options.adk?.contextCompactors,
  })
}

/** Adopts a node that code makes while it runs. */
function adopterOf(root: object, models: ModelRoutes, adopted: AdoptedTools): (node: object) => void {
  const known = new WeakSet<object>(nodesOf(root))
  return node => {
    if (known.has(node)) return
    known.add(node)
    resolveAgentModels(node, name => models.forAgent(name), referenceOf)
    adopted.adoptTree(node)
  }
}

/** Gives the agents the tools of servers that come later, and reports once in a run which are missing. */
function followServers(
  root: object,
  agent: AgentDefinition = {},
  { servers, adapterOptions }: RuntimeTools,
  { adopt }: AdoptedTools,
): void {
  if (!servers) return
  const wanted = new Map<string, WantedTools>()
  const visit = ({ name = DEFAULT_AGENT_NAME, tools, subAgents = [] }: AgentDefinition, isRoot: boolean) => {
    const listed = (tools ?? []).filter(tool => typeof tool === 'string')
    wanted.set(name, isRoot && tools === undefined ? 'all' : listed)
    for (const child of subAgents) visit(child, false)
  }
  visit(agent, true)
  const reported = new WeakMap<object, Set<string>>()
  followTools(root, {
    source: servers,
    wanted: name => wanted.get(name) ?? [],
    toolOptions: adapterOptions,
    adopt,
    onMissing: ({ server, problem }, branch) => {
      const run = runScope.getStore()
      if (!run || run.isReplaying(branch)) return
      const known = reported.get(run) ?? new Set()
      if (!known.has(server)) run.notify({ type: 'tools-missing', server, problem })
      reported.set(run, known.add(server))
    },
  })
}

/** By agent: the schema of its answers. */
function outputsOf(agent: AgentDefinition | undefined): Map<string, CheckedOutput> {
  const found = new Map<string, CheckedOutput>()
  const visit = ({ name = DEFAULT_AGENT_NAME, outputSchema, subAgents = [] }: AgentDefinition): void => {
    if (outputSchema) found.set(name, checkedOutput(outputSchema))
    for (const child of subAgents) visit(child)
  }
  if (agent) visit(agent)
  return found
}

/** Whether agents may hand over to each other, or take turns in a workflow. */
function hasSeveralAgents(root: RunnableRoot): boolean {
  return isBaseAgent(root) ? root.subAgents.length > 0 : agentsOf(root).length > 1
}

/** The agent and those below it with one tool more, unless they have one of its name. */
function withTool(agent: AgentDefinition, tool: Tool): AgentDefinition {
  const { tools = [], subAgents } = agent
  const isThere = tools.some(own => typeof own === 'object' && 'name' in own && own.name === tool.name)
  return {
    ...agent,
    tools: isThere ? tools : [...tools, tool],
    ...(subAgents ? { subAgents: subAgents.map(child => withTool(child, tool)) } : {}),
  }
}

/** ADK logs to the console by default, prompts included at its lowest level; here it logs to Lango's logger. */
export function joinLoggers(logger: Logger): void {
  const words = (values: readonly unknown[]) =>
    `ADK: ${values.filter(value => typeof value === 'string').join(' ')}`
  setLogger({
    log: () => {},
    debug: () => {},
    info: (...values) => logger.debug(words(values)),
    warn: (...values) => logger.debug(words(values)),
    error: (...values) => logger.warn(words(values)),
    setLogLevel: () => {},
  })
}

/** The services that agents find when `adk` names none. Credentials are kept in this process: secrets are not stored. */
function services(options: CheckedOptions, store: SessionStore): AdkOptions {
  const { place, maxBytes } = artifactPlace(options)
  const credentialService = new InMemoryCredentialService()
  if (options.adk?.artifactService) return { credentialService }
  if (isFolder(place))
    return { credentialService, artifactService: boundedService(folderOf(place, options.app), maxBytes) }
  return {
    credentialService,
    artifactService: new ArtifactServiceAdapter(savedOnce(store.artifacts), { maxBytes, needsSession: true }),
  }
}

function adkOptions({ options, store }: HostParts): AdkOptions {
  const { contextCompactors: _ofAgents, ...ofRunner } = options.adk ?? {}
  const memoryService = ofRunner.memoryService ?? memoryServiceOf(store, memoryOptions(options))
  return { ...ofRunner, ...defined({ memoryService }) }
}

/** The limits of the top level come before those of the agent. */
function limitsOf({ limits = {}, agent }: CheckedOptions, root: RunnableRoot): RunLimitOptions {
  const ofAgent = agent ?? { multiAgent: hasSeveralAgents(root) }
  const { multiAgent, maxTurns, maxDelegations } = ofAgent
  return { multiAgent, ...defined({ maxTurns, maxDelegations }), ...defined({ ...limits }) }
}

/**
 * How much of a session is opened: more than a request may hold, so that only the requests decide where their history
 * begins, and begin where the one before began. Every agent and model has a beginning of its own.
 */
function openingBudget(budgetTokens: number | 'off'): number | 'off' {
  return budgetTokens === 'off' ? budgetTokens : (budgetTokens || DEFAULT_BUDGET_TOKENS) * 1.5
}

/** An agent inside a tool keeps its session under its own name: with the app's name it would write into the run's. */
function refuseNameOfApp(root: object, appName: string): void {
  for (const { name } of nodesOf(root).flatMap(toolsOf).filter(isAgentTool)) {
    if (name === appName) {
      throw new AgentError(
        'invalid-config',
        `Agent tool "${name}" has the same name as the app. Rename the agent or the app.`,
      )
    }
  }
}
