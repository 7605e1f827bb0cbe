/**
 * What the chat shows, as a value, and how run events change it. Nothing here knows a terminal: the reducer is a
 * pure function, the screen draws what it returns.
 */

import { CONFIRMATION_TOOL, TRANSFER_TOOL } from '../../base/names.js'
import type { RunEvent } from '../../run/run-event.js'
import type { HistoryCut } from '../../session/message.js'
import { type RunUsage, sumUsage } from '../../session/usage.js'
import { count } from '../wording.js'
import type { ChatItem, ChatItemBody, NoticeTone, ToolItem } from './chat-item.js'
import { formatCount } from './format.js'

/** What the run is doing; `waiting` means for a session that another run holds. */
export type ChatPhase = 'idle' | 'starting' | 'waiting' | 'thinking' | 'answering' | 'tools' | 'stopping'

export interface ChatState {
  /** Stands above everything, whichever session is shown. */
  readonly header: readonly string[]
  readonly sessionId: string
  /** The root agent's name, once a run has told it. */
  readonly agent: string
  readonly model: string
  readonly demo: boolean
  readonly items: readonly ChatItem[]
  readonly phase: ChatPhase
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
  readonly confirmations: readonly Confirmation[]
  /** Messages that were sent while a run was working. */
  readonly queue: readonly string[]
  /** What was last told about repairs and cuts, so that every run does not tell it again. */
  readonly told: { readonly repair?: string; readonly cut?: string }
  readonly nextId: number
}

export interface Confirmation {
  readonly id: string
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
  readonly reason?: string
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

/** A chat in which nothing was said yet. */
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
    told: {},
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
        ...add(settled(state, action.at), { kind: 'notice', tone: 'error', text: action.message }),
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
  const { runId: _other, ...kept } = state
  const empty: ChatState = { ...kept, ...session, items: [], confirmations: [], queue: [], told: {} }
  return items.reduce(add, empty)
}

function reduceEvent(state: ChatState, event: RunEvent, at: number): ChatState {
  switch (event.type) {
    case 'run-start': {
      const { agent, model, runId } = event
      return { ...state, agent, model, runId, demo: event.demo === true, phase: 'thinking', since: at }
    }
    case 'text-delta':
      return spoken(state, { kind: 'answer', ...event }, at)
    case 'reasoning-delta':
      return spoken(state, { kind: 'reasoning', ...event }, at)
    case 'tool-call':
      return called(state, event, at)
    case 'tool-result':
      return answered(state, event, at)
    case 'agent-transfer':
      return told(state, `${event.from} hands over to ${event.to}`)
    case 'turn-warning':
      return told(state, turnNotice(event))
    case 'wrap-up':
      return told(state, wrapUpNotice(event))
    case 'repair':
      return toldOnce(state, 'repair', repairNotice(event))
    case 'history-cut':
      return toldOnce(state, 'cut', cutNotice(event.cut))
    case 'approval-request':
      return asked(state, event)
    case 'approval-answer':
      return approved(state, event, at)
    case 'usage':
      // The demo costs nothing, whatever the catalogue does not say of it.
      return {
        ...state,
        usage: sumUsage([state.usage, isDemo(event.model) ? { ...event.usage, cost: 0 } : event.usage]),
      }
    case 'error':
      return add(state, { kind: 'notice', tone: 'error', text: event.error.message })
    case 'run-finish': {
      const notice = finishNotice(event)
      const ended = { ...settled(state, at), phase: 'idle' as const, since: at }
      return notice === undefined ? ended : add(ended, { kind: 'notice', tone: 'quiet', text: notice })
    }
  }
}

type Spoken = { kind: 'answer' | 'reasoning'; author: string; text: string }

/** Adds words to the item that is being spoken, or begins one. Notices may have come in between. */
function spoken(state: ChatState, { kind, author, text }: Spoken, at: number): ChatState {
  const phase: ChatPhase = kind === 'answer' ? 'answering' : 'thinking'
  const moved: ChatState = state.phase === phase ? state : { ...state, phase, since: at }
  const index = state.items.findLastIndex(isLive)
  const live = state.items[index]
  if (live?.kind !== kind || live.author !== author) {
    return add({ ...moved, items: quieted(state.items) }, { kind, author, text, live: true })
  }
  const whole = live.text + text
  const end = whole.length > LONG ? finishedPart(whole) : 0
  const items = [...state.items]
  items[index] = end === 0 ? { ...live, text: whole } : { ...live, text: whole.slice(0, end), live: false }
  const kept: ChatState = { ...moved, items }
  return end === 0 ? kept : add(kept, { kind, author, text: whole.slice(end), live: true })
}

function isLive(item: ChatItem): boolean {
  return (item.kind === 'answer' || item.kind === 'reasoning') && item.live
}

/** Markdown is read again with every word, so a long answer is continued in an item of its own. */
const LONG = 8_000

/** Where a long text can be parted: after a paragraph, and never within a block of code. */
function finishedPart(text: string): number {
  const end = text.lastIndexOf('\n\n')
  if (end < LONG / 4) return 0
  const fences = text.slice(0, end).match(/^ {0,3}(```|~~~)/gm)?.length ?? 0
  return fences % 2 === 0 ? end + 2 : 0
}

function called(state: ChatState, event: RunEvent & { type: 'tool-call' }, at: number): ChatState {
  // Both are told in other words: as a hand-over, and as a question.
  if (event.name === TRANSFER_TOOL || event.name === CONFIRMATION_TOOL) return state
  const { id: callId, name, args, author } = event
  const status = event.pending ? 'pending' : 'running'
  const item: ToolItem = { kind: 'tool', callId, name, args, author, status, startedAt: at }
  return { ...add({ ...state, items: quieted(state.items) }, item), phase: 'tools', since: at }
}

function answered(state: ChatState, event: RunEvent & { type: 'tool-result' }, at: number): ChatState {
  const changed = changeTool(state, event.id, item => ({
    ...item,
    status: event.isError ? 'failed' : 'done',
    result: event.result,
    ...(item.startedAt === undefined ? {} : { tookMs: at - item.startedAt }),
  }))
  const isWorking = changed.items.some(item => item.kind === 'tool' && isOpen(item))
  return isWorking ? changed : { ...changed, phase: 'thinking', since: at }
}

function asked(state: ChatState, event: RunEvent & { type: 'approval-request' }): ChatState {
  const isOurs = state.items.some(item => item.kind === 'tool' && item.callId === event.id && isOpen(item))
  if (isOurs) return changeTool(state, event.id, item => ({ ...item, status: 'asking' }))
  const { id, name, args, reason } = event
  const confirmation = { id, name, args, ...(reason === undefined ? {} : { reason }) }
  return { ...state, confirmations: [...state.confirmations, confirmation] }
}

function approved(state: ChatState, event: RunEvent & { type: 'approval-answer' }, at: number): ChatState {
  return changeTool(state, event.id, item => ({
    ...item,
    status: 'running',
    approval: event.answer,
    startedAt: at,
  }))
}

/** Changes the newest open call of this id. */
function changeTool(state: ChatState, callId: string, change: (item: ToolItem) => ToolItem): ChatState {
  const index = state.items.findLastIndex(
    item => item.kind === 'tool' && item.callId === callId && isOpen(item),
  )
  const item = state.items[index]
  if (item?.kind !== 'tool') return state
  const items = [...state.items]
  items[index] = { ...change(item), id: item.id }
  return { ...state, items }
}

function isOpen(item: ToolItem): boolean {
  return item.status === 'running' || item.status === 'asking' || item.status === 'pending'
}

/** Nothing is being spoken or done any more. What is pending waits for somebody outside. */
function settled(state: ChatState, at: number): ChatState {
  const items = quieted(state.items).map((item): ChatItem => {
    if (item.kind !== 'tool' || (item.status !== 'running' && item.status !== 'asking')) return item
    const tookMs = item.startedAt === undefined ? {} : { tookMs: at - item.startedAt }
    return { ...item, status: 'stopped', ...tookMs }
  })
  return { ...state, items }
}

function quieted(items: readonly ChatItem[]): readonly ChatItem[] {
  if (!items.some(isLive)) return items
  return items.map(item => (isLive(item) ? ({ ...item, live: false } as ChatItem) : item))
}

function told(state: ChatState, text: string): ChatState {
  return add({ ...state, items: quieted(state.items) }, { kind: 'notice', tone: 'quiet', text })
}

function toldOnce(state: ChatState, about: 'repair' | 'cut', text: string): ChatState {
  if (state.told[about] === text) return state
  return told({ ...state, told: { ...state.told, [about]: text } }, text)
}

function add(state: ChatState, body: ChatItemBody): ChatState {
  const items = [...state.items, { ...body, id: state.nextId }]
  // A chat that runs for weeks must not grow without end; the store has all of it.
  const kept = items.length > MOST_ITEMS ? items.slice(items.length - MOST_ITEMS / 2) : items
  return { ...state, items: kept, nextId: state.nextId + 1 }
}

const MOST_ITEMS = 2_000

/** What happened around an answer, each in one quiet line. */
type EventOf<Type extends RunEvent['type']> = Extract<RunEvent, { type: Type }>

/** Most turns are used. */
function turnNotice({ turns, maxTurns }: EventOf<'turn-warning'>): string {
  return `turn ${turns} of ${maxTurns}: the run is near its limit`
}

/** The last turn has begun. */
function wrapUpNotice({ reason, turns, maxTurns }: EventOf<'wrap-up'>): string {
  if (reason === 'turn-limit') return `turn ${turns} of ${maxTurns} is used: one last answer, without tools`
  if (reason === 'delegation-limit') return 'the agents handed over too often: one last answer, without tools'
  return 'the same call was repeated again and again: one last answer, without tools'
}

/** The history was made legal for a model. */
function repairNotice({ profile, repairs }: EventOf<'repair'>): string {
  const counts = new Map<string, number>()
  for (const { step } of repairs) counts.set(step, (counts.get(step) ?? 0) + 1)
  const steps = [...counts].map(([step, count]) => (count === 1 ? step : `${step} ×${count}`))
  return `history repaired for ${profile}: ${steps.join(', ')} · /inspect`
}

/** A budget left something out. */
function cutNotice(cut: HistoryCut): string {
  const found: string[] = []
  if (cut.messages > 0) {
    const limit =
      cut.reason === 'token-budget' && cut.budgetTokens !== undefined
        ? `to fit ${formatCount(cut.budgetTokens)} tokens`
        : `to keep ${cut.maxMessages ?? cut.keptMessages} messages`
    found.push(`${count(cut.messages, 'older message')} left out ${limit}`)
  }
  if (cut.shortened.length > 0) found.push(`${count(cut.shortened.length, 'tool output')} shortened`)
  return `${found.join(', ') || 'history cut'} · /inspect`
}

/** How a run ended, when not in the ordinary way. Failures have told themselves. */
function finishNotice({ finishReason }: EventOf<'run-finish'>): string | undefined {
  return {
    stop: undefined,
    error: undefined,
    aborted: 'stopped',
    'turn-limit': 'ended at the turn limit: send another message to go on',
    loop: 'ended because a call was repeated: send another message to go on',
  }[finishReason]
}
