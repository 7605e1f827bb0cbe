// `npm run test:clients`: installs the clients where their lock file has changed, runs the suites against strict providers on
// SQLite and PostgreSQL, checks their types meanwhile, and compares the table in docs/protocols.md with the report.
//
//   npm run test:clients                 all suites
//   npm run test:clients -- --write      also writes the table
//   npm run test:clients -- use-chat     only files with this in their name; the table is left alone
//   npm run test:clients -- --install    only installs
import { spawn } from 'node:child_process'
import { copyFileSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const CLIENTS = join(ROOT, 'test/clients')

const write = process.argv.includes('--write')
const filters = process.argv.slice(2).filter(word => !word.startsWith('--'))

await Promise.all(packageFolders().map(install))
if (process.argv.includes('--install')) process.exit()
const runner = join(ROOT, 'node_modules/vitest/vitest.mjs')
const config = join(CLIENTS, 'vitest.config.ts')
// The compiler has one thread: it takes what the suites leave of the processor. What it prints follows their report.
const [suites, types] = await Promise.all([
  run([runner, 'run', '--config', config, ...filters]),
  run([join(ROOT, 'scripts/check-client-types.mjs')], 'pipe'),
])
process.stdout.write(types.output)
end('types', types)
end('suites', suites)
const table = join(ROOT, 'scripts/build-client-table.mjs')
if (filters.length === 0) end('table', await run([table, ...(write ? ['--write'] : [])]))

/**
 * This folder and those in it with a lock file of their own and tests. The programs that wrote the kept transcripts are
 * no part of any test, and have more than a gigabyte.
 */
function packageFolders() {
  const inside = readdirSync(CLIENTS, { withFileTypes: true })
    .filter(entry => entry.isDirectory())
    .map(({ name }) => join(CLIENTS, name))
  return [CLIENTS, ...inside].filter(
    folder =>
      existsSync(join(folder, 'package-lock.json')) &&
      readdirSync(folder).some(name => name.endsWith('.test.ts')),
  )
}

/** No scripts: the packages are other people's, and none of the suites needs one. */
async function install(folder) {
  const lock = join(folder, 'package-lock.json')
  const installed = join(folder, 'node_modules/.installed-lock')
  if (existsSync(installed) && readFileSync(installed, 'utf8') === readFileSync(lock, 'utf8')) return
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
  const command = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  end('install', await outcomeOf(spawn(npm, command, { cwd: folder, stdio: 'inherit' })))
  copyFileSync(lock, installed)
}

function run(command, output = 'inherit') {
  return outcomeOf(spawn(process.execPath, command, { cwd: ROOT, stdio: ['inherit', output, output] }))
}

/** The exit code, or the error of the start, and what was printed into pipes. */
function outcomeOf(child) {
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', chunk => {
      output += chunk
    })
  }
  return new Promise(resolve => {
    const finish = code => resolve({ code, output })
    child.on('error', finish).on('close', finish)
  })
}

function end(name, { code }) {
  if (code === 0) return
  console.error(`test:clients failed: ${name}`)
  process.exit(1)
}
