// What would be published: entry points exist, types resolve for ESM users, nothing odd in package.json.
import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const ATTW = 'node_modules/@arethetypeswrong/cli/dist/index.js'
const run = (command, args) => spawnSync(command, args, { cwd: ROOT, encoding: 'utf8' })

const packed = run('npm', ['pack', '--silent', '--ignore-scripts'])
const tarball = packed.stdout.trim().split('\n').at(-1)
if (packed.status !== 0 || !tarball) {
  console.error(packed.stderr)
  process.exit(1)
}
const checks = [
  ['publint', ['node_modules/publint/src/cli.js', '--strict', tarball]],
  ['attw', [ATTW, tarball, '--profile', 'esm-only', '--no-emoji', '--format', 'ascii']],
].map(([name, args]) => ({ name, ...run(process.execPath, args) }))
rmSync(`${ROOT}/${tarball}`)
for (const check of checks.filter(result => result.status !== 0)) {
  console.error(`${check.name} failed:\n${check.stdout}${check.stderr}`)
}
process.exit(checks.every(result => result.status === 0) ? 0 : 1)
