/**
 * One open session as the page knows it. Stored messages up to the live run's beginning come from the store,
 * everything after from the run's events; when the run is over, its stored messages take the place of the live
 * view in one step, so that nothing is shown twice and nothing is missing.
 */
import { defined } from '../../../src/base/defined.js'
import { fromMessages } from '../../../src/transcript/from-messages.js'
import type { RunNotes } from '../../../src/transcript/item.js'
import type { ChatMessage, OutcomeAnswer, RunEvent, RunItem, RunUsage, SessionDetail } from './api.js'
import type { Entry } from './entry.js'
import { applyLiveEvent, type LiveRun, liveEntries, newLiveRun } from './live-run.js'

export interface ThreadState {
  readonly sessionId: string | undefined
  readonly status: 'new' | 'loading' | 'ready' | 'missing' | 'failed'
  /** Why the session could not be opened, or the last thing that was refused. */
  readonly problem?: Problem
  readonly title?: string
  readonly messages: readonly ChatMessage[]
  readonly older: 'idle' | 'loading' | 'none' | 'failed'
  readonly live?: LiveRun
  /** Runs that wait for the live one, next first. */
  readonly queued: readonly RunItem[]
  readonly notes: readonly RunNotes[]
  readonly lastRun?: RunItem
  readonly usage?: RunUsage
  readonly connection: 'open' | 'lost'
  /** The names in the list of entries that were live in this page: stored key → live key. */
  readonly aliases: ReadonlyMap<string, string>
}

export interface Problem {
  code: string
  message: string
}

export type ThreadAction =
  | { type: 'open'; sessionId: string | undefined }
  | { type: 'opened'; detail: SessionDetail; messages: readonly ChatMessage[] }
  | { type: 'failed'; problem: Problem; missing: boolean }
  | { type: 'older-asked' }
  | { type: 'older-loaded'; messages: readonly ChatMessage[] }
  | { type: 'older-failed' }
  | { type: 'messages-loaded'; messages: readonly ChatMessage[] }
  | { type: 'run-sent'; sessionId: string; run: LiveRun }
  | { type: 'run-refused'; problem: Problem }
  | { type: 'run-followed'; run: RunItem }
  | { type: 'run-events'; events: readonly { event: RunEvent; now?: number }[] }
  | { type: 'run-stopping' }
  | { type: 'run-stored'; detail: SessionDetail; messages: readonly ChatMessage[] }
  | { type: 'notes-loaded'; notes: RunNotes }
  | { type: 'queue-read'; runs: readonly RunItem[] }
  | { type: 'outcome-answered'; idempotencyKey: string; answer: OutcomeAnswer }
  | { type: 'renamed'; title: string }
  | { type: 'connection'; connection: 'open' | 'lost' }
  | { type: 'problem'; problem: Problem | undefined }

/** A page without a session. */
export const NEW_THREAD: ThreadState = {
  sessionId: undefined,
  status: 'new',
  messages: [],
  older: 'none',
  queued: [],
  notes: [],
  connection: 'open',
  aliases: new Map(),
}

/** The state after an action. Pure: the same actions always give the same state. */
export function reduceThread(state: ThreadState, action: ThreadAction): ThreadState {
  switch (action.type) {
    case 'open':
      return action.sessionId === undefined
        ? NEW_THREAD
        : { ...NEW_THREAD, sessionId: action.sessionId, status: 'loading' }
    case 'opened':
      return opened(state, action.detail, action.messages)
    case 'failed':
      return { ...state, status: action.missing ? 'missing' : 'failed', problem: action.problem }
    case 'older-asked':
      return { ...state, older: 'loading' }
    case 'older-failed':
      return { ...state, older: 'failed' }
    case 'older-loaded':
    case 'messages-loaded':
      return withMessages(state, action.messages)
    case 'connection':
      return { ...state, connection: action.connection }
    case 'problem':
      return without(state, 'problem', action.problem && { problem: action.problem })
    case 'renamed':
      return { ...state, title: action.title }
    case 'notes-loaded':
      return { ...state, notes: withNotes(state.notes, action.notes) }
    case 'queue-read':
      return { ...state, queued: queuedRuns(action.runs) }
    case 'outcome-answered':
      return { ...state, notes: state.notes.map(notes => withAnswer(notes, action)) }
    default:
      return reduceRun(state, action)
  }
}

/** Everything to show, oldest first. */
export function threadEntries(state: ThreadState): readonly Entry[] {
  const stored = fromMessages(state.messages, state.notes, state.live !== undefined && !state.live.user)
  return [
    ...stored,
    ...(state.live ? liveEntries(state.live) : []),
    ...queuedEntries(state.queued, state.live?.runId),
  ]
}

/** The runs that wait. One that is followed already is shown as the live run. */
export function queuedEntries(queued: readonly RunItem[], liveId: string | undefined): readonly Entry[] {
  return queued.flatMap(({ runId, status, place = 1, dueAt }) =>
    runId === liveId
      ? []
      : [
          {
            ...{ kind: 'queued' as const, key: `queued:${runId}`, runId, place },
            ...(status === 'scheduled' && dueAt !== undefined ? { dueAt } : {}),
          },
        ],
  )
}

function queuedRuns(runs: readonly RunItem[]): readonly RunItem[] {
  const queued = runs.filter(({ status }) => status === 'queued')
  const later = runs.filter(({ status }) => status === 'scheduled')
  return [...queued.sort((one, other) => (one.place ?? 0) - (other.place ?? 0)), ...later]
}

/** Equal calls that share a key have one effect, so one answer is for all of them. */
function withAnswer(
  notes: RunNotes,
  { idempotencyKey, answer }: Extract<ThreadAction, { type: 'outcome-answered' }>,
): RunNotes {
  const { outcomes } = notes
  if (!outcomes) return notes
  const answered = Object.entries(outcomes).map(([callId, outcome]) => {
    const { asks: _asked, ...known } = outcome
    return [callId, outcome.idempotencyKey === idempotencyKey ? { ...known, answer } : outcome]
  })
  return { ...notes, outcomes: Object.fromEntries(answered) }
}

/** The number of the newest loaded message. */
export function newestSeq(state: ThreadState): number {
  return state.messages.at(-1)?.seq ?? 0
}

type RunAction = Extract<ThreadAction, { type: `run-${string}` }>

function reduceRun(state: ThreadState, action: RunAction): ThreadState {
  switch (action.type) {
    case 'run-sent': {
      const status = 'ready'
      return without(state, 'problem', { sessionId: action.sessionId, status, live: action.run })
    }
    case 'run-refused':
      return without(state, 'live', { problem: action.problem })
    case 'run-followed': {
      if (state.live?.runId === action.run.runId) return state
      return follow(state, action.run)
    }
    case 'run-events': {
      let { live } = state
      if (!live) return state
      for (const { event, now } of action.events) live = applyLiveEvent(live, event, now)
      return { ...state, live }
    }
    case 'run-stopping':
      return state.live ? { ...state, live: { ...state.live, phase: 'stopping' } } : state
    case 'run-stored':
      return stored(state, action.detail, action.messages)
  }
}

function opened(state: ThreadState, detail: SessionDetail, messages: readonly ChatMessage[]): ThreadState {
  const base = withMessages({ ...state, status: 'ready' }, messages)
  const known = { ...base, ...facts(detail) }
  return detail.activeRun ? follow(known, detail.activeRun) : known
}

/** A run that this page did not start: all it wrote comes from its events, so stored rows of it are left out. */
function follow(state: ThreadState, run: RunItem): ThreadState {
  const afterSeq = run.afterSeq ?? newestSeq(state)
  const messages = state.messages.filter(message => message.seq <= afterSeq || isFirstOf(message, afterSeq))
  return { ...state, messages, live: newLiveRun({ runId: run.runId, afterSeq }) }
}

/** The user's own message is stored and is in no event. */
function isFirstOf(message: ChatMessage, afterSeq: number): boolean {
  return message.seq === afterSeq + 1 && message.role === 'user'
}

function withMessages(state: ThreadState, added: readonly ChatMessage[]): ThreadState {
  const { live } = state
  const wanted = live
    ? added.filter(
        message => message.seq <= live.afterSeq || (!live.user && isFirstOf(message, live.afterSeq)),
      )
    : added
  const messages = merged(state.messages, wanted)
  return { ...state, messages, older: (messages[0]?.seq ?? 1) > 1 ? 'idle' : 'none' }
}

function merged(known: readonly ChatMessage[], added: readonly ChatMessage[]): readonly ChatMessage[] {
  if (added.length === 0) return known
  const first = added[0]?.seq ?? 0
  const last = added.at(-1)?.seq ?? 0
  const before = known.filter(message => message.seq < first)
  const after = known.filter(message => message.seq > last)
  return [...before, ...added, ...after]
}

function stored(state: ThreadState, detail: SessionDetail, messages: readonly ChatMessage[]): ThreadState {
  const { live } = state
  const afterSeq =
    detail.lastRun && detail.lastRun.runId === live?.runId ? detail.lastRun.afterSeq : undefined
  const notes = live
    ? withNotes(state.notes, { ...live.notes, afterSeq: afterSeq ?? live.afterSeq })
    : state.notes
  const free = state.problem?.code === 'session-busy' ? without(state, 'problem') : state
  const settled = withMessages(without(free, 'live', { notes }), messages)
  const aliases = live ? withAliases(settled, live) : state.aliases
  return { ...settled, ...facts(detail), aliases, connection: 'open' }
}

/** Rows of the run that was live keep their names in the list. */
function withAliases(settled: ThreadState, live: LiveRun): ReadonlyMap<string, string> {
  const added = settled.messages.filter(({ seq }) => seq > live.afterSeq)
  const aliases = keyAliases(liveEntries(live), fromMessages(added, settled.notes))
  return new Map([...settled.aliases, ...aliases])
}

/**
 * The live key of each stored entry. The list keeps the live keys: a row under a new key is measured again, and
 * the page would jump under its reader.
 */
function keyAliases(live: readonly Entry[], stored: readonly Entry[]): ReadonlyMap<string, string> {
  const waiting = new Map<string, string[]>()
  for (const entry of live) waiting.set(nameOf(entry), [...(waiting.get(nameOf(entry)) ?? []), entry.key])
  const aliases = new Map<string, string>()
  for (const entry of stored) {
    const key = waiting.get(nameOf(entry))?.shift()
    if (key !== undefined) aliases.set(entry.key, key)
  }
  return aliases
}

/** Calls are matched by their ids, everything else by its order within its kind. */
function nameOf(entry: Entry): string {
  return entry.kind === 'tool' ? `tool ${entry.callId}` : entry.kind
}

function facts(detail: SessionDetail): Pick<ThreadState, 'title' | 'usage' | 'lastRun'> {
  const { title, usage, lastRun } = detail
  return { usage, ...defined({ title, lastRun }) }
}

function withNotes(notes: readonly RunNotes[], added: RunNotes): readonly RunNotes[] {
  return [...notes.filter(note => note.runId !== added.runId), added]
}

function without(
  state: ThreadState,
  name: 'live' | 'problem',
  change: Partial<ThreadState> = {},
): ThreadState {
  const { [name]: _left, ...rest } = state
  return { ...rest, ...change }
}
