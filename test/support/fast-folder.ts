import { constants } from 'node:fs'
import { access, readFile, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'

const MEMORY = '/dev/shm'
/** Containers have 64 MB of it. */
const LEAST_FREE_BYTES = 2 ** 30

/**
 * Where temporary files are fast: in memory, if the system has a folder there with enough room, in which programs may be
 * executed; otherwise the system's folder for temporary files. In memory a commit of SQLite takes a tenth of the time,
 * and a new database of PostgreSQL a tenth.
 */
export async function fastFolder(): Promise<string> {
  try {
    const [{ bavail, bsize }, mounts] = await Promise.all([statfs(MEMORY), readFile('/proc/mounts', 'utf8')])
    await access(MEMORY, constants.W_OK)
    const mount = mounts.split('\n').find(line => line.split(' ')[1] === MEMORY)
    const isUsable = mount !== undefined && !/\bnoexec\b/.test(mount) && bavail * bsize >= LEAST_FREE_BYTES
    return isUsable ? MEMORY : tmpdir()
  } catch {
    return tmpdir()
  }
}
