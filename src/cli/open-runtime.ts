/**
 * From command-line flags to a runtime: finds and checks the configuration and passes it to `createRuntime`.
 * Without a configuration and an agent file, a default agent with the built-in tools is used.
 */

import { defined } from '../base/defined.js'
import { isRecord } from '../base/is-record.js'
import type { LangoConfig, LangoConfigInput } from '../config/config.js'
import type { LoadedConfig } from '../config/load-config.js'
import { AgentError, messageOf } from '../errors.js'
import { type Logger, silentLogger } from '../logger.js'
import type { RuntimeOptions } from '../runtime/options.js'
import type { Runtime } from '../runtime/runtime.js'
import type { ModelOptions } from '../session/model-options.js'
import type { Budget } from '../session/usage.js'
import { requireModelPackage } from './installed-packages.js'
import { asTyped, type Io, pathOf } from './io.js'
import type { TrustOptions } from './settle-trust.js'

/** What every command that runs or reads sessions takes. */
export interface CommonFlags {
  /** The configuration file, instead of looking for one. */
  config?: string | undefined
  /** A model reference such as `openai/gpt-5.2`. */
  model?: string | undefined
  /** An ADK agent file, instead of the configured agent. */
  agent?: string | undefined
  /** A store address, instead of the configured one. */
  store?: string | undefined
  /** What dispatches runs, instead of the configured engine. */
  engine?: string | undefined
  /** The app that sessions belong to, instead of the configured one. */
  app?: string | undefined
  /** Trust the folder for this command. */
  trust?: boolean | undefined
  /** For scripts: no questions are asked. */
  json?: boolean | undefined
}

/** What commands that run an agent take for its model. */
export interface ModelFlags {
  thinking?: string | undefined
  temperature?: string | undefined
  'max-output-tokens'?: string | undefined
  /** A file with a JSON schema. */
  schema?: string | undefined
  fallback?: string[] | undefined
  /** Dollars. */
  budget?: string | undefined
}

/** Settings for a command, and what was not loaded because the folder is not trusted. */
export interface LoadedSettings extends LoadedConfig {
  skipped: readonly string[]
}

export interface OpenedRuntime {
  runtime: Runtime
  config: LangoConfig
  /** The default model of runs; `undefined` when an agent made in code has its own. */
  model: string | undefined
  loaded: LoadedConfig
}

/**
 * Loads the configuration, overridden by the flags. A command that runs an agent needs a trusted folder; one that
 * only reads gets the settings that need no trust.
 */
export async function loadSettings(
  io: Io,
  flags: CommonFlags,
  options: TrustOptions,
): Promise<LoadedSettings> {
  const [{ loadConfig }, { settleTrust }] = await Promise.all([
    import('../config/load-config.js'),
    import('./settle-trust.js'),
  ])
  const { folder, skipped } = await settleTrust(io, flags, options)
  const overrides: LangoConfigInput = defined({
    ...{ store: flags.store, app: flags.app },
    engine: engineOf(flags),
  })
  const loaded = { ...(await loadConfig({ ...folder, file: flags.config, overrides })), skipped }
  const { agent } = loaded.config
  if (flags.agent !== undefined) {
    const [{ resolve }, { existsSync }] = await Promise.all([import('node:path'), import('node:fs')])
    const agentFile = resolve(folder.cwd, flags.agent)
    if (!existsSync(agentFile))
      throw new AgentError('invalid-argument', `Agent file ${flags.agent} does not exist. Check the path.`)
    const { agent: _replaced, rootAgent: _other, ...config } = loaded.config
    const { model: _chosen, ...rest } = loaded
    return { ...rest, config: config as LangoConfig, agentFile, ...defined({ model: flags.model }) }
  }
  if (flags.model === undefined) return loaded
  if (!agent) return { ...loaded, model: flags.model }
  return {
    ...loaded,
    model: flags.model,
    config: { ...loaded.config, agent: { ...agent, model: flags.model } },
  }
}

/** As an object it leaves the settings of the configuration as they are. What is no engine is refused by the schema. */
function engineOf({ engine }: CommonFlags): LangoConfigInput['engine'] {
  return engine === 'dbos' ? { name: 'dbos' } : (engine as LangoConfigInput['engine'])
}

/** What `createRuntime` takes, from a configuration. */
export async function runtimeOptions(loaded: LoadedConfig, logger?: Logger): Promise<RuntimeOptions> {
  const { server, log: _log, $schema: _schema, hooks: _hooks, ...config } = loaded.config
  const options: RuntimeOptions = { ...(config as RuntimeOptions), ...defined({ logger }) }
  // A library deletes what its options name. The commands share the default of the server, because they share its file.
  options.retention = { ...config.retention, runsDays: config.retention.runsDays ?? server.keepRunsDays }
  if (loaded.agentFile !== undefined) {
    const [{ loadRootAgent }, { joinLoggers }] = await Promise.all([
      import('../config/load-config.js'),
      import('../runtime/host.js'),
    ])
    // ADK writes warnings to stdout when an agent is made, which belongs to the answer.
    joinLoggers(logger ?? silentLogger)
    // What the file exports is checked by `createRuntime`.
    options.rootAgent = (await loadRootAgent(loaded.agentFile)) as NonNullable<RuntimeOptions['rootAgent']>
  } else if (loaded.file === undefined && config.tools.builtIn.length === 0) {
    // The tools that write files or run commands need approval.
    const { BUILT_IN_TOOL_NAMES } = await import('../tools/tool-names.js')
    options.tools = { ...options.tools, builtIn: BUILT_IN_TOOL_NAMES }
    if (options.agent && options.agent.instruction === undefined) {
      options.agent = { ...options.agent, instruction: DEFAULT_INSTRUCTION }
    }
  }
  // An agent made in code keeps its own model unless another was requested.
  if (options.rootAgent && loaded.model !== undefined) options.model = loaded.model
  return options
}

/** Loads the configuration and opens the runtime. ADK is not loaded yet. */
export async function openRuntime(io: Io, flags: CommonFlags, logger?: Logger): Promise<OpenedRuntime> {
  const loaded = await loadSettings(io, flags, { runs: true })
  await requireModelPackage(loaded)
  const [{ createRuntime }, options] = await Promise.all([
    import('../runtime/runtime.js'),
    runtimeOptions(loaded, logger),
  ])
  const runtime = await createRuntime(options)
  return { runtime, config: loaded.config, model: loaded.model, loaded }
}

/** What the flags ask models for. Values are checked with the input of the run. */
export async function modelOptions(io: Io, flags: ModelFlags): Promise<ModelOptions & { budget?: Budget }> {
  const { temperature, fallback, schema, 'max-output-tokens': tokens } = flags
  return defined({
    // What is no level is refused with the list of levels.
    thinking: flags.thinking as ModelOptions['thinking'],
    temperature: temperature === undefined ? undefined : Number(temperature),
    maxOutputTokens: tokens === undefined ? undefined : Number(tokens),
    fallback,
    budget: flags.budget === undefined ? undefined : { perRunUsd: dollars(flags.budget) },
    outputSchema: schema === undefined ? undefined : await readSchema(io, schema),
  })
}

function dollars(text: string): number {
  const value = Number(text.replace(/^\$/, ''))
  if (value > 0) return value
  throw new AgentError(
    'invalid-argument',
    `--budget needs a number of dollars above 0, such as 0.50, not "${text}".`,
  )
}

async function readSchema(io: Io, file: string): Promise<Readonly<Record<string, unknown>>> {
  const { readFile } = await import('node:fs/promises')
  try {
    const schema: unknown = JSON.parse(await asTyped(io, file, readFile(pathOf(io, file), 'utf8')))
    if (isRecord(schema)) return schema
  } catch (cause) {
    const message = `Cannot read the schema ${file}: ${messageOf(cause)}. Give a file with a JSON schema.`
    throw new AgentError('invalid-argument', message, { cause })
  }
  throw new AgentError('invalid-argument', `${file} holds no JSON schema, which is an object.`)
}

const DEFAULT_INSTRUCTION =
  'You are a helpful assistant. Use the tools when they help, and say briefly what you found.'
