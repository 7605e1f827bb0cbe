import type { FileHandle } from 'node:fs/promises'
import { AgentError, messageOf } from '../errors.js'

export type Write = (text: string) => Promise<unknown>

/**
 * Writes to a temporary file and renames it: when `work` fails, an existing file is not replaced. The file gets `mode`,
 * whatever the umask is. A device or pipe, such as /dev/null, is written to and never replaced.
 */
export async function intoFile<Result>(
  file: string,
  work: (write: Write) => Promise<Result>,
  mode = 0o600,
): Promise<Result> {
  try {
    return (await isStream(file)) ? await intoStream(file, work) : await intoNewFile(file, work, mode)
  } catch (error) {
    if (error instanceof AgentError) throw error
    throw new AgentError(
      'invalid-argument',
      `Cannot write ${file} (${messageOf(error)}). Choose another file.`,
      { cause: error },
    )
  }
}

async function isStream(file: string): Promise<boolean> {
  const { stat } = await import('node:fs/promises')
  const found = await stat(file).catch(() => undefined)
  return found !== undefined && (found.isCharacterDevice() || found.isFIFO())
}

async function intoStream<Result>(file: string, work: (write: Write) => Promise<Result>): Promise<Result> {
  const { open } = await import('node:fs/promises')
  const stream = await open(file, 'w')
  try {
    return await work(text => stream.appendFile(text))
  } finally {
    await stream.close()
  }
}

async function intoNewFile<Result>(
  file: string,
  work: (write: Write) => Promise<Result>,
  mode: number,
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
    throw error
  }
}
