/** Loads files of the user: TypeScript or JavaScript modules, JSON and YAML. */

import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createRequire, register } from 'node:module'
import { basename, dirname, extname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { withoutBom } from '../base/json.js'
import { AgentError, messageOf } from '../errors.js'

/**
 * The exports of a module. TypeScript is loaded by Node where it can, otherwise by tsx where it is installed. With
 * `usesAdk` it gets the ADK that Lango has loaded.
 */
export async function importModule(
  file: string,
  { usesAdk = false }: { usesAdk?: boolean } = {},
): Promise<Record<string, unknown>> {
  const url = pathToFileURL(file).href
  const isTypeScript = /\.[cm]?ts$/.test(file)
  try {
    if (isTypeScript && !nodeReadsTypeScript()) await readTypeScript(file)
    if (usesAdk) await shareAdk(file)
    return await importFile(url)
  } catch (error) {
    if (error instanceof AgentError) throw error
    if (!isTypeScript || !isBeyondNode(error)) throw unreadable(file, error)
    return importByTsx(file, url, error)
  }
}

async function importFile(url: string): Promise<Record<string, unknown>> {
  return (await import(url)) as Record<string, unknown>
}

/**
 * Node strips types and looks at nothing else: enums are refused, and a type that is imported without `type`, as in
 * ADK's documentation, is an export that is missing. tsx reads both.
 */
function isBeyondNode(error: unknown): boolean {
  if (!nodeReadsTypeScript() || !(error instanceof Error)) return false
  return (
    Reflect.get(error, 'code') === 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX' ||
    (error instanceof SyntaxError && / does not provide an export named /.test(error.message))
  )
}

async function importByTsx(file: string, url: string, cause: unknown): Promise<Record<string, unknown>> {
  if (![file, import.meta.url].some(place => findTsx(place) !== undefined)) {
    throw new AgentError(
      'invalid-config',
      `Cannot read ${file}: ${messageOf(cause)}. Node removes types without looking at them: import types with \`import type\`, and use no enums; or install tsx (npm install --save-dev tsx), which reads the file as it is.`,
      { cause, details: { file } },
    )
  }
  try {
    await readTypeScript(file)
    // Node keeps the failure under the address of the file.
    return await importFile(`${url}?tsx`)
  } catch (error) {
    throw unreadable(file, error)
  }
}

/** The data in a JSON or YAML file. An empty YAML file is an empty object. */
export async function readDataFile(file: string): Promise<unknown> {
  try {
    const text = await readFile(file, 'utf8')
    if (extname(file) === '.json') return JSON.parse(withoutBom(text)) as unknown
    const { parse } = await import('yaml')
    return (parse(text) as unknown) ?? {}
  } catch (error) {
    throw unreadable(file, error)
  }
}

/** Whether Node itself strips types, as newer versions do. */
export function nodeReadsTypeScript(): boolean {
  return Boolean((process.features as { typescript?: unknown }).typescript)
}

/** Whether TypeScript can be imported by a file at `from` or by Lango: by Node itself, or by tsx. */
export function canReadTypeScript(from: string): boolean {
  return nodeReadsTypeScript() || [from, import.meta.url].some(place => findTsx(place) !== undefined)
}

interface TsxPackage {
  exports: {
    './esm/api': { import: { default: string } }
    './cjs/api': { require: { default: string } }
  }
}

type Register = { register(): unknown }

let readsTypeScript = false

/**
 * Lets tsx of the user's project, or one that Lango can see, read TypeScript from now on. It is no dependency, so it is
 * looked up by name. Its `tsImport` would load each package that the file imports a second time.
 */
async function readTypeScript(file: string): Promise<void> {
  if (readsTypeScript) return
  for (const from of [file, import.meta.url]) {
    const facts = findTsx(from)
    if (facts === undefined) continue
    try {
      const require = createRequire(from)
      // `resolve` would name the CommonJS build, whose loader Node cannot register.
      const { exports } = require(facts) as TsxPackage
      const path = join(dirname(facts), exports['./esm/api'].import.default)
      const modules = (await import(pathToFileURL(path).href)) as Register
      const commonJs = require(join(dirname(facts), exports['./cjs/api'].require.default)) as Register
      modules.register()
      commonJs.register()
      readsTypeScript = true
      return
    } catch {
      // Another version without that export; the next place may have one, and the error below says what to do.
    }
  }
  throw new AgentError(
    'invalid-config',
    `Cannot load ${basename(file)}: this version of Node does not run TypeScript. Install tsx (npm install --save-dev tsx), use Node 22.18 or newer, or write the file as .mjs, .json or .yaml.`,
    { details: { file } },
  )
}

/** The `package.json` of the tsx that a file at `from` would import. */
function findTsx(from: string): string | undefined {
  try {
    return createRequire(from).resolve('tsx/package.json')
  } catch {
    return undefined
  }
}

function unreadable(file: string, error: unknown): AgentError {
  return new AgentError('invalid-config', `Cannot read ${file}: ${messageOf(error)}`, {
    cause: error,
    details: { file },
  })
}

const ADK = '@google/adk'

/**
 * Lango replaces parts of ADK (the registry of models, the loop of nodes, the log), which works for agents that are made
 * by the same copy. A file gets another one when Lango is installed elsewhere, or when it is CommonJS.
 */
async function shareAdk(file: string): Promise<void> {
  const [require, ours] = [createRequire(pathToFileURL(file)), createRequire(import.meta.url)]
  const [theirEntry, ourEntry] = [entryOf(require), entryOf(ours)]
  const [theirs, our] = [packageAbove(theirEntry), packageAbove(ourEntry)]
  if (theirs && our && theirs.version !== our.version) {
    process.emitWarning(
      `${basename(file)} uses ${ADK} ${theirs.version}, and Lango ${our.version}: ADK's own log, and models that agents name during a run, are left to that version. Install ${ADK}@${our.version}.`,
    )
    return
  }
  if (theirs?.folder !== our?.folder) resolveAsLango()
  const entry = theirEntry ?? ADK
  if (require.cache[entry]) return
  const { Module } = await import('node:module')
  const shared = new Module(entry)
  // By a value: this room knows ADK's name, and nothing of what it exports.
  shared.exports = await import(ADK)
  shared.loaded = true
  require.cache[entry] = shared
  if (theirEntry === undefined) requireAsLango(Module as unknown as Resolver)
}

/** What `require` asks for the path of a file, in every version of Node. */
interface Resolver {
  _resolveFilename(request: string, ...rest: unknown[]): string
}

/** From now on a CommonJS file that finds no ADK gets the one that Lango has loaded, under its bare name. */
function requireAsLango(modules: Resolver): void {
  const resolve = modules._resolveFilename
  modules._resolveFilename = (request, ...rest) => {
    try {
      return resolve.call(modules, request, ...rest)
    } catch (error) {
      if (request === ADK) return ADK
      throw error
    }
  }
}

function entryOf(require: NodeJS.Require): string | undefined {
  try {
    return require.resolve(ADK)
  } catch {
    return undefined
  }
}

function packageAbove(entry: string | undefined): { folder: string; version: string } | undefined {
  for (let folder = entry && dirname(entry); folder && folder !== dirname(folder); folder = dirname(folder)) {
    try {
      const { name, version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
      if (name === ADK) return { folder, version }
    } catch {
      // Most folders have no such file.
    }
  }
  return undefined
}

let resolvesAsLango = false

/** From now on `@google/adk` is, in modules, what it is for Lango. */
function resolveAsLango(): void {
  if (resolvesAsLango) return
  resolvesAsLango = true
  const hooks = `let parentURL
export const initialize = data => { parentURL = data.parentURL }
export const resolve = (specifier, context, next) =>
  next(specifier, specifier === '${ADK}' ? { ...context, parentURL } : context)`
  register(`data:text/javascript,${encodeURIComponent(hooks)}`, { data: { parentURL: import.meta.url } })
}
