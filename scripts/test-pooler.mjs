// npm run test:pooler: the store's conformance suite and a minute of chaos with two processes through PgBouncer, in
// session and in transaction mode. Fails when PgBouncer is not installed.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const installed = ['pgbouncer', '/usr/sbin/pgbouncer'].some(
  path => spawnSync(path, ['--version']).status === 0,
)
if (!installed) {
  console.error('PgBouncer is not installed: nothing was tested (apt-get install pgbouncer)')
  process.exit(1)
}
const failed = []
for (const mode of ['session', 'transaction']) {
  run(
    `conformance in ${mode} mode`,
    ['node_modules/vitest/vitest.mjs', 'run', 'test/conformance/store', 'test/store'],
    {
      LANGO_TEST_POOLER: mode,
    },
  )
  const chaos = ['--import', 'tsx', 'chaos/chaos.ts', '--store', `pgbouncer-${mode}`]
  run(`chaos in ${mode} mode`, [...chaos, '--minutes', '1', '--processes', '2'])
}
console.log(failed.length === 0 ? 'ok: PgBouncer in both modes' : `failed: ${failed.join(', ')}`)
process.exit(failed.length === 0 ? 0 : 1)

function run(name, args, environment = {}) {
  console.log(`${name} …`)
  const options = { cwd: ROOT, stdio: 'inherit', env: { ...process.env, ...environment } }
  if (spawnSync(process.execPath, args, options).status !== 0) failed.push(name)
}
