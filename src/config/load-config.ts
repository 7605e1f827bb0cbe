/**
 * From files, environment and options to one checked configuration. Options override the environment, the
 * environment overrides the file, the file overrides defaults. Zod and the schema are loaded on the first call.
 */

import { basename, dirname, resolve } from 'node:path'
import { defined } from '../base/defined.js'
import { own } from '../base/own.js'
import { isPlain } from '../base/redact.js'
import { AgentError, checkArgument, checkOptions } from '../errors.js'
import { KEYED_PROVIDERS } from '../provider/vendors.js'
import type { LangoConfig, LangoConfigInput } from './config.js'
import {
  type Environment,
  type FromEnvironment,
  type PlaceReader,
  readEnvironment,
  valueFor,
} from './environment.js'
import {
  absoluteStore,
  DEFAULT_STORE,
  findAgentFile,
  findConfigFile,
  isDataFile,
  readEnv,
} from './find-config.js'
import { importModule, readDataFile } from './import-file.js'
import { misplacedSecret, substitute } from './substitute.js'

export interface LoadConfigOptions {
  /** Where the file, `.env` and `agent.ts` are searched. Default: the process's folder. */
  cwd?: string | undefined
  /** The configuration file, instead of searching for one. */
  file?: string | undefined
  /** Default: `process.env`, to which `.env` is then added as `process.loadEnvFile` would. */
  env?: Environment | undefined
  /** The caller's options; they override everything else. */
  overrides?: LangoConfigInput | undefined
  /**
   * False: nothing of the folder runs or redirects anything. `.env`, a configuration in code and the agent file are
   * not loaded, and of a data file only harmless keys apply. Default true: a program that calls this trusts the
   * folder.
   */
  trusted?: boolean | undefined
}

export interface LoadedConfig {
  config: LangoConfig
  /** The file that was read. */
  file?: string
  /** An ADK agent file next to the configuration, when that has no agent. See `loadRootAgent`. */
  agentFile?: string
  /** The requested or chosen model. Absent when an agent made in code has its own. */
  model?: string
  /** The source of each key that is not a default, by dotted path. */
  sources: Readonly<Record<string, string>>
  /** The environment with the variables of `.env`. */
  env: Environment
}

/**
 * Finds, reads, merges and checks the configuration. Throws `invalid-config` with all problems.
 *
 * ```ts
 * import { loadConfig } from 'lango'
 *
 * const { config, model } = await loadConfig({ cwd: '.' })
 * ```
 */
export async function loadConfig(options: LoadConfigOptions = {}): Promise<LoadedConfig> {
  checkOptions(options, 'loadConfig')
  const cwd = resolve(options.cwd ?? '.')
  const { trusted = true } = options
  const env = await readEnv(cwd, options.env, trusted)
  const file = findConfigFile(cwd, options.file ?? env.LANGO_CONFIG)
  const [{ configSchema }, { parseConfig }, { kindsAt }] = await Promise.all([
    import('./config.js'),
    import('./parse-config.js'),
    import('./schema-walk.js'),
  ])
  const place: PlaceReader = path => kindsAt(configSchema, path)
  const written = file === undefined ? {} : fillIn(await readConfigFile(file, trusted), file, env, place)
  const asked = withoutUndefined(options.overrides ?? {})
  const fromEnv = readEnvironment(env, place)
  const isComplete = hasAgent(written) || hasAgent(asked) || !trusted
  const agentFile = isComplete ? undefined : findAgentFile(file ? dirname(file) : cwd)
  const isFromCode = [agentFile, written.rootAgent, asked.rootAgent].some(agent => agent !== undefined)
  const wanted = isFromCode ? takeModel(fromEnv) : undefined
  const sources = collectSources(written, file, fromEnv.variables, asked)
  const below = trusted ? written : merge(await storeWithoutTrust(cwd), written)
  const merged = merge(merge(below, fromEnv.config), asked)
  const model = isFromCode ? wanted : chooseModel(merged, env, sources)
  const config = parseConfig(merged, {
    where: file === undefined ? undefined : basename(file),
    originOf: path => (own(sources, path)?.startsWith('the ') ? sources[path] : undefined),
  })
  return {
    config: withAbsolutePaths(config, { cwd, file, sources }),
    ...defined({ file, agentFile, model }),
    sources,
    env,
  }
}

/**
 * What a file exports, as ADK's own loader expects: an `App` as `app` or `rootApp`, whose plugins and settings count, or
 * an agent as `rootAgent`. Otherwise its default export, and the only app or agent that it exports under another name.
 *
 * ```ts no-run: imports a file that does not exist
 * import { createRuntime, loadRootAgent, type RuntimeOptions } from 'lango'
 *
 * const rootAgent = (await loadRootAgent('./agent.ts')) as NonNullable<RuntimeOptions['rootAgent']>
 * const runtime = await createRuntime({ rootAgent })
 * ```
 */
export async function loadRootAgent(agentFile: string): Promise<object> {
  checkArgument(typeof agentFile === 'string', 'loadRootAgent', 'needs the path of a file')
  const module = await importModule(agentFile, { usesAdk: true })
  // A CommonJS file is the default export of its module.
  const exported = isObject(module.default) ? [module, module.default] : [module]
  const { isAdkApp, isBranded } = await import('./adk-config.js')
  const named = exported.flatMap(({ app, rootApp }) => [app, rootApp])
  const roots = [...exported, ...named].filter(isObject).map(({ rootAgent }) => rootAgent)
  const isAgent = (value: unknown) => isBranded(value, 'baseAgent') || isBranded(value, 'workflow.workflow')
  const found =
    named.find(isAdkApp) ??
    onlyOne(exported, value => isBranded(value, 'app')) ??
    roots.find(agent => isObject(agent) || typeof agent === 'function') ??
    onlyOne(exported, isAgent)
  if (isObject(found) || typeof found === 'function') return found
  const reason = found === undefined ? 'exports no agent' : `exports ${found}, and none of them as its root`
  throw new AgentError(
    'invalid-config',
    `${agentFile} ${reason}. Export it as \`rootAgent\`: export const rootAgent = new LlmAgent({ … })`,
    { details: { file: agentFile, exports: Object.keys(module) } },
  )
}

/** The default export, or the only export of its kind; the names of several. */
function onlyOne(
  [module = {}, own = {}]: readonly Record<string, unknown>[],
  isWanted: (value: unknown) => boolean,
): object | string | undefined {
  const given = [own, own.default].find(isWanted)
  if (given) return given
  const found = Object.entries({ ...own, ...module }).filter(([, value]) => isWanted(value))
  const [first, ...others] = new Set(found.map(([, value]) => value))
  return others.length > 0 ? found.map(([name]) => name).join(' and ') : (first as object | undefined)
}

async function readConfigFile(file: string, trusted: boolean): Promise<unknown> {
  if (!trusted) {
    const { readHarmless } = await import('./folder-needs.js')
    return readHarmless(file)
  }
  if (isDataFile(file)) return readDataFile(file)
  const module = await importModule(file)
  // A CommonJS file that was compiled from ESM carries its default one level deeper.
  const found = isObject(module.default) && isObject(module.default.default) ? module.default : module
  const config = found.default ?? found.config
  if (config === undefined) {
    throw invalid(`${file} exports no configuration. Export one: export default defineConfig({ … })`, {
      file,
    })
  }
  return config
}

function fillIn(raw: unknown, file: string, env: Environment, place: PlaceReader): Record<string, unknown> {
  const { value, missing, misplaced, whole } = substitute(raw, env)
  const problems = [
    ...misplaced.map(({ path, variable }) => ({
      path: path.join('.'),
      message: misplacedSecret(path.join('.'), variable),
    })),
    ...missing.map(({ path, variable }) => ({
      path: path.join('.'),
      message: `\`${path.join('.')}\` refers to the environment variable ${variable}, which is not set. Set it, or write \${${variable}:-default}.`,
    })),
  ]
  if (problems.length > 0) {
    throw new AgentError(
      'invalid-config',
      `${basename(file)} is not valid: ${problems.map(({ message }) => message).join(' ')}`,
      { details: { problems } },
    )
  }
  if (!isPlain(value)) {
    throw invalid(`${basename(file)} is not valid: it must contain an object of settings.`, { file })
  }
  for (const { path, text } of whole) setIn(value, path, valueFor(place, path, text))
  return withoutUndefined(value)
}

/** The default database, unless it is a link out of the folder. */
async function storeWithoutTrust(cwd: string): Promise<Record<string, unknown>> {
  const { isLocalStore } = await import('./harmless-settings.js')
  return isLocalStore(DEFAULT_STORE, cwd) ? {} : { store: 'memory:' }
}

function hasAgent(layer: Record<string, unknown>): boolean {
  return layer.agent !== undefined || layer.rootAgent !== undefined
}

/** An agent made in code keeps its settings: variables that set keys of `agent` do not apply to it. */
function takeModel(fromEnv: FromEnvironment): string | undefined {
  const { agent } = fromEnv.config
  for (const path of Object.keys(fromEnv.variables)) {
    if (path.startsWith('agent.') && path !== 'agent.model') delete fromEnv.variables[path]
  }
  delete fromEnv.config.agent
  return isPlain(agent) && typeof agent.model === 'string' ? agent.model : undefined
}

/** The configured agent's model; when it names none, one whose key is set. */
function chooseModel(
  merged: Record<string, unknown>,
  env: Environment,
  sources: Record<string, string>,
): string | undefined {
  const { agent = {} } = merged
  if (!isPlain(agent)) return undefined
  if (agent.model !== undefined) return String(agent.model)
  const { reference, reason } = defaultModel(merged.providers, env)
  merged.agent = { ...agent, model: reference }
  sources['agent.model'] = `default: ${reason}`
  return reference
}

function collectSources(
  written: Record<string, unknown>,
  file: string | undefined,
  variables: Record<string, string>,
  asked: Record<string, unknown>,
): Record<string, string> {
  // Without a prototype: paths are the user's keys.
  const sources = Object.create(null) as Record<string, string>
  for (const path of leaves(written)) sources[path] = file === undefined ? '' : basename(file)
  for (const [path, name] of Object.entries(variables)) sources[path] = `the environment variable ${name}`
  for (const path of leaves(asked)) sources[path] = 'the options'
  return sources
}

function leaves(value: Record<string, unknown>, prefix = ''): string[] {
  return Object.entries(value).flatMap(([key, child]) =>
    isPlain(child) && Object.keys(child).length > 0 && key !== 'tokens'
      ? leaves(child, `${prefix}${key}.`)
      : [`${prefix}${key}`],
  )
}

/** Objects are merged key by key; everything else, lists included, is replaced. */
function merge(below: Record<string, unknown>, above: Record<string, unknown>): Record<string, unknown> {
  const merged = Object.entries(above).map(([key, value]) => {
    const old = own(below, key)
    return [key, isPlain(old) && isPlain(value) ? merge(old, value) : value]
  })
  return { ...below, ...Object.fromEntries(merged) }
}

interface PathBase {
  cwd: string
  file: string | undefined
  sources: Readonly<Record<string, string>>
}

/** Paths of a file are relative to the file's folder, all others to `cwd`. */
function withAbsolutePaths(config: LangoConfig, { cwd, file, sources }: PathBase): LangoConfig {
  const from = (key: string) => (file !== undefined && sources[key] === basename(file) ? dirname(file) : cwd)
  const { tools, log } = config
  return {
    ...config,
    store: absoluteStore(config.store, from('store')),
    ...defined({ artifacts: absoluteArtifacts(config.artifacts, from) }),
    tools: { ...tools, workspace: resolve(from('tools.workspace'), tools.workspace) },
    log: log.file === undefined ? log : { ...log, file: resolve(from('log.file'), log.file) },
  }
}

function absoluteArtifacts(
  artifacts: LangoConfig['artifacts'],
  from: (key: string) => string,
): LangoConfig['artifacts'] {
  if (typeof artifacts === 'object') {
    const { place = 'store' } = artifacts
    return isFolder(place) ? { ...artifacts, place: resolve(from('artifacts.place'), place) } : artifacts
  }
  return artifacts !== undefined && isFolder(artifacts) ? resolve(from('artifacts'), artifacts) : artifacts
}

/** Artifacts are kept in a folder, and neither in the store nor in memory. */
function isFolder(place: string): boolean {
  return place !== 'store' && place !== 'memory:'
}

function setIn(target: unknown, path: readonly PropertyKey[], value: unknown): void {
  const parent = path
    .slice(0, -1)
    .reduce<unknown>((place, step) => (isObject(place) ? own(place, step as string) : undefined), target)
  const last = path.at(-1)
  if (isObject(parent) && last !== undefined && Object.hasOwn(parent, last))
    Object.defineProperty(parent, last, { value })
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function withoutUndefined<Value extends object>(value: Value): Record<string, unknown> & Value {
  const entries = Object.entries(value).filter(([, item]) => item !== undefined)
  return Object.fromEntries(
    entries.map(([key, item]) => [key, isPlain(item) ? withoutUndefined(item) : item]),
  ) as Record<string, unknown> & Value
}

function invalid(message: string, details: Record<string, unknown>): AgentError {
  return new AgentError('invalid-config', message, { details })
}

/**
 * Types a configuration file: `export default defineConfig({ … })`. The object is returned as it is.
 *
 * ```ts
 * import { defineConfig } from 'lango'
 *
 * export default defineConfig({ store: 'sqlite:./lango.db', agent: { model: 'demo/demo' } })
 * ```
 */
export function defineConfig<const Config extends LangoConfigInput>(config: Config): Config {
  return config
}

interface DefaultModel {
  reference: string
  /** Why this one, as in "OPENAI_API_KEY is set". */
  reason: string
}

/** The model of an agent that names none: the first provider with a key, configured ones first, or the demo. */
function defaultModel(providers: unknown, env: Environment): DefaultModel {
  const configured = isPlain(providers) ? providers : {}
  for (const [name, options] of Object.entries(configured)) {
    const keyed = KEYED_PROVIDERS.find(provider => provider.name === typeOf(name, options))
    if (keyed && isPlain(options) && options.apiKey) {
      return { reference: `${name}/${keyed.model}`, reason: `providers.${name} has a key` }
    }
  }
  for (const { name, variables, model } of KEYED_PROVIDERS) {
    const variable = variables.find(candidate => env[candidate]?.trim())
    if (variable) return { reference: `${name}/${model}`, reason: `${variable} is set` }
  }
  return { reference: 'demo/demo', reason: 'no key was found' }
}

/** The vendor of a configured provider: a compatible server is known by its preset. */
function typeOf(name: string, options: unknown): unknown {
  if (!isPlain(options)) return undefined
  return options.preset ?? options.type ?? name
}
