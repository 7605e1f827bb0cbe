/**
 * Inspects a run: per model call what was stored, what was left out and why, what was repaired, and what was
 * sent. Everything is read from the store, so any process can inspect any run until it is pruned.
 */

import { breaksIn, withoutBreaks } from '../base/prefix-break.js'
import type { Counted, RunFinishReason, RunRepair, SentRequest } from '../run/run-event.js'
import type { HistoryCut, SessionKey } from '../session/message.js'
import type { RunEventRecord, ToolCallRecord } from '../session/run-store.js'
import { runEventPages } from '../session/session-pages.js'
import type { SessionStore } from '../session/session-store.js'
import { type RunUsage, sumUsage } from '../session/usage.js'
import type { OutcomeAnswer } from '../tool.js'

export interface RunInspection {
  runId: string
  sessionId?: string
  userId?: string
  agent?: string
  /** Absent while the run is running, or when its process ended first. */
  finishReason?: RunFinishReason
  /** The continuations of the run by a process, in order. */
  resumed?: { attempt: number; replayedSteps: number }[]
  /** Why the run failed. */
  error?: { code: string; message: string }
  /** One per request that was sent, resends and nested agents included. */
  steps: InspectedStep[]
  /** The run's tool calls, oldest first. */
  calls: InspectedCall[]
  /** Sums over the steps. `repairs` does not count breaks. */
  total: { requests: number; bytes: number; repairs: number; breaks: number; usage: RunUsage }
}

export interface InspectedStep {
  /** 1, 2, 3 … in the order of sending. */
  step: number
  /** The reference, such as `openai/gpt-5.2`. */
  model: string
  /** The rules that the history was repaired to. */
  profile: string
  /** The session as the store had it when the run opened it. Known when it was recorded, or something was cut. */
  stored?: Counted
  /** The history as it reached the model layer, before it was fitted. Known when it was recorded. */
  history?: Counted
  /** What was left out, in order: when the session was opened, then before the request. */
  cuts: HistoryCut[]
  /** Changes of the history. In this release the breaks are here, too; that is deprecated: read them from `breaks`. */
  repairs: RunRepair[]
  /** Why the request does not extend the one before it, and how many tokens a prompt cache cannot give back. */
  breaks: RunRepair[]
  /** Stored call id → id on the wire, where they differ. */
  mappedIds: Record<string, string>
  sent: { messages: number; bytes: number; body: unknown }
  /** Absent when the provider reported none, or when it cannot be assigned to one of several calls. */
  usage?: RunUsage
}

/** A tool call of the run, as the ledger has it. */
export interface InspectedCall
  extends Pick<ToolCallRecord, 'tool' | 'callId' | 'args' | 'status' | 'attempt' | 'effect'> {
  idempotencyKey: string
  /** A person's answer about an unknown outcome. */
  answer?: OutcomeAnswer
}

/** The idempotency key of a call. */
type KeyOf = (key: SessionKey, call: ToolCallRecord, ordinal: number) => string

/** Reads a run from the store; `undefined` when the store has no record of it. */
export async function inspectRun(
  store: SessionStore,
  runId: string,
  keyOf: KeyOf,
): Promise<RunInspection | undefined> {
  const [events, requests] = await Promise.all([readAll(store, runId), store.runs.readRequests(runId)])
  if (events.length === 0 && requests.length === 0) return undefined
  const usages = matchUsages(requests, events)
  // The recorder wrote it; a store returns what it was given.
  const steps = requests.map(({ step, record }) => toStep(step, record as unknown as SentRequest, usages))
  return {
    runId,
    ...runFacts(events),
    steps,
    calls: await readCalls(store, runId, keyOf),
    total: {
      requests: steps.length,
      bytes: steps.reduce((all, { sent }) => all + sent.bytes, 0),
      repairs: steps.reduce((all, { repairs }) => all + withoutBreaks(repairs).length, 0),
      breaks: steps.reduce((all, { breaks }) => all + breaks.length, 0),
      usage: sumUsage(events.flatMap(event => (event.type === 'usage' ? [event.usage as RunUsage] : []))),
    },
  }
}

async function readAll(store: SessionStore, runId: string): Promise<RunEventRecord[]> {
  const all: RunEventRecord[] = []
  for await (const page of runEventPages(store.runs, runId)) all.push(...page)
  return all
}

async function readCalls(store: SessionStore, runId: string, keyOf: KeyOf): Promise<InspectedCall[]> {
  const [rows, run] = await Promise.all([store.runs.readCalls(runId), store.runs.findRun(runId)])
  if (!run) return []
  return rows.map(row => {
    const { tool, callId, args, status, attempt, effect, answer } = row
    const idempotencyKey = keyOf(run.key, row, row.ordinal)
    return { tool, callId, args, status, attempt, effect, idempotencyKey, ...(answer ? { answer } : {}) }
  })
}

function toStep(step: number, record: SentRequest, usages: ReadonlyMap<number, RunUsage>): InspectedStep {
  const cuts = [...(record.cuts ?? [])]
  const stored = record.stored ?? storedBefore(cuts[0])
  const usage = usages.get(step)
  return {
    step,
    model: record.model,
    profile: record.profile,
    ...(stored ? { stored } : {}),
    ...(record.history ? { history: record.history } : {}),
    cuts,
    repairs: [...record.repairs],
    breaks: breaksIn(record.repairs),
    mappedIds: { ...record.mappedIds },
    sent: {
      messages: wireMessages(record.body),
      bytes: Buffer.byteLength(JSON.stringify(record.body ?? null)),
      body: record.body,
    },
    ...(usage ? { usage } : {}),
  }
}

function storedBefore(cut: HistoryCut | undefined): Counted | undefined {
  return cut && { messages: cut.messages + cut.keptMessages, tokens: cut.tokens + cut.keptTokens }
}

/** Vendors call their list of messages by different names. */
function wireMessages(body: unknown): number {
  if (typeof body !== 'object' || body === null) return 0
  const list = ['messages', 'contents', 'input'].map(name => Reflect.get(body, name)).find(Array.isArray)
  return list?.length ?? 0
}

/**
 * Usage is reported with an answer and requests are saved when they are sent. An event that names its step is
 * believed; otherwise the calls of a model are taken in order, if as many were reported as were sent.
 */
function matchUsages(
  requests: readonly { step: number; record: Record<string, unknown> }[],
  events: readonly RunEventRecord[],
): Map<number, RunUsage> {
  const found = new Map<number, RunUsage>()
  const reported = events.filter(event => event.type === 'usage')
  for (const event of reported) {
    if (typeof event.step === 'number') found.set(event.step, event.usage as RunUsage)
  }
  for (const model of new Set(requests.map(({ record }) => record.model))) {
    const sent = requests.filter(({ step, record }) => record.model === model && !found.has(step))
    const answered = reported.filter(event => event.model === model && event.step === undefined)
    if (sent.length !== answered.length) continue
    sent.forEach(({ step }, index) => {
      found.set(step, answered[index]?.usage as RunUsage)
    })
  }
  return found
}

function runFacts(
  events: readonly RunEventRecord[],
): Omit<RunInspection, 'runId' | 'steps' | 'calls' | 'total'> {
  const start = events.find(event => event.type === 'run-start')
  const finish = events.find(event => event.type === 'run-finish')
  const resumed = events.flatMap(event =>
    event.type === 'run-resumed'
      ? [{ attempt: Number(event.attempt), replayedSteps: Number(event.replayedSteps) }]
      : [],
  )
  const failure = events.find(event => event.type === 'error')?.error as RunInspection['error']
  return {
    ...(start
      ? { sessionId: String(start.sessionId), userId: String(start.userId), agent: String(start.agent) }
      : {}),
    ...(finish ? { finishReason: finish.finishReason as RunFinishReason } : {}),
    ...(resumed.length > 0 ? { resumed } : {}),
    ...(failure ? { error: { code: failure.code, message: failure.message } } : {}),
  }
}
