/** What `lango run` and `lango runs resume` print of a run, what they ask, and their exit codes. */

import { breaksIn, withoutBreaks } from '../base/prefix-break.js'
import { AgentError, messageOf } from '../errors.js'
import { eventsAfter } from '../run/event-numbers.js'
import { OpenQuestions, type RunQuestion } from '../run/open-questions.js'
import type { RunEvent, RunFinishReason } from '../run/run-event.js'
import type { Runtime } from '../runtime/runtime.js'
import type { ApprovalAnswer, CallResponse, RunAnswer } from '../tool.js'
import { missingText, sourceLabel, switchText, waitText } from '../transcript/item.js'
import { questionForm } from '../transcript/question-form.js'
import { answerExample, questionText } from '../transcript/questions.js'
import { breakText } from '../transcript/receipt-marks.js'
import { ask, askOutcome, canAsk } from './ask.js'
import type { Flags } from './command.js'
import type { Io } from './io.js'
import { called, givenFlags, quoted } from './next-command.js'
import type { OpenedRuntime } from './open-runtime.js'
import { note, type Styles, stylesOf } from './output.js'
import { fitText, pipeText, plainLine, plainText, unfinishedAt } from './plain-text.js'
import { count, demoNotice, localTime } from './wording.js'

export const EXIT_CODES: Readonly<Record<RunFinishReason, number>> = {
  stop: 0,
  error: 1,
  // It is stored and continues when its question is answered: nothing has failed.
  waiting: 0,
  length: 2,
  'turn-limit': 2,
  loop: 2,
  budget: 2,
  aborted: 130,
}

interface ReadOptions {
  runtime: Runtime
  flags: Flags
  show: (event: RunEvent) => void
  stop: AbortController
  /** Events up to this number were shown before, by whichever process. */
  shownThrough?: number
}

/** A run as far as its events were read. Without a last event it waits. */
export interface ReadRun {
  runId: string
  sessionId: string
  finishReason: RunFinishReason
  questions: readonly RunQuestion[]
}

/** Shows events to the end of the run, or until it waits; asks about outcomes where that is wanted. */
export async function readRun(
  io: Io,
  events: AsyncIterable<RunEvent>,
  { runtime, flags, show, stop, shownThrough = 0 }: ReadOptions,
): Promise<ReadRun> {
  const questions = new OpenQuestions()
  const over = new AbortController()
  const found: ReadRun = { runId: '', sessionId: '', finishReason: 'error', questions: [] }
  try {
    for await (const event of events) {
      for (const fresh of eventsAfter([event], shownThrough)) show(fresh)
      questions.add(event)
      if (event.type === 'tool-unknown' && event.asks && !flags.wait)
        void decideOutcome(io, event, flags, AbortSignal.any([stop.signal, over.signal]))
          .then(said => runtime.answer(event.runId, event.id, said))
          // It has ended, or has an answer from elsewhere, or the answer does not fit: then it still waits.
          .catch(error => isRefused(error) && note(io, messageOf(error)))
      Object.assign(found, { runId: event.runId, sessionId: event.sessionId })
      if (event.type === 'run-finish') found.finishReason = event.finishReason
    }
  } finally {
    over.abort()
  }
  const { list } = questions
  const isWaiting = found.finishReason === 'error' && list.length > 0 && !stop.signal.aborted
  return { ...found, questions: list, ...(isWaiting ? { finishReason: 'waiting' } : {}) }
}

/** Says what a run waits for, and how to answer it. */
export async function printWaiting(
  io: Io,
  { runId, sessionId, questions }: ReadRun,
  flags: Flags,
): Promise<void> {
  if (flags.json) {
    io.stdout.write(`${JSON.stringify({ type: 'waiting', runId, sessionId, waitsFor: questions })}\n`)
    return
  }
  const place = givenFlags(flags, ['config', 'store', 'app', 'trust'])
  note(io, `Run ${runId} waits for an answer.`)
  for (const question of questions) {
    const answer = answerExample(question)
    note(
      io,
      `${plainLine(questionText(question))}: ${fitText(plainLine(JSON.stringify(question.args)), 400)}`,
    )
    note(
      io,
      `Answer with: ${called(io, 'runs answer')} ${runId} ${quoted(question.callId)} ${answer}${place}`,
    )
  }
  note(
    io,
    `A server on the store continues the run; ${called(io, 'runs resume')} ${runId}${place} does it here.`,
  )
}

/** Prints events, as JSON or for people. */
export function presenter(io: Io, flags: Flags, { loaded }: OpenedRuntime): (event: RunEvent) => void {
  const write = (text: string) => {
    if (!io.stdout.destroyed) io.stdout.write(text)
  }
  if (flags.json) return event => write(`${JSON.stringify(event)}\n`)
  const isTerminal = io.stdout.isTTY === true
  const isChosen = flags.model !== undefined || !loaded.sources['agent.model']?.startsWith('default')
  const printer = new RunPrinter(io, {
    // What has to be corrected is no part of the answer.
    streams: flags.schema === undefined && (isTerminal || flags.stream === true),
    printsData: flags.schema !== undefined,
    quiet: flags.quiet === true,
    isTerminal,
    clean: isTerminal ? plainText : flags.raw ? undefined : pipeText,
    write,
    demoNotice: demoNotice(isChosen),
  })
  return event => printer.show(event)
}

export interface Call {
  name: string
  reason?: string | undefined
  args: Readonly<Record<string, unknown>>
  /** Of an unknown outcome: see `RunQuestion`. */
  needsResult?: boolean | undefined
}

/** A person's answer, or a refusal where there is no terminal. */
export async function decide(
  io: Io,
  { name, args, reason }: Call,
  flags: Flags,
  signal: AbortSignal,
): Promise<ApprovalAnswer | CallResponse> {
  if (flags.yes) return 'once'
  if (flags.json || !canAsk(io)) {
    if (!flags.quiet)
      note(
        io,
        `${name} needs approval and was refused: there is no terminal for the prompt. --yes allows it, --wait leaves the run waiting.`,
      )
    return 'no'
  }
  const form = questionForm(args)
  if (form) return (await import('./ask-form.js')).askForm(io, reason ?? `${name} asks`, form, signal)
  if (reason !== undefined) note(io, plainLine(reason))
  note(io, `${name} needs approval: ${fitText(plainLine(JSON.stringify(args)), 4000)}`)
  const said = await ask(io, 'Allow it? [o]nce, [a]lways, [N]o: ', signal)
  if (said.startsWith('a')) return 'always'
  return said.startsWith('o') || said.startsWith('y') ? 'once' : 'no'
}

/** Nothing but a person's word says whether a call took effect: `--yes` does not. */
function isRefused(error: unknown): boolean {
  return error instanceof AgentError && error.code === 'invalid-argument'
}

async function decideOutcome(io: Io, call: Call, flags: Flags, signal: AbortSignal): Promise<RunAnswer> {
  if (!flags.json && canAsk(io)) return askOutcome(io, call, signal)
  if (!flags.quiet)
    note(
      io,
      `It is not known whether ${call.name} took effect, and there is no terminal for the prompt: left as it is.`,
    )
  return 'leave'
}

type PrinterIo = Pick<Io, 'stderr' | 'env' | 'color'>

interface PrinterOptions {
  /** Text is printed as it streams; otherwise only the complete answer. */
  streams: boolean
  /** The answer is printed as the data that `--schema` asks for. */
  printsData?: boolean
  quiet: boolean
  isTerminal: boolean
  /** Removes control sequences; absent with --raw. A terminal never gets them. */
  clean: ((text: string) => string) | undefined
  write(text: string): void
  /** Printed when the demo model is used. */
  demoNotice: string
}

function dataText({ output, lastText, text }: Extract<RunEvent, { type: 'run-finish' }>): string {
  return output === undefined ? (lastText ?? text) : JSON.stringify(output, null, 2)
}

/** Events that are printed as notices. */
type NoticeEvent = Exclude<RunEvent, { type: 'run-start' | 'text-delta' | 'run-finish' | 'error' }>

/** What happened around an answer. */
type MarkEvent = Exclude<
  NoticeEvent,
  {
    type:
      | 'tool-call'
      | 'tool-result'
      | 'sources'
      | 'code'
      | 'step-restart'
      | 'reasoning-delta'
      | 'usage'
      | 'approval-request'
  }
>

/** What people read of it; `undefined` where nothing is to be said. */
export function noticeText(event: MarkEvent): string | undefined {
  switch (event.type) {
    case 'agent-transfer':
      return `transferred from ${event.from} to ${event.to}`
    case 'turn-warning':
      return `${event.turns} of ${event.maxTurns} turns used`
    case 'wrap-up':
      return `limit reached (${event.reason}): the model gets one last turn`
    case 'history-cut':
      return `${count(event.cut.messages, 'older message')} left out to fit the token budget`
    case 'model-switch':
      return switchText(event)
    case 'model-wait':
      return waitText(event)
    case 'tools-missing':
      return missingText(event)
    case 'repair':
      return receiptsText(event)
    case 'approval-answer':
      return event.answer === 'once' || event.answer === 'always'
        ? undefined
        : `${event.name} was not approved`
    case 'run-queued':
      return `waiting for the session: place ${event.place} in its queue`
    case 'run-scheduled':
      return `not before ${localTime(event.dueAt)}`
    case 'run-resumed':
      return 'the run was resumed by another attempt'
    case 'tool-unknown':
      if (event.asks || event.answer) return undefined
      return `? ${event.name}: it is not known whether the call took effect`
    default:
      event satisfies never
      return undefined
  }
}

function receiptsText({ model, repairs }: Extract<RunEvent, { type: 'repair' }>): string {
  const [changes, breaks] = [withoutBreaks(repairs), breaksIn(repairs)]
  const repaired =
    changes.length > 0 ? [`history repaired for ${model}: ${count(changes.length, 'change')}`] : []
  return [...repaired, ...(breaks.length > 0 ? [breakText(breaks)] : [])].join('; ')
}

/** Prints a run: the answer on standard output, everything else on standard error. */
export class RunPrinter {
  readonly #io: PrinterIo
  readonly #options: PrinterOptions
  readonly #styles: Styles
  readonly #startedAt = new Map<string, number>()
  #atLineStart = true
  #wrote = false
  /** The start of a control sequence whose end has not arrived yet. */
  #held = ''
  /** Who spoke last, and what: without streaming only the end of the run says whose text is the answer. */
  #said = { author: '', text: '' }

  constructor(io: PrinterIo, options: PrinterOptions) {
    this.#io = io
    this.#options = options
    this.#styles = stylesOf(io, io.stderr)
  }

  show(event: RunEvent): void {
    switch (event.type) {
      case 'run-start':
        if (event.demo) this.#notice(this.#options.demoNotice)
        return
      case 'text-delta':
        this.#says(event)
        return
      case 'run-finish':
        this.#finish(this.#options.printsData ? dataText(event) : event.text)
        return
      case 'error':
        this.#endLine()
        note(this.#io, `lango: ${plainLine(event.error.message)}`)
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

  /** Authors are kept apart. What one of them said before the answer of another is no part of it. */
  #says({ author, text }: { author: string; text: string }): void {
    if (author !== this.#said.author) {
      const { author: earlier, text: words } = this.#said
      if (this.#options.streams) this.#endLine()
      else if (words !== '') this.#notice(`${earlier}: ${words}`)
      this.#said = { author, text: '' }
    }
    if (this.#options.streams) this.#text(text)
    else this.#said.text += text
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
    note(this.#io, this.#styles.dim(fitText(plainLine(words), 400)))
  }

  #wordsFor(event: NoticeEvent): string | undefined {
    switch (event.type) {
      case 'tool-call':
        this.#startedAt.set(event.id, Date.now())
        return `→ ${event.name} ${fitText(JSON.stringify(event.args), 200)}`
      case 'tool-result':
        return `← ${event.name}${event.isError ? ' failed' : ''} ${this.#timeOf(event.id)} ${fitText(shown(event.result), 160)}`
      case 'sources':
        return `sources: ${event.sources.map(source => `${sourceLabel(source)} <${source.url}>`).join(', ')}`
      case 'code':
        return event.code === undefined ? `← ${event.output ?? ''}` : `→ code ${event.code}`
      case 'step-restart':
        return this.#restarted()
      case 'reasoning-delta':
      case 'usage':
      case 'approval-request':
        return undefined
      default:
        return noticeText(event)
    }
  }

  /** What was written to a pipe cannot be taken back. */
  #restarted(): string {
    this.#held = ''
    this.#said.text = ''
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
