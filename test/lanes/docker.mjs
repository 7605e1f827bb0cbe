// The image: built, started and stopped where a Docker engine answers; its file is linted in any case.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { command, HERE } from './support.mjs'

const ROOT = join(HERE, '../..')
const IMAGE = 'lango-lane'

export async function dockerLane() {
  const { validate } = createRequire(join(HERE, 'package.json'))('dockerfile-utils')
  const findings = validate(readFileSync(join(ROOT, 'Dockerfile'), 'utf8'))
  if (findings.length > 0) {
    const lines = findings.map(({ message, range }) => `line ${range.start.line + 1}: ${message}`)
    throw new Error(`Dockerfile: ${lines.join('; ')}`)
  }
  if (spawnSync('docker', ['info']).status !== 0)
    return { why: 'no Docker engine answers: the Dockerfile was linted, not built' }
  command('docker', ['build', '--tag', IMAGE, ROOT])
  const tokens = 'LANGO_TOKENS=a-token-of-the-docker-lane'
  const id = command('docker', ['run', '--detach', '--init', '--env', tokens, IMAGE]).trim()
  try {
    while (stateOf(id, 'Health.Status') === 'starting') await pause(500)
    if (stateOf(id, 'Health.Status') !== 'healthy') throw new Error(command('docker', ['logs', id]))
    command('docker', ['stop', '--time', '20', id])
    if (stateOf(id, 'ExitCode') !== '0')
      throw new Error(`it ended with ${stateOf(id, 'ExitCode')} on SIGTERM`)
  } finally {
    command('docker', ['rm', '--force', '--volumes', id])
  }
  const bytes = Number(command('docker', ['image', 'inspect', '--format', '{{.Size}}', IMAGE]))
  return { version: command('docker', ['--version']).trim(), megabytes: Math.round(bytes / 1_000_000) }
}

function stateOf(id, field) {
  return command('docker', ['inspect', '--format', `{{.State.${field}}}`, id]).trim()
}
