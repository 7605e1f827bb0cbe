/** Says what is wrong with the log after a scenario. */
import { stableJson } from '../../../src/base/stable-json.js'
import type { Entry, EntryKind, RunRow } from '../../../src/session/log-store.js'
import type { SessionKey } from '../../../src/session/message.js'
import { isGone } from '../../../src/store/lease-process.js'
import { contentOf, digestOf } from '../../../src/store/log/log-rows.js'
import { numberIn, type Row, sql } from '../../../src/store/sql-database.js'
import { readState } from '../../../src/store/sql-state.js'
import type { Problem, ProblemKind, Script, World } from './cut-harness.js'

const POSTS: readonly EntryKind[] = ['reply', 'stop', 'steer']

/** Everything that is stored of a scenario. */
interface Stored {
  readonly entries: readonly Entry[]
  readonly runs: readonly RunRow[]
  readonly session: Row
  readonly nested: readonly { readonly key: SessionKey; readonly row: Row }[]
  readonly keyLeases: number
  /** Posts that are pending: the number of the entry, and the call that it is about. */
  readonly pending: ReadonlyMap<number, string>
  readonly state: Record<string, unknown>
}

export async function judge(world: World): Promise<Problem[]> {
  const problems = [...world.problems]
  const report = (kind: ProblemKind, detail: string) => void problems.push({ kind, detail })
  const stored = await readAll(world)
  judgeNumbers(stored, report)
  judgeContent(world, stored, report)
  for (const script of world.scenario.scripts) judgeRun(world, stored, script, report)
  judgeOrder(stored, report)
  judgePending(stored, report)
  judgeSession(world, stored, report)
  return problems
}

type Report = (kind: ProblemKind, detail: string) => void

async function readAll({ reader, scenario, stores: { database } }: World): Promise<Stored> {
  const { key, nested, scripts } = scenario
  const rowOf = async ({ appName, userId, sessionId }: SessionKey): Promise<Row> => {
    const text = 'SELECT * FROM lango_sessions WHERE app_name = ? AND user_id = ? AND session_id = ?'
    return (await database.run(sql(text, appName, userId, sessionId)))[0] ?? {}
  }
  const session = await rowOf(key)
  const pending = await database.run(
    sql(
      'SELECT seq, pending FROM lango_entries WHERE session_pk = ? AND pending IS NOT NULL',
      numberIn(session, 'pk'),
    ),
  )
  const leases = sql('SELECT count(*) AS leases FROM lango_leases WHERE app_name = ?', key.appName)
  return {
    entries: await reader.read(key),
    runs: await reader.findRuns(scripts.map(({ runId }) => runId)),
    session,
    nested: await Promise.all(nested.map(async each => ({ key: each, row: await rowOf(each) }))),
    keyLeases: numberIn((await database.run(leases))[0], 'leases'),
    pending: new Map(pending.map(row => [numberIn(row, 'seq'), String(row.pending)])),
    state: await database.read(() => readState(key, numberIn(session, 'pk'))),
  }
}

/** Entries, messages and posts are numbered without a gap, and counted. */
function judgeNumbers({ entries, session, nested }: Stored, report: Report): void {
  const check = (what: string, numbers: readonly (number | undefined)[], count: number) => {
    const isGapless = numbers.every((number, index) => number === index + 1)
    if (!isGapless || numbers.length !== count) report('gap', `${what}: ${numbers.join()} of ${count}`)
  }
  check(
    'entries',
    entries.map(({ seq }) => seq),
    numberIn(session, 'entry_count'),
  )
  const messagesOf = (sessionId?: string) =>
    entries
      .filter(({ message, nested: key }) => message && key?.sessionId === sessionId)
      .map(({ messageSeq }) => messageSeq)
  check('messages', messagesOf(), numberIn(session, 'message_count'))
  for (const { key, row } of nested)
    check(`messages of ${key.sessionId}`, messagesOf(key.sessionId), numberIn(row, 'message_count'))
  const posts = entries.filter(({ kind }) => POSTS.includes(kind)).length
  if (posts !== numberIn(session, 'post_count')) report('gap', `${posts} posts are counted otherwise`)
}

/** Digests verify, and everything that a process has seen is there as it was seen. */
function judgeContent({ seen, acknowledged }: World, { entries }: Stored, report: Report): void {
  const bySeq = new Map(entries.map(entry => [entry.seq, entry]))
  for (const entry of entries)
    if (!isVerified(entries, entry)) report('unreadable', `the digest of entry ${entry.seq}`)
  for (const expected of seen.values()) {
    const { kind, runId, key, message, data } = bySeq.get(expected.seq) ?? {}
    const found = { seq: expected.seq, kind, runId, key, message, data }
    if (stableJson(found) !== stableJson(expected)) report('lost', `entry ${expected.seq} (${expected.kind})`)
  }
  for (const key of acknowledged.post) {
    const count = entries.filter(entry => entry.key === key).length
    if (count !== 1) report(count === 0 ? 'lost' : 'twice', `post ${key}`)
  }
  const keys = entries.flatMap(({ key }) => key ?? [])
  if (new Set(keys).size !== keys.length) report('twice', 'a key')
}

function isVerified(entries: readonly Entry[], entry: Entry): boolean {
  const previous = entries.find(({ seq }) => seq === entry.seq - 1)?.message
  return entry.digest === digestOf(entry.salt ?? '', contentOf(entry, { previous }))
}

function judgeRun(world: World, { entries, runs }: Stored, script: Script, report: Report): void {
  const { runId } = script
  const rows = runs.filter(run => run.runId === runId)
  const own = entries.filter(entry => entry.runId === runId)
  const of = (kind: EntryKind) => own.filter(entry => entry.kind === kind)
  const [row] = rows
  if (!row) {
    if (world.acknowledged.run.has(runId)) report('lost', `run ${runId}`)
    return
  }
  if (rows.length > 1 || of('begun').length > 1 || of('ended').length > 1) report('twice', `run ${runId}`)
  const [begun] = of('begun')
  const [ended] = of('ended')
  if (!ended || row.state !== 'finished') {
    report('stuck', `run ${runId} is ${row.state}`)
    return
  }
  const last = own.at(-1)
  if (last && last.seq > ended.seq) report('late', `${last.kind} after the end of run ${runId}`)
  if (row.firstSeq !== (begun ?? ended).seq || row.lastSeq !== ended.seq || row.message)
    report('disagrees', `the row of run ${runId}: ${row.firstSeq} to ${row.lastSeq}`)
  if (row.finishReason !== ended.data?.reason) report('disagrees', `the reason of run ${runId}`)
  judgeSteps(script, own, report)
  judgePosts(own, report)
  judgePayments(world, script, own, report)
}

/** Every step once and in order; all of them when the run is done. */
function judgeSteps({ runId, steps }: Script, own: readonly Entry[], report: Report): void {
  const completed = own.flatMap(({ kind, data }) => {
    const step = data?.step
    if (typeof step !== 'number') return []
    const isPayment = steps[step]?.do === 'pay'
    const isStep = isPayment ? kind === 'answer' : kind !== 'question' && !POSTS.includes(kind)
    return isStep ? [step] : []
  })
  const isDone = own.some(({ kind, data }) => kind === 'ended' && data?.reason === 'done')
  const expected = isDone ? steps.map((_, index) => index) : completed.map((_, index) => index)
  const isTwice = new Set(completed).size !== completed.length
  if (completed.join() !== expected.join())
    report(isTwice ? 'twice' : 'lost', `steps of run ${runId}: ${completed.join()} of ${expected.join()}`)
}

/** Every steering message is used once and a reply to every question, unless the run was stopped. */
function judgePosts(own: readonly Entry[], report: Report): void {
  const used = own.flatMap(({ data }) => (data?.used as number[] | undefined) ?? [])
  if (new Set(used).size !== used.length) report('twice', `posts ${used.join()} are used`)
  const isDone = own.some(({ kind, data }) => kind === 'ended' && data?.reason === 'done')
  const isUsed = (post: Entry) => used.includes(post.seq)
  for (const post of own.filter(({ kind }) => isDone && POSTS.includes(kind))) {
    const others = own.filter(({ kind, data }) => kind === 'reply' && data?.step === post.data?.step)
    if (!isUsed(post) && !others.some(isUsed)) report('lost', `${post.kind} ${post.seq} is not used`)
  }
}

/** A post that was used is pending no more, and a reply that was not used still is. */
function judgePending({ entries, pending }: Stored, report: Report): void {
  const used = new Set(entries.flatMap(({ data }) => (data?.used as number[] | undefined) ?? []))
  for (const { seq, kind } of entries.filter(entry => entry.kind === 'reply'))
    if (pending.has(seq) === used.has(seq)) report('pending', `${kind} ${seq}: ${pending.get(seq)}`)
}

/** An effect once if its result says so, and at most once if the result is unknown. */
function judgePayments({ bank }: World, { runId }: Script, own: readonly Entry[], report: Report): void {
  const results = own.filter(({ kind, data }) => kind === 'result' && data?.payment !== undefined)
  const names = results.map(({ data }) => `${runId} ${data?.payment} ${data?.ordinal}`)
  if (new Set(names).size !== names.length) report('twice', `results ${names.join()}`)
  const paid = results.filter(({ data }) => data?.outcome === 'paid')
  for (const { data } of paid) {
    const effects = bank.get(`${runId} ${data?.payment} ${data?.ordinal}`) ?? 0
    if (effects === 0) report('lost', `payment ${data?.payment}`)
  }
  for (const [name, effects] of bank)
    if (name.startsWith(`${runId} `)) {
      if (effects > 1) report('twice', `payment ${name}: ${effects}`)
      if (!names.includes(name)) report('lost', `the result of payment ${name}`)
    }
}

/** The entries of a run are not interrupted by those of another one. Only posts and the end of a queued run may be. */
function judgeOrder({ entries }: Stored, report: Report): void {
  const begun = new Set(entries.filter(({ kind }) => kind === 'begun').map(({ runId }) => runId))
  const written = entries.filter(({ kind, runId }) => !POSTS.includes(kind) && begun.has(runId))
  const changes = written.filter(({ runId }, index) => runId !== written[index - 1]?.runId)
  if (changes.length > begun.size)
    report('interleaved', changes.map(({ seq, runId }) => `${seq} ${runId}`).join())
}

/** The session is free, and its state is as expected. */
function judgeSession({ scenario, cut, expiries }: World, stored: Stored, report: Report): void {
  const { session, keyLeases, runs, state } = stored
  const { open_runs: open, fence, holder, lease_until: until } = session
  if (open !== 0) report('stuck', `open runs: ${open}`)
  // A process that crashed with its lease has left it; it may be taken.
  const isFree = (fence === 0 && holder === '') || isGone(String(holder))
  if (!isFree && Number(until) > 1) report('lease', `of ${holder} until ${until}`)
  if (keyLeases > 0) report('lease', 'of the key')
  if (expiries > (cut?.mode === 'again' ? 1 : 0)) report('stuck', `until ${expiries} leases had expired`)
  const isDone = runs.every(({ finishReason }) => finishReason === 'done')
  if (scenario.state && isDone && stableJson(state) !== stableJson(scenario.state.after))
    report('state', stableJson(state))
}
