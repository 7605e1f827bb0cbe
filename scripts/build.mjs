// Emits ESM and types to dist/. Plain tsc: what is published is what was written.
import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
rmSync(new URL('../dist', import.meta.url), { recursive: true, force: true })
const { status } = spawnSync('npx', ['--no-install', 'tsc', '-p', 'tsconfig.build.json'], {
  cwd: ROOT,
  stdio: 'inherit',
})
process.exit(status ?? 1)
