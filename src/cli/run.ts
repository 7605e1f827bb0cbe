/** `lango run`: sends one prompt, prints the answer, and returns an exit code for scripts. */

import { readFile, stat } from 'node:fs/promises'
import { basename, extname } from 'node:path'
import { own } from '../base/own.js'
import { AgentError, messageOf } from '../errors.js'
import type { RunEvent } from '../run/run-event.js'
import type { RunInput, Runtime } from '../runtime/runtime.js'
import type { Flags } from './command.js'
import { type Io, pathOf } from './io.js'
import { called, givenFlags } from './next-command.js'
import { modelOptions, openRuntime } from './open-runtime.js'
import { note } from './output.js'
import { type Call, decide, EXIT_CODES, presenter, printWaiting, readRun } from './run-printer.js'
import { localTime } from './wording.js'

/** Sends one prompt and prints the answer. */
export async function runOnce(io: Io, words: readonly string[], flags: Flags): Promise<number> {
  const stop = new AbortController()
  const release = stopOnSignals(io, stop)
  try {
    const text = await readPrompt(io, words, stop.signal)
    if (stop.signal.aborted) return EXIT_CODES.aborted
    const parts = await readAttachments(io, flags.file ?? [])
    if (text === '' && parts.length === 0) throw noPrompt()
    return await answer(io, { text, parts, flags, stop })
  } catch (error) {
    if (!flags.json) throw error
    // A reader of events gets this error as an event.
    const known =
      error instanceof AgentError ? error : new AgentError('internal', messageOf(error), { cause: error })
    io.stdout.write(`${JSON.stringify({ type: 'error', error: known })}\n`)
    return 1
  } finally {
    release()
  }
}

interface Question {
  text: string
  parts: readonly AttachedPart[]
  flags: Flags
  stop: AbortController
}

async function answer(io: Io, { text, parts, flags, stop }: Question): Promise<number> {
  const options = await modelOptions(io, flags)
  const opened = await openRuntime(io, flags)
  const { runtime } = opened
  io.onClosedPipe(() => stop.abort())
  const input = { ...options, sessionId: flags.session, userId: flags.user, text, parts, signal: stop.signal }
  const onApproval = (call: Call) => decide(io, call, flags, stop.signal)
  try {
    if (flags.at !== undefined) return await keepForLater(io, runtime, { ...input, at: flags.at }, flags)
    const events = flags.wait
      ? startAndFollow(runtime, flags.yes ? { ...input, onApproval } : input)
      : runtime.run({ ...input, onApproval })
    const read = await readRun(io, events, { runtime, flags, show: presenter(io, flags, opened), stop })
    if (read.finishReason === 'waiting') await printWaiting(io, read, flags)
    else if (!flags.json && !flags.quiet && flags.session === undefined) {
      const place = givenFlags(flags, ['config', 'agent', 'store', 'app', 'user', 'model', 'trust'])
      note(io, `Continue with: ${called(io, 'run')} --session ${read.sessionId}${place} "…"`)
    }
    return EXIT_CODES[read.finishReason]
  } finally {
    await runtime.close()
  }
}

/** Stores the run; a process that stays executes it when it is due. */
async function keepForLater(io: Io, runtime: Runtime, input: RunInput, flags: Flags): Promise<number> {
  const { runId } = await runtime.start({ ...input, signal: undefined })
  const [first] = await runtime.store.runs.readEvents(runId, { limit: 1 })
  io.stdout.write(`${flags.json ? JSON.stringify(first) : runId}\n`)
  const { dueAt } = (await runtime.findRun(runId)) ?? {}
  if (!flags.json && !flags.quiet && dueAt !== undefined)
    note(
      io,
      `The run is due at ${localTime(dueAt)}: a server on the store executes it then (${called(io, 'serve')}), or ${called(io, 'runs resume')} ${runId} now.`,
    )
  return 0
}

/** A run of its own right: leaving it while it waits does not abort it. */
async function* startAndFollow(runtime: Runtime, input: RunInput): AsyncGenerator<RunEvent> {
  const { runId } = await runtime.start(input)
  yield* runtime.follow(runId, { untilWaiting: true })
}

/** The words of the command line, then the text from standard input. */
async function readPrompt(io: Io, words: readonly string[], signal: AbortSignal): Promise<string> {
  const piped = io.stdin.isTTY ? '' : await readInput(io, signal)
  return [words.join(' ').trim(), piped].filter(text => text !== '').join('\n\n')
}

const MOST_INPUT_BYTES = 20 * 1024 * 1024

/** A parent process may have left the input open by mistake: after this time a note says what is awaited. */
const SILENCE_MS = 3000

async function readInput(io: Io, signal: AbortSignal): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  const leave = () => io.stdin.destroy()
  signal.addEventListener('abort', leave, { once: true })
  const reminder = setTimeout(() => {
    if (bytes === 0) note(io, 'Waiting for standard input; redirect it with "< /dev/null" if there is none.')
  }, SILENCE_MS)
  try {
    for await (const chunk of io.stdin) {
      chunks.push(Buffer.from(chunk as Uint8Array))
      bytes += chunk.length
      if (bytes > MOST_INPUT_BYTES) {
        throw new AgentError('invalid-argument', 'Standard input is larger than 20 MB. Pipe in less.')
      }
    }
  } catch (error) {
    // Reading fails when the process was started without standard input.
    if (error instanceof AgentError) throw error
  } finally {
    clearTimeout(reminder)
    signal.removeEventListener('abort', leave)
  }
  return Buffer.concat(chunks).toString('utf8').trimEnd()
}

/** The first Ctrl-C aborts the run; the second exits at once. */
export function stopOnSignals(io: Io, stop: AbortController): () => void {
  const onSignal = () => {
    if (stop.signal.aborted) io.exit(130)
    stop.abort()
  }
  io.signals.on('SIGINT', onSignal)
  io.signals.on('SIGTERM', onSignal)
  return () => {
    io.signals.off('SIGINT', onSignal)
    io.signals.off('SIGTERM', onSignal)
  }
}

function noPrompt(): AgentError {
  return new AgentError(
    'invalid-argument',
    'No prompt. Pass one as an argument, pipe text in, or attach a file. Example: lango run "What is new?"',
  )
}

type AttachedPart = { text: string } | { inlineData: { mimeType: string; data: string } }

/** Every provider rejects larger requests. */
const MOST_BYTES = 20 * 1024 * 1024

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
  '.gif': 'image/gif',
  '.webp': 'image/webp',
  '.heic': 'image/heic',
  '.pdf': 'application/pdf',
  '.mp3': 'audio/mpeg',
  '.wav': 'audio/wav',
  '.ogg': 'audio/ogg',
  '.flac': 'audio/flac',
  '.mp4': 'video/mp4',
  '.webm': 'video/webm',
  '.mov': 'video/quicktime',
}

/** Files as parts of a message: text with the file's name above it, media as they are. */
function readAttachments(io: Io, files: readonly string[]): Promise<AttachedPart[]> {
  return Promise.all(files.map(file => readAttachment(io, file)))
}

async function readAttachment(io: Io, file: string): Promise<AttachedPart> {
  const bytes = await readBytes(io, file)
  const mimeType = own(MEDIA_TYPES, extname(file).toLowerCase())
  if (bytes.length === 0) throw invalid(`Cannot attach ${file}: it is empty.`)
  if (mimeType !== undefined) return { inlineData: { mimeType, data: bytes.toString('base64') } }
  const text = decode(bytes)
  if (text === undefined) {
    throw invalid(
      `Cannot attach ${file}: it is neither UTF-8 text nor a known image, PDF, audio or video type.`,
    )
  }
  return { text: `${basename(file)}:\n\n${text}` }
}

async function readBytes(io: Io, file: string): Promise<Buffer> {
  const path = pathOf(io, file)
  try {
    const { size } = await stat(path)
    if (size > MOST_BYTES)
      throw invalid(
        `Cannot attach ${file}: it has ${Math.ceil(size / 1024 / 1024)} MB, but the limit is 20 MB.`,
      )
    return await readFile(path)
  } catch (error) {
    if (error instanceof AgentError) throw error
    throw invalid(`Cannot attach ${file}: ${reasonOf(error)}.`)
  }
}

function reasonOf(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ENOENT') return 'no such file'
  if (code === 'EISDIR') return 'it is a folder; attach its files'
  if (code === 'EACCES') return 'permission denied'
  return messageOf(error)
}

function decode(bytes: Buffer): string | undefined {
  if (bytes.includes(0)) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}

function invalid(message: string): AgentError {
  return new AgentError('invalid-argument', message)
}
