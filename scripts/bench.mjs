// npm run bench -- <name> [--json]: runs bench/<name>.ts, or bench/<name>/ with its own packages.
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const [name, ...rest] = process.argv.slice(2)
const known = readdirSync(`${ROOT}/bench`)
  .filter(entry => /^[a-z-]+(\.ts)?$/.test(entry) && entry !== 'support')
  .map(entry => entry.replace(/\.ts$/, ''))

if (!name || !known.includes(name)) {
  console.error(`Usage: npm run bench -- <name> [--json]\nBenchmarks: ${known.join(', ')}`)
  process.exit(1)
}
const folder = `${ROOT}/bench/${name}`
const ownPackages = existsSync(`${folder}/package.json`)
if (ownPackages && !existsSync(`${folder}/node_modules`)) {
  console.error(`Installing the peers of bench/${name} (once) …`)
  const { status } = spawnSync('npm', ['ci', '--no-audit', '--no-fund'], {
    cwd: folder,
    stdio: ['ignore', 2, 2],
  })
  if (status !== 0) process.exit(1)
}
const program = ownPackages ? `${folder}/${name}.ts` : `${folder}.ts`
const compiled = ['--import', `${ROOT}/scripts/run-sources.mjs`]
const { status } = spawnSync('node', [...compiled, program, ...rest], { cwd: ROOT, stdio: 'inherit' })
process.exit(status ?? 1)
