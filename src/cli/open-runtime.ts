/**
 * From command-line flags to a runtime: the configuration is found and checked, and what it says is handed to
 * `createRuntime`. Without a configuration and an agent file there is still a useful agent.
 */
import type { LangoConfig, LangoConfigInput } from '../config/config.js'
import type { LoadedConfig } from '../config/load-config.js'
import { AgentError } from '../errors.js'
import type { Logger } from '../logger.js'
import type { Runtime } from '../runtime.js'
import type { RuntimeOptions } from '../runtime-options.js'

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
  /** The name under which sessions are kept, instead of the configured one. */
  app?: string | undefined
}

export interface OpenedRuntime {
  runtime: Runtime
  config: LangoConfig
  /** What runs use unless they name another: `undefined` when an agent from code brings its own. */
  model: string | undefined
  /** Handed to `runtime.run` as `model`: set when a flag or variable overrides an agent that was made in code. */
  modelOverride: string | undefined
  loaded: LoadedConfig
}

/** Loads the configuration with the flags on top. */
export async function loadSettings(flags: CommonFlags, cwd = process.cwd()): Promise<LoadedConfig> {
  const { loadConfig } = await import('../config/load-config.js')
  const overrides: LangoConfigInput = {
    ...(flags.store === undefined ? {} : { store: flags.store }),
    ...(flags.app === undefined ? {} : { app: flags.app }),
  }
  const loaded = await loadConfig({ cwd, file: flags.config, overrides })
  const { agent } = loaded.config
  if (flags.agent !== undefined) {
    const [{ resolve }, { existsSync }] = await Promise.all([import('node:path'), import('node:fs')])
    const agentFile = resolve(cwd, flags.agent)
    if (!existsSync(agentFile))
      throw new AgentError('invalid-argument', `There is no agent file ${flags.agent}. Check the path.`)
    const { agent: _replaced, rootAgent: _other, ...config } = loaded.config
    const { model: _chosen, ...rest } = loaded
    const model = flags.model === undefined ? {} : { model: flags.model }
    return { ...rest, config: config as LangoConfig, agentFile, ...model }
  }
  if (flags.model === undefined) return loaded
  if (!agent) return { ...loaded, model: flags.model }
  return {
    ...loaded,
    model: flags.model,
    config: { ...loaded.config, agent: { ...agent, model: flags.model } },
  }
}

/** What `createRuntime` takes, from a configuration. */
export async function runtimeOptions(loaded: LoadedConfig, logger?: Logger): Promise<RuntimeOptions> {
  const { server: _server, log: _log, $schema: _schema, ...config } = loaded.config
  const options: RuntimeOptions = { ...(config as RuntimeOptions), ...(logger ? { logger } : {}) }
  if (loaded.agentFile !== undefined) {
    const { loadRootAgent } = await import('../config/load-config.js')
    // What the file exports is checked by `createRuntime`.
    options.rootAgent = (await loadRootAgent(loaded.agentFile)) as NonNullable<RuntimeOptions['rootAgent']>
    if (loaded.model !== undefined) options.model = loaded.model
  } else if (loaded.file === undefined && config.tools.builtIn.length === 0) {
    options.tools = { ...options.tools, builtIn: DEFAULT_TOOLS }
    if (options.agent && options.agent.instruction === undefined) {
      options.agent = { ...options.agent, instruction: DEFAULT_INSTRUCTION }
    }
  }
  return options
}

/** Loads the configuration and opens the runtime. ADK is not loaded yet. */
export async function openRuntime(flags: CommonFlags, logger?: Logger): Promise<OpenedRuntime> {
  const loaded = await loadSettings(flags)
  const [{ createRuntime }, options] = await Promise.all([
    import('../runtime.js'),
    runtimeOptions(loaded, logger),
  ])
  const runtime = await createRuntime(options)
  const isFromCode = options.rootAgent !== undefined
  return {
    runtime,
    config: loaded.config,
    model: loaded.model,
    modelOverride: isFromCode ? loaded.model : undefined,
    loaded,
  }
}

/** What the agent of a folder without a configuration can do. Writing and running commands ask first. */
const DEFAULT_TOOLS = [
  'current_time',
  'list_files',
  'read_file',
  'search_files',
  'write_file',
  'edit_file',
  'run_command',
  'fetch_url',
]

const DEFAULT_INSTRUCTION =
  'You are a helpful assistant. Use the tools when they help, and say briefly what you found.'
