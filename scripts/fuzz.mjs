// npm run fuzz: see HELP. The cases run from one bundled file: loading is shorter, and the code has no helpers of a loader in
// its functions.
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { plainSpreadsPlugin } from './plain-spreads.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const DEFAULTS = { restore: 100_000, repair: 1_000_000, steady: 100_000 }

const HELP = `npm run fuzz -- [restore|repair|steady] [options]

The property tests with many more cases; without a name, all of them. Exit code 1 when a case fails: its seed is printed.

  --count N   how many cases (default: restore 100,000, repair 1,000,000, steady 100,000)
  --seed S    the first seed (default: a random one, which is printed)
  --jobs J    processes that share the cases (default: one for each core)
`

const args = process.argv.slice(2)
if (args.includes('--help')) {
  console.log(HELP)
  process.exit()
}
const named = args[0] && !args[0].startsWith('--') ? args.shift() : undefined
if (named && !(named in DEFAULTS))
  fail(`No such fuzz: ${named}. Choose one of: ${Object.keys(DEFAULTS).join(', ')}.`)
const jobs = take('jobs', availableParallelism())
const seed = take('seed', Math.floor(Math.random() * 1e9))
const given = take('count', 0)
if (args.length > 0) fail(`${args.join(' ')}: unknown. \`npm run fuzz -- --help\` lists the options.`)
let failed = false
const folder = await bundle(named ? [named] : Object.keys(DEFAULTS))
for (const name of named ? [named] : Object.keys(DEFAULTS)) {
  const count = given || DEFAULTS[name]
  console.log(`fuzz ${name} --count ${count} --seed ${seed} --jobs ${jobs}`)
  const share = Math.ceil(count / jobs)
  const ended = await Promise.all(
    Array.from({ length: jobs }, (_, job) => run(name, share, seed + job * share)),
  )
  failed ||= ended.some(status => status !== 0)
}
rmSync(folder, { recursive: true, force: true })
process.exit(failed ? 1 : 0)

/** Writes one file for each fuzz, in a folder of this run below node_modules: that is where they find the packages. */
async function bundle(names) {
  const parent = join(ROOT, 'node_modules/.cache')
  mkdirSync(parent, { recursive: true })
  const outDir = mkdtempSync(join(parent, 'lango-fuzz-'))
  const { build } = await import('vite')
  await build({
    configFile: false,
    root: ROOT,
    publicDir: false,
    logLevel: 'error',
    plugins: [plainSpreadsPlugin()],
    build: {
      ssr: true,
      outDir,
      target: 'node20',
      minify: false,
      rolldownOptions: {
        input: Object.fromEntries(names.map(name => [name, join(ROOT, `test/fuzz/${name}.ts`)])),
        output: { format: 'esm', entryFileNames: '[name].mjs', chunkFileNames: 'shared-[name].mjs' },
      },
    },
  })
  return outDir
}

/** The seed of a case is the first one plus its number, so that the shares have no case in common. */
function run(name, count, first) {
  const command = [
    // Nearly everything that a case allocates is short-lived.
    '--max-semi-space-size=64',
    join(folder, `${name}.mjs`),
    ...args,
    '--count',
    String(count),
    '--seed',
    String(first),
  ]
  const child = spawn('node', command, { cwd: ROOT, stdio: 'inherit' })
  return new Promise(resolve => child.once('exit', resolve))
}

/** A whole number among the arguments, which loses it. */
function take(name, fallback) {
  const at = args.indexOf(`--${name}`)
  if (at === -1) return fallback
  const [, text] = args.splice(at, 2)
  const value = Number(text)
  if (!Number.isSafeInteger(value) || value < 1) fail(`--${name} takes a whole number, not "${text}".`)
  return value
}

function fail(message) {
  console.error(message)
  process.exit(1)
}
