/**
 * A miniature agent over the log. Everything that a process knows of a run is a pure function of entries: another process
 * continues the run from there. It appends `attempt` first, and a `call` of an earlier attempt without a result has an
 * unknown outcome and is never made again.
 */
import type { Entry, NewEntry, RunChange } from '../../../src/session/log-store.js'
import type { Message, SessionKey, State } from '../../../src/session/message.js'
import type { RunEventRecord } from '../../../src/session/run-store.js'

export type Step =
  | { readonly do: 'answer'; readonly text: string }
  /** One answer with calls of a payment tool. The same name twice is the same call twice. */
  | { readonly do: 'pay'; readonly payments: readonly string[] }
  | { readonly do: 'read'; readonly text: string }
  | { readonly do: 'ask'; readonly text: string }
  | { readonly do: 'state'; readonly state: State; readonly removes?: readonly string[] }
  | { readonly do: 'nested'; readonly text: string; readonly nested: SessionKey }
  | { readonly do: 'handover' }

/** A call of the payment tool that has no result. */
export interface OpenCall {
  readonly payment: string
  readonly ordinal: number
  readonly attempt: number
}

/** A run as its entries tell it. */
export interface RunView {
  readonly runId: string
  readonly steps: readonly Step[]
  readonly attempts: number
  /** The first step that is not complete. */
  readonly step: number
  readonly openCalls: readonly OpenCall[]
  readonly isAsked: boolean
  /** Posts that no entry has used. */
  readonly posts: readonly Entry[]
  readonly isEnded: boolean
}

export function foldRun(entries: readonly Entry[], runId: string): RunView {
  const start: RunView = {
    runId,
    steps: [],
    attempts: 0,
    step: 0,
    openCalls: [],
    isAsked: false,
    posts: [],
    isEnded: false,
  }
  return entries.filter(entry => entry.runId === runId).reduce(transition, start)
}

function transition(view: RunView, entry: Entry): RunView {
  const { step = -1, used = [] } = (entry.data ?? {}) as { step?: number; used?: readonly number[] }
  const isCurrent = step === view.step
  const posts = view.posts.filter(({ seq }) => !used.includes(seq))
  const complete = { ...view, posts, step: view.step + 1, isAsked: false, openCalls: [] }
  switch (entry.kind) {
    case 'begun':
      return { ...view, steps: (entry.data?.input as { steps: Step[] } | undefined)?.steps ?? [] }
    case 'attempt':
      return { ...view, attempts: view.attempts + 1 }
    case 'call':
      return { ...view, openCalls: [...view.openCalls, entry.data as unknown as OpenCall] }
    case 'result': {
      const { payment, ordinal } = entry.data as unknown as OpenCall
      const openCalls = view.openCalls.filter(call => call.payment !== payment || call.ordinal !== ordinal)
      return openCalls.length === 0 ? complete : { ...view, openCalls }
    }
    case 'question':
      return { ...view, isAsked: true }
    case 'reply':
    case 'stop':
    case 'steer':
      return { ...view, posts: [...view.posts, entry] }
    case 'ended':
      return { ...view, isEnded: true }
    case 'answer':
      return isCurrent && view.steps[step]?.do !== 'pay' ? complete : view
    default:
      return isCurrent ? complete : { ...view, posts }
  }
}

/** The next thing that a process does for a run. */
export type Action =
  | { readonly do: 'nothing' }
  | {
      readonly do: 'append'
      readonly entries: readonly NewEntry[]
      readonly state?: State
      readonly run?: RunChange
    }
  /** Refused when there are posts that the process has not read. */
  | { readonly do: 'pause'; readonly entries: readonly NewEntry[]; readonly run: RunChange }
  /** An effect outside of the store, then its result. */
  | { readonly do: 'pay'; readonly call: OpenCall; readonly result: NewEntry }

export function nextAction(view: RunView): Action {
  const { runId, steps, step, posts, openCalls } = view
  if (view.isEnded) return { do: 'nothing' }
  const [call] = openCalls
  if (call) return settle(view, call)
  if (posts.some(({ kind }) => kind === 'stop')) return { do: 'append', ...ended(runId, 'stopped') }
  const steers = posts.filter(({ kind }) => kind === 'steer')
  if (steers.length > 0) return { do: 'append', entries: steers.map(steer => use(runId, [steer])) }
  const current = steps[step]
  return current ? nextOf(view, current) : { do: 'pause', ...ended(runId, 'done') }
}

function nextOf(view: RunView, current: Step): Action {
  const { runId, step } = view
  const data = { step }
  switch (current.do) {
    case 'answer':
      return { do: 'append', entries: [{ kind: 'answer', runId, message: said(current.text), data }] }
    case 'nested': {
      const { nested, text } = current
      return { do: 'append', entries: [{ kind: 'answer', runId, message: said(text), nested, data }] }
    }
    case 'read':
      return { do: 'append', entries: [{ kind: 'result', runId, message: said(current.text), data }] }
    case 'state':
      return { do: 'append', entries: [{ kind: 'event', runId, data }], state: changesOf(current) }
    case 'handover':
      return { do: 'append', entries: [{ kind: 'notice', runId, data }], run: { runId, state: 'handover' } }
    case 'pay': {
      const answer = { kind: 'answer', runId, message: said(`Pay ${current.payments.join()}`), data } as const
      return { do: 'append', entries: [answer, ...callsOf(view, current.payments)] }
    }
    case 'ask': {
      if (!view.isAsked)
        return { do: 'append', entries: [{ kind: 'question', runId, message: said(current.text), data }] }
      const replies = view.posts.filter(({ kind, data: reply }) => kind === 'reply' && reply?.step === step)
      if (replies.length > 0) return { do: 'append', entries: [use(runId, replies, step)] }
      return { do: 'pause', entries: [], run: { runId, state: 'waiting' } }
    }
  }
}

function changesOf({ state, removes = [] }: Extract<Step, { do: 'state' }>): State {
  return { ...state, ...Object.fromEntries(removes.map(key => [key, undefined])) }
}

function callsOf({ runId, attempts, step }: RunView, payments: readonly string[]): NewEntry[] {
  return payments.map((payment, index) => {
    const ordinal = payments.slice(0, index).filter(name => name === payment).length
    const key = `call:${runId}/${step}/${payment}:${ordinal}:${attempts + 1}`
    return { kind: 'call', runId, key, data: { step, payment, ordinal, attempt: attempts } }
  })
}

/** A call of this attempt is made; one of an earlier attempt may have been made, and is not made again. */
function settle({ runId, step, attempts }: RunView, call: OpenCall): Action {
  const { payment, ordinal } = call
  const outcome = call.attempt === attempts ? 'paid' : 'unknown'
  const key = outcome === 'paid' ? { key: `done:${runId}/${step}/${payment}:${ordinal}` } : {}
  const data = { step, payment, ordinal, outcome }
  const result: NewEntry = { kind: 'result', runId, ...key, message: said(`${payment} ${outcome}`), data }
  return outcome === 'paid' ? { do: 'pay', call, result } : { do: 'append', entries: [result] }
}

/** Posts become a message of the history. */
function use(runId: string, posts: readonly Entry[], step?: number): NewEntry {
  const text = posts.map(({ data }) => String(data?.text)).join()
  const used = posts.map(({ seq }) => seq)
  return {
    kind: 'event',
    runId,
    message: said(text),
    data: { used, ...(step === undefined ? {} : { step }) },
    ...(step === undefined ? {} : { events: [answerOf(runId, step)] }),
  }
}

/** The question of a step as posts name it. */
export function questionOf(runId: string, step: number): string {
  return `${runId}/${step}`
}

/** Records that the question of a step is answered: its posts are pending no more. */
function answerOf(runId: string, step: number): RunEventRecord {
  return { type: 'approval-answer', id: questionOf(runId, step), answer: 'approved', seq: step + 1 }
}

function ended(runId: string, reason: string) {
  const run = { runId, state: 'finished', finishReason: reason } as const
  return { entries: [{ kind: 'ended', runId, data: { reason } } as const], run }
}

let messages = 0

/** Every message has an id of its own, as the events of ADK do: a step that is executed again has another one. */
function said(content: string): Message {
  messages += 1
  return { role: 'assistant', content, timestamp: 1, id: `${process.pid}-${messages}` }
}
