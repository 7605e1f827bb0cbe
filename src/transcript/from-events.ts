/** A run as its items, built from its events alone: the same events always give the same items. */
import { defined } from '../base/defined.js'
import { ABORTED_MARKER } from '../base/markers.js'
import { CONFIRMATION_TOOL } from '../base/names.js'
import { type Delta, firstSeqOf } from '../run/event-numbers.js'
import { type OpenQuestion, questionsAfter } from '../run/open-questions.js'
import type { RunEvent, RunFinishReason } from '../run/run-event.js'
import { type CallItem, pairCalls } from '../session/pair-calls.js'
import type { RunUsage } from '../session/usage.js'
import {
  type AnswerUsage,
  answered,
  answerUsage,
  codeText,
  isHiddenCall,
  type Mark,
  type NotedOutcome,
  questionOf,
  type ReasoningItem,
  type RunNotes,
  type TextItem,
  type ToolItem,
  type TranscriptItem,
  type UnknownOutcome,
  withOutcome,
  withoutWaits,
} from './item.js'
import { askingFacts, unasked } from './question-form.js'
import { isSameReceipt, receiptMarks } from './receipt-marks.js'

export interface RunTranscript {
  readonly runId: string
  /**
   * Items are added and replaced: an item keeps its place. Removed are the mark of a queued run, before all others, and
   * the half answer of a step that is restarted.
   */
  readonly items: readonly TranscriptItem[]
  readonly lastSeq: number
  readonly notes: RunNotes
  /** The root agent and the model, once the run has started. */
  readonly agent?: string
  readonly model?: string
  /** What its model calls have used, and the sum of it. */
  readonly used: readonly RunUsage[]
  readonly answer?: AnswerUsage
  /** What the run waits for; of a run that has ended, what was not answered. */
  readonly questions: readonly OpenQuestion[]
  readonly finishReason?: RunFinishReason
  /** Calls and results in order, to pair them; a call that is shown knows its place in `items`. */
  readonly calls: readonly SeenCall[]
  /** The keys of texts of model steps that are not complete: a resumed run may ask the model again. */
  readonly draft: readonly string[]
}

interface SeenCall extends CallItem {
  readonly place?: number
}

type EventOf<Type extends RunEvent['type']> = Extract<RunEvent, { type: Type }>

/** A run without events yet. */
export function newRunTranscript({ runId, afterSeq }: Pick<RunNotes, 'runId' | 'afterSeq'>): RunTranscript {
  const notes = { runId, afterSeq, marks: [] }
  return { runId, items: [], lastSeq: 0, notes, used: [], questions: [], calls: [], draft: [] }
}

/**
 * The run after one more event. An event that was applied before changes nothing. `now` is when it happened;
 * absent for an event of the past, whose time is unknown.
 */
export function applyRunEvent(run: RunTranscript, event: RunEvent, now?: number): RunTranscript {
  if (event.runId !== run.runId || event.seq <= run.lastSeq) return run
  // It is not stored: the next event of the run has its number.
  if (event.type === 'run-finish' && event.finishReason === 'waiting') return run
  const questions = event.type === 'run-finish' ? run.questions : questionsAfter(run.questions, event)
  return withEvent({ ...run, lastSeq: event.seq, questions }, event, now)
}

function withEvent(run: RunTranscript, event: RunEvent, now: number | undefined): RunTranscript {
  switch (event.type) {
    case 'run-queued':
      return withWait(run, { type: 'queued', place: event.place })
    case 'run-scheduled':
      return withWait(run, { type: 'scheduled', dueAt: event.dueAt })
    case 'tool-unknown':
      return withUnknown(run, event)
    case 'run-start':
      return { ...run, items: withoutWaits(run.items), agent: event.agent, model: event.model }
    case 'run-resumed':
      return withMark(run, { type: 'resumed', attempt: event.attempt })
    case 'step-restart':
      return withoutDraft(run, event.author)
    case 'text-delta':
      return event.text === ABORTED_MARKER ? run : withText(run, 'text', event)
    case 'reasoning-delta':
      return withText(run, 'reasoning', event)
    case 'sources':
      return push(run, { kind: 'sources', key: nextKey(run), author: event.author, sources: event.sources })
    case 'code':
      return withCode(run, event)
    case 'tool-call':
      return withCall(completed(run, event.author), event, now)
    case 'tool-result':
      return isHiddenCall(event.name) ? run : withResult(run, event, now)
    case 'agent-transfer':
      return withMark(completed(run, event.from), { type: 'transfer', from: event.from, to: event.to })
    case 'wrap-up':
    case 'model-switch':
    case 'tools-missing':
    case 'model-wait': {
      const { sessionId: _session, runId: _run, seq: _seq, ...mark } = event
      return withMark(run, mark)
    }
    case 'turn-warning':
      return withMark(run, { type: 'warning', turns: event.turns, maxTurns: event.maxTurns })
    case 'repair':
      return receiptMarks(event).reduce(withReceipt, run)
    case 'history-cut':
      return withCut(run, { type: 'history-cut', cuts: [event.cut] })
    case 'approval-request':
      return withRequest(run, event)
    case 'approval-answer':
      return withApproval(run, event, now)
    case 'usage':
      return withUsage(run, event)
    case 'error':
      return withError(run, event)
    case 'run-finish':
      return finished(run, event)
    default:
      return event satisfies never
  }
}

function withWait(run: RunTranscript, mark: Mark): RunTranscript {
  return push(run, { kind: 'mark', key: `live:${run.runId}:queued`, mark, runId: run.runId })
}

function push(run: RunTranscript, item: TranscriptItem): RunTranscript {
  return { ...run, items: [...closed(run.items, authorOf(item)), item] }
}

/** An event adds at most one item: its number names the item, also when earlier ones were removed. */
function nextKey(run: RunTranscript): string {
  return itemKey(run, run.lastSeq)
}

function itemKey({ runId }: RunTranscript, seq: number): string {
  return `live:${runId}:${seq}`
}

function authorOf(item: TranscriptItem): string | undefined {
  return 'author' in item ? item.author : undefined
}

function isStreaming(item: TranscriptItem | undefined): item is TextItem | ReasoningItem {
  return (item?.kind === 'text' || item?.kind === 'reasoning') && item.streaming === true
}

/** What an author wrote is complete once that author does something else; without an author: all authors. */
function closed(items: readonly TranscriptItem[], author: string | undefined): readonly TranscriptItem[] {
  const isDone = (item: TranscriptItem) =>
    isStreaming(item) && (author === undefined || item.author === author)
  if (!items.some(isDone)) return items
  return items.map(item => {
    if (!isDone(item)) return item
    const { streaming: _done, ...whole } = item as TextItem | ReasoningItem
    return whole
  })
}

/** Authors may write at the same time: each continues their own text. */
function withText(run: RunTranscript, kind: 'text' | 'reasoning', delta: Delta): RunTranscript {
  const { author, text } = delta
  const place = run.items.findLastIndex(item => authorOf(item) === author)
  const item = run.items[place]
  if (isStreaming(item) && item.kind === kind) {
    return { ...run, items: run.items.with(place, { ...item, text: item.text + text }) }
  }
  const key = itemKey(run, firstSeqOf(delta))
  return { ...push(run, { kind, key, author, text, streaming: true }), draft: [...run.draft, key] }
}

function withCode(run: RunTranscript, event: EventOf<'code'>): RunTranscript {
  const key = nextKey(run)
  const shown = push(run, { kind: 'text', key, author: event.author, text: codeText(event) })
  return { ...shown, draft: [...run.draft, key] }
}

/** The model step of this author is complete: what it wrote is stored. */
function completed(run: RunTranscript, author: string): RunTranscript {
  if (run.draft.length === 0) return run
  const own = new Set(run.items.flatMap(item => (authorOf(item) === author ? [item.key] : [])))
  return { ...run, draft: run.draft.filter(key => !own.has(key)) }
}

/** Takes back what an author, or without one every author, wrote in steps that are not complete: the model is asked again. */
function withoutDraft(run: RunTranscript, author: string | undefined): RunTranscript {
  const isVoid = (item: TranscriptItem) =>
    run.draft.includes(item.key) && (author === undefined || authorOf(item) === author)
  const places = new Map<number, number>()
  for (const [place, item] of run.items.entries()) if (!isVoid(item)) places.set(place, places.size)
  const calls = run.calls.map(({ place, ...call }) => ({
    ...call,
    ...defined({ place: places.get(place ?? -1) }),
  }))
  const items = run.items.filter(item => !isVoid(item))
  const left = new Set(items.map(({ key }) => key))
  return { ...run, items, calls, draft: run.draft.filter(key => left.has(key)) }
}

function withCall(run: RunTranscript, event: EventOf<'tool-call'>, now: number | undefined): RunTranscript {
  const { id, name, args, author, pending } = event
  if (isHiddenCall(name)) {
    const mark = questionOf(name, args)
    const hidden = withSeen(withRunningNodes(run), { kind: 'call', id, name })
    return mark ? push(hidden, { kind: 'mark', key: nextKey(run), mark, runId: run.runId }) : hidden
  }
  const started = now === undefined ? {} : { startedAt: now }
  const status = pending ? 'pending' : 'running'
  return pushTool(run, { author, callId: id, name, args, status, ...started })
}

/** A call that waited for a result of its own waits for the answer to a question instead, which a node below it asks. */
function withRunningNodes(run: RunTranscript): RunTranscript {
  const asked = run.questions.map(({ callId }) => callId)
  const items = run.items.map((item): TranscriptItem => {
    const isAsked = item.kind !== 'tool' || item.status !== 'pending' || asked.includes(item.callId)
    return isAsked ? item : { ...item, status: 'running' }
  })
  return { ...run, items }
}

function pushTool(run: RunTranscript, tool: Omit<ToolItem, 'kind' | 'key'>): RunTranscript {
  const { callId: id, name } = tool
  const seen = withSeen(run, { kind: 'call', id, name, place: run.items.length })
  return push(seen, { kind: 'tool', key: nextKey(run), ...tool })
}

/** Events do not say where a message ends: calls without a result between them count as one message. */
function withSeen(run: RunTranscript, item: Omit<SeenCall, 'at' | 'turn'>): RunTranscript {
  const last = run.calls.at(-1)
  const at = last === undefined ? 0 : last.kind === item.kind ? last.at : last.at + 1
  return { ...run, calls: [...run.calls, { ...item, at, turn: 0 }] }
}

function updateTool(run: RunTranscript, place: number, change: (tool: ToolItem) => ToolItem): RunTranscript {
  const item = run.items[place]
  return item?.kind === 'tool' ? { ...run, items: run.items.with(place, change(item)) } : run
}

function withResult(
  run: RunTranscript,
  event: EventOf<'tool-result'>,
  now: number | undefined,
): RunTranscript {
  const { id, name, author, durationMs } = event
  const seen = withSeen(run, { kind: 'answer', id, name })
  const pair = pairCalls(seen.calls).at(-1)
  const place = pair && !pair.duplicate ? seen.calls[pair.call]?.place : undefined
  const result = answered(event.result, event.isError)
  const alone = { author, callId: id, name, args: undefined, ...result }
  if (place === undefined) return push(seen, { kind: 'tool', key: nextKey(run), ...alone })
  const durations =
    durationMs === undefined ? {} : { durations: { ...run.notes.durations, [id]: durationMs } }
  const measured: RunTranscript = { ...seen, notes: { ...seen.notes, ...durations } }
  return updateTool(measured, place, tool => {
    const { startedAt, ...call } = unasked(tool)
    const seenMs = now === undefined || startedAt === undefined ? undefined : now - startedAt
    const took = durationMs ?? seenMs
    const known = withOutcome(result, call.outcome)
    return { ...call, ...known, ...(took === undefined ? {} : { durationMs: took }) }
  })
}

/** The newest call of this id that has no result. */
function openTool(run: RunTranscript, callId: string): number {
  return run.items.findLastIndex(item => item.kind === 'tool' && item.callId === callId && isOpen(item))
}

/** Whether a call may still get a result in its run. */
export function isOpen({ status, outcome }: ToolItem): boolean {
  if (status === 'unknown') return outcome?.asks === true
  return status === 'running' || status === 'waiting' || status === 'pending'
}

function withRequest(run: RunTranscript, event: EventOf<'approval-request'>): RunTranscript {
  const { id, name, args } = event
  const isAdks = run.calls.some(call => call.id === id && call.name === CONFIRMATION_TOOL)
  const place = openTool(run, event.callId ?? id)
  const facts = askingFacts(event, isAdks)
  if (place >= 0) return updateTool(run, place, tool => ({ ...tool, ...facts }))
  if (isAdks) return run
  // A call of an agent inside a tool, whose calls are not events.
  return pushTool(run, { author: '', callId: id, name, args, ...facts })
}

function withApproval(
  run: RunTranscript,
  event: EventOf<'approval-answer'>,
  now: number | undefined,
): RunTranscript {
  const { answer, callId: id = event.id } = event
  const place = openTool(run, id)
  if (place < 0) return run
  const notes = { ...run.notes, approvals: { ...run.notes.approvals, [id]: answer } }
  return updateTool({ ...run, notes }, place, ({ startedAt, ...tool }) => ({
    ...unasked(tool),
    status: 'running',
    approval: answer,
    // Without the wait for a person; unknown when its beginning was not seen.
    ...(startedAt === undefined || now === undefined ? {} : { startedAt: now }),
  }))
}

function withUnknown(run: RunTranscript, event: EventOf<'tool-unknown'>): RunTranscript {
  const { id, name, args, author, idempotencyKey, policy, asks, needsResult, answer } = event
  const outcome: UnknownOutcome = {
    runId: run.runId,
    idempotencyKey,
    policy,
    ...(answer === undefined ? {} : { answer }),
    ...(asks && answer === undefined ? { asks, ...defined({ needsResult }) } : {}),
  }
  // After these answers the run continues with the call.
  const status = answer === 'happened' || answer === 'run' ? 'running' : 'unknown'
  const place = openTool(run, id)
  // A call of an agent inside a tool, whose calls are not events.
  const call = place < 0 ? { author, name, args } : run.notes.outcomes?.[id]?.call
  const noted = withNoted(run, id, { ...outcome, ...(call ? { call } : {}) })
  if (place < 0) return pushTool(noted, { author, callId: id, name, args, status, outcome })
  return updateTool(noted, place, ({ startedAt: _started, ...tool }) => ({ ...tool, status, outcome }))
}

function withNoted(run: RunTranscript, callId: string, outcome: NotedOutcome): RunTranscript {
  return { ...run, notes: { ...run.notes, outcomes: { ...run.notes.outcomes, [callId]: outcome } } }
}

/** A report of usage is the end of a model call: its text is complete. */
function withUsage(run: RunTranscript, { author, model, usage }: EventOf<'usage'>): RunTranscript {
  const { items, draft } = { ...completed(run, author), items: closed(run.items, author) }
  // Of an agent inside a tool: its calls are no part of the answer's messages.
  if (author === '') return { ...run, items }
  const used = [...run.used, usage]
  return { ...run, items, draft, used, answer: answerUsage(used, model) }
}

function withError(run: RunTranscript, event: EventOf<'error'>): RunTranscript {
  const error = { code: event.error.code, message: event.error.message }
  const kept = withUnfinished(run)
  const shown = push(kept, { kind: 'error', key: nextKey(run), error, runId: run.runId })
  return { ...shown, notes: { ...kept.notes, error } }
}

function withUnfinished(run: RunTranscript): RunTranscript {
  const unfinished = run.items.flatMap(item =>
    item.kind === 'text' && isStreaming(item) ? [{ author: item.author, text: item.text }] : [],
  )
  return unfinished.length > 0 ? { ...run, notes: { ...run.notes, unfinished } } : run
}

function finished(before: RunTranscript, { finishReason }: EventOf<'run-finish'>): RunTranscript {
  const isAborted = finishReason === 'aborted'
  const run = withoutUnasked(isAborted ? withUnfinished(before) : before)
  const items = closed(withoutWaits(run.items), undefined).map((item): TranscriptItem => {
    if (item.kind !== 'tool' || (item.status !== 'running' && item.status !== 'waiting')) return item
    const { startedAt: _started, reason: _reason, ...tool } = item
    return { ...tool, status: 'unanswered' }
  })
  const ended: RunTranscript = { ...run, items, finishReason }
  return isAborted ? withMark(ended, { type: 'stopped' }) : ended
}

/** A run that ends while it asks does not run the repeated call: the outcome of that one is known. */
function withoutUnasked(run: RunTranscript): RunTranscript {
  const outcomes = { ...run.notes.outcomes }
  const items = run.items.map((item): TranscriptItem => {
    if (item.kind !== 'tool' || item.status !== 'unknown' || item.result !== undefined) return item
    const { outcome, ...tool } = item
    const isNested = outcomes[item.callId]?.call !== undefined
    if (!outcome?.asks && (outcome?.answer === undefined || isNested)) return item
    delete outcomes[item.callId]
    return { ...tool, status: 'unanswered' }
  })
  return run.notes.outcomes ? { ...run, items, notes: { ...run.notes, outcomes } } : run
}

/** The place of a mark that belongs to the end of its run: no call has this id. */
const AT_THE_END = '(end)'

function withMark(run: RunTranscript, mark: Mark): RunTranscript {
  const lastTool = run.items.findLast(item => item.kind === 'tool')
  const anchor = mark.type === 'stopped' ? AT_THE_END : (lastTool?.callId ?? '')
  const notes = { ...run.notes, marks: [...run.notes.marks, { anchor, mark }] }
  return { ...push(run, { kind: 'mark', key: nextKey(run), mark, runId: run.runId }), notes }
}

/** A receipt that is repeated is reported once. */
function withReceipt(run: RunTranscript, mark: Mark): RunTranscript {
  return run.notes.marks.some(known => isSameReceipt(known.mark, mark)) ? run : withMark(run, mark)
}

function withCut(run: RunTranscript, mark: Extract<Mark, { type: 'history-cut' }>): RunTranscript {
  const last = run.items.at(-1)
  if (last?.kind !== 'mark' || last.mark.type !== 'history-cut') return withMark(run, mark)
  const known = last.mark
  const joined: Mark = { type: 'history-cut', cuts: [...known.cuts, ...mark.cuts] }
  const marks = run.notes.marks.map(note => (note.mark === known ? { ...note, mark: joined } : note))
  return { ...run, items: run.items.with(-1, { ...last, mark: joined }), notes: { ...run.notes, marks } }
}
