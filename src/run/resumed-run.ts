/** What is loaded to continue a run whose process is gone, or that has waited for a person. */
import {
  type BaseAgent,
  type Content,
  type Event,
  isBaseAgent,
  isParallelAgent,
  type RunnableRoot,
} from '../adk/sdk.js'
import { isRecord } from '../base/is-record.js'
import { ABORTED_MARKER } from '../base/markers.js'
import { type StoredMessage, toolCallKind } from '../session/message.js'
import type { JournalEntry, ResumableRun, RunSummary, ToolCallRecord } from '../session/run-store.js'
import { messagePages } from '../session/session-pages.js'
import type { SessionStore } from '../session/session-store.js'
import type { RunUsage } from '../session/usage.js'
import type { CallResponse } from '../tool.js'
import { seenIn } from './close-calls.js'
import type { EventReader } from './event-reader.js'
import { storedEvents } from './interrupted-runs.js'
import { outcomeName, type ReportedOutcome, type RestoredCalls, withResults } from './ledger-entry.js'
import type { PendingCalls } from './pending-calls.js'
import { type RecordedEvent, Replay } from './replay.js'
import type { EarlierApproval } from './run-approvals.js'
import type { RunEventBody } from './run-event.js'
import type { RunHost, StoredOpening } from './run-host.js'
import type { RunEnding } from './run-journal.js'
import type { RunLimits } from './run-limits.js'

/** A run as its earlier attempts left it. */
export interface ResumedRun {
  readonly replay: Replay
  readonly calls: RestoredCalls
  /** The message that ADK is driven with again. */
  readonly opening: StoredOpening & { invocationId: string }
  readonly content: Content
  /** That message is a correction, which the run itself wrote. */
  readonly isCorrection: boolean
  /** The number of the round that is continued; the first one is 1. */
  readonly round: number
  /** That round is over: answers open the next one. */
  readonly isBetween: boolean
  /** Everything that the run has stored in its session, in order. */
  readonly messages: readonly StoredMessage[]
  /** The events of rounds that are over. */
  readonly earlier: readonly Event[]
  readonly progress: RunProgress
  /** How many model steps are answered from the store. */
  readonly replayedSteps: number
  /**
   * The authors of text that may have been handed out for an unfinished answer, stored or not, if the process of the run
   * has crashed. `undefined` stands for every author.
   */
  readonly mayHaveSpoken: readonly (string | undefined)[]
  /** The run had begun to end, or its messages are not recorded: it is not continued. */
  readonly ending?: RunEnding | undefined
}

/** What the stored events of a run contain. */
export interface RunProgress {
  lastSeq: number
  /** The number of the last model step that was answered. */
  step: number
  usage: RunUsage[]
  /** How many notices of each kind were emitted. */
  notices: { 'turn-warning': number; 'wrap-up': number }
  /** Requests for approval, and the answers to them. */
  approvals: Map<string, EarlierApproval>
  /** What requests of ADK's were answered with. */
  responses: Map<string, CallResponse>
  outcomes: Map<string, ReportedOutcome>
  /** The text that each author has begun and not completed. */
  open: Map<string, string>
  /** The authors of complete text that no event marks as complete. */
  unmarked: Set<string>
  /** Everything that each author has said, without what was taken back. */
  said: Map<string, string>
}

export async function loadResumed(
  host: Pick<RunHost, 'store' | 'eventOf' | 'contentOf' | 'rootAgent' | 'agentNames'>,
  run: RunSummary,
  resumable: ResumableRun,
): Promise<ResumedRun> {
  const { store } = host
  const { journal, message } = resumable
  const messages = await messagesAfter(store, run.key, message.seq - 1)
  const nested = await nestedMessages(store, journal)
  const byId = new Map([...messages, ...nested].map(each => [each.id, each]))
  const record = journal
    .filter(({ kind }) => kind !== 'end' && kind !== 'wait')
    .map((entry): RecordedEvent => ({ entry, message: byId.get(entry.id) }))
  const openings = record.filter(({ entry }) => opensRound(entry, message.id))
  const last = openings.at(-1)
  const isBetween = waitsBetween(resumable)
  const round = isBetween ? record.length - 1 : last ? record.indexOf(last) : -1
  const opening = last?.message ?? message
  const own = new Map(
    messages.map(each => [each.id, { author: each.author ?? '', branch: each.branch ?? '' }]),
  )
  const replayed = record.slice(round + 1)
  const branches = parallelBranches(host.rootAgent)
  const replay = new Replay(replayed, opening.id, each => host.eventOf(each), branches)
  const rows = withResults(await store.runs.readCalls(run.runId), id => byId.get(id))
  const progress = await readProgress(store, run.runId, messages)
  forgetUsed(progress.approvals, rows)
  return {
    replay,
    calls: {
      rows,
      placeOf: id => own.get(id),
      answerOf: id => replay.answerOf(id),
      outcomes: progress.outcomes,
    },
    opening: { message: opening, seq: opening.seq, invocationId: opening.invocationId ?? '' },
    content: host.contentOf(opening),
    isCorrection: openings.some(({ message: stored }) => !stored?.toolCalls?.length),
    round: openings.length + 1,
    isBetween,
    messages: messages.filter(each => each.id !== message.id),
    earlier: record.slice(0, round + 1).flatMap(({ message: each }) => (each ? [host.eventOf(each)] : [])),
    progress,
    replayedSteps: replayed.filter(({ entry }) => entry.kind === 'model').length,
    mayHaveSpoken: speakers(host, progress, { rows, isParallel: branches.size > 0 }),
    ending: endingOf(
      journal,
      messages.filter(({ id }) => id !== message.id),
    ),
  }
}

/**
 * Deltas are handed out before they are stored, so that text of any agent may have been, unless the run was inside of its
 * tools, or one agent speaks at a time and the store has the beginning of its text.
 */
function speakers(
  { rootAgent, agentNames }: Pick<RunHost, 'rootAgent' | 'agentNames'>,
  { open, unmarked }: RunProgress,
  { rows, isParallel }: { rows: readonly ToolCallRecord[]; isParallel: boolean },
): (string | undefined)[] {
  const calls = rows.filter(({ status }) => status === 'intent' || status === 'started')
  const isInTools = calls.length > 0 && calls.every(({ status }) => status === 'started')
  const isKnown = isBaseAgent(rootAgent) && !isParallel && (open.size > 0 || isInTools)
  if (isKnown) return [...open.keys()]
  if (unmarked.size === 0 && agentNames.size > 1) return [undefined]
  return [...agentNames].filter(name => open.has(name) || !unmarked.has(name))
}

/** The branches that ADK gives to the agents below parallel ones, by name. */
function parallelBranches(root: RunnableRoot): ReadonlyMap<string, string> {
  const branches = new Map<string, string>()
  const visit = (agent: BaseAgent, branch: string): void => {
    if (branch !== '') branches.set(agent.name, branch)
    const prefix = branch === '' ? agent.name : `${branch}.${agent.name}`
    for (const child of agent.subAgents)
      visit(child, isParallelAgent(agent) ? `${prefix}.${child.name}` : branch)
  }
  if (isBaseAgent(root)) visit(root, '')
  return branches
}

/** How a run ends that had begun to: it says so, or it has stored messages that no event of ADK's stands for. */
function endingOf(
  journal: readonly JournalEntry[],
  messages: readonly StoredMessage[],
): RunEnding | undefined {
  const end = journal.find(({ kind }) => kind === 'end')?.delta
  if (end) return end as unknown as RunEnding
  const recorded = new Set(journal.map(({ id }) => id))
  const other = messages.find(({ id }) => id === undefined || !recorded.has(id))
  if (!other) return undefined
  return { finishReason: other.content === ABORTED_MARKER ? 'aborted' : 'error' }
}

/** Whether a run waits for answers between two rounds. */
export function waitsBetween({ journal, message }: Pick<ResumableRun, 'journal' | 'message'>): boolean {
  const opened = journal.findLastIndex(entry => opensRound(entry, message.id))
  return journal.findLastIndex(({ kind }) => kind === 'wait') > opened
}

/**
 * A message of the user's that is not the one that the run answers: a correction, or answers to ADK's requests. The input
 * of an agent in a workflow is a message of the user's too.
 */
function opensRound({ kind, scope, author, id, node }: JournalEntry, openingId: string | undefined): boolean {
  return kind === 'event' && scope === '' && author === 'user' && id !== openingId && !node
}

async function messagesAfter(
  store: SessionStore,
  key: RunSummary['key'],
  afterSeq: number,
): Promise<StoredMessage[]> {
  const all: StoredMessage[] = []
  for await (const page of messagePages(store, key, { afterSeq })) all.push(...page)
  return all
}

async function nestedMessages(
  store: SessionStore,
  journal: readonly JournalEntry[],
): Promise<StoredMessage[]> {
  const sessions = new Map<string, { key: RunSummary['key']; first: number }>()
  for (const { at, seq } of journal) {
    if (!at || seq === undefined) continue
    const first = Math.min(seq, sessions.get(at.appName)?.first ?? seq)
    sessions.set(at.appName, { key: at, first })
  }
  const all: StoredMessage[] = []
  for (const { key, first } of sessions.values()) all.push(...(await messagesAfter(store, key, first - 1)))
  return all
}

/** An approval of a call that has ended does not hold for another call of the same id, inside another tool. */
function forgetUsed(approvals: Map<string, EarlierApproval>, rows: readonly ToolCallRecord[]): void {
  for (const [id, approval] of approvals) {
    const calls = rows.filter(({ callId, tool }) => callId === id && tool === approval.tool)
    const areOver = calls.every(({ status }) => status === 'done' || status === 'failed')
    if (calls.length > 0 && areOver) approvals.delete(id)
  }
}

async function readProgress(
  store: SessionStore,
  runId: string,
  messages: readonly StoredMessage[],
): Promise<RunProgress> {
  const progress: RunProgress = {
    lastSeq: 0,
    step: 0,
    usage: [],
    notices: { 'turn-warning': 0, 'wrap-up': 0 },
    approvals: new Map(),
    responses: new Map(),
    outcomes: new Map(),
    open: new Map(),
    unmarked: new Set(),
    said: new Map(),
  }
  for await (const event of storedEvents(store.runs, runId)) {
    progress.lastSeq = event.seq
    note(progress, event)
  }
  // A step without usage or calls leaves no mark of its end, but what was said is then the text of the messages.
  for (const [author, text] of progress.open) {
    const own = messages.filter(each => each.author === author && each.role === 'assistant')
    const isComplete = progress.said.get(author) === own.map(({ content }) => content).join('')
    if (text === '' || isComplete) progress.open.delete(author)
    if (text !== '' && isComplete) progress.unmarked.add(author)
  }
  return progress
}

function note(progress: RunProgress, event: RunEventBody): void {
  const { open } = progress
  switch (event.type) {
    case 'text-delta':
    case 'reasoning-delta':
      append(open, event.author, event.type === 'text-delta' ? event.text : '')
      if (event.type === 'text-delta') append(progress.said, event.author, event.text)
      return
    case 'usage':
      progress.usage.push(event.usage)
      progress.step = Math.max(progress.step, event.step ?? 0)
      open.delete(event.author)
      return
    case 'tool-call':
      open.delete(event.author)
      // Agents may use one id for several calls: what was said about an earlier one does not hold for the next.
      progress.approvals.delete(event.id)
      for (const [name, { callId }] of progress.outcomes)
        if (callId === event.id) progress.outcomes.delete(name)
      progress.responses.delete(event.id)
      return
    case 'tool-result':
      open.delete(event.author)
      // The event may be stored without the result itself: then the call comes again, and what was said about it holds.
      progress.responses.delete(event.id)
      if (event.given && isRecord(event.result)) progress.responses.set(event.id, event.result)
      return
    case 'step-restart':
      takeBack(progress, event.author)
      return
    case 'turn-warning':
    case 'wrap-up':
      progress.notices[event.type] += 1
      return
    case 'approval-request':
      if (event.callId === undefined) progress.approvals.set(event.id, { tool: event.name })
      return
    case 'approval-answer':
      if (event.callId !== undefined)
        progress.responses.set(event.id, event.response ?? { confirmed: event.answer === 'once' })
      else progress.approvals.set(event.id, { tool: event.name, answer: event.answer })
      return
    case 'tool-unknown':
      noteOutcome(progress, event)
      return
    case 'run-queued':
    case 'run-scheduled':
    case 'run-start':
    case 'run-resumed':
    case 'sources':
    case 'code':
    case 'model-switch':
    case 'model-wait':
    case 'tools-missing':
    case 'agent-transfer':
    case 'repair':
    case 'history-cut':
    case 'error':
    case 'run-finish':
      return
    default:
      event satisfies never
  }
}

function noteOutcome(
  { outcomes }: RunProgress,
  {
    id,
    idempotencyKey,
    answer,
    asks,
    result,
    executions = 0,
  }: Extract<RunEventBody, { type: 'tool-unknown' }>,
): void {
  // An answer belongs to a question that was asked before it.
  const isAsked = asks ?? answer !== undefined
  outcomes.set(outcomeName(id, idempotencyKey), { callId: id, asks: isAsked, answer, result, executions })
}

/** Gives what counts a run what its earlier attempts have done, as far as the replay does not. */
export function restoreCounts(
  { replay, messages, earlier, progress }: ResumedRun,
  { pending, reader, limits }: { pending: PendingCalls; reader: EventReader; limits: RunLimits },
): void {
  for (const message of messages) pending.observe(seenIn(message))
  for (const event of earlier) {
    reader.replay(event)
    limits.observe(event)
  }
  for (const { message } of replay.skipped) {
    const calls = (message?.toolCalls ?? []).filter(
      call => toolCallKind(call, message?.role ?? '') !== 'response',
    )
    if (calls.length > 0) limits.observeNested(calls)
  }
  reader.resume(progress.usage)
}

function append(texts: Map<string, string>, author: string, text: string): void {
  texts.set(author, (texts.get(author) ?? '') + text)
}

/** The answer that an author, or everybody, had begun is void. */
function takeBack({ open, said }: RunProgress, author: string | undefined): void {
  for (const [name, text] of [...open]) {
    if (author !== undefined && name !== author) continue
    said.set(name, (said.get(name) ?? '').slice(0, -text.length || undefined))
    open.delete(name)
  }
}
