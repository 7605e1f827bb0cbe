/** Standard input and output for a protocol: nothing else may write to them. */

import { Writable } from 'node:stream'
import type { LoadedConfig } from '../config/load-config.js'
import type { ClosableLogger } from '../observe/log.js'
import type { Io } from './io.js'

/**
 * Standard output for a protocol alone. Whatever else writes to it from now on, such as `console.log` in an agent
 * file, goes to standard error.
 */
export function takeOutput({ stdout, stderr }: Io): Writable {
  const write = stdout.write.bind(stdout)
  stdout.write = stderr.write.bind(stderr) as typeof stdout.write
  return new Writable({
    write: (chunk: Uint8Array, _encoding, done) => void write(chunk, error => done(error)),
  })
}

/** Resolves when the client closes standard input or output, or on the first signal; the second one exits at once. */
export async function untilClosed(io: Io): Promise<void> {
  const signals = ['SIGINT', 'SIGTERM'] as const
  await new Promise<void>(resolve => {
    io.onClosedPipe(resolve)
    for (const event of ['end', 'close', 'error']) io.stdin.once(event, () => resolve())
    for (const signal of signals) io.signals.once(signal, () => resolve())
  })
  for (const signal of signals) io.signals.once(signal, () => io.exit(130))
}

/** The log of a program that another one has started: warnings, unless a level is configured. */
export async function protocolLogger({ config: { log }, sources }: LoadedConfig): Promise<ClosableLogger> {
  const { createLogger } = await import('../observe/log.js')
  const level = sources['log.level'] === undefined ? 'warn' : log.level
  return createLogger({ ...log, level, destination: log.file })
}
