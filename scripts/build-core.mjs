// `npm run build -- core`: the package lango-core from the sources and declarations of Lango. What its entries need is
// copied; examples in comments name it instead of Lango.
import { copyFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildCode } from './build-code.mjs'
import { copyTypes } from './types-of-entries.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const CORE = join(ROOT, 'packages/core')

const CORE_ENTRIES = ['core', 'store', 'provider', 'testing'].map(name => `entries/${name}`)

/** Writes `packages/core/dist` with the declarations of all modules, which are in `types`. */
export async function buildCore(types) {
  const dist = join(CORE, 'dist')
  for (const name of ['chunks', 'entries']) rmSync(join(dist, name), { recursive: true, force: true })
  await buildCode(dist, CORE_ENTRIES)
  copyTypes(
    types,
    dist,
    CORE_ENTRIES.map(name => `${name}.d.ts`),
    // The entry's own comment shows how it is used with a runtime, which is not part of this package.
    text =>
      text
        .replace(/^\/\*\*[\s\S]*?\*\/\n/, '')
        .replaceAll(/'lango(\/(?:store|provider|testing))?'/g, "'lango-core$1'"),
  )
  copyFileSync(join(ROOT, 'LICENSE'), join(CORE, 'LICENSE'))
}
