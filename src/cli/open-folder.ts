import type { Environment } from '../config/environment.js'
import { addVariables, readEnvFile } from '../config/find-config.js'
import type { Io } from './io.js'
import { settleTrust, type TrustFlags, type TrustOptions } from './settle-trust.js'

/** A folder whose settings may be read. */
export interface OpenedFolder {
  /** For `loadConfig` and `loadStoreSettings`. */
  from: { cwd: string; env: Environment; trusted: boolean }
  /** What is not loaded because the folder is not trusted. */
  skipped: readonly string[]
}

/** Settles whether a folder is trusted and adds its `.env` to the environment, where providers and tools look for keys. */
export async function openFolder(
  io: Io,
  flags: TrustFlags,
  { cwd = io.cwd, runs }: TrustOptions,
): Promise<OpenedFolder> {
  const skipped = await settleTrust(io, flags, { cwd, runs })
  const trusted = skipped.length === 0
  if (trusted) addVariables(io.env, await readEnvFile(cwd))
  return { from: { cwd, env: io.env, trusted }, skipped }
}
