/**
 * What runs reported besides their messages: cuts, repairs, failures. It is read for runs whose messages are on
 * the screen, one after another and once each, because each is a request of its own.
 */
import { defined } from '../../src/base/defined.js'
import type { LangoClient } from '../../src/client/client.js'
import { applyRunEvent, newRunTranscript } from '../../src/transcript/from-events.js'
import type { RunNotes } from '../../src/transcript/item.js'
import type { RunItem } from './state/api.js'

/** The oldest answers of a session with more runs are shown without their marks. */
const MAXIMUM_RUNS = 500

export class RunNotesReader {
  #runs: Promise<readonly RunItem[]> | undefined
  readonly #asked = new Set<string>()
  #line: Promise<void> = Promise.resolve()

  readonly #client: LangoClient
  readonly #session: { sessionId: string; signal: AbortSignal }
  readonly #onNotes: (notes: RunNotes) => void

  constructor(
    client: LangoClient,
    session: { sessionId: string; signal: AbortSignal },
    onNotes: (notes: RunNotes) => void,
  ) {
    this.#client = client
    this.#session = session
    this.#onNotes = onNotes
  }

  /** This run's notes are known, or come from elsewhere. */
  skip(runId: string): void {
    this.#asked.add(runId)
  }

  /** Reads the notes of a run, unless they were read. */
  read(run: RunItem): Promise<void> {
    if (this.#asked.has(run.runId)) return this.#line
    this.#asked.add(run.runId)
    this.#line = this.#line.then(() => this.#readNow(run))
    return this.#line
  }

  /** Reads the notes of the runs that these messages of the user began. */
  async readFor(seqs: readonly number[]): Promise<void> {
    const { sessionId, signal } = this.#session
    this.#runs ??= this.#client.runs(sessionId, { limit: MAXIMUM_RUNS }).then(
      ({ runs }) => runs,
      () => [],
    )
    const runs = await this.#runs
    if (signal.aborted) return
    const wanted = new Set(seqs.map(seq => seq - 1))
    for (const run of runs) {
      const isWanted = run.afterSeq !== undefined && wanted.has(run.afterSeq)
      if (isWanted && run.status === 'finished') void this.read(run)
    }
  }

  async #readNow(run: RunItem): Promise<void> {
    const { signal } = this.#session
    if (signal.aborted) return
    let transcript = newRunTranscript({ runId: run.runId, afterSeq: run.afterSeq ?? 0 })
    try {
      for await (const event of this.#client.follow(run.runId, { signal })) {
        transcript = applyRunEvent(transcript, event)
      }
    } catch {
      // Marks are an extra: the answer itself is on the page already.
      return
    }
    const { notes } = transcript
    const { marks, durations, approvals, outcomes, error, unfinished } = notes
    const hasFacts = marks.length > 0 || durations || approvals || outcomes || error || unfinished
    if (!signal.aborted && hasFacts) this.#onNotes(notes)
    await this.readOutcomes([notes])
  }

  /** Looks into the ledger for what was answered or found out about unknown outcomes after their runs. */
  async readOutcomes(all: readonly RunNotes[]): Promise<void> {
    for (const notes of all) {
      const isOpen = Object.values(notes.outcomes ?? {}).some(({ resolved }) => resolved === undefined)
      if (!isOpen || this.#session.signal.aborted) continue
      // An extra as well: without it the question stands there, and the server refuses a late answer.
      const inspected = await this.#client.inspect(notes.runId).catch(() => undefined)
      const outcomes = withLedger(notes.outcomes, inspected?.calls ?? [])
      if (!this.#session.signal.aborted) this.#onNotes({ ...notes, outcomes })
    }
  }
}

type Outcomes = NonNullable<RunNotes['outcomes']>
type InspectedCall = NonNullable<Awaited<ReturnType<LangoClient['inspect']>>['calls']>[number]

function withLedger(outcomes: Outcomes = {}, calls: readonly InspectedCall[]): Outcomes {
  const found = Object.entries(outcomes).map(([callId, outcome]) => {
    const row = calls.findLast(call => call.callId === callId)
    const answer = row?.answer ?? outcome.answer
    const resolved = row?.status === 'done' || row?.status === 'failed' ? row.status : undefined
    return [callId, { ...outcome, ...defined({ answer, resolved }) }]
  })
  return Object.fromEntries(found)
}
