/**
 * What a folder would run or redirect, determined without running any of it: `.env`, the configuration, the agent
 * file and their imports. A folder without any of these needs no trust.
 */
import { createHash } from 'node:crypto'
import { lstatSync, readFileSync, readlinkSync, realpathSync } from 'node:fs'
import { basename, dirname, isAbsolute, join, relative, resolve } from 'node:path'
import { parseEnv } from 'node:util'
import { isPlain } from '../base/redact.js'
import type { Environment } from './environment.js'
import { executedFiles } from './executed-files.js'
import { DEFAULT_DATABASE, findAgentFile, findConfigFile, isDataFile, isThere } from './find-config.js'
import { isInside, sortSettings } from './harmless-settings.js'
import { readDataFile } from './import-file.js'
import type { TrustedFolder } from './trust-record.js'

export interface NeedsOptions {
  cwd: string
  /** The configuration file that was named. */
  file?: string | undefined
  /** The agent file that was named. */
  agent?: string | undefined
  /** The process's environment, without `.env`. */
  env: Environment
  /** True when the default database is not used. */
  hasStore?: boolean | undefined
}

/** A setting that would apply. */
export interface NeededSetting {
  /** The file that sets it. */
  from: string
  /** A variable or a dotted key. */
  path: readonly string[]
  value: unknown
}

/** What one folder would do once it is trusted. */
export interface FolderNeeds {
  /** Its real path. */
  folder: string
  /** The hash of each relevant file by its path from the folder, or by its absolute path when it is elsewhere. */
  files: Record<string, string>
  /** The files that would run, by the same names. */
  runs: string[]
  settings: NeededSetting[]
  /** What is not loaded without trust, as short texts. */
  skips: string[]
}

/** The folders that need trust for a command; empty when everything is harmless. */
export async function folderNeeds(options: NeedsOptions): Promise<FolderNeeds[]> {
  const { cwd, env } = options
  const needs = new Needs()
  const added = readDotEnv(cwd, needs)
  const file = configFile(options, added)
  const written = file === undefined ? {} : await addConfig(file, needs)
  const agentFile =
    options.agent === undefined
      ? hasAgent(written)
        ? undefined
        : findAgentFile(file === undefined ? cwd : dirname(file))
      : resolve(cwd, options.agent)
  if (agentFile !== undefined && isThere(agentFile)) needs.addCode(agentFile)
  const isDefaultStore = !options.hasStore && !env.LANGO_STORE?.trim() && written.store === undefined
  if (isDefaultStore && !isInside(DEFAULT_DATABASE, cwd)) needs.addLink(join(cwd, DEFAULT_DATABASE))
  return needs.all()
}

/** The needs of a configuration file alone, without the rest of its folder: for one that `lango init` wrote. */
export async function configNeeds(file: string): Promise<FolderNeeds[]> {
  const needs = new Needs()
  await addConfig(file, needs)
  return needs.all()
}

/** Files that are new or changed since a folder was trusted. */
export function changedFiles(needs: FolderNeeds, trusted: TrustedFolder | undefined): string[] {
  return Object.keys(needs.files).filter(
    name => !(trusted && Object.hasOwn(trusted.files, name) && trusted.files[name] === needs.files[name]),
  )
}

class Needs {
  readonly #folders = new Map<string, FolderNeeds>()

  addFile(file: string, text: string | Buffer, skip: string): FolderNeeds {
    const needs = this.#of(dirname(file))
    needs.files[basename(file)] = hashOf(text)
    needs.skips.push(skip)
    return needs
  }

  addCode(entry: string): void {
    const needs = this.#of(dirname(entry))
    const { code, resolution } = executedFiles([entry])
    const nameOf = (file: string) => nameFrom(needs.folder, file)
    for (const file of code) needs.files[nameOf(file)] = hashOf(readFileSync(file))
    for (const file of resolution) needs.files[nameOf(file)] = hashOf(resolutionText(file))
    needs.runs = [...new Set([...needs.runs, ...code.map(nameOf)])]
    needs.skips.push(basename(entry))
  }

  /** A link is identified by its target. */
  addLink(path: string): void {
    const target = readlinkSync(path)
    const needs = this.addFile(path, `link to ${target}`, basename(path))
    needs.settings.push({ from: basename(path), path: ['store'], value: `a link to ${target}` })
  }

  all(): FolderNeeds[] {
    return [...this.#folders.values()]
  }

  #of(folder: string): FolderNeeds {
    const real = realpathSync(folder)
    const found = this.#folders.get(real) ?? { folder: real, files: {}, runs: [], settings: [], skips: [] }
    this.#folders.set(real, found)
    return found
  }
}

function readDotEnv(cwd: string, needs: Needs): Environment {
  const file = join(cwd, '.env')
  if (!isThere(file)) return {}
  const text = contentOf(file)
  const added = parseEnv(text) as Environment
  if (Object.keys(added).length === 0) return {}
  const { settings } = needs.addFile(file, text, '.env')
  for (const [name, value] of Object.entries(added)) settings.push({ from: '.env', path: [name], value })
  return added
}

/** An unreadable `.env` is reported when it is loaded; here its hash only has to differ from any other. */
function contentOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return 'UNREADABLE=1'
  }
}

/** The file that `loadConfig` would read, also one that only `.env` names, when it exists. */
function configFile({ cwd, file, env }: NeedsOptions, added: Environment): string | undefined {
  const named = file ?? env.LANGO_CONFIG
  const hidden = added.LANGO_CONFIG
  if (named === undefined && hidden && isThere(resolve(cwd, hidden))) return resolve(cwd, hidden)
  return findConfigFile(cwd, named)
}

async function addConfig(file: string, needs: Needs): Promise<Record<string, unknown>> {
  if (!isDataFile(file)) {
    needs.addCode(file)
    return {}
  }
  const data = await readDataFile(file)
  const folder = dirname(file)
  const { guarded } = await sortWithSchema(data, folder)
  const leaves = guarded.flatMap(({ path, value }) => leavesOf(path, value))
  const name = basename(file)
  if (isForeignLink(file)) leaves.push({ path: [], value: `a link to ${realpathSync(file)}` })
  if (leaves.length > 0) {
    const keys = [...new Set(guarded.map(({ path }) => path.join('.')))]
    const skip = keys.length === 0 ? name : `${name} (${keys.join(', ')})`
    const { settings } = needs.addFile(file, readFileSync(file), skip)
    for (const { path, value } of leaves) settings.push({ from: name, path, value })
  }
  return isPlain(data) ? data : {}
}

/** The settings that apply without trust: none when the file is code or a link to a file elsewhere. */
export async function readHarmless(file: string): Promise<unknown> {
  if (!isDataFile(file) || isForeignLink(file)) return {}
  return (await sortWithSchema(await readDataFile(file), dirname(file))).harmless
}

/** The schema is loaded only when something needs trust: an unknown key is a mistake, not a risk. */
async function sortWithSchema(data: unknown, folder: string): Promise<ReturnType<typeof sortSettings>> {
  const sorted = sortSettings(data, { folder })
  if (sorted.guarded.length === 0) return sorted
  const [{ configSchema }, { knownKeys }] = await Promise.all([
    import('./config.js'),
    import('./schema-walk.js'),
  ])
  const knows = (path: readonly string[]) =>
    knownKeys(configSchema, path.slice(0, -1))?.includes(path.at(-1) ?? '') ?? true
  return sortSettings(data, { folder, knows })
}

/** Whether a configuration is a link to a file outside its folder. */
function isForeignLink(file: string): boolean {
  return lstatSync(file).isSymbolicLink() && !isInside(basename(file), dirname(file))
}

function leavesOf(path: readonly string[], value: unknown): { path: readonly string[]; value: unknown }[] {
  if (!isPlain(value) || Object.keys(value).length === 0) return [{ path, value }]
  return Object.entries(value).flatMap(([key, item]) => leavesOf([...path, key], item))
}

function hasAgent(written: Record<string, unknown>): boolean {
  return written.agent !== undefined || written.rootAgent !== undefined
}

const RESOLUTION_FIELDS = [
  'name',
  'type',
  'main',
  'imports',
  'exports',
  'dependencies',
  'devDependencies',
  'optionalDependencies',
  'overrides',
]

/** Of `package.json` only the fields that decide which code is loaded: a new version or script needs no new trust. */
function resolutionText(file: string): string {
  const text = readFileSync(file, 'utf8')
  if (basename(file) !== 'package.json') return text
  try {
    const data: unknown = JSON.parse(text)
    if (!isPlain(data)) return text
    return JSON.stringify(RESOLUTION_FIELDS.map(field => (Object.hasOwn(data, field) ? data[field] : null)))
  } catch {
    return text
  }
}

function nameFrom(folder: string, file: string): string {
  const name = relative(folder, file)
  return name.startsWith('..') || isAbsolute(name) ? file : name.replaceAll('\\', '/')
}

function hashOf(text: string | Buffer): string {
  return createHash('sha256').update(text).digest('hex')
}
