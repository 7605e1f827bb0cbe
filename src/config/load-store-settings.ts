/**
 * The store settings, for commands that need nothing else. A data file is read without the schema, which takes
 * longer to load than such a command to run; anything unusual is left to `loadConfig`, which reports it.
 */

import { dirname, resolve } from 'node:path'
import { defined } from '../base/defined.js'
import { isPlain } from '../base/redact.js'
import type { LangoConfig } from './config.js'
import { ENVIRONMENT_VARIABLES, type Environment } from './environment.js'
import { absoluteStore, DEFAULT_STORE, findConfigFile, isDataFile, readEnv } from './find-config.js'
import { isLocalStore } from './harmless-settings.js'

export interface StoreSettings {
  app: string
  store: string
  /** Where artifacts are kept, if not with the sessions. */
  artifacts?: LangoConfig['artifacts']
}

export interface LoadStoreOptions {
  cwd?: string | undefined
  file?: string | undefined
  env?: Environment | undefined
  /** The values of flags; they override everything else. */
  app?: string | undefined
  store?: string | undefined
  /** As in `loadConfig`. */
  trusted?: boolean | undefined
}

/** The `app`, `store` and `artifacts` that `loadConfig` would return. The rest of the configuration is not checked. */
export async function loadStoreSettings(options: LoadStoreOptions = {}): Promise<StoreSettings> {
  const cwd = resolve(options.cwd ?? '.')
  const { trusted = true } = options
  const env = await readEnv(cwd, options.env, trusted)
  const file = findConfigFile(cwd, options.file ?? env.LANGO_CONFIG)
  const written = file === undefined ? {} : await readWritten(file, env, trusted)
  if (written === undefined) {
    const { loadConfig } = await import('./load-config.js')
    const { config } = await loadConfig({ cwd, file: options.file, env: options.env, trusted })
    const store = options.store === undefined ? config.store : absoluteStore(options.store, cwd)
    return { app: options.app ?? config.app, store, ...defined({ artifacts: config.artifacts }) }
  }
  const store = options.store ?? variable('store', env)
  const fileStore = written.store && absoluteStore(written.store, dirname(file ?? cwd))
  return {
    app: options.app ?? variable('app', env) ?? written.app ?? 'lango',
    store:
      store === undefined && fileStore ? fileStore : absoluteStore(store ?? defaultStore(cwd, trusted), cwd),
  }
}

/** Without trust, a database that is a link out of the folder is not opened. */
function defaultStore(cwd: string, trusted: boolean): string {
  return trusted || isLocalStore(DEFAULT_STORE, cwd) ? DEFAULT_STORE : 'memory:'
}

/** The two keys of a data file; `undefined` when the schema is needed to check them. */
async function readWritten(
  file: string,
  env: Environment,
  trusted: boolean,
): Promise<Partial<StoreSettings> | undefined> {
  if (trusted && !isDataFile(file)) return undefined
  const [{ readDataFile }, { substitute }] = await Promise.all([
    import('./import-file.js'),
    import('./substitute.js'),
  ])
  const data = trusted
    ? await readDataFile(file)
    : await (await import('./folder-needs.js')).readHarmless(file)
  if (!isPlain(data) || data.artifacts !== undefined) return undefined
  const { value, missing, misplaced } = substitute({ app: data.app, store: data.store }, env)
  if (missing.length > 0 || misplaced.length > 0 || !isPlain(value)) return undefined
  const { app, store } = value
  if (!isTextOrAbsent(app) || !isTextOrAbsent(store)) return undefined
  return defined({ app, store })
}

function isTextOrAbsent(value: unknown): value is string | undefined {
  return value === undefined || (typeof value === 'string' && value !== '')
}

function variable(key: keyof StoreSettings, env: Environment): string | undefined {
  for (const { name, path, accepts } of ENVIRONMENT_VARIABLES) {
    const text = env[name]?.trim()
    if (path.join('.') === key && text && accepts?.(text) !== false) return text
  }
  return undefined
}
