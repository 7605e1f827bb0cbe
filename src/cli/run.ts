/** `lango run`: sends one prompt, prints the answer, and returns an exit code for scripts. */

import { readFile, stat } from 'node:fs/promises'
import { basename, extname } from 'node:path'
import { own } from '../base/own.js'
import { AgentError, messageOf } from '../errors.js'
import type { RunEvent, RunFinishReason } from '../run/run-event.js'
import type { ApprovalAnswer, OutcomeAnswer } from '../tool.js'
import { ask, askOutcome, canAsk } from './ask.js'
import type { Flags } from './command.js'
import { called, givenFlags } from './next-command.js'
import { type OpenedRuntime, openRuntime } from './open-runtime.js'
import { note, onClosedPipe, type Styles, stylesOf } from './output.js'
import { fitText, pipeText, plainLine, plainText, unfinishedAt } from './plain-text.js'
import { count, demoNotice } from './wording.js'

/** Sends one prompt and prints the answer. */
export async function runOnce(words: readonly string[], flags: Flags): Promise<number> {
  const stop = new AbortController()
  const release = stopOnSignals(stop)
  try {
    const text = await readPrompt(words, stop.signal)
    if (stop.signal.aborted) return EXIT_CODES.aborted
    const parts = await readAttachments(flags.file ?? [])
    if (text === '' && parts.length === 0) throw noPrompt()
    return await answer({ text, parts, flags, stop })
  } catch (error) {
    if (!flags.json) throw error
    // A reader of events gets this error as an event.
    const known =
      error instanceof AgentError ? error : new AgentError('internal', messageOf(error), { cause: error })
    process.stdout.write(`${JSON.stringify({ type: 'error', error: known })}\n`)
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

async function answer({ text, parts, flags, stop }: Question): Promise<number> {
  const opened = await openRuntime(flags)
  const { runtime } = opened
  const show = presenter(flags, opened)
  onClosedPipe(() => stop.abort())
  let finishReason: RunFinishReason = 'error'
  let sessionId = ''
  const over = new AbortController()
  try {
    const input = { sessionId: flags.session, userId: flags.user, text, parts }
    const onApproval = (call: Call) => decide(call, flags, stop.signal)
    for await (const event of runtime.run({ ...input, signal: stop.signal, onApproval })) {
      show(event)
      if (event.type === 'tool-unknown' && event.asks)
        void decideOutcome(event, flags, AbortSignal.any([stop.signal, over.signal]))
          // Fails when the run has ended, or has an answer from elsewhere.
          .then(said => runtime.answer(event.runId, event.id, said))
          .catch(() => {})
      sessionId = event.sessionId
      if (event.type === 'run-finish') finishReason = event.finishReason
    }
  } finally {
    over.abort()
    await runtime.close()
  }
  if (!flags.json && !flags.quiet && flags.session === undefined) {
    const place = givenFlags(flags, ['config', 'agent', 'store', 'app', 'user', 'model', 'trust'])
    note(`Continue with: ${called('run')} --session ${sessionId}${place} "…"`)
  }
  return EXIT_CODES[finishReason]
}

const EXIT_CODES: Readonly<Record<RunFinishReason, number>> = {
  stop: 0,
  error: 1,
  // It is stored and continues when its question is answered: nothing has failed.
  waiting: 0,
  'turn-limit': 2,
  loop: 2,
  aborted: 130,
}

function presenter(flags: Flags, { loaded }: OpenedRuntime): (event: RunEvent) => void {
  const write = (text: string) => {
    if (!process.stdout.destroyed) process.stdout.write(text)
  }
  if (flags.json) return event => write(`${JSON.stringify(event)}\n`)
  const isTerminal = process.stdout.isTTY === true
  const isChosen = flags.model !== undefined || !loaded.sources['agent.model']?.startsWith('default')
  const printer = new RunPrinter({
    streams: isTerminal || flags.stream === true,
    quiet: flags.quiet === true,
    isTerminal,
    clean: isTerminal ? plainText : flags.raw ? undefined : pipeText,
    write,
    demoNotice: demoNotice(isChosen),
  })
  return event => printer.show(event)
}

/** The words of the command line, then the text from standard input. */
async function readPrompt(words: readonly string[], signal: AbortSignal): Promise<string> {
  const piped = process.stdin.isTTY ? '' : await readInput(signal)
  return [words.join(' ').trim(), piped].filter(text => text !== '').join('\n\n')
}

const MOST_INPUT_BYTES = 20 * 1024 * 1024

/** A parent process may have left the input open by mistake: after this time a note says what is awaited. */
const SILENCE_MS = 3000

async function readInput(signal: AbortSignal): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  const leave = () => process.stdin.destroy()
  signal.addEventListener('abort', leave, { once: true })
  const reminder = setTimeout(() => {
    if (bytes === 0) note('Waiting for standard input; redirect it with "< /dev/null" if there is none.')
  }, SILENCE_MS)
  try {
    for await (const chunk of process.stdin) {
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

interface Call {
  name: string
  args: Readonly<Record<string, unknown>>
}

async function decide({ name, args }: Call, flags: Flags, signal: AbortSignal): Promise<ApprovalAnswer> {
  if (flags.yes) return 'once'
  if (flags.json || !canAsk()) {
    if (!flags.quiet)
      note(`${name} needs approval and was refused: there is no terminal for the prompt. --yes allows it.`)
    return 'no'
  }
  note(`${name} needs approval: ${fitText(plainLine(JSON.stringify(args)), 4000)}`)
  const said = await ask('Allow it? [o]nce, [a]lways, [N]o: ', signal)
  if (said.startsWith('a')) return 'always'
  return said.startsWith('o') || said.startsWith('y') ? 'once' : 'no'
}

/** Nothing but a person's word says whether a call took effect: `--yes` does not. */
async function decideOutcome(call: Call, flags: Flags, signal: AbortSignal): Promise<OutcomeAnswer> {
  if (!flags.json && canAsk()) return askOutcome(call, signal)
  if (!flags.quiet)
    note(
      `It is not known whether ${call.name} took effect, and there is no terminal for the prompt: left as it is.`,
    )
  return 'leave'
}

/** The first Ctrl-C aborts the run; the second exits at once. */
function stopOnSignals(stop: AbortController): () => void {
  const onSignal = () => {
    if (stop.signal.aborted) process.exit(130)
    stop.abort()
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  return () => {
    process.off('SIGINT', onSignal)
    process.off('SIGTERM', onSignal)
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
function readAttachments(files: readonly string[]): Promise<AttachedPart[]> {
  return Promise.all(files.map(readAttachment))
}

async function readAttachment(file: string): Promise<AttachedPart> {
  const bytes = await readBytes(file)
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

async function readBytes(file: string): Promise<Buffer> {
  try {
    const { size } = await stat(file)
    if (size > MOST_BYTES)
      throw invalid(
        `Cannot attach ${file}: it has ${Math.ceil(size / 1024 / 1024)} MB, but the limit is 20 MB.`,
      )
    return await readFile(file)
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

interface PrinterOptions {
  /** Text is printed as it streams; otherwise only the complete answer. */
  streams: boolean
  quiet: boolean
  isTerminal: boolean
  /** Removes control sequences; absent with --raw. A terminal never gets them. */
  clean: ((text: string) => string) | undefined
  write(text: string): void
  /** Printed when the demo model is used. */
  demoNotice: string
}

/** Events that are printed as notices. */
type NoticeEvent = Exclude<RunEvent, { type: 'run-start' | 'text-delta' | 'run-finish' | 'error' }>

/** Prints a run: the answer on standard output, everything else on standard error. */
class RunPrinter {
  readonly #options: PrinterOptions
  readonly #styles: Styles = stylesOf(process.stderr)
  readonly #startedAt = new Map<string, number>()
  #atLineStart = true
  #wrote = false
  /** The start of a control sequence whose end has not arrived yet. */
  #held = ''

  constructor(options: PrinterOptions) {
    this.#options = options
  }

  show(event: RunEvent): void {
    switch (event.type) {
      case 'run-start':
        if (event.demo) this.#notice(this.#options.demoNotice)
        return
      case 'text-delta':
        if (this.#options.streams) this.#text(event.text)
        return
      case 'run-finish':
        this.#finish(event.text)
        return
      case 'error':
        this.#endLine()
        note(`lango: ${plainLine(event.error.message)}`)
        return
      default: {
        const words = this.#wordsFor(event)
        if (words !== undefined) this.#notice(words)
      }
    }
  }

  #finish(answer: string): void {
    if (!this.#options.streams && answer !== '') this.#text(answer)
    this.#print(this.#held)
    this.#held = ''
    this.#endLine()
  }

  #text(text: string): void {
    const whole = this.#held + text
    const end = this.#options.clean === undefined ? whole.length : unfinishedAt(whole)
    this.#held = whole.slice(end)
    this.#print(whole.slice(0, end))
  }

  #print(text: string): void {
    const shown = this.#options.clean?.(text) ?? text
    if (shown === '') return
    this.#options.write(shown)
    this.#wrote = true
    this.#atLineStart = shown.endsWith('\n')
  }

  #endLine(): void {
    if (this.#wrote && !this.#atLineStart) this.#options.write('\n')
    this.#atLineStart = true
  }

  #notice(words: string): void {
    if (this.#options.quiet) return
    // A notice between two text deltas must start on a new line.
    if (this.#options.isTerminal) this.#endLine()
    note(this.#styles.dim(fitText(plainLine(words), 400)))
  }

  #wordsFor(event: NoticeEvent): string | undefined {
    switch (event.type) {
      case 'tool-call':
        this.#startedAt.set(event.id, Date.now())
        return `→ ${event.name} ${fitText(JSON.stringify(event.args), 200)}`
      case 'tool-result':
        return `← ${event.name}${event.isError ? ' failed' : ''} ${this.#timeOf(event.id)} ${fitText(shown(event.result), 160)}`
      case 'agent-transfer':
        return `transferred from ${event.from} to ${event.to}`
      case 'turn-warning':
        return `${event.turns} of ${event.maxTurns} turns used`
      case 'wrap-up':
        return `limit reached (${event.reason}): the model gets one last turn`
      case 'history-cut':
        return `${count(event.cut.messages, 'older message')} left out to fit the token budget`
      case 'repair':
        return `history repaired for ${event.model}: ${count(event.repairs.length, 'change')}`
      case 'approval-answer':
        return event.answer === 'once' || event.answer === 'always'
          ? undefined
          : `${event.name} was not approved`
      case 'run-queued':
        return `waiting for the session: place ${event.place} in its queue`
      case 'run-resumed':
        return 'the run was resumed by another attempt'
      case 'step-restart':
        return this.#restarted()
      case 'tool-unknown':
        if (event.asks || event.answer) return undefined
        return `? ${event.name}: it is not known whether the call took effect`
      case 'reasoning-delta':
      case 'usage':
      case 'approval-request':
        return undefined
      default:
        event satisfies never
        return undefined
    }
  }

  /** What was written to a pipe cannot be taken back. */
  #restarted(): string {
    if (this.#held !== '') this.#held = ''
    if (!this.#options.streams) return 'the answer restarts'
    this.#endLine()
    return 'the answer restarts: discard the text since the last complete step'
  }

  #timeOf(callId: string): string {
    const startedAt = this.#startedAt.get(callId)
    this.#startedAt.delete(callId)
    return startedAt === undefined ? '' : `(${((Date.now() - startedAt) / 1000).toFixed(1)} s)`
  }
}

function shown(result: unknown): string {
  return typeof result === 'string' ? result : (JSON.stringify(result) ?? '')
}
