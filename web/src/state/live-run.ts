/** A run that goes on, built from its events alone: the same events always give the same entries. */
import type { EventOf, MediaPart, RunEvent } from './api.js'
import {
  type Entry,
  type Mark,
  type RunNotes,
  type ShownError,
  STOPPED_TEXT,
  type ToolEntry,
  TRANSFER_TOOL,
} from './entry.js'

export interface LiveRun {
  readonly runId: string
  /** Messages up to here were there before the run. */
  readonly afterSeq: number
  readonly phase: 'starting' | 'running' | 'stopping' | 'finished'
  /** What this page sent; absent when somebody else, or this page before a reload, sent it. */
  readonly user?: { text: string; media: readonly MediaPart[] }
  readonly entries: readonly Entry[]
  readonly lastSeq: number
  readonly model?: string
  readonly notes: RunNotes
  readonly finishReason?: string
}

/** A run of which nothing has been heard yet. */
export function newLiveRun(start: Pick<LiveRun, 'runId' | 'afterSeq' | 'user'>): LiveRun {
  const { runId, afterSeq } = start
  return { ...start, phase: 'starting', entries: [], lastSeq: 0, notes: { runId, afterSeq, marks: [] } }
}

/**
 * The run after one more event. An event that was seen already changes nothing. `now` is when it happened, or
 * absent for an event from before, whose time nobody knows.
 */
export function applyRunEvent(run: LiveRun, event: RunEvent, now?: number): LiveRun {
  if (event.runId !== run.runId || event.seq <= run.lastSeq) return run
  const seen: LiveRun = {
    ...run,
    lastSeq: event.seq,
    phase: run.phase === 'starting' ? 'running' : run.phase,
  }
  switch (event.type) {
    case 'run-start':
      return { ...seen, model: event.model }
    case 'text-delta':
    case 'reasoning-delta':
      return event.text === STOPPED_TEXT ? seen : appendText(seen, event)
    case 'tool-call':
      if (event.name === TRANSFER_TOOL) return seen
      return push(seen, toolEntry(seen, event, { status: 'running', ...(now ? { startedAt: now } : {}) }))
    case 'tool-result':
      if (event.name === TRANSFER_TOOL) return seen
      return withResult(seen, event, now)
    case 'approval-request':
      return withApproval(seen, event)
    case 'approval-answer':
      return updateTool(seen, event.id, tool => ({ ...tool, approval: event.answer, status: 'running' }))
    case 'error':
      return withError(seen, { code: event.error.code, message: event.error.message })
    case 'usage':
      return seen
    case 'run-finish':
      return finish(seen, event)
    default:
      return withMark(seen, markOf(event))
  }
}

/** The entries of a live run, with what it is doing right now at the end. */
export function liveEntries(run: LiveRun): readonly Entry[] {
  const key = `live:${run.runId}`
  const user: Entry[] = run.user ? [{ kind: 'user', key: `${key}:user`, ...run.user }] : []
  const last = run.entries.at(-1)
  const isSilent = last?.kind !== 'text' && last?.kind !== 'reasoning' && last?.kind !== 'tool'
  const isWorking = run.phase !== 'finished' && (isSilent || isSettled(last))
  const label =
    run.phase === 'stopping' ? 'Stopping' : last?.kind === 'tool' ? 'Reading the result' : 'Thinking'
  const working: Entry[] = isWorking ? [{ kind: 'working', key: `${key}:working`, label }] : []
  return [...user, ...run.entries, ...working]
}

function isSettled(entry: Entry | undefined): boolean {
  return entry?.kind === 'tool' && (entry.status === 'done' || entry.status === 'failed')
}

function push(run: LiveRun, entry: Entry): LiveRun {
  return { ...run, entries: [...closed(run.entries, authorOf(entry)), entry] }
}

function authorOf(entry: Entry): string | undefined {
  return 'author' in entry ? entry.author : undefined
}

/** What an author wrote before is complete once the same author does something else. */
function closed(entries: readonly Entry[], author: string | undefined): readonly Entry[] {
  const isOpen = (entry: Entry) =>
    (entry.kind === 'text' || entry.kind === 'reasoning') &&
    entry.streaming === true &&
    (author === undefined || entry.author === author)
  if (!entries.some(isOpen)) return entries
  return entries.map(entry => (isOpen(entry) ? { ...entry, streaming: false } : entry))
}

function appendText(run: LiveRun, event: EventOf<'text-delta'> | EventOf<'reasoning-delta'>): LiveRun {
  const kind = event.type === 'text-delta' ? 'text' : 'reasoning'
  const index = run.entries.findLastIndex(entry => authorOf(entry) === event.author)
  const entry = run.entries[index]
  if (
    entry &&
    (entry.kind === 'text' || entry.kind === 'reasoning') &&
    entry.kind === kind &&
    entry.streaming
  ) {
    const entries = run.entries.with(index, { ...entry, text: entry.text + event.text })
    return { ...run, entries }
  }
  if (event.text === '') return run
  const key = nextKey(run)
  return push(run, { kind, key, author: event.author, text: event.text, streaming: true })
}

function nextKey(run: LiveRun): string {
  return `live:${run.runId}:${run.entries.length}`
}

function toolEntry(
  run: LiveRun,
  call: { id: string; name: string; args: unknown; author?: string },
  facts: Partial<ToolEntry> & Pick<ToolEntry, 'status'>,
): ToolEntry {
  const { id, name, args, author = '' } = call
  return { kind: 'tool', key: nextKey(run), author, callId: id, name, args, ...facts }
}

function updateTool(run: LiveRun, callId: string, change: (tool: ToolEntry) => ToolEntry): LiveRun {
  const index = run.entries.findLastIndex(entry => entry.kind === 'tool' && entry.callId === callId)
  const entry = run.entries[index]
  if (entry?.kind !== 'tool') return run
  return { ...run, entries: run.entries.with(index, change(entry)) }
}

function hasTool(run: LiveRun, callId: string): boolean {
  return run.entries.some(entry => entry.kind === 'tool' && entry.callId === callId)
}

function withResult(run: LiveRun, event: EventOf<'tool-result'>, now?: number): LiveRun {
  const { id, name, result, isError, author } = event
  const status = isError ? 'failed' : 'done'
  const known = hasTool(run, id)
    ? run
    : push(run, toolEntry(run, { id, name, args: undefined, author }, { status }))
  const { durationMs } = event
  const measured = durationMs === undefined ? known : withDuration(known, id, durationMs)
  return updateTool(measured, id, tool => {
    const took = durationMs ?? (now && tool.startedAt ? now - tool.startedAt : undefined)
    return { ...tool, status, result, ...(took === undefined ? {} : { durationMs: took }) }
  })
}

function withDuration(run: LiveRun, callId: string, durationMs: number): LiveRun {
  const durations = { ...run.notes.durations, [callId]: durationMs }
  return { ...run, notes: { ...run.notes, durations } }
}

function withApproval(run: LiveRun, event: EventOf<'approval-request'>): LiveRun {
  const known = hasTool(run, event.id) ? run : push(run, toolEntry(run, event, { status: 'waiting' }))
  const reason = event.reason === undefined ? {} : { reason: event.reason }
  return updateTool(known, event.id, tool => ({ ...tool, status: 'waiting', ...reason }))
}

function withError(run: LiveRun, error: ShownError): LiveRun {
  const entry: Entry = { kind: 'error', key: nextKey(run), error, runId: run.runId }
  const kept = withUnfinished(run)
  return { ...push(kept, entry), notes: { ...kept.notes, error } }
}

function withUnfinished(run: LiveRun): LiveRun {
  const open = run.entries.flatMap(entry =>
    entry.kind === 'text' && entry.streaming ? [{ author: entry.author, text: entry.text }] : [],
  )
  return open.length > 0 ? { ...run, notes: { ...run.notes, unfinished: open } } : run
}

type MarkEvent =
  | EventOf<'agent-transfer'>
  | EventOf<'turn-warning'>
  | EventOf<'wrap-up'>
  | EventOf<'repair'>
  | EventOf<'history-cut'>

function markOf(event: MarkEvent): Mark {
  switch (event.type) {
    case 'agent-transfer':
      return { type: 'transfer', from: event.from, to: event.to }
    case 'turn-warning':
      return { type: 'warning', turns: event.turns, maxTurns: event.maxTurns }
    case 'wrap-up':
      return { type: 'wrap-up', reason: event.reason, turns: event.turns, maxTurns: event.maxTurns }
    case 'repair': {
      const detail = event.repairs.map(repair => repair.detail).join('\n')
      return { type: 'repair', count: event.repairs.length, profile: event.profile, detail }
    }
    case 'history-cut': {
      const { messages, tokens, shortened } = event.cut
      return { type: 'history-cut', messages, tokens, shortened: shortened.length }
    }
  }
}

/** Where no call is: a mark that belongs to the end of its run. */
const AT_THE_END = '(end)'

function withMark(run: LiveRun, mark: Mark): LiveRun {
  if (mark.type === 'repair' && run.notes.marks.some(({ mark: known }) => isSameRepair(known, mark))) {
    return run
  }
  const last = run.entries.at(-1)
  if (mark.type === 'history-cut' && last?.kind === 'mark' && last.mark.type === 'history-cut') {
    return replaceMark(run, last.mark, joined(last.mark, mark))
  }
  return addMark(run, mark)
}

/** Every step of a run repairs the same history again; that is told once. */
function isSameRepair(known: Mark, mark: Extract<Mark, { type: 'repair' }>): boolean {
  return known.type === 'repair' && known.profile === mark.profile && known.detail === mark.detail
}

type Cut = Extract<Mark, { type: 'history-cut' }>

/** A history is fitted when it is loaded and again before it is sent: to the reader it is one cut. */
function joined(one: Cut, other: Cut): Cut {
  return {
    type: 'history-cut',
    messages: one.messages + other.messages,
    tokens: one.tokens + other.tokens,
    shortened: one.shortened + other.shortened,
  }
}

function replaceMark(run: LiveRun, known: Mark, mark: Mark): LiveRun {
  const entries = run.entries.map(entry =>
    entry.kind === 'mark' && entry.mark === known ? { ...entry, mark } : entry,
  )
  const marks = run.notes.marks.map(note => (note.mark === known ? { ...note, mark } : note))
  return { ...run, entries, notes: { ...run.notes, marks } }
}

function addMark(run: LiveRun, mark: Mark): LiveRun {
  const lastTool = run.entries.findLast(entry => entry.kind === 'tool')
  const lastCall = lastTool?.kind === 'tool' ? lastTool.callId : ''
  const anchor = mark.type === 'stopped' ? AT_THE_END : lastCall
  const notes = { ...run.notes, marks: [...run.notes.marks, { anchor, mark }] }
  return { ...push(run, { kind: 'mark', key: nextKey(run), mark, runId: run.runId }), notes }
}

function finish(before: LiveRun, event: EventOf<'run-finish'>): LiveRun {
  const run = event.finishReason === 'aborted' ? withUnfinished(before) : before
  const entries = closed(run.entries, undefined).map(entry =>
    entry.kind === 'tool' && (entry.status === 'running' || entry.status === 'waiting')
      ? { ...entry, status: 'unanswered' as const }
      : entry,
  )
  const done: LiveRun = { ...run, entries, phase: 'finished', finishReason: event.finishReason }
  return event.finishReason === 'aborted' ? withMark(done, { type: 'stopped' }) : done
}
