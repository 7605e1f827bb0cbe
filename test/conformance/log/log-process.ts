/** A process that executes runs over the log, as the miniature agent says. */
import type {
  Appended,
  Entry,
  GrantedLease,
  LogStore,
  LogWrite,
  NewEntry,
  NewRun,
  Post,
  RunRow,
  RunRowState,
} from '../../../src/session/log-store.js'
import type { SessionKey } from '../../../src/session/message.js'
import { isGone } from '../../../src/store/lease-process.js'
import { type Action, foldRun, type OpenCall, type RunView } from './miniature-agent.js'

/** The world of a process outside of the store. */
export interface Surroundings {
  /** Has the effect of a payment. */
  pay(runId: string, call: OpenCall): Promise<void> | void
  /** An entry of the log, as an acknowledged write or a read has shown it. */
  see(key: SessionKey, entry: Seen): void
  /** The process has an acknowledgement. */
  acknowledged(what: 'run' | 'post' | 'write', id: string): void
  /** Between two calls of the store: others act. */
  between(): Promise<void>
  /** Ends a run without ending the lease, to begin the next run of the session under it. */
  readonly keepsLease: boolean
  /** Leaves the numbers of its writes to the store. */
  readonly isCounted: boolean
  /** The agent. */
  next(view: RunView): Action
}

export type Seen = Pick<Entry, 'seq' | 'kind' | 'runId' | 'key' | 'message' | 'data'>

const UNFINISHED: readonly RunRowState[] = ['queued', 'running', 'waiting', 'handover']
const BEGUN: readonly RunRowState[] = ['running', 'waiting', 'handover']
const TTL_MS = 600_000

export class LogProcess {
  readonly holder: string
  readonly #log: LogStore
  readonly #around: Surroundings

  constructor(log: LogStore, holder: string, around: Surroundings) {
    this.#log = log
    this.holder = holder
    this.#around = around
  }

  /** Accepts a run and executes it if it begins. `false`: not accepted yet. */
  async accept(run: NewRun): Promise<boolean> {
    const accepted = await this.#log.accept(run, this.#request())
    if (accepted === 'busy' || (typeof accepted === 'object' && 'unfinished' in accepted)) return false
    this.#around.acknowledged('run', run.runId)
    if (typeof accepted === 'object' && 'begun' in accepted) {
      const { message, input } = run
      const begun = { kind: 'begun', runId: run.runId, message, data: { input } } as const
      this.#around.see(run.key, { ...begun, seq: accepted.seq })
      await this.#around.between()
      await this.#work(new Writer(this.#log, this.#around, accepted.begun), run.runId)
    }
    return true
  }

  /** Takes the lease of a key that may have no session, queues a run under it, and begins the run. */
  async acceptUnderLease(run: NewRun): Promise<boolean> {
    const lease = await this.#acquire(run.key)
    if (!lease) return false
    const writer = new Writer(this.#log, this.#around, lease)
    await this.#around.between()
    if (!(await this.accept({ ...run, when: 'queue' }))) return false
    const [row] = await this.#log.findRuns([run.runId])
    if (row?.state === 'queued' && (await this.#begin(writer, row))) await this.#work(writer, run.runId)
    else await this.#log.release(lease)
    return true
  }

  /** Sends a post; it is acknowledged also when the run has ended by then. */
  async post(post: Post): Promise<boolean> {
    try {
      await this.#log.post(post)
      this.#around.acknowledged('post', post.key ?? '')
    } catch (error) {
      if ((error as { code?: string }).code !== 'run-interrupted') throw error
    }
    return true
  }

  async endQueued(runId: string): Promise<boolean> {
    const entries = [{ kind: 'ended', runId, data: { reason: 'aborted' } }] as const
    if (await this.#log.endQueued(runId, entries)) return true
    const [row] = await this.#log.findRuns([runId])
    return row?.state !== 'queued'
  }

  /** Continues the runs of an app that no process executes: of each session the first. */
  async sweep(appName: string): Promise<void> {
    const runs = await this.#log.listRuns({ appName, states: UNFINISHED, isAbandoned: true, limit: 100 })
    const sessions = new Set<string>()
    for (const run of runs) {
      const session = JSON.stringify(run.key)
      if (!sessions.has(session)) await this.#continue(run)
      sessions.add(session)
    }
  }

  async #continue({ key, runId }: RunRow): Promise<void> {
    const lease = await this.#acquire(key)
    if (!lease) return
    const writer = new Writer(this.#log, this.#around, lease)
    await this.#around.between()
    // As it is under the lease: another process may have continued it meanwhile.
    const [row] = await this.#log.findRuns([runId])
    if (row?.state === 'queued' && (await this.#isNext(key))) {
      if (await this.#begin(writer, row)) return this.#work(writer, runId)
    } else if (row && BEGUN.includes(row.state) && (row.state !== 'waiting' || row.isPosted)) {
      await writer.append([{ kind: 'attempt', runId }], { run: { runId, state: 'running' } })
      await this.#around.between()
      return this.#work(writer, runId)
    }
    await this.#log.release(lease)
  }

  async #isNext(key: SessionKey): Promise<boolean> {
    return (await this.#log.listRuns({ appName: key.appName, key, states: BEGUN, limit: 1 })).length === 0
  }

  async #acquire(key: SessionKey): Promise<GrantedLease | undefined> {
    const first = await this.#log.acquire(key, this.#request())
    if ('fence' in first) return first
    if (!isGone(first.holder)) return undefined
    const second = await this.#log.acquire(key, { ...this.#request(), gone: first.holder })
    return 'fence' in second ? second : undefined
  }

  async #begin(writer: Writer, { runId, message, input }: RunRow): Promise<boolean> {
    if (!message || !input) return false
    const isBegun = await writer.begin(runId, [{ kind: 'begun', runId, message, data: { input } }])
    if (isBegun) await this.#around.between()
    return isBegun
  }

  async #work(writer: Writer, runId: string): Promise<void> {
    await writer.read()
    for (;;) {
      const action = this.#around.next(foldRun(writer.entries, runId))
      if (await this.#act(writer, runId, action)) return
      await this.#around.between()
    }
  }

  /** True when the process has nothing more to do for the run. */
  async #act(writer: Writer, runId: string, action: Action): Promise<boolean> {
    if (action.do === 'nothing') return true
    if (action.do === 'pay') {
      await this.#around.pay(runId, action.call)
      await writer.append([action.result])
      return false
    }
    const { entries, run } = action
    const isLast = run?.state === 'finished' && this.#around.keepsLease
    const also = {
      ...(run ? { run, release: !isLast } : {}),
      ...('state' in action ? { state: action.state } : {}),
    }
    const isStored =
      action.do === 'pause' ? await writer.pause(entries, also) : await writer.append(entries, also)
    if (!isStored || !run) return false
    if (isLast) await this.#beginNext(writer)
    return true
  }

  async #beginNext(writer: Writer): Promise<void> {
    const { key } = writer.lease
    const [next] = await this.#log.listRuns({ appName: key.appName, key, states: ['queued'], limit: 1 })
    if (next && (await this.#begin(writer, next))) return this.#work(writer, next.runId)
    await this.#log.release(writer.lease)
  }

  #request() {
    return { ttlMs: TTL_MS, holder: this.holder }
  }
}

/** The writes under one lease, and the session's log as the process has seen it. */
class Writer {
  readonly lease: GrantedLease
  readonly entries: Seen[] & Entry[] = []
  readonly #log: LogStore
  readonly #around: Surroundings
  #posts: number
  #number = 1

  constructor(log: LogStore, around: Surroundings, lease: GrantedLease) {
    this.#log = log
    this.#around = around
    this.lease = lease
    this.#posts = lease.posts
  }

  async append(entries: readonly NewEntry[], also: LogWrite['also'] = {}): Promise<true> {
    await this.#stored(entries, await this.#log.append(this.#write(entries, also)))
    return true
  }

  async pause(entries: readonly NewEntry[], also: LogWrite['also'] = {}): Promise<boolean> {
    const outcome = await this.#log.pause(this.#write(entries, also), this.#posts)
    if (!('unread' in outcome)) await this.#stored(entries, outcome)
    else await this.read(outcome.unread)
    return !('unread' in outcome)
  }

  async begin(runId: string, entries: readonly NewEntry[]): Promise<boolean> {
    const begun = await this.#log.begin(runId, this.#write(entries, {}))
    if (begun) await this.#stored(entries, begun)
    return begun !== undefined
  }

  /** Reads what came since. `posts`: the number of posts that this covers at least. */
  async read(posts = this.#posts): Promise<void> {
    const afterSeq = this.entries.at(-1)?.seq ?? 0
    for (const entry of await this.#log.read(this.lease.key, { afterSeq })) {
      this.entries.push(entry)
      this.#around.see(this.lease.key, entry)
    }
    this.#posts = posts
  }

  #write(entries: readonly NewEntry[], also: NonNullable<LogWrite['also']>): LogWrite {
    const { key, fence } = this.lease
    const number = this.#around.isCounted ? 'next' : this.#number
    const runId = also.run?.runId ?? entries[0]?.runId
    return { key, under: { fence, number }, ...(runId === undefined ? {} : { runId }), entries, also }
  }

  /** Own entries are known; posts that came before them are read. */
  async #stored(entries: readonly NewEntry[], { seq, posts }: Appended): Promise<void> {
    const { key } = this.lease
    this.#number += 1
    this.#around.acknowledged('write', `${seq}`)
    for (const [index, entry] of entries.entries()) this.#around.see(key, { ...entry, seq: seq + index })
    const isUpToDate = posts === this.#posts && seq === (this.entries.at(-1)?.seq ?? 0) + 1
    if (!isUpToDate) return this.read(posts)
    for (const [index, entry] of entries.entries())
      this.entries.push({ ...entry, seq: seq + index, at: 0, version: 1, digest: '' })
  }
}
