/** Loads files of the user: TypeScript or JavaScript modules, JSON and YAML. */

import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, extname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { withoutBom } from '../base/json.js'
import { AgentError, messageOf } from '../errors.js'

/** The exports of a module. TypeScript is loaded by Node where it can, otherwise by tsx where it is installed. */
export async function importModule(file: string): Promise<Record<string, unknown>> {
  const url = pathToFileURL(file).href
  try {
    if (!/\.[cm]?ts$/.test(file) || nodeReadsTypeScript())
      return (await import(url)) as Record<string, unknown>
    const tsImport = await findTsImport(file)
    return await tsImport(url, { parentURL: import.meta.url })
  } catch (error) {
    if (error instanceof AgentError) throw error
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

type TsImport = (url: string, options: { parentURL: string }) => Promise<Record<string, unknown>>

interface TsxPackage {
  exports: { './esm/api': { import: { default: string } } }
}

/** Imports tsx of the user's project, or one that Lango can see. It is no dependency, so it is looked up by name. */
async function findTsImport(file: string): Promise<TsImport> {
  for (const from of [file, import.meta.url]) {
    const facts = findTsx(from)
    if (facts === undefined) continue
    try {
      // `resolve` would name the CommonJS build, whose loader Node cannot register.
      const { exports } = createRequire(from)(facts) as TsxPackage
      const path = join(dirname(facts), exports['./esm/api'].import.default)
      const module = (await import(pathToFileURL(path).href)) as { tsImport: TsImport }
      return module.tsImport
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
