// Writes the code and its types to dist/, and the web chat to dist/web.
// `--no-check` is for `npm run check`, which checks the types of the same files in another step.
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { buildCode } from './build-code.mjs'
import { buildWeb } from './build-web.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const dist = new URL('../dist/', import.meta.url)
// The page is built only when it has changed, so it is left in place.
for (const name of existsSync(dist) ? readdirSync(dist) : []) {
  if (name !== 'web') rmSync(new URL(name, dist), { recursive: true, force: true })
}
const unchecked = process.argv.includes('--no-check') ? ['--noCheck'] : []
const tsc = [
  'node_modules/typescript/bin/tsc',
  '-p',
  'tsconfig.build.json',
  '--emitDeclarationOnly',
  ...unchecked,
]
const { status } = spawnSync(process.execPath, tsc, { cwd: ROOT, stdio: 'inherit' })
if (status !== 0) process.exit(status ?? 1)
await buildCode(fileURLToPath(dist))
await buildWeb()
