// `npm run test:clients`: installs the clients where their lock file has changed, checks the types of the suites, runs
// them against strict providers on SQLite and PostgreSQL, and compares the table in docs/protocols.md with the report.
//
//   npm run test:clients                 all suites
//   npm run test:clients -- --write      also writes the table
//   npm run test:clients -- use-chat     only files with this in their name; the table is left alone
import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const CLIENTS = join(ROOT, 'test/clients')

const write = process.argv.includes('--write')
const filters = process.argv.slice(2).filter(word => word !== '--write')

for (const folder of packageFolders()) install(folder)
step('types', [join(ROOT, 'node_modules/typescript/bin/tsc'), '--noEmit', '-p', CLIENTS])
const config = join(CLIENTS, 'vitest.config.ts')
step('suites', [join(ROOT, 'node_modules/vitest/vitest.mjs'), 'run', '--config', config, ...filters])
const table = join(ROOT, 'scripts/build-client-table.mjs')
if (filters.length === 0) step('table', [table, ...(write ? ['--write'] : [])])

/** This folder and those in it with a lock file of their own. */
function packageFolders() {
  const inside = readdirSync(CLIENTS, { withFileTypes: true })
    .filter(entry => entry.isDirectory())
    .map(({ name }) => join(CLIENTS, name))
  return [CLIENTS, ...inside].filter(folder => existsSync(join(folder, 'package-lock.json')))
}

/** No scripts: the packages are other people's, and none of the suites needs one. */
function install(folder) {
  const lock = join(folder, 'package-lock.json')
  const installed = join(folder, 'node_modules/.installed-lock')
  if (existsSync(installed) && readFileSync(installed, 'utf8') === readFileSync(lock, 'utf8')) return
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
  const command = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  end('install', spawnSync(npm, command, { cwd: folder, stdio: 'inherit' }))
  copyFileSync(lock, installed)
}

function step(name, command) {
  end(name, spawnSync(process.execPath, command, { cwd: ROOT, stdio: 'inherit' }))
}

function end(name, { status }) {
  if (status === 0) return
  console.error(`test:clients failed: ${name}`)
  process.exit(1)
}
