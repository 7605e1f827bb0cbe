/** Checks a configuration and fills in its defaults. */

import { z } from 'zod'
import { PROVIDER_TYPES } from '../provider/vendors.js'
import { adkApp, refuseContradictions } from './adk-config.js'
import { agentSchemaWith, configSchema, type LangoConfig, sharedKeys } from './config.js'
import { type EngineParts, engineProblems } from './engine-config.js'
import { type ConfigProblem, invalidConfig, pathText, readData } from './read-data.js'
import { group, live, logger, storeAddress, text } from './schema-parts.js'

export interface ParseOptions {
  /** What is checked, such as a file's name. */
  where?: string | undefined
  /** Says where the value of a key comes from, when that is not the file. */
  originOf?: ((path: string) => string | undefined) | undefined
}

/** Checks a configuration and fills in the defaults. */
export function parseConfig(input: unknown, options: ParseOptions = {}): LangoConfig {
  const read = readData(configSchema, input, FILE_NOTES)
  const problems = read.data ? furtherProblems(read.data) : read.problems
  if (!read.data || problems.length > 0) {
    throw invalidConfig(
      options.where ?? 'The configuration',
      problems.map(problem => withOrigin(problem, options)),
    )
  }
  return withProviderTypes(read.data)
}

const FILE_NOTES = new Map([
  ['logger', 'Only `createRuntime` takes a logger; a configuration file has `log`.'],
])

function withOrigin(problem: ConfigProblem, { originOf }: ParseOptions): ConfigProblem {
  const origin = originOf?.(problem.path)
  return origin === undefined
    ? problem
    : { ...problem, message: `${problem.message} It comes from ${origin}.` }
}

/** As much of a configuration or of options as the rules need. */
interface NamedParts extends EngineParts {
  providers: Providers
  agent?: NamedAgent | undefined
}

type Providers = LangoConfig['providers']

interface NamedAgent {
  name: string
  tools?: readonly unknown[] | undefined
  subAgents?: readonly NamedAgent[] | undefined
}

export function furtherProblems(config: NamedParts): ConfigProblem[] {
  return [...untypedProviders(config), ...doubleNames(config), ...engineProblems(config)]
}

function untypedProviders({ providers }: NamedParts): ConfigProblem[] {
  return Object.entries(providers).flatMap(([name, provider]) => {
    if ('generate' in provider || ('type' in provider && provider.type !== undefined)) return []
    if (PROVIDER_TYPES.some(type => type === name && type !== 'openai-compatible')) return []
    const path = pathText(['providers', name, 'type'])
    const types = PROVIDER_TYPES.join(', ')
    const message = `\`${path}\` is missing: it must be one of: ${types}. For a known server set type: openai-compatible and preset: ${name}.`
    return [{ path, message }]
  })
}

/** Fills in the type of a provider whose name is a type. */
function withProviderTypes(config: LangoConfig): LangoConfig {
  const providers = Object.entries(config.providers).map(([name, provider]) => {
    if ('generate' in provider || ('type' in provider && provider.type !== undefined)) return [name, provider]
    return [name, { ...provider, type: name }]
  })
  return { ...config, providers: Object.fromEntries(providers) as LangoConfig['providers'] }
}

function doubleNames({ agent }: NamedParts): ConfigProblem[] {
  const agents = new Names()
  const visit = (definition: NamedAgent, path: readonly PropertyKey[]): void => {
    agents.add(definition.name, [...path, 'name'])
    const tools = new Names(agents.problems)
    for (const [index, tool] of (definition.tools ?? []).entries()) {
      tools.add(nameOf(tool), [...path, 'tools', index, 'name'])
    }
    for (const [index, child] of (definition.subAgents ?? []).entries()) {
      visit(child, [...path, 'subAgents', index])
    }
  }
  if (agent) visit(agent, ['agent'])
  return agents.problems
}

/** Reports names that occur twice. */
class Names {
  readonly #seen = new Map<string, string>()

  constructor(readonly problems: ConfigProblem[] = []) {}

  add(name: string | undefined, steps: readonly PropertyKey[]): void {
    if (name === undefined) return
    const path = pathText(steps)
    const first = this.#seen.get(name)
    this.#seen.set(name, first ?? path)
    if (first === undefined) return
    const message = `\`${path}\` is "${name}", but must be another name: \`${first}\` already has it.`
    this.problems.push({ path, message })
  }
}

/** The name of a tool made in code. Naming a tool twice is harmless. */
function nameOf(tool: unknown): string | undefined {
  if (typeof tool !== 'object' || tool === null || !('name' in tool)) return undefined
  return typeof tool.name === 'string' ? tool.name : undefined
}

const MODEL_ERROR = 'must be a model such as "openai/gpt-5.2", or an ADK model'
const STORE_ERROR =
  'must be an address that starts with sqlite:, postgres:// or memory:, or a store made in code'

const agentModel = z.union([text(), live<object>('generateContentAsync', MODEL_ERROR)], {
  error: MODEL_ERROR,
})

const store = z.union([storeAddress(), live<object>('createSession', STORE_ERROR)], { error: STORE_ERROR })

const APP_ERROR = 'must be a non-empty text, or an ADK app'

export const optionsSchema = group({
  ...sharedKeys,
  app: z.union([text(), adkApp], { error: APP_ERROR }).optional(),
  store: store.optional(),
  agent: agentSchemaWith(agentModel).optional(),
  model: text('must be a model such as "openai/gpt-5.2"').optional(),
  logger: logger.optional(),
}).superRefine(refuseContradictions)

/** Options as the schema sees them; `RuntimeOptions` says more of what is made in code. */
export type OptionsInput = z.input<typeof optionsSchema>
