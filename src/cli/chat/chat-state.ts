/**
 * What the chat shows, as a value, and how run events change it. Nothing here knows a terminal: the reducer is a
 * pure function, the screen draws what it returns.
 */

import { defined } from '../../base/defined.js'
import type { RunQuestion } from '../../run/open-questions.js'
import type { RunEvent } from '../../run/run-event.js'
import { type RunUsage, sumUsage } from '../../session/usage.js'
import { applyRunEvent, isOpen, newRunTranscript, type RunTranscript } from '../../transcript/from-events.js'
import type { TranscriptItem } from '../../transcript/item.js'
import { type ChatItem, type ChatItemBody, chatItemsOf, type NoticeTone } from './chat-item.js'

/** What the run is doing; `waiting` means for a session that another run holds, `queued` in the queue of the session. */
export type ChatPhase =
  | 'idle'
  | 'starting'
  | 'waiting'
  | 'queued'
  | 'thinking'
  | 'answering'
  | 'tools'
  | 'stopping'

export interface ChatState {
  /** Stands above everything, whichever session is shown. */
  readonly header: readonly string[]
  readonly sessionId: string
  /** The root agent's name, once a run has started. */
  readonly agent: string
  readonly model: string
  readonly demo: boolean
  readonly items: readonly ChatItem[]
  readonly phase: ChatPhase
  /** In the queue of the session, when the phase is `queued`. */
  readonly place?: number
  /** When the current phase of work began, in milliseconds. */
  readonly since: number
  /** Of the newest run. */
  readonly runId?: string
  /** Of the whole session, as far as its messages were read. */
  readonly usage: RunUsage
  /** There are older messages that were not counted. */
  readonly usageIsPartial: boolean
  readonly showReasoning: boolean
  /** Confirmations that ADK's own tools asked for; their run has ended, and the next one answers. */
  readonly confirmations: readonly RunQuestion[]
  /** Messages that were sent while a run was working. */
  readonly queue: readonly string[]
  /** The newest run as its transcript, and the first id of the items that show it. */
  readonly run?: RunTranscript
  readonly runFrom: number
  /** The last notices about repairs, breaks and cuts: a run that repeats one does not show it again. */
  readonly noticed: { readonly repair?: string; readonly break?: string; readonly 'history-cut'?: string }
  readonly nextId: number
}

export type ChatAction =
  | { type: 'event'; event: RunEvent; at: number }
  | { type: 'said'; text: string; at: number }
  | { type: 'phase'; phase: ChatPhase; at: number }
  | { type: 'failed'; message: string; at: number }
  | { type: 'notice'; tone: NoticeTone; text: string }
  | { type: 'panel'; title: string; lines: readonly string[] }
  | { type: 'model'; model: string; demo: boolean }
  | { type: 'queue'; queue: readonly string[] }
  | { type: 'toggle-reasoning' }
  | { type: 'opened'; session: OpenedSession }

/** A session as it is found in the store. */
export interface OpenedSession {
  sessionId: string
  items: readonly ChatItemBody[]
  usage: RunUsage
  usageIsPartial: boolean
  /** The newest run that the store knows. */
  runId?: string
}

/** A chat without messages. */
export function emptyChat(sessionId: string, model: string, header: readonly string[] = []): ChatState {
  return {
    header,
    sessionId,
    agent: '',
    model,
    demo: isDemo(model),
    items: [],
    phase: 'idle',
    since: 0,
    usage: sumUsage([]),
    usageIsPartial: false,
    showReasoning: false,
    confirmations: [],
    queue: [],
    runFrom: 1,
    noticed: {},
    nextId: 1,
  }
}

/** Whether the offline demo model answers. */
export function isDemo(model: string): boolean {
  return model === 'demo' || model.startsWith('demo/')
}

/** The chat after something happened. */
export function reduceChat(state: ChatState, action: ChatAction): ChatState {
  switch (action.type) {
    case 'event':
      return reduceEvent(state, action.event, action.at)
    case 'said':
      return { ...add(state, { kind: 'user', text: action.text }), phase: 'starting', since: action.at }
    case 'phase':
      return { ...state, phase: action.phase, since: action.at }
    case 'failed':
      return {
        ...add(state, { kind: 'notice', tone: 'error', text: action.message }),
        phase: 'idle',
      }
    case 'notice':
      return add(state, { kind: 'notice', tone: action.tone, text: action.text })
    case 'panel':
      return add(state, { kind: 'panel', title: action.title, lines: action.lines })
    case 'model':
      return { ...state, model: action.model, demo: action.demo }
    case 'queue':
      return { ...state, queue: action.queue }
    case 'toggle-reasoning':
      return { ...state, showReasoning: !state.showReasoning }
    case 'opened':
      return opened(state, action.session)
  }
}

function opened(state: ChatState, { items, ...session }: OpenedSession): ChatState {
  const { runId: _other, run: _run, ...kept } = state
  const empty: ChatState = { ...kept, ...session, items: [], confirmations: [], queue: [], noticed: {} }
  return items.reduce((before, body) => add(before, body), empty)
}

function reduceEvent(before: ChatState, event: RunEvent, at: number): ChatState {
  const state = withRun(before, event, at)
  switch (event.type) {
    case 'run-start': {
      const { agent, model, runId } = event
      return { ...state, agent, model, runId, demo: event.demo === true, phase: 'thinking', since: at }
    }
    case 'text-delta':
      return inPhase(state, 'answering', at)
    case 'reasoning-delta':
      return inPhase(state, 'thinking', at)
    case 'tool-call':
      return state.items === before.items ? state : { ...state, phase: 'tools', since: at }
    case 'tool-result': {
      const isWorking = state.run?.items.some(item => item.kind === 'tool' && isOpen(item))
      return isWorking ? state : { ...state, phase: 'thinking', since: at }
    }
    case 'usage':
      return { ...state, usage: sumUsage([state.usage, event.usage]) }
    case 'run-finish': {
      const notice = finishNotice(event)
      const ended: ChatState = { ...state, phase: 'idle', since: at }
      return notice === undefined ? ended : add(ended, { kind: 'notice', tone: 'quiet', text: notice })
    }
    case 'run-resumed':
    case 'step-restart':
      return { ...state, phase: 'thinking', since: at }
    case 'run-queued':
      return { ...state, phase: 'queued', place: event.place, since: at }
    case 'run-scheduled':
      return { ...state, phase: 'waiting', since: at }
    case 'tool-unknown':
    case 'sources':
    case 'code':
    case 'agent-transfer':
    case 'turn-warning':
    case 'wrap-up':
    case 'model-switch':
    case 'model-wait':
    case 'tools-missing':
    case 'repair':
    case 'history-cut':
    case 'approval-request':
    case 'approval-answer':
    case 'error':
      return state
    default:
      return event satisfies never
  }
}

function inPhase(state: ChatState, phase: ChatPhase, at: number): ChatState {
  return state.phase === phase ? state : { ...state, phase, since: at }
}

/** Applies an event to the run's transcript and shows the items that it changed. */
function withRun(state: ChatState, event: RunEvent, at: number): ChatState {
  const isNew = state.run?.runId !== event.runId || event.type === 'run-start'
  const before = isNew || !state.run ? newRunTranscript({ runId: event.runId, afterSeq: 0 }) : state.run
  const run = applyRunEvent(before, event, at)
  // Those that were answered in the run are not asked again.
  const asked = run.finishReason === undefined ? [] : run.questions.filter(({ about }) => about !== undefined)
  let next: ChatState = {
    ...state,
    run,
    runFrom: isNew ? state.nextId : state.runFrom,
    confirmations: asked.length > 0 ? [...state.confirmations, ...asked] : state.confirmations,
  }
  if (run.items.length < before.items.length) next = withoutTaken(next, run)
  for (const [place, item] of run.items.entries()) {
    if (item !== before.items[place]) next = shown(next, item, place >= before.items.length)
  }
  return next
}

/** Without what a restarted step took back. */
function withoutTaken(state: ChatState, run: RunTranscript): ChatState {
  const keys = new Set(run.items.map(({ key }) => key))
  const isTaken = ({ key, id }: ChatItem) => key !== undefined && id >= state.runFrom && !keys.has(key)
  return { ...state, items: state.items.filter(item => !isTaken(item)) }
}

/** Shows a new item, or a changed one in its place. One that was dropped from a long chat is not shown again. */
function shown(state: ChatState, item: TranscriptItem, isNew: boolean): ChatState {
  const index = state.items.findLastIndex(({ key, id }) => key === item.key && id >= state.runFrom)
  const [body] = chatItemsOf(item)
  if (!body) return state
  if (item.kind === 'mark' && body.kind === 'notice') {
    const { type } = item.mark
    if (type !== 'repair' && type !== 'break' && type !== 'history-cut')
      return placed(state, index, item.key, body)
    if (index < 0 && state.noticed[type] === body.text) return state
    const noticed = { ...state.noticed, [type]: body.text }
    return placed({ ...state, noticed }, index, item.key, body)
  }
  if (index < 0 && !isNew) return state
  const isLong = body.kind === 'text' || body.kind === 'reasoning'
  return isLong ? placedText(state, index, item.key, body) : placed(state, index, item.key, body)
}

function placed(state: ChatState, index: number, key: string, body: ChatItemBody): ChatState {
  const known = state.items[index]
  if (!known) return add(state, body, { key })
  const { id, from } = known
  return { ...state, items: state.items.with(index, { ...body, id, key, ...defined({ from }) }) }
}

/** Markdown is parsed again with every delta, so a long text is shown as several items of one key. */
function placedText(
  state: ChatState,
  index: number,
  key: string,
  body: Extract<ChatItemBody, { kind: 'text' | 'reasoning' }>,
): ChatState {
  const from = state.items[index]?.from ?? 0
  const text = body.text.slice(from)
  const end = text.length > LONG ? finishedPart(text) : 0
  if (end === 0) return placed(state, index, key, { ...body, text })
  const { streaming: _complete, ...complete } = body
  const parted = placed(state, index, key, { ...complete, text: text.slice(0, end) })
  return add(parted, { ...body, text: text.slice(end) }, { key, from: from + end })
}

/** Longer texts are split. */
const LONG = 8_000

/** Where a long text can be split: after a paragraph, and never within a block of code. */
function finishedPart(text: string): number {
  const end = text.lastIndexOf('\n\n')
  if (end < LONG / 4) return 0
  const fences = text.slice(0, end).match(/^ {0,3}(```|~~~)/gm)?.length ?? 0
  return fences % 2 === 0 ? end + 2 : 0
}

function add(state: ChatState, body: ChatItemBody, source: { key?: string; from?: number } = {}): ChatState {
  const item: ChatItem = { ...body, id: state.nextId, ...source }
  const items = [...state.items, item]
  // A chat may run for weeks: beyond the limit the older half is dropped. The store has all of it.
  const kept = items.length > MOST_ITEMS ? items.slice(items.length - MOST_ITEMS / 2) : items
  return { ...state, items: kept, nextId: state.nextId + 1 }
}

const MOST_ITEMS = 2_000

/** How a run ended, where the transcript does not say it. */
function finishNotice({ finishReason }: Extract<RunEvent, { type: 'run-finish' }>): string | undefined {
  return {
    stop: undefined,
    error: undefined,
    aborted: undefined,
    length: 'the answer was ended at the longest length: send another message to continue',
    'turn-limit': 'ended at the turn limit: send another message to continue',
    loop: 'ended because a call was repeated: send another message to continue',
    budget: 'ended at its budget: /budget 0.50 goes on with that many dollars',
    waiting: 'the run waits for an answer; it continues when the question is answered',
  }[finishReason]
}
