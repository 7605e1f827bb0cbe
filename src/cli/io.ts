/** Surroundings of a command: streams, environment, working folder and signals. */
import type { EventEmitter } from 'node:events'
import { isAbsolute, sep } from 'node:path'
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
  /** `process.env` of a process. The configuration has these variables and those of the `.env` of a trusted folder. */
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

/**
 * The path of a file that the command line names; a relative one begins in the working folder. It is not normalized,
 * because `..` after a link and a slash at the end have a meaning. An empty name stays one: no file has it.
 */
export function pathOf(io: Io, file: string): string {
  return file === '' || isAbsolute(file) ? file : `${io.cwd}${sep}${file}`
}

/** As `pathOf`; `-` is standard input. */
export function sourceOf(io: Io, file: string): string | InputStream {
  return file === '-' ? io.stdin : pathOf(io, file)
}

/** The result of work on a file that the command line names. Errors of the work name the file as it was typed. */
export async function asTyped<Result>(io: Io, file: string, work: Promise<Result>): Promise<Result> {
  try {
    return await work
  } catch (error) {
    if (error instanceof Error) error.message = error.message.replaceAll(pathOf(io, file), file)
    throw error
  }
}

function isClosedPipe(error: Error & { code?: unknown }): boolean {
  // A closed terminal reports EIO.
  return error.code === 'EPIPE' || error.code === 'EIO' || error.code === 'ERR_STREAM_DESTROYED'
}
