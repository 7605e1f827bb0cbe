/**
 * What can be said about a runtime's options before anything is loaded or opened. The schema is the one that
 * configuration files have. It needs Zod, so `createRuntime` imports this file when it is called.
 */

import type { App, RunnableNode } from '../adk/sdk.js'
import { defined } from '../base/defined.js'
import { isAdkApp } from '../config/adk-config.js'
import { furtherProblems, optionsSchema } from '../config/parse-config.js'
import { type ConfigProblem, invalidConfig, readData } from '../config/read-data.js'
import type { ProviderRegistry } from '../provider/provider-registry.js'
import type { ModelOptions } from '../session/model-options.js'
import { missingMembers } from '../store/checked-store.js'
import type { CheckedOptions, RuntimeOptions } from './options.js'

/** Throws `invalid-config` with all that is wrong. Returns the options without keys set to `undefined`. */
export function checkOptions(options: RuntimeOptions): CheckedOptions {
  const { given, data, problems } = readData(optionsSchema, options, NOTES)
  const found = data ? [...furtherProblems(data), ...missingAgent(data), ...incompleteStore(data)] : problems
  if (found.length > 0) throw invalidConfig('The argument of createRuntime', found)
  // The schema has accepted it, and what was made in code is still itself.
  return withoutApp(given as RuntimeOptions)
}

/** An ADK app in `app` or `rootAgent`, taken apart: its agent, and its name where the options say none. */
function withoutApp({ app: given, rootAgent: root, ...options }: RuntimeOptions): CheckedOptions {
  const adkApp = [given, root].find(value => isAdkApp(value)) as App | undefined
  const app = typeof given === 'string' ? given : (adkApp?.name ?? 'lango')
  if (adkApp) return { ...options, app, rootAgent: adkApp.rootAgent, adkApp }
  return { ...options, app, ...(root ? { rootAgent: root as RunnableNode } : {}) }
}

/** Every model that the agents name has a provider. */
export function checkModels(
  { agent, model, history, schedules }: CheckedOptions,
  registry: ProviderRegistry,
): void {
  if (model !== undefined) registry.resolve(model)
  if (history?.memory?.observer !== undefined) registry.resolve(history.memory.observer)
  for (const schedule of schedules ?? []) if (schedule.model !== undefined) registry.resolve(schedule.model)
  const visit = (definition: AgentLike, path: string, above?: unknown): void => {
    const own = definition.model ?? above
    if (typeof definition.model === 'string') registry.resolve(definition.model)
    for (const reference of definition.fallback ?? []) registry.resolve(reference)
    if (typeof own === 'object') refuseOptions(definition, path)
    for (const [index, child] of (definition.subAgents ?? []).entries())
      visit(child, `${path}.subAgents[${index}]`, own)
  }
  if (agent) visit(agent, 'agent')
}

/** A store made in code implements the whole contract. */
function incompleteStore({ store }: { store?: string | object | undefined }): ConfigProblem[] {
  const missing = typeof store === 'object' ? missingMembers(store) : []
  if (missing.length === 0) return []
  const message = `\`store\` lacks members of the interface SessionStore: ${missing.join(', ')}. Add them to the store.`
  return [{ path: 'store', message }]
}

interface AgentLike extends ModelOptions {
  readonly model?: unknown
  readonly subAgents?: readonly AgentLike[] | undefined
}

/** A model that was made in code has its own options. */
function refuseOptions({ thinking, temperature, maxOutputTokens, fallback }: AgentLike, path: string): void {
  const problems = Object.keys(defined({ thinking, temperature, maxOutputTokens, fallback })).map(name => ({
    path: `${path}.${name}`,
    message: `\`${path}.${name}\` needs a model that is named as \`provider/model\`: this one was made in code.`,
  }))
  if (problems.length > 0) throw invalidConfig('The argument of createRuntime', problems)
}

const FILE_ONLY = 'Only the commands of `lango` read it, from a configuration file.'

const NOTES = new Map([
  ['$schema', FILE_ONLY],
  ['server', FILE_ONLY],
  ['hooks', FILE_ONLY],
  ['log', 'Give `logger: createLogger({ … })` instead.'],
])

/** A file may leave the agent and its model to defaults; a program may not. */
function missingAgent({
  agent,
  app,
  rootAgent,
}: {
  agent?: AgentLike | undefined
  app?: unknown
  rootAgent?: unknown
}): ConfigProblem[] {
  if (rootAgent || isAdkApp(app)) return []
  if (!agent) {
    const message =
      'An agent is missing: give `agent: { model: "provider/model", … }`, `rootAgent`, or an ADK app as `app`.'
    return [{ path: 'agent', message }]
  }
  if (agent.model !== undefined) return []
  const message =
    '`agent.model` is missing. Name one as `provider/model`, for example `openai/gpt-5.2`, or `demo/demo` to try without a key.'
  return [{ path: 'agent.model', message }]
}
