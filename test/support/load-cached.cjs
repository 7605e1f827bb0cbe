/**
 * Loads bundled CommonJS files with the code that V8 compiled at an earlier start, because Node 20 has no such cache: of the
 * CPU time of a start, most is the compilation of ADK. Without a cache, or with one of another V8, the files are compiled.
 */
const { readFileSync, writeFileSync } = require('node:fs')
const { createRequire } = require('node:module')
const { dirname, resolve } = require('node:path')
const { constants, Script } = require('node:vm')

const loaded = new Map()

exports.load = path => load(resolve(__dirname, path))

/** Keeps what was compiled until now, for the next processes. */
exports.keepCompiled = () => {
  for (const [file, { script }] of loaded) writeFileSync(cacheOf(file), script.createCachedData())
}

function load(file) {
  const known = loaded.get(file)
  if (known) return known.module.exports
  const script = new Script(
    `(function (exports, require, module, __filename, __dirname) {${readFileSync(file, 'utf8')}\n})`,
    {
      filename: file,
      cachedData: cachedCode(file),
      importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
    },
  )
  const module = { exports: {} }
  loaded.set(file, { script, module })
  const requireInstalled = createRequire(file)
  const requireFrom = name =>
    name.startsWith('.') ? load(resolve(dirname(file), name)) : requireInstalled(name)
  script.runInThisContext()(module.exports, requireFrom, module, file, dirname(file))
  return module.exports
}

function cachedCode(file) {
  try {
    return readFileSync(cacheOf(file))
  } catch {
    return undefined
  }
}

function cacheOf(file) {
  return `${file}.compiled`
}
