/** `lango run`: one message, its answer, and an exit code that a script can use. */
import { AgentError, messageOf } from '../errors.js'
import type { RunEvent, RunFinishReason } from '../run/run-event.js'
import type { ApprovalAnswer } from '../tool.js'
import { ask, canAsk } from './ask.js'
import { type AttachedPart, readAttachments } from './attachments.js'
import type { Flags } from './command.js'
import { demoNotice } from './key-hint.js'
import { called, givenFlags } from './next-command.js'
import { type OpenedRuntime, openRuntime } from './open-runtime.js'
import { note, onClosedPipe } from './output.js'
import { plainLine } from './plain-text.js'
import { RunPrinter } from './run-printer.js'
import { fitText } from './text-width.js'

/** Asks once and prints the answer. */
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
    // Whoever reads events gets this as one, too.
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
  try {
    const input = { sessionId: flags.session, userId: flags.user, text, parts }
    const onApproval = (call: Call) => decide(call, flags, stop.signal)
    for await (const event of runtime.run({ ...input, signal: stop.signal, onApproval })) {
      show(event)
      sessionId = event.sessionId
      if (event.type === 'run-finish') finishReason = event.finishReason
    }
  } finally {
    await runtime.close()
  }
  if (!flags.json && !flags.quiet && flags.session === undefined) {
    const place = givenFlags(flags, ['config', 'agent', 'store', 'app', 'user', 'model', 'trust'])
    note(`Go on with: ${called('run')} --session ${sessionId}${place} "…"`)
  }
  return EXIT_CODES[finishReason]
}

const EXIT_CODES: Readonly<Record<RunFinishReason, number>> = {
  stop: 0,
  error: 1,
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
    write,
    demoNotice: demoNotice(isChosen),
  })
  return event => printer.show(event)
}

/** The words of the command line, and what is piped in below them. */
async function readPrompt(words: readonly string[], signal: AbortSignal): Promise<string> {
  const piped = process.stdin.isTTY ? '' : await readInput(signal)
  return [words.join(' ').trim(), piped].filter(text => text !== '').join('\n\n')
}

const MOST_INPUT_BYTES = 20 * 1024 * 1024

/** Whoever started us may have left the input open without meaning to: then it is said what is waited for. */
const SILENCE_MS = 3000

async function readInput(signal: AbortSignal): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  const leave = () => process.stdin.destroy()
  signal.addEventListener('abort', leave, { once: true })
  const reminder = setTimeout(() => {
    if (bytes === 0) note('Waiting for the end of standard input; "< /dev/null" gives none.')
  }, SILENCE_MS)
  try {
    for await (const chunk of process.stdin) {
      chunks.push(Buffer.from(chunk as Uint8Array))
      bytes += chunk.length
      if (bytes > MOST_INPUT_BYTES) {
        throw new AgentError('invalid-argument', 'More than 20 MB were piped in. Give a part of it.')
      }
    }
  } catch (error) {
    // A program that was started without an input at all has none to read.
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
      note(`${name} needs approval and nobody can be asked, so it is refused. --yes allows it.`)
    return 'no'
  }
  note(`${name} needs approval: ${fitText(plainLine(JSON.stringify(args)), 4000)}`)
  const said = await ask('Allow it? [o]nce, [a]lways, [N]o: ', signal)
  if (said.startsWith('a')) return 'always'
  return said.startsWith('o') || said.startsWith('y') ? 'once' : 'no'
}

/** The first Ctrl-C stops the run in good order; a second one does not wait for that. */
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
    'There is nothing to ask: give a prompt, pipe text in, or attach a file. Example: lango run "What is new?"',
  )
}
