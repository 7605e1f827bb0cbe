import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

/** `auto` uses a sandbox where one is available, `required` fails without one, `off` never uses one. */
export type SandboxMode = 'auto' | 'required' | 'off'

const probes = new Map<string, Promise<boolean>>()

/**
 * Whether bubblewrap is installed and works. Many machines have it but forbid user namespaces, so it is tried, once
 * per search path.
 */
export function hasBubblewrap(environment: Readonly<Record<string, string>>): Promise<boolean> {
  if (process.platform !== 'linux') return Promise.resolve(false)
  const key = environment.PATH ?? ''
  const known = probes.get(key)
  if (known) return known
  const probe = new Promise<boolean>(resolve => {
    const [command = '', ...args] = bubblewrapCommand('/var', ['true'])
    execFile(command, args, { env: environment, timeout: PROBE_TIMEOUT_MS }, error => resolve(error === null))
  })
  probes.set(key, probe)
  return probe
}

const PROBE_TIMEOUT_MS = 10_000

/**
 * A command inside bubblewrap: it sees the file system read-only, writes to the workspace and to an empty `/tmp`,
 * has no network, sees no other processes, and is killed with its parent. Service sockets and the usual locations
 * of keys are hidden.
 */
export function bubblewrapCommand(workspace: string, command: readonly string[]): string[] {
  const atHome = (name: string) => join(homedir(), name)
  const folders = ['/tmp', '/run', ...SECRET_FOLDERS.map(atHome)].filter(folder => existsSync(folder))
  const files = SECRET_FILES.map(atHome).filter(file => existsSync(file))
  return [
    'bwrap',
    ...['--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc'],
    ...folders.flatMap(folder => ['--tmpfs', folder]),
    ...files.flatMap(file => ['--ro-bind', '/dev/null', file]),
    ...['--bind', workspace, workspace, '--chdir', workspace, '--setenv', 'TMPDIR', '/tmp'],
    ...['--unshare-all', '--die-with-parent', '--new-session', '--'],
    ...command,
  ]
}

const SECRET_FOLDERS = [
  '.ssh',
  '.aws',
  '.azure',
  '.gnupg',
  '.kube',
  '.docker',
  '.config/gcloud',
  '.config/gh',
  '.config/lango',
]
const SECRET_FILES = ['.npmrc', '.netrc', '.pypirc', '.git-credentials', '.env']
