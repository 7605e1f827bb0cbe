/** Model references to models: which adapter serves a request, what the request reports to its run, and what is learnt from it. */

import { answersOnce, serverToolsOf } from '../adk/adk-quirks.js'
import { agentsOf } from '../adk/agent/agent-tree.js'
import { isKnownToAdk } from '../adk/agent/build-agent.js'
import { convertOptions, withChosen } from '../adk/model/convert-config.js'
import { ModelAdapter } from '../adk/model/model-adapter.js'
import {
  chooseOptions,
  keepSteady,
  type ModelReport,
  markOfRun,
  onModelRequest,
  restartAnswer,
} from '../adk/model/model-reports.js'
import type { RequestLane } from '../adk/model/steady-request.js'
import {
  type BaseAgent,
  BaseLlm,
  type BaseLlmConnection,
  isLlmAgent,
  type LlmAgent,
  type LlmRequest,
  type LlmResponse,
} from '../adk/sdk.js'
import { defined } from '../base/defined.js'
import { AgentError, messageOf } from '../errors.js'
import type { Logger } from '../logger.js'
import type { Provider, RepairMode } from '../provider/provider.js'
import type { ProviderRegistry } from '../provider/provider-registry.js'
import type { RequestPlace } from '../run/run-event.js'
import type { RunModels } from '../run/run-host.js'
import { type RunScope, runScope } from '../run/run-scope.js'
import { restartOf, type SessionKey } from '../session/message.js'
import type { ModelOptions, SamplingOptions } from '../session/model-options.js'
import type { SessionStore } from '../session/session-store.js'
import { completeUsage, type ModelPrice } from '../session/usage.js'
import type { FallbackParts } from './fallback.js'
import { CalibratedTokens, RequestLanes } from './request-lanes.js'

export interface ModelRoutesOptions {
  registry: ProviderRegistry
  store: Pick<SessionStore, 'calibration' | 'runs' | 'spending' | 'secret'>
  logger: Logger
  /** As in `ModelAdapterOptions`. */
  budgetTokens: number | 'off'
  repairMode: RepairMode | undefined
  maxAnswerLength?: number | undefined
  maxCallsPerAnswer?: number | undefined
  /** The provider, with its calls reported to those who watch them. */
  watch(provider: Provider): Provider
  /** Whether anybody does now. */
  isWatched(): boolean
  /** Notes about the stored messages of a session up to a number. */
  memory?: ((key: SessionKey, throughSeq: number) => Promise<string | undefined>) | undefined
}

/** The models of one runtime. Agents hold routed models, because a run may choose another one. */
export class ModelRoutes implements RunModels {
  /** The reference of the root agent's model, which a run's own choice replaces. */
  rootReference = ''
  /** The agents that may run are those below it, those inside tools included. */
  rootAgent: object | undefined
  readonly #options: ModelRoutesOptions
  readonly #adapters = new Map<string, BaseLlm>()
  readonly #references = new Set<string>()
  readonly #foreign = new Set<string>()
  readonly #calibration: CalibratedTokens
  readonly #lanes: RequestLanes
  #secret: Promise<string> | undefined
  /** The models of runs without other options: what the agents ask of them was checked. */
  readonly #checked = new Set<string | undefined>()

  constructor(options: ModelRoutesOptions) {
    const { store, logger } = options
    this.#options = options
    this.#calibration = new CalibratedTokens(store.calibration, logger)
    this.#lanes = new RequestLanes(store.runs, logger)
  }

  /** A model for an agent that names its model by a reference. */
  routed(reference: string, options: ModelOptions = {}): BaseLlm {
    for (const name of [reference, ...(options.fallback ?? [])]) {
      this.check(name)
      this.#references.add(name)
    }
    const choice = { reference, options }
    return new RoutedModel(choice, (...call) => this.#ofRun().#answer(choice, ...call))
  }

  /** A model for an agent that was made in code; `undefined` when only ADK knows the name. */
  forAgent(name: string): BaseLlm | undefined {
    if (this.#isForeign(name)) return undefined
    return this.routed(name)
  }

  /** Whether the name is no reference of Lango's, but a class of ADK's or of the application has registered for it. */
  #isForeign(name: string): boolean {
    if (this.#foreign.has(name)) return true
    try {
      this.check(name)
      return false
    } catch {
      if (!isKnownToAdk(name)) return false
    }
    this.#foreign.add(name)
    this.#options.logger.warn('A model is served by a class that is registered in ADK, without repair', {
      model: name,
    })
    return true
  }

  /** Loads the SDKs of the agents' models. One that cannot be loaded is reported by the run that needs it. */
  async load(): Promise<void> {
    const { registry, logger } = this.#options
    for (const reference of this.#references) {
      try {
        const { provider, model } = registry.resolve(reference)
        await provider.load?.(model)
      } catch (error) {
        logger.warn('The SDK of a model could not be loaded', { model: reference, error: messageOf(error) })
      }
    }
  }

  /** Throws when a reference names no configured provider. */
  check(reference: string): void {
    this.#options.registry.resolve(reference)
  }

  checkAgents(model?: string, ofRun: ModelOptions = {}): void {
    const { thinking, temperature, maxOutputTokens, fallback } = ofRun
    const isUsual = (thinking ?? temperature ?? maxOutputTokens ?? fallback) === undefined
    if (isUsual && this.#checked.has(model)) return
    for (const agent of this.rootAgent ? agentsOf(this.rootAgent) : [])
      if (isLlmAgent(agent)) this.#checkAgent(agent, model, ofRun)
    if (isUsual) this.#checked.add(model)
  }

  #checkAgent(agent: LlmAgent, model: string | undefined, ofRun: ModelOptions): void {
    const { registry, repairMode } = this.#options
    const own = inheritedModel(agent)
    if (!own) {
      refuseOptions(agent.name, ofRun)
      return
    }
    const serverTools = serverToolsOf(agent)
    const config = agent.generateContentConfig ?? {}
    const options = withChosen(convertOptions(config), { ...sampling(own.options), ...sampling(ofRun) })
    if (serverTools.length === 0 && Object.keys(options).length === 0) return
    const chosen = own.model === this.rootReference ? (model ?? own.model) : own.model
    for (const reference of [chosen, ...(ofRun.fallback ?? own.options.fallback ?? [])]) {
      const { provider, model: name } = registry.resolve(reference)
      provider.check?.({ model: name, options, serverTools, ...defined({ repairMode }) }, agent.name)
    }
  }

  unpricedAgent(model?: string): { agent: string; model?: string } | undefined {
    for (const agent of this.rootAgent ? agentsOf(this.rootAgent) : []) {
      if (!isLlmAgent(agent)) continue
      const own = inheritedModel(agent)?.model
      const reference = own === this.rootReference ? (model ?? own) : own
      if (reference !== undefined && this.priceOf(reference)) continue
      return { agent: agent.name, ...defined({ model: reference }) }
    }
    return undefined
  }

  priceOf(reference: string): ModelPrice | undefined {
    // A model that was made in code has no reference, and its price is not known.
    if (reference === '') return undefined
    const { provider, model } = this.#options.registry.resolve(reference)
    return provider.describeModel(model).price
  }

  /** An agent may serve several runtimes: each run is routed by the runtime that it belongs to. */
  #ofRun(): ModelRoutes {
    const models = runScope.getStore()?.models
    return models instanceof ModelRoutes ? models : this
  }

  /** One answer: by the model of the agent or the run, or by the next one while that cannot answer. */
  async *#answer(
    { reference, options }: ModelChoice,
    request: LlmRequest,
    ...[stream, signal]: [stream?: boolean, signal?: AbortSignal]
  ): AsyncGenerator<LlmResponse, void> {
    const scope = runScope.getStore()
    const isOwn = scope?.isOwnRequest(request) ?? false
    const place = scope?.placeOf(request)
    const outputSchema = isOwn && place ? scope?.outputOf(place.agent) : undefined
    chooseOptions(request, {
      ...sampling(options),
      ...sampling(scope?.options),
      ...defined({ outputSchema }),
    })
    if (scope && !isOwn && scope.wrapUpGranted) {
      yield* new (await import('./paid-calls.js')).SpentModel().generateContentAsync()
      return
    }
    const asked = { reference: '', step: 0 }
    if (scope) this.#reportTo(scope, request, asked)
    const takeBack = () => restartAnswer(asked.step)
    const onCalls = scope && !isOwn ? scope.nestedCalls : undefined
    const ask = async (chosen: string): Promise<AsyncIterable<LlmResponse>> => {
      asked.reference = chosen
      if (scope && place) keepSteady(request, await this.#lane(scope, place, chosen))
      const model = scope?.budget ? await this.#paidModel(chosen, scope) : this.#adapter(chosen)
      return observed(model.generateContentAsync(request, stream, signal), { onCalls, takeBack })
    }
    const references = this.#candidates(reference, options, scope)
    try {
      if (references.length === 1) yield* await ask(references[0] ?? reference)
      else yield* this.#firstOf({ references, ask, signal, ...(scope ? { scope, place, takeBack } : {}) })
    } catch (error) {
      if (scope && !isOwn && error instanceof AgentError) scope.nestedFailed(error)
      throw error
    }
  }

  /** The model of an agent, or the run's own in place of the root agent's, and those that answer while it cannot. */
  #candidates(reference: string, { fallback }: ModelOptions, scope: RunScope | undefined): string[] {
    const isRoots = reference === this.rootReference
    const chosen = (isRoots ? scope?.model : undefined) ?? reference
    return [...new Set([chosen, ...(scope?.options.fallback ?? fallback ?? [])])]
  }

  async *#firstOf(parts: Omit<FallbackParts, 'resolve' | 'health'>): AsyncGenerator<LlmResponse, void> {
    const { answerByFirst } = await import('./fallback.js')
    const { registry } = this.#options
    yield* answerByFirst({ ...parts, resolve: reference => registry.resolve(reference) })
  }

  /** What was sent before, and notes for what is left out. Agents inside tools have sessions without notes. */
  async #lane(scope: RunScope, place: RequestPlace, model: string): Promise<RequestLane> {
    const lane = await this.#lanes.find(scope, place, model)
    const { memory } = this.#options
    if (!memory || place.app !== scope.key.appName) return lane
    return { ...lane, memory: throughSeq => memory(scope.key, throughSeq) }
  }

  #adapter(reference: string, paid?: Provider): BaseLlm {
    const isWatched = !paid && this.#options.isWatched()
    const name = paid ? `$${reference}` : isWatched ? `!${reference}` : reference
    const known = this.#adapters.get(name)
    if (known) return known
    const { registry, budgetTokens, repairMode, maxAnswerLength, maxCallsPerAnswer, watch } = this.#options
    const { provider: own, model } = registry.resolve(reference)
    const provider = paid ?? (isWatched ? watch(own) : own)
    const adapter = new ModelAdapter({
      ...{ provider, model, budgetTokens, calibration: this.#calibration },
      accountSecret: () => this.#accountSecret(),
      ...defined({ repairMode, maxAnswerLength, maxCallsPerAnswer }),
    })
    this.#adapters.set(name, adapter)
    return adapter
  }

  /** A model is asked without it while the store cannot be read: the stored signatures then count as this account's. */
  async #accountSecret(): Promise<string | undefined> {
    const { store, logger } = this.#options
    this.#secret ??= store.secret()
    try {
      return await this.#secret
    } catch (error) {
      this.#secret = undefined
      logger.warn("The store's secret could not be read", { error: messageOf(error) })
      return undefined
    }
  }

  /** A model whose calls are held to the budget of the run. */
  async #paidModel(reference: string, scope: RunScope): Promise<BaseLlm> {
    const { PaidModel } = await import('./paid-calls.js')
    const { provider } = this.#options.registry.resolve(reference)
    return new PaidModel(this.#adapter(reference, await this.paid(provider)), scope)
  }

  /** The provider, with calls that are held to the budget of the current run. `isBeside`: they are not the run's own. */
  async paid(provider: Provider, isBeside = false): Promise<Provider> {
    const { paidCalls } = await import('./paid-calls.js')
    const { spending } = this.#options.store
    return paidCalls(this.#options.watch(provider), {
      spending,
      scale: model => this.#calibration.scale(model),
      isBeside,
    })
  }

  /** A model for calls beside those of the agents, held to the budget of the current run. */
  async beside(reference: string): Promise<{ provider: Provider; model: string }> {
    const { provider, model } = this.#options.registry.resolve(reference)
    return { provider: runScope.getStore()?.budget ? await this.paid(provider, true) : provider, model }
  }

  /** Passes the reports of the model layer to the run. */
  #reportTo(scope: RunScope, request: LlmRequest, asked: { readonly reference: string; step: number }): void {
    const { logger } = this.#options
    let profile = ''
    const listener = (message: ModelReport) => {
      const { reference } = asked
      if (message.type === 'cut') scope.historyCut(message.cut)
      if (message.type === 'request') {
        profile = message.request.profile
        asked.step = this.#requestSent(scope, request, reference, message)
      }
      if (message.type === 'wait') scope.notify({ ...message, type: 'model-wait', model: reference })
      if (message.type === 'restart')
        logger.warn('An answer broke off and is requested again', {
          model: reference,
          error: message.error.message,
        })
      if (message.type === 'receipts') scope.repaired({ model: reference, profile, repairs: message.repairs })
      if (message.type === 'answer-cut')
        logger.warn('An answer was ended at its longest length', { model: reference, length: message.length })
      if (message.type === 'usage')
        scope.modelUsed(request, asked.step, reference, completeUsage(message.usage))
    }
    // Within one run a cut is reported once per change, whatever the number of requests.
    onModelRequest(request, listener, scope)
    markOfRun(request)
  }

  /** Passes a request to the run, and keeps what the next one extends. */
  #requestSent(
    scope: RunScope,
    request: LlmRequest,
    model: string,
    message: Extract<ModelReport, { type: 'request' }>,
  ): number {
    const { type: _type, ...body } = message.request
    const { history, cut, sent } = message
    const place = scope.placeOf(request)
    const kept =
      place && sent
        ? { place, decided: sent.decided, lanes: this.#lanes.sent(scope, place, model, sent) }
        : {}
    return scope.requestSent({ ...body, model, history, cuts: cut ? [cut] : [], ...kept })
  }
}

/** The model for an agent that the current run executes and whose name no walk has resolved. */
export function modelInRun(name: string): BaseLlm | undefined {
  const models = runScope.getStore()?.models
  return models instanceof ModelRoutes ? models.forAgent(name) : undefined
}

/** The reference of a model that `routed` made. */
export function referenceOf(model: BaseLlm): string | undefined {
  return model instanceof RoutedModel ? model.model : undefined
}

/** The model of an agent, or of the nearest agent above it that has one; `undefined` for one that was made in code. */
function inheritedModel(agent: BaseAgent): RoutedModel | undefined {
  const model = isLlmAgent(agent) ? agent.model : undefined
  if (model !== undefined) return model instanceof RoutedModel ? model : undefined
  return agent.parentAgent && inheritedModel(agent.parentAgent)
}

/** A model that was made in code takes no options of a run. */
function refuseOptions(
  agent: string,
  { thinking, temperature, maxOutputTokens, fallback }: ModelOptions,
): void {
  const [name] = Object.keys(defined({ thinking, temperature, maxOutputTokens, fallback }))
  if (name === undefined) return
  const message = `The run sets \`${name}\`, but agent "${agent}" has a model that was made in code. Set it there, or name the model as \`provider/model\`.`
  throw new AgentError('invalid-argument', message, { details: { agent, option: name } })
}

/** The reference of the first agent of a tree that has one: the model that a run's own choice replaces. */
export function firstReference(root: object): string {
  for (const agent of agentsOf(root)) {
    const own = isLlmAgent(agent) && typeof agent.model === 'object' ? referenceOf(agent.model) : undefined
    if (own !== undefined) return own
  }
  return ''
}

function sampling({ thinking, temperature, maxOutputTokens }: ModelOptions = {}): SamplingOptions {
  return defined({ thinking, temperature, maxOutputTokens })
}

/** A model by its reference, and what it is asked for. */
interface ModelChoice {
  reference: string
  options: ModelOptions
}

/** Passes the calls of each answer of a nested agent to the run before ADK gets it, and names the step that is restarted. */
async function* observed(
  responses: AsyncIterable<LlmResponse>,
  { onCalls, takeBack }: { onCalls: RunScope['nestedCalls'] | undefined; takeBack: () => LlmResponse },
): AsyncGenerator<LlmResponse, void> {
  for await (const response of responses) {
    if (restartOf(response.customMetadata) !== undefined) {
      yield takeBack()
      continue
    }
    const parts = onCalls && !response.partial ? (response.content?.parts ?? []) : []
    const calls = parts.flatMap(part => part.functionCall ?? [])
    if (calls.length > 0) onCalls?.(calls)
    yield response
  }
}

type Answer = (...call: Parameters<BaseLlm['generateContentAsync']>) => AsyncGenerator<LlmResponse, void>

/**
 * A model that is chosen request by request: a run may use another model than its agents name, and concurrent
 * runs share agents.
 */
class RoutedModel extends BaseLlm {
  readonly options: ModelOptions
  readonly #answer: Answer

  constructor({ reference, options }: ModelChoice, answer: Answer) {
    super({ model: reference })
    answersOnce(this)
    this.options = options
    this.#answer = answer
  }

  override generateContentAsync(...call: Parameters<Answer>): AsyncGenerator<LlmResponse, void> {
    return this.#answer(...call)
  }

  override connect(): Promise<BaseLlmConnection> {
    return Promise.reject(noConnections())
  }
}

function noConnections(): AgentError {
  return new AgentError('invalid-argument', 'Live connections are not supported. Use runAsync.')
}
