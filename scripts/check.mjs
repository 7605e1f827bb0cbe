// Every check that must pass before a change is published. Each step has a name, so a failure says which check
// failed. `npm run check -- types lint` runs only those steps.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

const STEPS = {
  types: ['npx', ['--no-install', 'tsc', '--noEmit']],
  'web-types': ['npx', ['--no-install', 'tsc', '--noEmit', '-p', 'web']],
  lint: ['npx', ['--no-install', 'biome', 'check', '--error-on-warnings', '.']],
  rooms: ['node', ['scripts/check-rooms.mjs']],
  house: ['node', ['scripts/check-house.mjs']],
  structure: ['node', ['scripts/check-structure.mjs']],
  walk: ['node', ['scripts/trace-walk.mjs', '--check']],
  rules: ['node', ['scripts/check-rules.mjs']],
  unused: ['npx', ['--no-install', 'knip', '--no-progress']],
  'code-blocks': ['node', ['scripts/check-code-blocks.mjs']],
  scenarios: ['node', ['scripts/check-scenarios.mjs']],
  build: ['node', ['scripts/build.mjs']],
  package: ['node', ['scripts/check-package.mjs']],
}

const asked = process.argv.slice(2)
const unknown = asked.filter(name => !(name in STEPS))
if (unknown.length > 0) {
  console.error(`No such step: ${unknown.join(', ')}. Steps: ${Object.keys(STEPS).join(', ')}.`)
  process.exit(1)
}

const failed = []
for (const name of asked.length > 0 ? asked : Object.keys(STEPS)) {
  const [command, args] = STEPS[name]
  const started = Date.now()
  const { status } = spawnSync(command, args, { cwd: ROOT, stdio: 'inherit' })
  const seconds = ((Date.now() - started) / 1000).toFixed(1)
  console.log(`${status === 0 ? 'ok  ' : 'FAIL'} ${name} (${seconds} s)`)
  if (status !== 0) failed.push(name)
}
if (failed.length > 0) {
  console.error(`check failed: ${failed.join(', ')}`)
  process.exit(1)
}
