/**
 * The trusted folders and the hashes of their files: one JSON file of the user. An unreadable file trusts nothing
 * and is reported; it is renamed, not overwritten. Writers take a lock file, and each replaces the file atomically.
 */
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { isPlain } from '../base/redact.js'
import { AgentError, messageOf } from '../errors.js'
import type { Environment } from './environment.js'
import { withLock } from './lock-file.js'

/** The trusted files of a folder. */
export interface TrustedFolder {
  /** ISO 8601. */
  trustedAt: string
  /** The hash of each file by its name; see `FolderNeeds`. */
  files: Readonly<Record<string, string>>
}

export interface TrustRecord {
  /** By real path. */
  folders: ReadonlyMap<string, TrustedFolder>
  /** Why the file could not be read; then no folder is trusted. */
  problem?: string
}

/** The path of the record. Only the process's own environment counts, never a `.env`. */
export function trustFile(env: Environment, platform: string = process.platform): string {
  const named = env.LANGO_TRUST_FILE?.trim()
  return named ? resolve(named) : join(userFolder(env, platform), 'trust.json')
}

/** The folder of what Lango keeps for a user. */
export function userFolder(env: Environment, platform: string = process.platform): string {
  const isWindows = platform === 'win32'
  const settings = env.XDG_CONFIG_HOME?.trim() || (isWindows ? env.APPDATA?.trim() : undefined)
  const home = (isWindows ? undefined : env.HOME) || homedir()
  return join(settings || join(home, '.config'), 'lango')
}

export async function readTrust(file: string): Promise<TrustRecord> {
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return { folders: new Map() }
    return { folders: new Map(), problem: messageOf(error) }
  }
  try {
    return { folders: parseRecord(JSON.parse(text)) }
  } catch (error) {
    return { folders: new Map(), problem: messageOf(error) }
  }
}

/** Changes the record and returns the previous one. */
export async function changeTrust(
  file: string,
  change: (folders: Map<string, TrustedFolder>) => void,
): Promise<TrustRecord> {
  try {
    await mkdir(dirname(file), { recursive: true, mode: 0o700 })
    return await withLock(`${file}.lock`, async () => {
      const before = await readTrust(file)
      if (before.problem !== undefined) await rename(file, `${file}.unreadable`)
      const folders = new Map(before.folders)
      change(folders)
      const draft = `${file}.${process.pid}.new`
      const text = JSON.stringify({ version: 1, folders: Object.fromEntries(folders) }, null, 2)
      await writeFile(draft, `${text}\n`, { mode: 0o600 })
      await rename(draft, file)
      return before
    })
  } catch (error) {
    if (error instanceof AgentError) throw error
    throw new AgentError(
      'invalid-argument',
      `Cannot write the list of trusted folders to ${file}: ${messageOf(error)}. Set LANGO_TRUST_FILE to a writable file, or add --trust to the command.`,
      { cause: error, details: { file } },
    )
  }
}

function parseRecord(data: unknown): Map<string, TrustedFolder> {
  if (!isPlain(data) || data.version !== 1 || !isPlain(data.folders)) {
    throw new AgentError('invalid-config', 'it is not a list of trusted folders in a known version')
  }
  const folders = new Map<string, TrustedFolder>()
  for (const [folder, entry] of Object.entries(data.folders)) {
    if (!isPlain(entry) || typeof entry.trustedAt !== 'string' || !isPlain(entry.files)) continue
    const files = Object.entries(entry.files).filter((each): each is [string, string] => {
      return typeof each[1] === 'string'
    })
    folders.set(folder, { trustedAt: entry.trustedAt, files: Object.fromEntries(files) })
  }
  return folders
}
