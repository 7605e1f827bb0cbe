// npm run fuzz [-- restore|repair|steady] [--count N] [--seed S]: the property tests with many more cases. Without a name, all of them.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const DEFAULTS = { restore: 100_000, repair: 1_000_000, steady: 100_000 }

const args = process.argv.slice(2)
const named = args[0] && !args[0].startsWith('--') ? args.shift() : undefined
if (named && !(named in DEFAULTS)) {
  console.error(`No such fuzz: ${named}. Choose one of: ${Object.keys(DEFAULTS).join(', ')}.`)
  process.exit(1)
}
const seed = args.includes('--seed') ? [] : ['--seed', String(Math.floor(Math.random() * 1e9))]
let failed = false
for (const name of named ? [named] : Object.keys(DEFAULTS)) {
  const count = args.includes('--count') ? [] : ['--count', String(DEFAULTS[name])]
  const command = ['--import', 'tsx', `test/fuzz/${name}.ts`, ...args, ...count, ...seed]
  console.log(`fuzz ${name} ${[...args, ...count, ...seed].join(' ')}`)
  const { status } = spawnSync('node', command, { cwd: ROOT, stdio: 'inherit' })
  failed ||= status !== 0
}
process.exit(failed ? 1 : 0)
