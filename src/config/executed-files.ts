/**
 * The local files that a program runs: the file itself and, transitively, every file that a string literal in it
 * names. Nothing is executed. Found are relative and absolute paths, `#names` of `package.json`, a package's own
 * name, and `paths` of `tsconfig.json`, as written in the source. Paths built at run time are not found. Packages
 * below `node_modules` are not followed: they are identified by `package.json` and the lock files, which are listed.
 */

import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { dirname, extname, isAbsolute, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { withoutBom } from '../base/json.js'
import { isPlain } from '../base/redact.js'
import { AgentError } from '../errors.js'

/** The files that run, and the files that decide which ones those are. All are real paths. */
export interface ExecutedFiles {
  code: string[]
  /** `package.json`, `tsconfig.json`, lock files. */
  resolution: string[]
}

/** Everything that importing these files would run. */
export function executedFiles(entries: readonly string[]): ExecutedFiles {
  const code = new Set<string>()
  const resolution = new Set<string>()
  const waiting = entries.map(realOf)
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (code.has(file)) continue
    code.add(file)
    if (code.size > MOST_FILES) throw tooMany(entries)
    if (!CODE.test(file)) continue
    const found = namedFiles(file)
    for (const each of found.resolution) resolution.add(each)
    waiting.push(...found.code)
  }
  return { code: [...code].sort(), resolution: [...resolution].sort() }
}

const MOST_FILES = 2000

const CODE = /\.[cm]?[jt]sx?$/

const ENDINGS = ['.ts', '.mts', '.cts', '.tsx', '.js', '.mjs', '.cjs', '.jsx', '.json', '.node', '.wasm']

const LITERAL = /(["'`])((?:(?!\1)[^\\\n]){1,500})\1/g

const SPECIFIER = /(?:\bfrom|\bimport|\brequire)\s*\(?\s*["'`]([^"'`\n]+)["'`]/g

/** By package manager. */
export const LOCK_FILES = {
  npm: ['package-lock.json', 'npm-shrinkwrap.json'],
  yarn: ['yarn.lock'],
  pnpm: ['pnpm-lock.yaml'],
  bun: ['bun.lock', 'bun.lockb'],
} as const

const ALL_LOCK_FILES = [...Object.values(LOCK_FILES).flat(), 'node_modules/.package-lock.json']

function namedFiles(file: string): ExecutedFiles {
  const text = readFileSync(file, 'utf8')
  const scope = nearest('package.json', dirname(file))
  const isTyped = /\.[cm]?tsx?$/.test(file)
  const settings = isTyped ? tsconfigsFor(dirname(file)) : []
  const aliases = [
    ...(scope === undefined ? [] : packageAliases(scope)),
    ...settings.flatMap(tsconfigAliases),
  ]
  const texts = [...text.matchAll(LITERAL)].flatMap(([, , literal]) => literal ?? [])
  const code = texts.flatMap(literal => [
    ...candidates(literal, dirname(file)),
    ...aliases.flatMap(alias => expand(alias, literal)),
  ])
  // Where Node does not run TypeScript, tsx does, and that may be a package of the folder.
  const usesPackages = isTyped || [...text.matchAll(SPECIFIER)].some(([, name = '']) => isPackage(name))
  const locks =
    usesPackages && scope !== undefined ? ALL_LOCK_FILES.map(name => join(dirname(scope), name)) : []
  const resolution = [...(scope === undefined ? [] : [scope]), ...settings, ...locks.filter(isFile)]
  return { code: code.map(realOf), resolution: resolution.map(realOf) }
}

function isPackage(specifier: string): boolean {
  if (/^[./#]|^[a-z]+:/i.test(specifier)) return false
  return !builtinModules.includes(specifier)
}

/** Files that a loader may resolve a path to: as written, with an extension, `.ts` for `.js`, or a folder's index. */
function candidates(literal: string, from: string): string[] {
  const path = pathOf(literal, from)
  if (path === undefined) return []
  const bare = path.replace(/\.([cm]?)jsx?$/, '')
  const stems = bare === path ? [path] : [path, bare]
  const names = [
    path,
    ...stems.flatMap(stem => ENDINGS.map(ending => stem + ending)),
    ...ENDINGS.map(ending => join(path, `index${ending}`)),
  ]
  return names.filter(name => ENDINGS.includes(extname(name)) && isFile(name))
}

function pathOf(literal: string, from: string): string | undefined {
  const path = literal.replace(/[?#].*$/, '')
  if (/^file:/i.test(path)) {
    try {
      return fileURLToPath(path)
    } catch {
      return undefined
    }
  }
  return /^\.{0,2}\//.test(path) || isAbsolute(path) ? resolve(from, path) : undefined
}

/** A name that maps to a path, with at most one `*` on both sides. */
interface Alias {
  name: string
  targets: readonly string[]
  from: string
}

function expand({ name, targets, from }: Alias, literal: string): string[] {
  const [before = '', after] = name.split('*')
  if (after === undefined && literal !== name) return []
  if (!literal.startsWith(before) || (after !== undefined && !literal.endsWith(after))) return []
  const middle = after === undefined ? '' : literal.slice(before.length, literal.length - after.length)
  return targets.flatMap(target => candidates(target.replaceAll('*', middle), from))
}

/** The aliases of `imports`, and of `exports` for a package that imports itself. */
function packageAliases(file: string): Alias[] {
  const { name, imports, exports } = readSettings(file)
  const from = dirname(file)
  const own = typeof name === 'string' ? name : undefined
  const exported = isPlain(exports) && Object.keys(exports).some(key => key.startsWith('.'))
  const entries = exported ? Object.entries(exports as object) : exports === undefined ? [] : [['.', exports]]
  return [
    ...Object.entries(isPlain(imports) ? imports : {}).map(([key, value]) => ({
      name: key,
      targets: textsIn(value),
      from,
    })),
    ...(own === undefined
      ? []
      : entries.map(([key, value]) => ({
          name: `${own}${String(key).slice(1)}`,
          targets: textsIn(value),
          from,
        }))),
  ]
}

function tsconfigAliases(file: string): Alias[] {
  const { compilerOptions } = readSettings(file)
  if (!isPlain(compilerOptions)) return []
  const { paths, baseUrl } = compilerOptions
  const from = resolve(dirname(file), typeof baseUrl === 'string' ? baseUrl : '.')
  const aliases = Object.entries(isPlain(paths) ? paths : {}).map(([name, value]) => ({
    name,
    targets: textsIn(value).map(target => resolve(from, target)),
    from,
  }))
  const all = typeof baseUrl === 'string' ? [{ name: '*', targets: [join(from, '*')], from }] : []
  return [...aliases, ...all]
}

const MOST_EXTENDED = 10

/** The `tsconfig.json` of the file's folder or above, that of the working folder, and what they extend. */
function tsconfigsFor(folder: string): string[] {
  const found = new Set<string>()
  const waiting = [nearest('tsconfig.json', folder), nearest('tsconfig.json', process.cwd())]
  while (waiting.length > 0 && found.size < MOST_EXTENDED) {
    const file = waiting.pop()
    if (file === undefined || found.has(file)) continue
    found.add(file)
    for (const text of textsIn(readSettings(file).extends)) {
      const path = pathOf(text, dirname(file))
      if (path !== undefined) waiting.push(...[path, `${path}.json`].filter(isFile))
    }
  }
  return [...found]
}

function nearest(name: string, folder: string): string | undefined {
  const file = join(folder, name)
  if (isFile(file)) return file
  const parent = dirname(folder)
  return parent === folder ? undefined : nearest(name, parent)
}

/** JSON, also with comments and trailing commas as in `tsconfig.json`; empty when it cannot be parsed. */
function readSettings(file: string): Record<string, unknown> {
  const text = readFileSync(file, 'utf8')
  const plain = text
    .replaceAll(/("(?:[^"\\\n]|\\.)*")|\/\/[^\n]*|\/\*[\s\S]*?\*\//g, '$1')
    .replaceAll(/("(?:[^"\\\n]|\\.)*")|,(?=\s*[}\]])/g, '$1')
  try {
    const data: unknown = JSON.parse(withoutBom(plain))
    return isPlain(data) ? data : {}
  } catch {
    return {}
  }
}

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : []
}

function isFile(path: string): boolean {
  return existsSync(path) && statSync(path).isFile()
}

function realOf(path: string): string {
  return realpathSync(path)
}

function tooMany(entries: readonly string[]): AgentError {
  return new AgentError(
    'invalid-config',
    `${entries.join(', ')} would run more than ${MOST_FILES} local files, too many to store as trusted. Review them and add --trust to each command.`,
    { details: { entries } },
  )
}
