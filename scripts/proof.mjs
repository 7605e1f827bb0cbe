// `npm run proof`: the third tier. It takes hours and is not part of `.ci/run`: run it before a release, and after a change
// of how runs are stored, resumed or paid for. docs/testing.md has the table of tiers.
//
//   npm run proof                      every part, one after another
//   npm run proof -- mutants tests     only these parts
//   npm run proof -- --list            the parts, with what they prove and how long they take on two cores
//   npm run proof -- --json            the results as JSON; what the parts print goes to standard error
//
// A part that fails does not end the others. The exit code is 1 when one has failed.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const VITEST = 'node_modules/vitest/vitest.mjs'
const CHAOS = ['--import', 'tsx', 'chaos/chaos.ts', '--kills', '300', '--processes', '3']

const PARTS = {
  mutants: {
    proves: 'npm test finds planted mistakes',
    minutes: 40,
    commands: [['scripts/mutants.mjs']],
  },
  tests: {
    proves:
      'the tests with the tag proof: a run is continued after every one of its writes; all documented commands run with the packed package; every command in every hostile folder; five stops of a server of each kind',
    minutes: 20,
    commands: [
      ['scripts/build.mjs', '--no-check'],
      [VITEST, 'run', '--tags-filter=proof'],
    ],
  },
  'chaos-sqlite': {
    proves: '300 kills of three processes on SQLite lose, double and interleave nothing',
    minutes: 30,
    commands: [[...CHAOS, '--store', 'sqlite']],
  },
  'chaos-postgres': {
    proves: 'the same on PostgreSQL, with restarts of the database',
    minutes: 30,
    commands: [[...CHAOS, '--store', 'postgres']],
  },
  'chaos-dbos': {
    proves: 'the same with DBOS as the engine',
    minutes: 30,
    commands: [[...CHAOS, '--store', 'postgres', '--engine', 'dbos']],
  },
  simulate: {
    proves: '100,000 simulated crashes leave no run lost, doubled or stuck',
    minutes: 60,
    commands: [simulation()],
  },
  fuzz: {
    proves: 'the laws of repair, restoring and steady requests hold for some million generated histories',
    minutes: 90,
    commands: [['scripts/fuzz.mjs']],
  },
  pooler: {
    proves: 'the store works behind PgBouncer in session and transaction mode (needs PgBouncer)',
    minutes: 10,
    commands: [['scripts/test-pooler.mjs']],
  },
  lanes: {
    proves: 'the packed package works on every runtime and through every bundler',
    minutes: 15,
    commands: [['scripts/test-lanes.mjs']],
  },
}

const words = process.argv.slice(2)
const asJson = words.includes('--json')
const asked = words.filter(word => !word.startsWith('--'))
const wrong =
  words.find(word => word.startsWith('--') && !['--json', '--list', '--help'].includes(word)) ??
  asked.find(name => !(name in PARTS))
if (wrong !== undefined) {
  console.error(`No such part or option: ${wrong}. Parts: ${Object.keys(PARTS).join(', ')}.`)
  process.exit(1)
}
if (words.includes('--list') || words.includes('--help')) {
  for (const [name, { proves, minutes }] of Object.entries(PARTS))
    console.log(`${name.padEnd(15)} ${String(minutes).padStart(3)} min  ${proves}`)
  process.exit(0)
}

const results = []
for (const name of asked.length > 0 ? asked : Object.keys(PARTS)) results.push(await runPart(name))
if (asJson) console.log(JSON.stringify(results, undefined, 2))
const failed = results.filter(({ passed }) => !passed).map(({ name }) => name)
console.error(
  failed.length > 0 ? `proof failed: ${failed.join(', ')}` : `proof: ${results.length} parts passed`,
)
process.exit(failed.length > 0 ? 1 : 0)

async function runPart(name) {
  const started = Date.now()
  console.error(`${name}: ${PARTS[name].proves} …`)
  let code = 0
  for (const command of PARTS[name].commands) code ||= await run(command)
  const seconds = Math.round((Date.now() - started) / 1000)
  console.error(`${code === 0 ? 'ok  ' : 'FAIL'} ${name} (${seconds} s)`)
  return { name, passed: code === 0, seconds }
}

function run(command) {
  const child = spawn(process.execPath, command, {
    cwd: ROOT,
    stdio: ['ignore', asJson ? 2 : 'inherit', 'inherit'],
    env: { ...process.env, LANGO_REPORT: 'reports/proof.json' },
  })
  return new Promise(done => child.on('error', () => done(1)).on('close', code => done(code ?? 1)))
}

/** A thousand simulations with at most 40 faults have some 12,000 crashes. */
function simulation() {
  const options = ['--count', '9000', '--seed', '1', '--faults', '40', '--actions', 'crash']
  return ['--import', 'tsx', 'simulate/simulate.ts', ...options]
}
