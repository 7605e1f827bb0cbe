// Every check that must pass before a change is published. Each step has a name, so a failure says which check
// failed. `npm run check -- types lint` runs only those steps. Two steps run at a time; what a step prints appears
// when it has ended, followed by its line of the summary.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const LANES = 2

/**
 * The longest steps start first. Nothing is compiled twice: `types` is all of both projects and the rules that need types,
 * on one reading of the files, so the build emits without checking them once more; `core` takes its declarations from
 * those of `build`; code blocks are compiled by `package` and only run by `code-blocks`. Programs are started without npx,
 * which takes half a second.
 */
const STEPS = {
  types: ['scripts/check-rules.mjs', '--types'],
  build: ['scripts/build.mjs', '--no-check'],
  package: ['scripts/check-package.mjs'],
  core: ['scripts/check-core.mjs'],
  'code-blocks': ['scripts/check-code-blocks.mjs', '--no-compile'],
  lint: ['node_modules/@biomejs/biome/bin/biome', 'check', '--error-on-warnings', '.'],
  walk: ['scripts/trace-walk.mjs', '--check'],
  rooms: ['scripts/check-rooms.mjs'],
  unused: ['node_modules/knip/bin/knip.js', '--no-progress'],
  structure: ['scripts/check-structure.mjs'],
  house: ['scripts/check-house.mjs'],
  scenarios: ['scripts/check-scenarios.mjs'],
  promises: ['scripts/check-promises.mjs'],
}

/** A step that reads what another one writes waits for its end. */
const AFTER = { package: 'build', core: 'build' }

const asked = process.argv.slice(2)
const unknown = asked.filter(name => !(name in STEPS))
if (unknown.length > 0) {
  console.error(`No such step: ${unknown.join(', ')}. Steps: ${Object.keys(STEPS).join(', ')}.`)
  process.exit(1)
}

const names = asked.length > 0 ? [...new Set(asked)] : Object.keys(STEPS)
// A step and those that wait for it, one after another.
const chains = names
  .filter(name => !names.includes(AFTER[name]))
  .map(name => [name, ...names.filter(other => AFTER[other] === name)])
const failed = []

await Promise.all(Array.from({ length: LANES }, runChains))
if (failed.length > 0) {
  console.error(`check failed: ${names.filter(name => failed.includes(name)).join(', ')}`)
  process.exit(1)
}

async function runChains() {
  for (let chain = chains.shift(); chain !== undefined; chain = chains.shift()) {
    for (const name of chain) await runStep(name)
  }
}

async function runStep(name) {
  const started = Date.now()
  const { code, output } = await outcomeOf(
    spawn(process.execPath, STEPS[name], { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] }),
  )
  const seconds = ((Date.now() - started) / 1000).toFixed(1)
  process.stdout.write(output)
  console.log(`${code === 0 ? 'ok  ' : 'FAIL'} ${name} (${seconds} s)`)
  if (code !== 0) failed.push(name)
}

function outcomeOf(child) {
  const chunks = []
  for (const stream of [child.stdout, child.stderr]) stream.on('data', chunk => chunks.push(chunk))
  return new Promise(resolve => {
    child.on('error', error => resolve({ code: null, output: `${error.message}\n` }))
    child.on('close', code => resolve({ code, output: Buffer.concat(chunks) }))
  })
}
