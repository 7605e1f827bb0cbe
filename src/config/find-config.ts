/** Finds the configuration file, the agent file and the environment. Loads no module that parses or checks them. */
import { type Stats, statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { extname, isAbsolute, resolve } from 'node:path'
import { parseEnv } from 'node:util'
import { AgentError } from '../errors.js'
import type { Environment } from './environment.js'

const CONFIG_FILES = ['ts', 'mts', 'js', 'mjs', 'json', 'yaml', 'yml'].map(
  extension => `lango.config.${extension}`,
)

/** The database of the default store. */
export const DEFAULT_DATABASE = 'lango.db'

/** Where sessions are kept when nothing names a store. */
export const DEFAULT_STORE = `sqlite:./${DEFAULT_DATABASE}`

const AGENT_FILES = ['agent.ts', 'agent.mts', 'agent.js', 'agent.mjs']

/** Whether a configuration file is data; otherwise it is code. */
export function isDataFile(file: string): boolean {
  return /\.(json|ya?ml)$/.test(file)
}

/**
 * Whether there is a file to read. A device, a pipe or a folder in its place is refused: a folder of somebody else may have
 * `.env` as a link to `/dev/zero`, and reading that never ends.
 */
export function isThere(file: string): boolean {
  const facts = statOf(file)
  if (facts === undefined || facts.isFile()) return facts !== undefined
  throw invalid(`${file} is not a regular file, and is not read. Remove it, or put a file in its place.`, {
    file,
  })
}

function statOf(file: string): Stats | undefined {
  try {
    return statSync(file)
  } catch {
    return undefined
  }
}

export function findAgentFile(folder: string): string | undefined {
  return AGENT_FILES.map(name => resolve(folder, name)).find(isThere)
}

/**
 * The environment with the variables of `.env`, which is not read in an untrusted folder. `process.env` is the default
 * and no copy: it gets these variables, as by `process.loadEnvFile`, and has those that a configuration in code sets later.
 */
export async function readEnv(
  cwd: string,
  given: Environment = process.env,
  trusted = true,
): Promise<Environment> {
  const file = resolve(cwd, '.env')
  const isRead = trusted && isThere(file)
  const added = isRead ? (parseEnv(await readFile(file, 'utf8')) as Environment) : {}
  if (given !== process.env) return { ...added, ...setVariables(given) }
  for (const [name, value] of Object.entries(added)) {
    if (!Object.hasOwn(process.env, name)) process.env[name] = value
  }
  return process.env
}

/** The named file, or the one that exists in the folder. */
export function findConfigFile(cwd: string, named: string | undefined): string | undefined {
  if (named !== undefined && named !== '') {
    const file = resolve(cwd, named)
    if (!isThere(file)) throw invalid(`Configuration file ${file} does not exist. Check the path.`, { file })
    if (![...CONFIG_FILES].some(name => extname(name) === extname(file))) {
      throw invalid(`${file} is not a configuration file: it must end in ${endings()}.`, { file })
    }
    return file
  }
  const found = CONFIG_FILES.filter(name => isThere(resolve(cwd, name)))
  if (found.length > 1) {
    throw invalid(`Several configuration files in ${cwd}: ${found.join(', ')}. Keep one of them.`, {
      found,
    })
  }
  return found[0] === undefined ? undefined : resolve(cwd, found[0])
}

function endings(): string {
  return CONFIG_FILES.map(extname).join(', ')
}

/** A store address with an absolute path. */
export function absoluteStore(store: string, folder: string): string {
  const path = /^sqlite:(?:\/\/)?([^?]+)(\?.*)?$/i.exec(store)
  if (!path?.[1] || isAbsolute(path[1]) || folder === process.cwd()) return store
  return `sqlite:${resolve(folder, path[1])}${path[2] ?? ''}`
}

function setVariables(env: Environment): Environment {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined))
}

function invalid(message: string, details: Record<string, unknown>): AgentError {
  return new AgentError('invalid-config', message, { details })
}
