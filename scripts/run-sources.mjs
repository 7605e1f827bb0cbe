// node --import ./scripts/run-sources.mjs program.ts: runs sources as they are built for the package. Benchmarks measure
// what is installed by its users; tsx adds a call to each function that is made, and keeps the literals of plain-spreads.mjs.
import { readFile } from 'node:fs/promises'
import { register } from 'node:module'
import { fileURLToPath } from 'node:url'
import { isMainThread } from 'node:worker_threads'
import { transformWithOxc } from 'vite'
import { plainSpreads } from './plain-spreads.mjs'

if (isMainThread) register(import.meta.url)

/** The sources name each other by what they are compiled to. */
export async function resolve(specifier, context, next) {
  try {
    return await next(specifier, context)
  } catch (error) {
    if (!/^\.{1,2}\/.*\.js$/.test(specifier)) throw error
    return next(`${specifier.slice(0, -'.js'.length)}.ts`, context)
  }
}

export async function load(url, context, next) {
  if (!url.startsWith('file:') || !/\.ts$/.test(url)) return next(url, context)
  const file = fileURLToPath(url)
  const { code } = await transformWithOxc(await readFile(file, 'utf8'), file, {
    target: 'node20',
    sourcemap: false,
  })
  return { format: 'module', shortCircuit: true, source: plainSpreads(code, file.replace(/\.ts$/, '.js')) }
}
