import { EventEmitter } from 'node:events'
import { Readable, Writable } from 'node:stream'
import type { Io } from '../../src/cli/io.js'

export interface MemoryIo extends Io {
  /** All that was written so far. */
  readonly written: { readonly stdout: string; readonly stderr: string }
}

interface MemoryIoOptions {
  cwd?: string
  env?: Readonly<Record<string, string | undefined>>
  /** Standard input; absent: it has ended. */
  input?: string
}

/** Surroundings of a command without a process: pipes in memory, no terminal. */
export function memoryIo({
  cwd = process.cwd(),
  env = process.env,
  input = '',
}: MemoryIoOptions = {}): MemoryIo {
  const written = { stdout: '', stderr: '' }
  const output = (name: 'stdout' | 'stderr') =>
    new Writable({
      decodeStrings: false,
      write(chunk, _encoding, done) {
        written[name] += String(chunk)
        done()
      },
    })
  const signals = new EventEmitter()
  return {
    stdin: Readable.from(input === '' ? [] : [Buffer.from(input)]),
    stdout: output('stdout'),
    stderr: output('stderr'),
    env: { ...env },
    cwd,
    signals,
    color: true,
    written,
    raise: signal => void signals.emit(signal),
    exit: code => {
      throw new TypeError(`The command exits with ${code} before its end.`)
    },
    onClosedPipe: () => {},
  }
}
