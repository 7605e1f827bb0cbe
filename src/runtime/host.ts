/** The half of the runtime that needs ADK: agents, models, and the doors that runs go through. */

import { randomUUID } from 'node:crypto'
import { type AgentDefinition, buildAgent, resolveAgentModels } from '../adk/agent/build-agent.js'

import { ModelAdapter, type ModelReport, onModelRequest } from '../adk/model/model-adapter.js'
import {
  type BaseAgent,
  type BaseLlm,
  createEvent,
  isAgentTool,
  isLlmAgent,
  type LlmRequest,
  Runner,
  StreamingMode,
  setLogger,
} from '../adk/sdk.js'
import { eventToMessage } from '../adk/session/event-to-message.js'
import { SessionServiceAdapter } from '../adk/session/session-service-adapter.js'
import type { AgentConfig } from '../config/config.js'
import { resolveTools } from '../config/resolve-tools.js'
import { AgentError } from '../errors.js'
import type { Logger } from '../logger.js'
import { joinObservers, logRuns } from '../observe/log.js'
import { createTelemetry, hideContentFromAdkSpans } from '../observe/telemetry.js'
import type { ProviderRegistry } from '../provider/provider-registry.js'
import { run } from '../run/run.js'
import { ApprovalDesk } from '../run/run-approvals.js'
import type { RunEvent } from '../run/run-event.js'
import type { AdkStart, RunHost, RunInput } from '../run/run-host.js'
import { type RunScope, runScope } from '../run/run-scope.js'
import { SessionQueue } from '../run/session-queue.js'
import { OBSERVATIONAL_BUDGET_TOKENS } from '../session/budget.js'
import type { Session } from '../session/message.js'
import type { SessionStore } from '../session/session-store.js'
import { completeUsage, type ModelPrice } from '../session/usage.js'
import { CalibratedTokens, type ModelRoute, RoutedModel, SpentModel } from './model-routes.js'

import type { RuntimeOptions } from './options.js'
import { gatherTools, type RuntimeTools } from './tools.js'

export interface RuntimeHost {
  /** The root agent's name and the reference of its model, empty when it brings one of its own. */
  readonly agentName: string
  readonly model: string
  /** `onEnd` is called once nothing of the run goes on. */
  run(input: RunInput, onEnd: () => void): AsyncGenerator<RunEvent, void, undefined>
  /** Ends what was started beside the runs: tool servers, spans that wait to be sent. */
  close(): Promise<void>
}

export interface HostParts {
  options: RuntimeOptions
  registry: ProviderRegistry
  store: SessionStore
  logger: Logger
}

/** Builds the agents and returns what runs need of them. */
export async function createHost(parts: HostParts): Promise<RuntimeHost> {
  const { options, store, logger } = parts
  joinLoggers(logger)
  if (!options.telemetry?.content) hideContentFromAdkSpans()
  const appName = options.app ?? 'lango'
  const tools = await gatherTools(options, store, appName, logger)
  const telemetry = await createTelemetry({ logger, ...options.telemetry })
  const models = new Models(parts)
  const rootAgent = makeRootAgent(options, models, tools)
  const host: RunHost = {
    appName,
    store,
    queue: new SessionQueue(),
    logger,
    rootAgent,
    limits: options.agent ?? { multiAgent: rootAgent.subAgents.length > 0 },
    modelReference: override => override ?? models.rootReference,
    checkModel: reference => models.check(reference),
    sessionService: (gated, lease) =>
      new SessionServiceAdapter(gated, {
        rootAgentName: rootAgent.name,
        budgetTokens: budgetOf(options),
        maxMessages: options.history?.maxMessages,
        fence: lease,
        onLoad: session => tellLoaded(session, runScope.getStore()),
      }),
    startAdk: start => startAdk(rootAgent, options, start),
    createDesk: hooks => new ApprovalDesk({ timeoutMs: options.tools?.approvalTimeoutMs, ...hooks }),
    priceOf: reference => models.priceOf(reference),
    observe: joinObservers([logRuns(logger), event => telemetry?.observeRun(event)], logger),
    observeRequest: (runId, request) => telemetry?.observeRequest(runId, request),
    appendEvent: async (key, note, lease) => {
      const event = createEvent({ ...note, invocationId: note.invocationId ?? `lango-${randomUUID()}` })
      const message = eventToMessage(event)
      if (message) await store.appendMessage(key, message, { fence: lease.fence })
    },
  }
  MODELS.set(host, models)
  return {
    agentName: rootAgent.name,
    model: models.rootReference,
    run: (input, onEnd) => run(host, input, onEnd),
    close: async () => {
      await tools.close()
      await telemetry?.shutdown()
    },
  }
}

function makeRootAgent(options: RuntimeOptions, models: Models, tools: RuntimeTools): BaseAgent {
  if (options.rootAgent) {
    const root = resolveAgentModels(options.rootAgent, reference => models.routed(reference), referenceOf)
    refuseNameOfApp(root, options.app ?? 'lango')
    models.rootReference = firstReference(root)
    return root
  }
  const agent = options.agent ?? {}
  models.rootReference = typeof agent.model === 'string' ? agent.model : ''
  // A root that names no tools gets all that were configured; names elsewhere must be among them.
  const resolved = resolveTools(agent as AgentConfig, tools.available) as AgentDefinition
  return buildAgent(resolved, {
    resolveModel: model => (typeof model === 'string' ? models.routed(model) : model),
    toolOptions: tools.adapterOptions,
  })
}

/** ADK logs to the console by default, prompts included at its lowest level; here it speaks through ours. */
function joinLoggers(logger: Logger): void {
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

function startAdk(agent: BaseAgent, { adk = {}, agent: limits }: RuntimeOptions, start: AdkStart) {
  const runner = new Runner({
    appName: start.key.appName,
    agent,
    sessionService: start.sessions,
    plugins: [start.plugin, ...(adk.plugins ?? [])],
    ...(adk.artifactService ? { artifactService: adk.artifactService } : {}),
    ...(adk.memoryService ? { memoryService: adk.memoryService } : {}),
    ...(adk.credentialService ? { credentialService: adk.credentialService } : {}),
  })
  return runner.runAsync({
    userId: start.key.userId,
    sessionId: start.key.sessionId,
    newMessage: start.message,
    abortSignal: start.signal,
    ...(start.stateDelta ? { stateDelta: start.stateDelta } : {}),
    ...(start.customMetadata ? { customMetadata: start.customMetadata } : {}),
    runConfig: {
      streamingMode: StreamingMode.SSE,
      // Our own limits end a run; ADK's is only the last resort, and must not come first.
      maxLlmCalls: 500 + (limits?.maxTurns ?? 0) + (limits?.maxDelegations ?? 0),
      ...adk.runConfig,
    },
  })
}

/** Model references to models. Agents hold routed models, because a run may choose another one. */
class Models {
  /** The reference of the root agent's model, which a run's own choice replaces. */
  rootReference = ''
  private readonly adapters = new Map<string, BaseLlm>()
  private readonly calibration: CalibratedTokens

  constructor(private readonly parts: HostParts) {
    this.calibration = new CalibratedTokens(parts.store.calibration, parts.logger)
  }

  routed(reference: string): BaseLlm {
    this.check(reference)
    // An agent may serve several runtimes: each run is routed by the runtime that it belongs to.
    return new RoutedModel(reference, request => modelsOfRun(this).route(reference, request))
  }

  /** Throws when a reference names no provider that there is. */
  check(reference: string): void {
    this.parts.registry.resolve(reference)
  }

  priceOf(reference: string): ModelPrice | undefined {
    // A model that was made in code has no reference, and its price is not known.
    if (reference === '') return undefined
    const { provider, model } = this.parts.registry.resolve(reference)
    return provider.describeModel(model).price
  }

  route(reference: string, request: LlmRequest): ModelRoute {
    const scope = runScope.getStore()
    const chosen = scope?.model && reference === this.rootReference ? scope.model : reference
    const model = this.adapter(chosen)
    if (!scope) return { model }
    report(request, chosen, scope)
    if (scope.isOwnRequest(request)) return { model }
    if (scope.wrapUpGranted) return { model: new SpentModel() }
    return {
      model,
      observe: response => {
        const calls = response.partial
          ? []
          : (response.content?.parts ?? []).flatMap(part => part.functionCall ?? [])
        if (calls.length > 0) scope.nestedCalls(calls)
      },
    }
  }

  private adapter(reference: string): BaseLlm {
    const known = this.adapters.get(reference)
    if (known) return known
    const { provider, model } = this.parts.registry.resolve(reference)
    const { history } = this.parts.options
    const adapter = new ModelAdapter({
      provider,
      model,
      budgetTokens: budgetOf(this.parts.options),
      calibration: this.calibration,
      ...(history?.repair ? { repairMode: history.repair } : {}),
    })
    this.adapters.set(reference, adapter)
    return adapter
  }
}

/** The models of each host, found by the run that asks. */
const MODELS = new WeakMap<object, Models>()

function modelsOfRun(fallback: Models): Models {
  const scope = runScope.getStore()
  return (scope && MODELS.get(scope.owner)) ?? fallback
}

function referenceOf(model: BaseLlm): string | undefined {
  return model instanceof RoutedModel ? model.model : undefined
}

/** Passes on what the model layer reports. */
function report(request: LlmRequest, reference: string, scope: RunScope): void {
  let step = 0
  const listener = (message: ModelReport) => {
    if (message.type === 'cut') scope.historyCut(message.cut)
    if (message.type === 'request') {
      const { type: _type, ...sent } = message.request
      const { history, cut } = message
      step = scope.requestSent({ ...sent, model: reference, history, cuts: cut ? [cut] : [] })
    }
    if (message.type === 'error' && !scope.isOwnRequest(request)) scope.nestedFailed(message.error)
    if (message.type === 'usage') {
      scope.modelUsed(request, step, reference, completeUsage(message.usage))
    }
  }
  // Within one run a cut is told once per change, however many requests it has.
  onModelRequest(request, listener, scope)
}

/** Other sessions may be opened inside a run, by agents that are tools; only its own is told. */
function tellLoaded({ key, messages, totalMessages, cut }: Session, scope: RunScope | undefined): void {
  if (key.sessionId !== scope?.sessionId) return
  const kept = messages.reduce((all, message) => all + message.tokens, 0)
  const tokens = cut ? cut.tokens + cut.keptTokens : kept
  scope.loaded({ messages: totalMessages, tokens }, cut)
}

function budgetOf({ history }: RuntimeOptions): number | 'off' {
  const budget = history?.maxMessageTokenBudget
  if (budget) return budget
  return history?.observationalMemory ? OBSERVATIONAL_BUDGET_TOKENS : 0
}

/** The model of the first agent that has one of ours: what a run replaces when it names another. */
function firstReference(agent: BaseAgent): string {
  const own = isLlmAgent(agent) && typeof agent.model === 'object' ? referenceOf(agent.model) : undefined
  if (own !== undefined) return own
  for (const child of agent.subAgents) {
    const found = firstReference(child)
    if (found !== '') return found
  }
  return ''
}

/** An agent inside a tool keeps its session under its own name: with the app's name it would write into the run's. */
function refuseNameOfApp(agent: BaseAgent, appName: string): void {
  const tools = isLlmAgent(agent) ? agent.tools.filter(isAgentTool) : []
  for (const { name } of tools) {
    if (name === appName) {
      throw new AgentError(
        'invalid-config',
        `The agent "${name}" inside a tool is called like the app. Give the agent or the app another name.`,
      )
    }
  }
  for (const child of agent.subAgents) refuseNameOfApp(child, appName)
}
