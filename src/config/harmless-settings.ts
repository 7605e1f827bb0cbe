/**
 * The settings of a data file that apply without trust. This is an allowlist: every other setting, new ones
 * included, needs a trusted folder. A setting is on the list when it cannot
 *
 * - start a program, or give the model a tool that acts without approval (`fetch_url`, writing, commands);
 * - set an address, header, proxy, token or origin that keys or messages are sent to;
 * - read or write outside the folder, also through a symbolic link;
 * - read a variable: any text with `${…}` needs trust.
 */

import { readlinkSync, realpathSync } from 'node:fs'
import { basename, dirname, isAbsolute, relative, resolve, sep } from 'node:path'
import { isPlain } from '../base/redact.js'
import { BUILT_IN_TOOL_NAMES, READING_TOOL_NAMES } from '../tools/tool-names.js'

/** A setting that needs trust. */
export interface GuardedSetting {
  path: readonly string[]
  value: unknown
}

export interface SortedSettings {
  /** The settings that apply without trust. */
  harmless: unknown
  guarded: GuardedSetting[]
}

export interface SortOptions {
  /** The folder that paths are relative to and must not leave. */
  folder: string
  /** False for an unknown key: it is kept, so that the check of the configuration reports it. */
  knows?: ((path: readonly string[]) => boolean) | undefined
}

/** Separates the settings of a file into those that apply without trust and those that need it. */
export function sortSettings(data: unknown, options: SortOptions): SortedSettings {
  const guarded: GuardedSetting[] = []
  const harmless = sort(data, SETTINGS, { ...options, path: [], guarded })
  return { harmless: harmless === GUARDED ? {} : harmless, guarded }
}

/** Whether a SQLite address or `memory:` stays inside the folder. */
export function isLocalStore(store: unknown, folder: string): boolean {
  if (typeof store !== 'string') return false
  if (/^memory:$/i.test(store)) return true
  const path = /^sqlite:(?:\/\/)?([^?]+)(\?(&?(sync=(normal|full)|create=1))+)?$/i.exec(store)?.[1]
  // A colon may start a SQLite URI (`file:…`) or name a drive; `%2e` and a backslash may hide a `..`.
  return path !== undefined && !/[:%\\]/.test(path) && isInside(path, folder)
}

/** Whether a path, symbolic links followed, stays inside the folder. */
export function isInside(path: unknown, folder: string): boolean {
  if (typeof path !== 'string' || isAbsolute(path) || path.startsWith('~')) return false
  const root = realOf(resolve(folder))
  const from = relative(root, realOf(resolve(folder, path)))
  return from !== '..' && !from.startsWith(`..${sep}`) && !isAbsolute(from)
}

/**
 * The real path, also of a file that does not exist yet: then below the real path of its nearest existing folder.
 * A link to a missing file counts as its target, where the file would be created.
 */
function realOf(path: string, links = 0): string {
  try {
    return realpathSync(path)
  } catch {
    const target = links < MOST_LINKS ? linkTarget(path) : undefined
    if (target !== undefined) return realOf(target, links + 1)
    const parent = dirname(path)
    return parent === path ? path : resolve(realOf(parent, links), basename(path))
  }
}

const MOST_LINKS = 40

function linkTarget(path: string): string | undefined {
  try {
    return resolve(dirname(path), readlinkSync(path))
  } catch {
    return undefined
  }
}

type Check = (value: unknown, folder: string) => boolean

/** What is allowed at a place: a value that passes, an object of such places, or a list of them. */
type Allowed = Check | { readonly keys: Readonly<Record<string, Allowed>> } | { readonly items: Allowed }

const any: Check = () => true

const allOf =
  (names: readonly string[]): Check =>
  value =>
    !Array.isArray(value) || value.every(name => typeof name !== 'string' || names.includes(name))

const oneOf =
  (...values: readonly unknown[]): Check =>
  value =>
    values.includes(value)

/** In the store or in memory, or in a folder below this one. */
const isArtifactPlace: Check = (value, folder) => {
  const place: unknown = isPlain(value) ? (value.place ?? 'store') : value
  return place === 'store' || place === 'memory:' || isInside(place, folder)
}

const AGENT_KEYS: Record<string, Allowed> = {
  name: any,
  model: any,
  description: any,
  instruction: any,
  templating: any,
  thinking: any,
  temperature: any,
  maxOutputTokens: any,
  outputSchema: any,
  fallback: any,
  tools: allOf(READING_TOOL_NAMES),
  multiAgent: any,
  maxTurns: any,
  maxDelegations: any,
}
const AGENT: Allowed = { keys: AGENT_KEYS }
AGENT_KEYS.subAgents = { items: AGENT }

const SETTINGS: Allowed = {
  keys: {
    $schema: any,
    app: any,
    store: isLocalStore,
    agent: AGENT,
    history: {
      keys: {
        maxMessageTokenBudget: any,
        maxMessages: any,
        maxAnswerLength: any,
        observationalMemory: any,
        // All sessions of a user are more than the folder's.
        memory: { keys: { observer: any, recall: any, scope: oneOf('session') } },
        repair: any,
      },
    },
    artifacts: isArtifactPlace,
    limits: { keys: { maxTurns: any, maxDelegations: any, maxCallsPerAnswer: any, loop: any } },
    budget: { keys: { perRunUsd: any, perSessionUsd: any, perUserUsdPerDay: any, unknownPrice: any } },
    runs: { keys: { maxRunning: any, resume: any, maxAttempts: any } },
    tools: {
      keys: {
        builtIn: allOf(READING_TOOL_NAMES),
        workspace: isInside,
        allowPrivateNetwork: oneOf(false),
        commandTimeoutMs: any,
        sandbox: oneOf('auto', 'required'),
        needsApproval: {
          keys: Object.fromEntries(BUILT_IN_TOOL_NAMES.map(name => [name, oneOf(true)])),
        },
        approvalTimeoutMs: any,
        outputLimitTokens: any,
        keepOutputs: any,
      },
    },
    server: {
      keys: {
        port: any,
        host: oneOf('127.0.0.1', 'localhost', '::1'),
        keepRunsDays: any,
        graceMs: any,
        closeMs: any,
        runsPerUser: any,
        streamsPerUser: any,
        maxBodyBytes: any,
        maxMessages: any,
        maxStateKeys: any,
        maxParts: any,
        maxDepth: any,
        maxValues: any,
      },
    },
    log: { keys: { level: any, pretty: any } },
    telemetry: { keys: { serviceName: any } },
  },
}

const GUARDED = Symbol('guarded')

interface Walk extends SortOptions {
  path: readonly string[]
  guarded: GuardedSetting[]
}

/** Keeps what is allowed. A value of the wrong shape is kept, too: the check of the configuration rejects it. */
function sort(value: unknown, allowed: Allowed | undefined, walk: Walk): unknown {
  if (allowed === undefined) return walk.knows?.(walk.path) === false ? value : guard(value, walk)
  if (typeof allowed === 'function') {
    return allowed(value, walk.folder) && !readsVariables(value) ? value : guard(value, walk)
  }
  if ('items' in allowed) {
    if (!Array.isArray(value)) return scalar(value, walk)
    return value
      .map((item, index) => sort(item, allowed.items, { ...walk, path: [...walk.path, String(index)] }))
      .filter(item => item !== GUARDED)
  }
  if (!isPlain(value)) return scalar(value, walk)
  const entries = Object.entries(value).map(([key, item]) => {
    const place = Object.hasOwn(allowed.keys, key) ? allowed.keys[key] : undefined
    return [key, sort(item, place, { ...walk, path: [...walk.path, key] })] as const
  })
  return Object.fromEntries(entries.filter(([, item]) => item !== GUARDED))
}

/** A value in the place of a group. A text could still read variables. */
function scalar(value: unknown, walk: Walk): unknown {
  return readsVariables(value) ? guard(value, walk) : value
}

function guard(value: unknown, { path, guarded }: Walk): typeof GUARDED {
  guarded.push({ path, value })
  return GUARDED
}

function readsVariables(value: unknown): boolean {
  if (typeof value === 'string') return value.includes('${')
  return typeof value === 'object' && value !== null && Object.values(value).some(readsVariables)
}
