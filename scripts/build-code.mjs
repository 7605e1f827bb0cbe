// The JavaScript of the package: one file per entry, and the modules that they share in few files. Starting a command
// costs more by the number of its files than by their size, and Node loads each of them apart; the text of every module
// stays as it was written, but for spreads (plain-spreads.mjs). What is imported on demand in the sources still is.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { plainSpreadsPlugin } from './plain-spreads.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const SRC = join(ROOT, 'src')

/** What a command needs before it knows more than its own name, and what it needs to open a store. */
const GROUPS = {
  start: ['cli/commands.ts', 'cli/command-line.ts', 'cli/version.ts', 'cli/output.ts', 'cli/io.ts'],
  store: ['cli/sessions.ts', 'store/sqlite.ts', 'store/sql-store.ts', 'store/sqlite-memory.ts'],
}

/** Writes entries, by default those of package.json, to `outDir`, and what they share to `chunks/` in it. */
export async function buildCode(outDir, names = entryNames()) {
  const { build } = await import('vite')
  await build({
    configFile: false,
    root: ROOT,
    publicDir: false,
    logLevel: 'error',
    plugins: [{ name: 'optional-packages', renderChunk: code => mayBeMissing(code) }, plainSpreadsPlugin()],
    build: {
      ssr: true,
      outDir,
      emptyOutDir: false,
      target: 'node20',
      minify: false,
      rolldownOptions: {
        input: Object.fromEntries(names.map(name => [name, join(SRC, `${name}.ts`)])),
        output: {
          format: 'esm',
          entryFileNames: '[name].js',
          chunkFileNames: 'chunks/[name].js',
          codeSplitting: { groups: [{ name: groupOf() }] },
        },
      },
    },
  })
}

/**
 * Bundlers of applications refuse to build when an import cannot be resolved, unless its failure is handled in place. The
 * optional packages are loaded on use, and the code that loads one says which is missing.
 */
function mayBeMissing(code) {
  const { peerDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const names = Object.keys(peerDependencies).join('|')
  const imports = new RegExp(`\\bimport\\((["'])((?:${names})(?:/[^"']*)?)\\1\\)`, 'g')
  return code.replace(imports, 'import($1$2$1).catch((error) => { throw error; })')
}

/** The entries of package.json and the command line, without the folder and the ending. */
function entryNames() {
  const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const files = [...Object.values(exports).flatMap(({ default: file }) => file ?? []), './dist/cli/main.js']
  return files.map(file => file.replace(/^\.\/dist\/(.*)\.js$/, '$1'))
}

/**
 * A group has the modules that its files import, as far as none of them imports a package: a package is loaded by the
 * command that needs it. All that a module of a group imports is in that group or in one before it, so the files of
 * the groups never import each other in a circle.
 */
function groupOf() {
  let members
  return (id, context) => {
    members ??= membersOf(context)
    return members.get(id) ?? null
  }
}

function membersOf(context) {
  const members = new Map()
  for (const [name, files] of Object.entries(GROUPS)) {
    for (const file of files) {
      for (const id of importsOf(join(SRC, file), context))
        if (!members.has(id) && !needsPackage(id, context)) members.set(id, chunkOf(name, id))
    }
  }
  return members
}

/** The file and all that it imports when it is loaded. */
function importsOf(id, context, seen = new Set()) {
  if (seen.has(id)) return seen
  seen.add(id)
  for (const imported of context.getModuleInfo(id)?.importedIds ?? []) importsOf(imported, context, seen)
  return seen
}

/**
 * The table of commands imports every command on demand: an application that bundles the library must not get it. So
 * what the commands own is apart from what the library shares with them.
 */
function chunkOf(name, id) {
  const isOfCommands = id.startsWith(join(SRC, 'cli'))
  if (name === 'start') return isOfCommands ? name : 'base'
  return isOfCommands ? null : name
}

function needsPackage(id, context) {
  return [...importsOf(id, context)].some(imported => !imported.startsWith(SRC) && !isBuiltIn(imported))
}

function isBuiltIn(id) {
  return id.startsWith('node:')
}
