/** What a process gives to a command: streams, environment, working folder and signals. */
import type { EventEmitter } from 'node:events'
import { resolve } from 'node:path'
import type { Readable, Writable } from 'node:stream'

export type InputStream = Readable & { isTTY?: boolean }

export type OutputStream = Writable & { isTTY?: boolean; columns?: number }

/**
 * The surroundings of one command. The commands use these instead of `process`, so that they also run inside another
 * program. The providers and tools of a run read keys from `process.env`, as they do for every user of the library.
 */
export interface Io {
  readonly stdin: InputStream
  readonly stdout: OutputStream
  readonly stderr: OutputStream
  /** The variables of `.env` are added to it, unless the folder is not trusted. */
  readonly env: NodeJS.ProcessEnv
  /** Relative paths of the command line begin here. */
  readonly cwd: string
  readonly signals: Pick<EventEmitter, 'on' | 'once' | 'off'>
  /** False: no colours, not even on a terminal. */
  color: boolean
  /** Sends a signal to the own process. */
  raise(signal: NodeJS.Signals): void
  exit(code: number): never
  /** Sets what to do instead of exiting when the reader of standard output closes its pipe. */
  onClosedPipe(action: () => void): void
}

/**
 * The surroundings of this process. A reader that closes its pipe early (`| head`) is no error: the process exits with 0,
 * or does what `onClosedPipe` has set.
 */
export function processIo(): Io {
  const { stdout, stderr, env } = process
  let whenPipeCloses = (): void => process.exit(0)
  stdout.on('error', error => {
    if (!isClosedPipe(error)) throw error
    whenPipeCloses()
  })
  stderr.on('error', error => {
    if (!isClosedPipe(error)) throw error
  })
  return {
    // Opened by its first reader.
    get stdin() {
      return process.stdin
    },
    stdout,
    stderr,
    env,
    // A folder that was deleted has no path, and not every command needs one.
    get cwd() {
      return process.cwd()
    },
    signals: process,
    color: true,
    raise: signal => void process.kill(process.pid, signal),
    exit: code => process.exit(code),
    onClosedPipe: action => {
      whenPipeCloses = action
    },
  }
}

/** A file that the command line names: `-` is standard input, a relative path begins in the working folder. */
export function sourceOf(io: Io, file: string): string | InputStream {
  return file === '-' ? io.stdin : resolve(io.cwd, file)
}

function isClosedPipe(error: Error & { code?: unknown }): boolean {
  // A closed terminal reports EIO.
  return error.code === 'EPIPE' || error.code === 'EIO' || error.code === 'ERR_STREAM_DESTROYED'
}
