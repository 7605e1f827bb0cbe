/**
 * The ledger of one run's tool calls, so that what was paid for is paid for once:
 *
 * - a call is stored with the model's message, before its tool can begin (`intent`);
 * - a tool that is not read-only begins after `started` is stored, and ADK gets its result after that is stored;
 * - a call that was stopped after it had begun has an unknown outcome, and so has one whose process ended;
 * - `started` is taken back when the run is handed over before the tool begins: the next process executes the call;
 * - an equal call that comes while an outcome is unknown has the same idempotency key, and is not executed unless the
 *   tool's `verify`, a person, or `onUnknown: 'retry'` says so. The unknown call is resolved together with it;
 * - in a run that is resumed, a call that has ended is not executed again, and one that had begun is treated as a call
 *   that repeats itself.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { defined } from '../base/defined.js'
import { parseJson } from '../base/json.js'
import {
  CALL_NOT_RUN,
  NO_RESPONSE_MARKER,
  NOT_RUN_AGAIN,
  OUTCOME_UNKNOWN,
  PROCESS_ENDED,
} from '../base/markers.js'
import { isAdkTool } from '../base/names.js'
import { messageOf } from '../errors.js'
import { type Message, type ToolCall, toolCallKind } from '../session/message.js'
import type { JournalEntry, ToolCallChange, ToolCallPlace } from '../session/run-store.js'
import {
  type BegunCall,
  type CallBegin,
  type CallEnd,
  type CallLedger,
  type CallPolicy,
  callPolicy,
  type LedgerTool,
  type RecordedEnd,
} from '../session/tool-calls.js'
import type { OutcomeAnswer } from '../tool.js'
import { callFacts, callKey } from './call-key.js'
import { ClosingCalls, verify } from './close-calls.js'
import {
  type Actions,
  answeredChange,
  answeredEnd,
  attemptsOf,
  changeOf,
  changesOfTwins,
  closableOf,
  endStatus,
  executionsOf,
  firstOpen,
  interruptedCall,
  isAsked,
  isStoredWithAnswer,
  LastEvents,
  type LedgerEntry,
  type LedgerRun,
  messageOfCall,
  NESTED,
  newEntry,
  type OutcomeReport,
  outcomeEvent,
  outcomeUnknown,
  recordedEnd,
  reportedOutcome,
  restoredEntry,
  standingAnswer,
  twinsOf,
} from './ledger-entry.js'
import { askOutcome, confirmedAnswer, lacksOutput, OutcomeDesk } from './outcome-questions.js'
import type { GivenOutcome } from './run-approvals.js'
import type { RunHost } from './run-host.js'
import { callScope, workScope } from './run-journal.js'

type LedgerHost = Pick<RunHost, 'store' | 'tools' | 'logger' | 'approvalTimeoutMs' | 'adk'>

export class ToolLedger implements CallLedger {
  readonly #host: LedgerHost
  readonly #run: LedgerRun
  readonly #entries = new Map<string, LedgerEntry>()
  /** The same by the id of the call, which several entries may share. */
  readonly #byCall = new Map<string, LedgerEntry[]>()
  readonly #desk = new OutcomeDesk()
  readonly #lastEvents = new LastEvents()
  readonly #contained = new Map<string, unknown>()
  #isSealed = false
  #isHeld = false

  constructor(host: LedgerHost, run: LedgerRun) {
    this.#host = host
    this.#run = run
    for (const row of run.restored?.rows ?? []) {
      const place = run.restored?.placeOf(messageOfCall(row)) ?? { author: '', branch: NESTED }
      const own = host.tools.find(place.author, row.tool)
      const policy = this.policyOf(row.tool, { ...own, isContainer: false })
      this.#add(row.id, restoredEntry(row, place, policy ?? { ...row, onUnknown: 'tell' }))
    }
  }

  recorded(id: string): RecordedEnd | undefined {
    const answered = this.#run.restored?.answerOf(id)
    const entry = this.#entries.get(firstOpen(this.#entries, id))
    const recorded = answered ? answeredEnd(answered.response) : entry && recordedEnd(entry)
    if (recorded && entry) entry.hasBegun = true
    return recorded
  }

  async inside<R>(id: string, work: () => Promise<R>, responseOf?: (result: R) => unknown): Promise<R> {
    const result = await (responseOf ? callScope : workScope).run(id, work)
    if (responseOf) this.#contained.set(id, responseOf(result))
    return result
  }

  enterAgent(invocation: object): void {
    if (callScope.getStore() !== undefined) this.#run.enterAgent(invocation)
  }

  /** What a call that has ended has returned. */
  resultOf(id: string): unknown {
    return this.#entries.get(id)?.ended?.result ?? this.#contained.get(id)
  }

  /** Whether a call has begun and its end is not known: the store has failed in between. */
  isUnsettled(id: string): boolean {
    const entry = this.#entries.get(id)
    return entry?.hasBegun === true && !entry.ended && !this.#contained.has(id)
  }

  /** Whether tools are being called. Those that only read may be called again. */
  isExecuting({ withReads }: { withReads: boolean }): boolean {
    return [...this.#entries.values()].some(
      ({ isExecuting, policy }) => isExecuting && (withReads || policy.effect !== 'read'),
    )
  }

  /** Resolves when no tool that has an effect is being called, or when the time is over. */
  async settled(graceMs: number): Promise<void> {
    const until = Date.now() + graceMs
    while (this.isExecuting({ withReads: false }) && !this.#isSealed && Date.now() < until) await sleep(20)
  }

  /** No call begins from now on; those that are under way may end. */
  hold(): void {
    this.#isHeld = true
  }

  policyOf(tool: string, own: LedgerTool): CallPolicy | undefined {
    return callPolicy(tool, own, this.#host.tools.effects)
  }

  /** What is stored with a message of the session and with events: calls of the message, and the ends of calls. */
  changesFor(message: Message | undefined, journal: readonly JournalEntry[] = []): ToolCallChange[] {
    if (!message) return this.#lastEvents.endsWith(journal)
    const items = message.toolCalls ?? []
    const calls = items.filter(item => toolCallKind(item, message.role) !== 'response')
    const intents = calls.flatMap(call => this.#intent(message, call, calls.length === 1) ?? [])
    const answers = items.filter(item => toolCallKind(item, message.role) === 'response')
    const ends = answers.flatMap(answer => this.#answered(message, answer) ?? [])
    return [...this.#lastEvents.endsWith(journal), ...intents, ...ends]
  }

  /** The changes are in the store. */
  stored(changes: readonly ToolCallChange[], places: readonly ToolCallPlace[]): void {
    changes.forEach(({ id, status, runId }, index) => {
      const entry = runId === undefined ? this.#entries.get(id) : undefined
      if (!entry) return
      const place = places[index]
      if (place) entry.place = place
      entry.status = status
    })
  }

  /** Answers a question about an unknown outcome; `false` when no call of that id waits. */
  answer(callId: string, given: GivenOutcome): boolean {
    return this.#desk.answer(callId, given)
  }

  /** Answers a question that is asked, or that an earlier attempt has asked. */
  expect(callId: string, given: GivenOutcome): void {
    if (isAsked(this.#run.restored, callId)) this.#desk.expect(callId, given)
    else this.#desk.answer(callId, given)
  }

  /** Whether calls wait for a person's word about an unknown outcome. */
  get isAsking(): boolean {
    return this.#desk.isWaiting
  }

  async begin(call: CallBegin): Promise<BegunCall | { answer: Record<string, unknown> } | undefined> {
    const policy = this.policyOf(call.tool, call.own)
    if (!policy) return undefined
    if (this.#isSealed) return { answer: { error: CALL_NOT_RUN } }
    await this.#run.untilLive?.(`tool "${call.tool}" is called`)
    // The run is continued elsewhere.
    if (this.#isHeld) await new Promise<never>(() => {})
    const entry = this.#entryFor(call, policy)
    entry.isAwaited = call.isAwaited
    if (policy.effect === 'read') return this.#begun(entry, 1)
    if (!entry.place) await this.#markStarted(entry)
    const interrupted = interruptedCall(entry)
    if (interrupted) entry.twins = [interrupted]
    else if (entry.place?.unknownTwin || entry.restored)
      await this.#asExecuting(entry, () => this.#findTwins(entry))
    entry.ordinal = entry.twins[0]?.ordinal ?? entry.place?.ordinal ?? 0
    const answer = entry.twins.length > 0 ? await this.#decide(entry, call) : undefined
    if (answer) return { answer }
    // Counted again where a person was asked: the answer holds for this execution alone.
    const isCounted = entry.status === 'started' && !interrupted && !entry.twinsFailed
    if (!isCounted) await this.#markStarted(entry)
    if (this.#isHeld) await this.#takeBack(entry)
    return this.#begun(entry, 1 + attemptsOf(entry.twins))
  }

  /**
   * Stores that a call begins. After an acknowledgement that came late, it is stored again, which fails without the lease:
   * a process that was frozen in between may have lost it, and another one may execute the call.
   */
  #markStarted(entry: LedgerEntry): Promise<void> {
    return this.#asExecuting(entry, async () => {
      const askedAt = performance.now()
      await this.#write([changeOf(entry, 'started')])
      if (performance.now() - askedAt > LATE_MS) await this.#write([changeOf(entry, 'started')])
    })
  }

  /** A handover waits for a call that is about to begin, so that it can be taken back. One that fails does not begin. */
  async #asExecuting(entry: LedgerEntry, work: () => Promise<void>): Promise<void> {
    entry.isExecuting = true
    try {
      await work()
    } catch (error) {
      entry.isExecuting = false
      throw error
    }
  }

  /** The run was handed over before the tool began. Does not return: another process executes the call. */
  async #takeBack(entry: LedgerEntry): Promise<never> {
    const status = interruptedCall(entry)?.status ?? 'intent'
    const change = { ...changeOf(entry, status), isTakenBack: true } as const
    await this.#writeOrWarn([change], 'A tool call that did not begin is recorded as started')
    entry.isExecuting = false
    return new Promise<never>(() => {})
  }

  /** No call begins any more, and none changes the ledger. */
  seal(): void {
    this.#isSealed = true
    this.#desk.close()
  }

  /** Whether the store has calls of the run that have not ended. */
  get hasOpenCalls(): boolean {
    return [...this.#entries.values()].some(({ status }) => status === 'intent' || status === 'started')
  }

  /** The calls that have no answer at the end of the run, once. */
  close(reason: string): ClosingCalls {
    const rows = [...this.#entries.values()].map(entry => closableOf(entry, this.#keyOf(entry)))
    this.#entries.clear()
    this.#byCall.clear()
    return new ClosingCalls(rows, reason, this.#host.adk.runConfig)
  }

  #add(id: string, entry: LedgerEntry): void {
    this.#entries.set(id, entry)
    const { callId } = entry.facts
    const others = this.#byCall.get(callId)
    if (others) others.push(entry)
    else this.#byCall.set(callId, [entry])
  }

  #intent(message: Message, call: ToolCall, isAlone: boolean): ToolCallChange | undefined {
    const { author = '', branch = '' } = message
    if (isAdkTool(call.name)) return undefined
    const policy = this.policyOf(call.name, this.#host.tools.find(author, call.name))
    const id = `${message.id ?? ''}/${call.id}`
    if (!policy || this.#entries.has(id)) return undefined
    const facts = callFacts(call.id, call.name, parseJson(call.input ?? '{}'), policy.effect)
    const entry = newEntry({ id, facts, author, branch, policy, isAlone })
    this.#add(id, entry)
    return changeOf(entry, 'intent')
  }

  /** The end of a call that is not in the ledger yet: of a read-only tool, or of a call that was not executed. */
  #answered(message: Message, answer: ToolCall): ToolCallChange | undefined {
    const { branch = '' } = message
    const entry = this.#byCall
      .get(answer.id)
      ?.findLast(each => each.branch === branch && (each.status === 'intent' || each.status === 'started'))
    return entry && answeredChange(entry, message, answer)
  }

  #entryFor({ id, callId, tool, args, author }: CallBegin, policy: CallPolicy): LedgerEntry {
    // Models may give two calls of a message one id.
    const free = firstOpen(this.#entries, id)
    const known = this.#entries.get(free)
    if (known) {
      known.hasBegun = true
      known.policy = policy
      return known
    }
    const facts = callFacts(callId, tool, args, policy.effect)
    const entry = newEntry({ id: free, facts, author, branch: NESTED, policy, isAlone: false })
    entry.hasBegun = true
    this.#add(free, entry)
    return entry
  }

  #begun(entry: LedgerEntry, attempt: number): BegunCall {
    entry.isExecuting = true
    return {
      idempotencyKey: this.#keyOf(entry),
      attempt,
      endsWith: (eventId, result) => this.#lastEvents.expect(eventId, entry, result),
      end: (status, result, actions) =>
        this.#end(entry, status, result, actions).finally(() => {
          entry.isExecuting = false
        }),
    }
  }

  async #end(entry: LedgerEntry, given: CallEnd, result: unknown, actions: Actions): Promise<void> {
    if (this.#isSealed || entry.status === 'done') return
    const status = endStatus(entry, given)
    entry.ended = { status, result, actions }
    if (!this.#isHeld && isStoredWithAnswer(entry, entry.ended)) return
    const isResolved = status === 'done' || (status === 'failed' && entry.twinsFailed)
    const twins = isResolved ? changesOfTwins(entry, this.#run.runId, { status: 'failed' }) : []
    if (status === 'unknown') this.#report(entry)
    const end = { ...changeOf(entry, status), result, ...defined({ actions }) }
    // The call has run, and the model gets its result. The end is stored with the answer, if that can be stored.
    await this.#writeOrWarn([end, ...twins], 'The end of a tool call could not be stored')
  }

  /** The answer of a call that repeats one whose outcome is unknown; `undefined` when it may be executed. */
  async #decide(entry: LedgerEntry, call: CallBegin): Promise<Record<string, unknown> | undefined> {
    entry.isExecuting = false
    const context = { idempotencyKey: this.#keyOf(entry), signal: call.signal }
    const verified = call.own.verify && (await verify(call.own.verify, call, context, this.#host.logger))
    if (verified) return verified.result ? this.#happened(entry, verified.result) : this.#absent(entry)
    const given = standingAnswer(entry.twins)
    const happened = { answer: 'happened' } as const
    const isConfirmed = given?.answer === 'happened' && !lacksOutput(call, happened)
    if (isConfirmed) return this.#happened(entry, confirmedAnswer(call, happened))
    if (given?.answer === 'run') return this.#absent(entry)
    const { onUnknown } = entry.policy
    if (onUnknown === 'retry') return undefined
    const isAsked = onUnknown === 'ask' && !(given?.answer === 'leave' && given.runId === this.#run.runId)
    if (isAsked) return this.#ask(entry, call)
    const answer = await this.#tell(entry, {})
    if (onUnknown === 'fail') this.#run.fail(outcomeUnknown(entry.facts))
    return answer
  }

  async #ask(entry: LedgerEntry, call: CallBegin): Promise<Record<string, unknown> | undefined> {
    const reported = reportedOutcome(this.#run.restored, entry, this.#keyOf(entry))
    // The call was executed after that answer: it says nothing about the execution that was cut off.
    const isUsed = reported?.answer === 'run' && executionsOf(entry) > reported.executions
    const timeoutMs = this.#host.approvalTimeoutMs
    const given = await askOutcome(call, isUsed ? undefined : reported, {
      request: () => this.#desk.request(call.callId, call.signal, timeoutMs),
      report: report => this.#isSealed || this.#report(entry, report),
    })
    if (this.#isSealed) return { error: CALL_NOT_RUN }
    const { answer } = given
    if (answer === 'happened') return this.#happened(entry, confirmedAnswer(call, given))
    return answer === 'run' ? this.#absent(entry) : this.#tell(entry, { answer })
  }

  /** The earlier call took effect, so this one is not executed. */
  async #happened(entry: LedgerEntry, result: Record<string, unknown>): Promise<Record<string, unknown>> {
    const twins = changesOfTwins(entry, this.#run.runId, { status: 'done', result })
    await this.#write([{ ...changeOf(entry, 'done'), result }, ...twins])
    entry.ended = { status: 'done', result }
    return result
  }

  /** The earlier call had no effect: this one is executed, and resolves it when it ends. */
  #absent(entry: LedgerEntry): undefined {
    entry.twinsFailed = true
  }

  async #tell(entry: LedgerEntry, { answer }: { answer?: OutcomeAnswer }): Promise<Record<string, unknown>> {
    if (answer === undefined && !reportedOutcome(this.#run.restored, entry, this.#keyOf(entry)))
      this.#report(entry)
    await this.#write([{ ...changeOf(entry, 'unknown'), ...(answer ? { answer } : {}) }])
    const why = interruptedCall(entry) ? `${NO_RESPONSE_MARKER} ${PROCESS_ENDED}` : NOT_RUN_AGAIN
    const result = { error: `${why} ${OUTCOME_UNKNOWN}` }
    entry.ended = { status: 'unknown', result }
    return result
  }

  #report(entry: LedgerEntry, more: OutcomeReport = {}): void {
    this.#run.emit(outcomeEvent(entry, this.#keyOf(entry), more))
  }

  async #findTwins(entry: LedgerEntry): Promise<void> {
    const unknown = await this.#host.store.runs.listUnknownCalls(this.#run.key)
    const open = [...this.#entries.values()].filter(each => each !== entry && !each.ended)
    // In the same tick: a call that begins at the same time must find these taken.
    entry.twins = twinsOf(entry, this.#run.runId, unknown, open)
  }

  #keyOf(entry: LedgerEntry): string {
    const { facts, id, place, ordinal } = entry
    const number = ordinal ?? place?.ordinal ?? id
    if (entry.key?.number !== number) entry.key = { number, text: callKey(this.#run.key, facts, number) }
    return entry.key.text
  }

  async #writeOrWarn(
    changes: readonly [ToolCallChange, ...ToolCallChange[]],
    problem: string,
  ): Promise<void> {
    const facts = { runId: this.#run.runId, call: changes[0].id }
    await this.#write(changes).catch(error => {
      this.#host.logger.warn(problem, { ...facts, error: messageOf(error) })
    })
  }

  async #write(changes: readonly ToolCallChange[]): Promise<void> {
    this.stored(changes, await this.#run.recorder.change(changes))
  }
}

/** Half the time of a lease: the write began with two thirds of it left. */
const LATE_MS = 5000
