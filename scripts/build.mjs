// Writes the code and its types to dist/, and the web chat to dist/web; `core`: those of lango-core to packages/core/dist.
// `--no-check` is for `npm run check`, which checks the types of the same files in another step.
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildCode } from './build-code.mjs'
import { buildCore } from './build-core.mjs'
import { buildWeb } from './build-web.mjs'
import { emitTypes } from './emit-types.mjs'
import { copyTypes } from './types-of-entries.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const types = emitTypes({ isChecked: process.argv.includes('--no-check') })

if (process.argv.includes('core')) await buildCore(types)
else {
  const dist = join(ROOT, 'dist')
  // The page is built only when it has changed, so it is left in place.
  for (const name of existsSync(dist) ? readdirSync(dist) : []) {
    if (name !== 'web') rmSync(join(dist, name), { recursive: true, force: true })
  }
  const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const entries = Object.values(exports).flatMap(({ types: file }) => file?.replace('./dist/', '') ?? [])
  copyTypes(types, dist, entries)
  await buildCode(dist)
  await buildWeb()
}
