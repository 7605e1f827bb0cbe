/** Loads what a user wrote: programs in TypeScript or JavaScript, JSON and YAML. */
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, extname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { AgentError, messageOf } from '../errors.js'

/** The exports of a program. TypeScript is read by Node where it can, otherwise by tsx where it is installed. */
export async function importModule(file: string): Promise<Record<string, unknown>> {
  const url = pathToFileURL(file).href
  try {
    if (!/\.[cm]?ts$/.test(file) || readsTypeScript()) return (await import(url)) as Record<string, unknown>
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
    if (extname(file) === '.json') return JSON.parse(text.replace(/^\uFEFF/, '')) as unknown
    const { parse } = await import('yaml')
    return (parse(text) as unknown) ?? {}
  } catch (error) {
    throw unreadable(file, error)
  }
}

/** Newer versions of Node strip types themselves. */
function readsTypeScript(): boolean {
  return Boolean((process.features as { typescript?: unknown }).typescript)
}

type TsImport = (url: string, options: { parentURL: string }) => Promise<Record<string, unknown>>

/** Named apart from its use: tsx is found if the user has it and is no package of ours. */
const LOADER_FACTS = 'tsx/package.json'

interface TsxPackage {
  exports: { './esm/api': { import: { default: string } } }
}

/** tsx of the user's project, or one that Lango can see. It is no dependency, so it is looked up by name. */
async function findTsImport(file: string): Promise<TsImport> {
  for (const from of [file, import.meta.url]) {
    try {
      const require = createRequire(from)
      // `resolve` would name the CommonJS build, whose loader Node cannot register.
      const { exports } = require(LOADER_FACTS) as TsxPackage
      const path = join(dirname(require.resolve(LOADER_FACTS)), exports['./esm/api'].import.default)
      const module = (await import(pathToFileURL(path).href)) as { tsImport: TsImport }
      return module.tsImport
    } catch {
      // Not installed here; the next place may have it, and the error below says what to do.
    }
  }
  throw new AgentError(
    'invalid-config',
    `Could not read ${basename(file)}: this version of Node does not read TypeScript. Install tsx (npm install --save-dev tsx), use Node 22.18 or newer, or write the file as .mjs, .json or .yaml.`,
    { details: { file } },
  )
}

function unreadable(file: string, error: unknown): AgentError {
  return new AgentError('invalid-config', `Could not read ${file}: ${messageOf(error)}`, {
    cause: error,
    details: { file },
  })
}
