// Writes the code and its types to dist/, and the web chat to dist/web; `core`: those of lango-core to packages/core/dist.
// `--no-check` is for `npm run check`, which checks the types of the same files in another step.
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildCode } from './build-code.mjs'
import { buildCore } from './build-core.mjs'
import { buildWeb } from './build-web.mjs'
import { pruneTypes } from './types-of-entries.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

if (process.argv.includes('core')) {
  const types = join(ROOT, 'packages/core/dist/.types')
  emitTypes(types)
  await buildCore(types)
} else {
  const dist = join(ROOT, 'dist')
  // The page is built only when it has changed, so it is left in place.
  for (const name of existsSync(dist) ? readdirSync(dist) : []) {
    if (name !== 'web') rmSync(join(dist, name), { recursive: true, force: true })
  }
  emitTypes(dist)
  const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  pruneTypes(
    dist,
    Object.values(exports).flatMap(({ types }) => (types === undefined ? [] : [join(ROOT, types)])),
  )
  await buildCode(dist)
  await buildWeb()
}

function emitTypes(folder) {
  const unchecked = process.argv.includes('--no-check') ? ['--noCheck'] : []
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc')
  const options = ['-p', 'tsconfig.build.json', '--emitDeclarationOnly', '--outDir', folder, ...unchecked]
  const { status } = spawnSync(process.execPath, [compiler, ...options], { cwd: ROOT, stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
}
