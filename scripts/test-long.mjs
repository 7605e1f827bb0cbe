// `npm run test:long`: the second tier, which proves at length what `npm test` guards. `.ci/run` runs it after the checks.
//
//   npm run test:long                       all parts
//   npm run test:long -- clients lanes      only these parts
//   npm run test:long -- tests simulate     the long tests of files with this in their name
//
// Parts: `tests` are the tests with the tag `long`, `clients` the suites of real clients, whose packages have a folder of
// their own, `lanes` the package as it is installed and bundled. docs/testing.md says what belongs where.
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const PARTS = { tests: longTests, clients, lanes }
/** The lanes that need nothing but npm and the packages of the repository; `npm run test:lanes` has the others. */
const LANES = ['node-20', 'esbuild-esm', 'esbuild-cjs', 'installed-esm', 'installed-cjs', 'installed-newest']

const words = process.argv.slice(2)
const wrong = words.find(word => word.startsWith('-'))
if (wrong !== undefined) {
  const isHelp = wrong === '--help'
  console.error(
    `${isHelp ? '' : `Unknown option: ${wrong}\n`}npm run test:long -- [tests|clients|lanes …] [FILE …]`,
  )
  process.exit(isHelp ? 0 : 1)
}
const asked = Object.keys(PARTS).filter(name => words.includes(name))
const filters = words.filter(word => !(word in PARTS))
const chosen = asked.length > 0 ? asked : filters.length > 0 ? ['tests'] : Object.keys(PARTS)

mkdirSync(join(ROOT, 'reports'), { recursive: true })
const failed = []
// The lanes mostly wait for installations, so they run beside the clients; their output follows.
if (chosen.includes('tests')) await runPart('tests')
await Promise.all(['clients', 'lanes'].filter(name => chosen.includes(name)).map(runPart))
if (failed.length > 0) {
  console.error(`test:long failed: ${failed.join(', ')}`)
  process.exit(1)
}

async function runPart(name) {
  const started = Date.now()
  const code = await PARTS[name]()
  console.log(`${code === 0 ? 'ok  ' : 'FAIL'} ${name} (${((Date.now() - started) / 1000).toFixed(0)} s)`)
  if (code !== 0) failed.push(name)
}

/** Only files that hold a long test are loaded. */
async function longTests() {
  const folders = ['src', ...readdirSync(join(ROOT, 'test')).map(name => `test/${name}`)]
  const files = folders
    .filter(folder => !['test/clients', 'test/lanes'].includes(folder))
    .flatMap(folder => readdirSync(join(ROOT, folder), { recursive: true }).map(name => `${folder}/${name}`))
    .filter(file => file.endsWith('.test.ts') && filters.every(filter => file.includes(filter)))
    .filter(file => /@module-tag long|\bLONG\b|\blongUnless\b/.test(readFileSync(join(ROOT, file), 'utf8')))
  if (files.length === 0) {
    console.error(`No file with a long test has ${filters.join(' and ')} in its name.`)
    return 1
  }
  const report = 'reports/long.json'
  const code = await run(['node_modules/vitest/vitest.mjs', 'run', '--tags-filter=long', ...files], {
    LANGO_REPORT: report,
  })
  if (code !== 0) return code
  if (JSON.parse(readFileSync(join(ROOT, report), 'utf8')).numPassedTests > 0) return 0
  console.error('None of these files has a long test.')
  return 1
}

function clients() {
  return run(['scripts/test-clients.mjs'])
}

async function lanes() {
  if (!existsSync(join(ROOT, 'dist/index.js'))) {
    const code = await run(['scripts/build.mjs', '--no-check'])
    if (code !== 0) return code
  }
  return run(['scripts/test-lanes.mjs', '--quick', ...LANES])
}

function run(command, env = {}) {
  const child = spawn(process.execPath, command, {
    cwd: ROOT,
    stdio: 'inherit',
    env: { ...process.env, ...env },
  })
  return new Promise(resolve => child.on('error', () => resolve(1)).on('close', code => resolve(code ?? 1)))
}
