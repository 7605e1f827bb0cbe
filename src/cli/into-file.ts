import type { FileHandle } from 'node:fs/promises'
import { AgentError, messageOf } from '../errors.js'

export type Write = (text: string) => Promise<unknown>

/**
 * Writes to a temporary file and renames it: when `work` fails, an existing file is not replaced. The file gets `mode`,
 * whatever the umask is.
 */
export async function intoFile<Result>(
  file: string,
  work: (write: Write) => Promise<Result>,
  mode = 0o600,
): Promise<Result> {
  const { open, rename, rm } = await import('node:fs/promises')
  const partial = `${file}.${process.pid}.partial`
  let handle: FileHandle | undefined
  try {
    handle = await open(partial, 'w', mode)
    const target = handle
    await target.chmod(mode & 0o7777)
    const result = await work(text => target.appendFile(text))
    await handle.sync()
    await handle.close()
    await rename(partial, file)
    return result
  } catch (error) {
    await handle?.close().catch(() => undefined)
    await rm(partial, { force: true })
    if (error instanceof AgentError) throw error
    throw new AgentError(
      'invalid-argument',
      `Cannot write ${file} (${messageOf(error)}). Choose another file.`,
      { cause: error },
    )
  }
}
