// `npm run build -- core`: the package lango-core from the sources and declarations of Lango. What its entries need is
// copied; examples in comments name it instead of Lango.
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildCode } from './build-code.mjs'
import { typesOf } from './types-of-entries.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const CORE = join(ROOT, 'packages/core')

const CORE_ENTRIES = ['core', 'store', 'provider', 'testing'].map(name => `entries/${name}`)

/** Writes `packages/core/dist` with the declarations of all modules, which are in `types` and are removed. */
export async function buildCore(types) {
  const dist = join(CORE, 'dist')
  for (const name of ['chunks', 'entries']) rmSync(join(dist, name), { recursive: true, force: true })
  await buildCode(dist, CORE_ENTRIES)
  for (const file of typesOf(CORE_ENTRIES.map(name => join(types, `${name}.d.ts`)))) {
    const target = join(dist, relative(types, file))
    mkdirSync(dirname(target), { recursive: true })
    // The entry's own comment shows how it is used with a runtime, which is not part of this package.
    const text = readFileSync(file, 'utf8').replace(/^\/\*\*[\s\S]*?\*\/\n/, '')
    writeFileSync(target, text.replaceAll(/'lango(\/(?:store|provider|testing))?'/g, "'lango-core$1'"))
  }
  rmSync(types, { recursive: true })
  copyFileSync(join(ROOT, 'LICENSE'), join(CORE, 'LICENSE'))
}
