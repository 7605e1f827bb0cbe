/** `lango runs`: accepted, running and ended runs, as the store has them. */

import { defined } from '../base/defined.js'
import { isRecord } from '../base/is-record.js'
import { parseJson } from '../base/json.js'
import { AgentError } from '../errors.js'
import { OpenQuestions, type RunQuestion } from '../run/open-questions.js'
import type { RunEvent } from '../run/run-event.js'
import { answerStored, stopStored } from '../run/run-signals.js'
import type { RunEventRecord, RunSummary, ToolCallRecord } from '../session/run-store.js'
import { runEventPages } from '../session/session-pages.js'
import type { ApprovalAnswer, CallResponse, OutcomeAnswer } from '../tool.js'
import { questionText } from '../transcript/questions.js'
import { type Flags, wholeNumber } from './command.js'
import type { Io } from './io.js'
import { called, quoted } from './next-command.js'
import { type CommandStore, findSession, withStore } from './open-command-store.js'
import type { OpenedRuntime } from './open-runtime.js'
import { type Column, lineWidth, note, print, printJson, stylesOf, tableLines } from './output.js'
import { fitText, plainLine } from './plain-text.js'
import { ago, count, localTime } from './wording.js'

/** `lango runs list`. */
export async function listRuns(io: Io, flags: Flags): Promise<number> {
  const limit = wholeNumber('--limit', flags.limit, 1) ?? 50
  if (flags.all && flags.session !== undefined) {
    throw new AgentError(
      'invalid-argument',
      '--session and --all cannot be combined: --session lists every run of the session, ended ones included.',
    )
  }
  return withStore(io, flags, async opened => {
    const runs = await readRuns(opened, flags, limit)
    if (flags.json) await printJson(io, { runs })
    else if (runs.length === 0) note(io, nothingListed(opened.app, flags))
    else {
      const [titles = '', ...lines] = runTable(runs, lineWidth(io))
      await print(io, `${[stylesOf(io, io.stdout).bold(titles), ...lines].join('\n')}\n`)
    }
    return 0
  })
}

async function readRuns(opened: CommandStore, flags: Flags, limit: number): Promise<RunSummary[]> {
  const { store, app: appName } = opened
  if (flags.all) return store.runs.listAppRuns({ appName, limit, ...defined({ userId: flags.user }) })
  if (flags.session !== undefined) {
    const key = await findSession(opened, flags.session, flags.user)
    const later = await store.runs.listUnfinished({ appName, key, scheduled: 'only', limit })
    // In this order: a run that is released in between is read twice.
    const runs = [...later, ...(await store.runs.listRuns(key, { limit }))]
    return [...new Map(runs.map(run => [run.runId, run])).values()].slice(0, limit)
  }
  const runs = await store.runs.listUnfinished({ appName, scheduled: 'also', limit })
  return flags.user === undefined ? runs : runs.filter(({ key }) => key.userId === flags.user)
}

function nothingListed(app: string, { session, all }: Flags): string {
  if (session !== undefined) return `Session "${session}" has no runs.`
  return all
    ? `The app "${app}" has no runs.`
    : `No run of the app "${app}" is scheduled, queued, running or waiting. --all lists those that have ended, too.`
}

function runTable(runs: readonly RunSummary[], width: number, now = Date.now()): string[] {
  const columns: Column[] = [
    { title: 'RUN', least: 36 },
    { title: 'STATE' },
    { title: 'ACCEPTED', align: 'right' },
    { title: 'SESSION', flexible: true, least: 10 },
  ]
  const rows = runs.map(run => [
    run.runId,
    stateText(run),
    ago(run.startedAt, now),
    plainLine(run.key.sessionId),
  ])
  return tableLines(columns, rows, width)
}

function stateText({ finished, finishReason, state, place, dueAt }: RunSummary): string {
  if (finished) return finishReason === undefined ? 'finished' : `finished (${finishReason})`
  if (state === 'scheduled' && dueAt !== undefined) return `scheduled (${localTime(dueAt)})`
  return place === undefined ? state : `queued (${place})`
}

/** `lango runs show`. */
export async function showRun(io: Io, [runId = '']: readonly string[], flags: Flags): Promise<number> {
  return withStore(io, flags, async opened => {
    const run = await findRun(io, opened, runId)
    const events: RunEventRecord[] = []
    for await (const page of runEventPages(opened.store.runs, runId)) events.push(...page)
    const calls = await opened.store.runs.readCalls(runId)
    // The recorder of runs wrote them; a store returns what it was given.
    const known = events as unknown as RunEvent[]
    if (flags.json) await printJson(io, { ...run, waitsFor: questionsOf(known), calls, events })
    else await print(io, `${runLines(io, run, calls, known).join('\n')}\n`)
    return 0
  })
}

function runLines(
  io: Io,
  run: RunSummary,
  calls: readonly ToolCallRecord[],
  events: readonly RunEvent[],
): string[] {
  const { bold, dim } = stylesOf(io, io.stdout)
  const { key, runId, startedAt } = run
  const last = events.at(-1)
  const failure = events.find(event => event.type === 'error')
  const answer = last?.type === 'run-finish' ? last.text : ''
  return [
    bold(runId),
    dim(plainLine(`session ${key.sessionId} · user ${key.userId} · app ${key.appName}`)),
    dim(`accepted ${localTime(startedAt)} · ${stateText(run)} · ${count(events.length, 'event')}`),
    ...resumedLines(io, events),
    ...(failure?.type === 'error' ? [`${failure.error.code}: ${plainLine(failure.error.message)}`] : []),
    ...questionsOf(events).flatMap(question => [
      `${plainLine(questionText(question))}: ${fitText(plainLine(JSON.stringify(question.args)), 400)}`,
      dim(`  ${called(io, 'runs answer')} ${runId} ${quoted(question.callId)} …`),
    ]),
    ...callLines(io, calls),
    ...(answer === '' ? [] : ['', fitText(plainLine(answer), 400)]),
  ]
}

function resumedLines(io: Io, events: readonly RunEvent[]): string[] {
  const resumed = events.filter(event => event.type === 'run-resumed')
  const { dim } = stylesOf(io, io.stdout)
  return resumed.length === 0
    ? []
    : [
        dim(
          `resumed ${count(resumed.length, 'time')}, ${count(resumed.at(-1)?.replayedSteps ?? 0, 'step')} replayed`,
        ),
      ]
}

function questionsOf(events: readonly RunEvent[]): readonly RunQuestion[] {
  const questions = new OpenQuestions()
  for (const event of events) questions.add(event)
  return questions.list
}

function callLines(io: Io, calls: readonly ToolCallRecord[]): string[] {
  if (calls.length === 0) return []
  const columns: Column[] = [
    { title: 'CALL' },
    { title: 'TOOL' },
    { title: 'EFFECT' },
    { title: 'STATUS' },
    { title: 'ATTEMPTS', align: 'right' },
    { title: 'ARGUMENTS', flexible: true, least: 10 },
  ]
  const rows = calls.map(({ callId, tool, effect, status, attempt, args, answer }) => [
    plainLine(callId),
    plainLine(tool),
    effect,
    answer === undefined ? status : `${status}, ${answer}`,
    String(attempt),
    plainLine(JSON.stringify(args)),
  ])
  return ['', ...tableLines(columns, rows, lineWidth(io))]
}

/** `lango runs stop`. */
export async function stopRuns(io: Io, runIds: readonly string[], flags: Flags): Promise<number> {
  return withStore(io, flags, async opened => {
    const results: { runId: string; was: string }[] = []
    for (const runId of runIds) {
      const run = await findRun(io, opened, runId)
      if (!run.finished) await stopStored(opened.store, runId)
      results.push({ runId, was: stateText(run) })
    }
    if (flags.json) await printJson(io, { runs: results })
    else for (const { runId, was } of results) await print(io, `${runId}: ${stopText(was)}\n`)
    return 0
  })
}

function stopText(was: string): string {
  if (was.startsWith('finished')) return `it has ended already, ${was}`
  if (was.startsWith('scheduled')) return 'it was scheduled, and ended'
  return was.startsWith('queued') ? 'it was queued, and ended' : 'its process was requested to stop it'
}

const ANSWERS: readonly (ApprovalAnswer | OutcomeAnswer)[] = [
  'once',
  'always',
  'no',
  'happened',
  'run',
  'leave',
]

/** `lango runs answer`. */
export async function answerRun(io: Io, words: readonly string[], flags: Flags): Promise<number> {
  const [runId = '', callId = '', given = ''] = words
  const answer = ANSWERS.find(known => known === given) ?? objectIn(given)
  if (answer === undefined) {
    throw new AgentError(
      'invalid-argument',
      `"${given}" is no answer. For an approval: once, always, no. For an unknown outcome: happened, run, leave. For the result of a long-running tool: a JSON object.`,
    )
  }
  return withStore(io, flags, async opened => {
    const { state } = await findRun(io, opened, runId)
    await answerStored(opened.store, runId, callId, answer)
    if (flags.json) await printJson(io, { runId, callId, answer })
    else await print(io, `The answer was passed on: ${given}.\n`)
    if (!flags.json && state === 'waiting')
      note(io, `A server on the store continues the run; ${called(io, 'runs resume')} ${runId} does it here.`)
    return 0
  })
}

function objectIn(text: string): CallResponse | undefined {
  const value = text.startsWith('{') ? parseJson(text) : undefined
  return isRecord(value) ? value : undefined
}

/** `lango runs resume`: continues the run in this process and prints what follows. */
export function resumeRun(io: Io, [runId = '']: readonly string[], flags: Flags): Promise<number> {
  return followHere(io, flags, async ({ runtime, config }) => {
    const { lastSeq } = await findRun(io, { store: runtime.store, app: config.app }, runId)
    await runtime.resume(runId)
    return { runId, lastSeq }
  })
}

/** Begins or continues a run in this process, and prints its events after `lastSeq`. */
export async function followHere(
  io: Io,
  flags: Flags,
  begin: (opened: OpenedRuntime) => Promise<{ runId: string; lastSeq: number }>,
): Promise<number> {
  const [{ openRuntime }, printer, { stopOnSignals }] = await Promise.all([
    import('./open-runtime.js'),
    import('./run-printer.js'),
    import('./run.js'),
  ])
  const opened = await openRuntime(io, flags)
  const { runtime } = opened
  const stop = new AbortController()
  const release = stopOnSignals(io, stop)
  try {
    const { runId, lastSeq } = await begin(opened)
    stop.signal.addEventListener('abort', () => void runtime.stop(runId).catch(() => {}), { once: true })
    const events = runtime.follow(runId, { untilWaiting: true })
    const show = printer.presenter(io, flags, opened)
    const waiting = { ...flags, wait: true }
    const read = await printer.readRun(io, events, {
      runtime,
      flags: waiting,
      show,
      stop,
      shownThrough: lastSeq,
    })
    if (read.finishReason === 'waiting') await printer.printWaiting(io, read, flags)
    return printer.EXIT_CODES[read.finishReason]
  } finally {
    release()
    await runtime.close()
  }
}

async function findRun(io: Io, { store, app }: CommandStore, runId: string): Promise<RunSummary> {
  const run = await store.runs.findRun(runId)
  if (run?.key.appName === app) return run
  throw new AgentError(
    'run-not-found',
    `There is no run "${runId}" in the app "${app}". ${called(io, 'runs list')} --all lists them.`,
  )
}
