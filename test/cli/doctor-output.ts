import type { Io } from '../../src/cli/io.js'
import { memoryIo } from './memory-io.js'

/** The exit code of a command, what it printed on standard output, and its notes on standard error. */
export async function captured(
  work: (io: Io) => Promise<number>,
): Promise<{ code: number; text: string; notes: string }> {
  const io = memoryIo()
  const code = await work(io)
  return { code, text: io.written.stdout, notes: io.written.stderr }
}
