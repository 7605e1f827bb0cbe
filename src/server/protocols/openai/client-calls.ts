/**
 * The calls of a client's tools as the client sees them. Their ids name the run, so that every process on the store
 * finds the run that waits for a result, also when the client sends no session.
 */
import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { isRecord } from '../../../base/is-record.js'
import { stableJson } from '../../../base/stable-json.js'
import type { SessionKey } from '../../../session/message.js'
import { runEventPages } from '../../../session/session-pages.js'
import type { RunEvent, RunItem } from '../../chat-protocol.js'
import type { ServerContext } from '../../server-context.js'

/** What the OpenAI routes keep with a run. */
export interface OpenaiNote {
  /** The names of the client's tools. */
  tools: readonly string[]
  /** A digest of everything that was sent before the answer, where the client sends the whole history. */
  history?: string
  /** A digest of the options: a request with others is no continuation of the run. */
  options: string
  /** What an answer of the Responses API repeats of its request. */
  response?: Readonly<Record<string, unknown>>
}

export function digestOf(value: unknown): string {
  return createHash('sha256').update(stableJson(value)).digest('base64url')
}

/** An id of something that a run has made: a call, a message, a response. */
export function runPartId(prefix: string, runId: string, number: number): string {
  const short = Buffer.from(runId.replaceAll('-', ''), 'hex').toString('base64url')
  return `${prefix}_${short}_${number}`
}

export function parsePartId(prefix: string, id: string): { runId: string; number: number } | undefined {
  const found = new RegExp(`^${prefix}_([\\w-]{22})_(\\d{1,16})$`).exec(id)
  if (!found) return undefined
  const hex = Buffer.from(found[1] ?? '', 'base64url').toString('hex')
  const runId = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
  return { runId, number: Number(found[2]) }
}

/** A call of a client's tool. */
export interface ClientCall {
  /** The id that the model gave it. */
  id: string
  name: string
  args: Record<string, unknown>
  /** The number of the event that reports it. */
  seq: number
  /** What the client answered, and the number of the event that reports it. */
  result?: unknown
  answeredSeq?: number
  /** It was answered here: the client never got it. */
  isOwn?: boolean
}

/** A run of this protocol, from its stored events. */
export interface ClientRun {
  runId: string
  item: RunItem
  key: SessionKey
  model: string
  note: OpenaiNote
  calls: readonly ClientCall[]
  events: readonly RunEvent[]
}

/** The run of a caller, if this protocol started it. */
export async function findClientRun(
  { hub, runtime }: ServerContext,
  runId: string,
  userId: string,
): Promise<ClientRun | undefined> {
  const found = await hub.find(runId)
  if (found?.key.userId !== userId) return undefined
  const events: RunEvent[] = []
  // The recorder of runs wrote them; a store returns what it was given.
  for await (const page of runEventPages(runtime.store.runs, runId))
    events.push(...(page as unknown as readonly RunEvent[]))
  const start = events.find(event => event.type === 'run-start')
  const note = noteOf(start?.note)
  if (!start || !note) return undefined
  return { runId, ...found, model: start.model, note, calls: callsIn(events, note), events }
}

function noteOf(note: unknown): OpenaiNote | undefined {
  const openai = isRecord(note) ? note.openai : undefined
  // Written by this protocol alone.
  return isRecord(openai) ? (openai as unknown as OpenaiNote) : undefined
}

function callsIn(events: readonly RunEvent[], { tools }: OpenaiNote): ClientCall[] {
  const calls: ClientCall[] = []
  for (const event of events) {
    if (event.type === 'tool-call' && event.pending && tools.includes(event.name)) {
      const { id, name, args, seq } = event
      calls.push({ id, name, args, seq })
    } else if (event.type === 'tool-result') {
      const call = calls.findLast(({ id, answeredSeq }) => id === event.id && answeredSeq === undefined)
      if (call) Object.assign(call, { result: event.result, answeredSeq: event.seq, isOwn: !event.given })
    }
  }
  return calls
}

/** A result of a client's tool. */
export interface ClientResult {
  /** As the client has it. */
  callId: string
  response: Record<string, unknown>
}

/** The calls that results belong to: those of one run that were open at one time. */
export interface AnsweredCalls {
  run: ClientRun
  /** In the order of the results. */
  calls: readonly ClientCall[]
  /** Calls that were open at the same time, and have no result in the request. */
  missing: readonly string[]
  /** The number of the last event before the results. */
  afterSeq: number
  state: 'open' | 'answered' | 'answered-otherwise'
}

export async function findAnswered(
  context: ServerContext,
  userId: string,
  results: readonly ClientResult[],
): Promise<AnsweredCalls | undefined> {
  const ids = results.map(({ callId }) => parsePartId('call', callId))
  const [first] = ids
  if (!first || ids.some(id => id?.runId !== first.runId)) return undefined
  const run = await findClientRun(context, first.runId, userId)
  const calls = ids.flatMap(id => run?.calls[id?.number ?? -1] ?? [])
  if (!run || calls.length < results.length) return undefined
  const answeredSeq = Math.min(...calls.map(call => call.answeredSeq ?? Number.POSITIVE_INFINITY))
  const isOpen = answeredSeq === Number.POSITIVE_INFINITY
  const beside = run.calls.filter(
    ({ isOwn, seq, answeredSeq: until = Number.POSITIVE_INFINITY }) =>
      !isOwn && seq < answeredSeq && until >= answeredSeq,
  )
  const missing = beside.filter(call => !calls.includes(call))
  const last = Math.max(...beside.map(({ seq }) => seq))
  const isSame = calls.every(
    (call, index) =>
      call.answeredSeq === undefined || isDeepStrictEqual(call.result, results[index]?.response),
  )
  return {
    run,
    calls,
    missing: missing.map(call => runPartId('call', run.runId, run.calls.indexOf(call))),
    afterSeq: isOpen ? run.item.lastSeq : boundary(run, last, answeredSeq),
    state: isOpen ? 'open' : isSame ? 'answered' : 'answered-otherwise',
  }
}

/** Where the answer after the results begins: the run was resumed for them. */
function boundary({ events }: ClientRun, lastCall: number, answeredSeq: number): number {
  const resumed = events.find(
    ({ type, seq }) => type === 'run-resumed' && seq > lastCall && seq < answeredSeq,
  )
  return (resumed?.seq ?? answeredSeq) - 1
}
