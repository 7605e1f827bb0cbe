/**
 * Negative controls: every promise of the log is broken once, and the test that guards it must see that. A control that
 * nothing sees means that a scenario is missing.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { LogStore } from '../../../src/session/log-store.js'
import { contentOf, digestOf } from '../../../src/store/log/log-rows.js'
import { SqlLog } from '../../../src/store/log/sql-log.js'
import type { WriteNumbers } from '../../../src/store/log/write-numbers.js'
import { type SqlValue, sql } from '../../../src/store/sql-database.js'
import { longUnless } from '../../support/tiers.js'
import {
  both,
  type Defect,
  loseLast,
  recreate,
  renumber,
  reparameter,
  repeatCalls,
  replace,
  rewrite,
  rewriteWith,
  split,
} from './broken-stores.js'
import { type Mode, over, PROBLEM_KINDS, type ProblemKind, type Stores } from './cut-harness.js'
import {
  createSession,
  expire,
  LOG_DRIVERS,
  type LogPlace,
  leaseColumns,
  type OpenLog,
  openLog,
  setSession,
} from './drivers.js'
import { cutsOf, play } from './play.js'
import { COST } from './promises-of-cost.js'
import { COUNTING } from './promises-of-counting.js'
import { LEASES } from './promises-of-leases.js'
import { REPLACING } from './promises-of-replacing.js'
import { RUNS } from './promises-of-runs.js'
import { type Check, WRITES } from './promises-of-writes.js'

const CHECKS = { ...WRITES, ...COUNTING, ...REPLACING, ...RUNS, ...LEASES, ...COST }

/** A scenario that is cut, and the problem that the judge reports then. Without a mode it is not cut. */
interface SeenBy {
  readonly scenario: string
  readonly mode?: Mode
  /** The kind of call that is cut. Default: any. */
  readonly call?: string
  readonly reports: ProblemKind
}

interface Control {
  readonly promise: string
  /** The defect, and what is wrong then. */
  readonly broken: string
  readonly defect: () => Defect
  /** Checks of `log.test.ts` that fail. */
  readonly failing?: readonly (keyof typeof CHECKS)[]
  /** The error with which a check fails, if it is not one of its own expectations. */
  readonly error?: string
  readonly seen?: readonly SeenBy[]
}

const ANY_NUMBER = 'CAST(? AS BIGINT) IS NOT NULL'
/** The condition that the run of a write has not ended. */
const OPEN_RUN = /(r\.session_pk = lango_sessions\.pk\s+)AND r\.state <> 'finished'\)/
const ANY_TEXT = 'CAST(? AS TEXT) IS NOT NULL'

/** Numbers, writes under a lease, state and content. */
const OF_WRITES: readonly Control[] = [
  {
    promise: 'entries are numbered without a gap, posts among them',
    broken: 'a post takes two numbers',
    defect: () =>
      rewrite(/entry_count = entry_count \+ 1, post_count/, 'entry_count = entry_count + 2, post_count'),
    failing: ['numbers entries and posts without a gap'],
    seen: [{ scenario: 'a reply between the question and the pause', reports: 'gap' }],
  },
  {
    promise: 'messages are numbered without a gap',
    broken: 'a write counts a message more',
    defect: () => rewrite(/message_count = message_count \+ \?/, 'message_count = message_count + ? + 1'),
    failing: ['numbers messages without a gap in the session and in each nested session'],
    seen: [{ scenario: 'an answer', reports: 'gap' }],
  },
  {
    promise: 'messages of a nested session have numbers of their own',
    broken: 'they have those of the log',
    defect: () => rewrite(/n\.message_count - /, 's.message_count - '),
    failing: ['numbers messages without a gap in the session and in each nested session'],
    seen: [{ scenario: 'messages of nested sessions', reports: 'gap' }],
  },
  {
    promise: 'a message of a nested session that does not exist is refused',
    broken: 'it is stored as one of the log',
    defect: () =>
      replace(
        'append',
        log => write =>
          log.append(write).catch(error => {
            if (error.code !== 'session-not-found') throw error
            return log.append({ ...write, entries: write.entries.map(({ nested: _, ...entry }) => entry) })
          }),
      ),
    failing: ['refuses a message of a nested session that does not exist, and stores nothing'],
  },
  {
    promise: 'a process writes under its own lease only',
    broken: 'the fence is not compared',
    defect: () => rewrite(/fence = \? AND write_number = \?/, `${ANY_NUMBER} AND write_number = ?`),
    failing: [
      'refuses a write under a lease that another process has taken over',
      'refuses a write under a lease that was released',
      'does not begin a queued run under a lease that was lost',
    ],
    seen: [{ scenario: 'a payment between answers', mode: 'late', call: 'append', reports: 'changed' }],
  },
  {
    promise: 'a process that is late does nothing twice: its fence and the end of its run refuse its writes',
    broken: 'neither is compared',
    defect: () =>
      both(
        rewrite(/fence = \? AND write_number = \?/, `${ANY_NUMBER} AND write_number = ?`),
        rewrite(OPEN_RUN, '$1)'),
      ),
    seen: [{ scenario: 'a payment between answers', mode: 'late', call: 'append', reports: 'twice' }],
  },
  {
    promise: 'a lease ends with its release',
    broken: 'the fence stays',
    defect: () => rewrite(/holder = '', fence = 0/, `holder = ''`),
    failing: [
      'refuses a write under a lease that was released',
      'frees the session with the write that ends its run',
    ],
  },
  {
    promise: 'a write that is sent again is stored once',
    broken: 'its number is not compared',
    defect: () => rewrite(/AND write_number = \?/, `AND ${ANY_NUMBER}`),
    failing: [
      'stores a write that is sent again once, and answers it as before',
      'stores a write without entries that is sent again once',
      'stores a write that is sent again after a post once, with the number of posts by then',
      'refuses other entries under the number of a stored write',
      'refuses a write whose number is not the next',
    ],
    seen: [
      {
        scenario: 'state that is there at the start is changed and removed',
        mode: 'again',
        call: 'append',
        reports: 'twice',
      },
    ],
  },
  {
    promise: 'a write that is sent again after it has ended the lease is answered as before',
    broken: 'its digest goes with the lease',
    defect: () =>
      rewrite(
        /(fence = 0, write_number = \?, write_digest = )\?/,
        `$1CASE WHEN ${ANY_TEXT} THEN '' ELSE '' END`,
      ),
    failing: ['stores a write that ends the lease and is sent again once'],
    error: 'lease-lost',
    seen: [{ scenario: 'an answer', mode: 'again', call: 'pause', reports: 'error' }],
  },
  {
    promise: 'other entries under a stored number are refused',
    broken: 'they are answered as if they were stored',
    defect: () =>
      replace(
        'append',
        log => write =>
          log.append(write).catch(error => {
            if (error.code !== 'internal') throw error
            return { seq: 1, messageSeqs: [], posts: 0 }
          }),
      ),
    failing: [
      'refuses other entries under the number of a stored write',
      'refuses a write whose number is not the next',
    ],
  },
  {
    promise: 'the number of a write is the next one',
    broken: 'it may be any greater one',
    defect: () => rewrite(/AND write_number = \?/, 'AND write_number <= ?'),
    failing: ['refuses a write whose number is not the next'],
  },
  {
    promise: 'a write without a lease is refused while one is valid',
    broken: 'leases are not looked at',
    defect: () => rewrite(/WHERE pk = \? AND lease_until <= [\s\S]*?RETURNING/, 'WHERE pk = ? RETURNING'),
    failing: [
      'refuses an append without a lease while a lease is valid, and stores it when the lease has expired',
    ],
  },
  {
    promise: 'a write without a lease ends one that has expired',
    broken: 'the lease stays',
    defect: () =>
      rewrite(/, lease_until = 0, holder = '', fence = 0( WHERE pk = \? AND lease_until <= )/, '$1'),
    failing: ['ends an expired lease with an append without one, and the late holder finds it gone'],
  },
  {
    promise: 'a write without a lease takes the right to write from the holder of one that has expired',
    broken: 'its fence stays',
    defect: () => rewrite(/, fence = 0( WHERE pk = \? AND lease_until <= )/, '$1'),
    failing: ['ends an expired lease with an append without one, and the late holder finds it gone'],
  },
  {
    promise: 'a session is not created by an append',
    broken: 'it is',
    defect: () =>
      replace(
        'append',
        (log, database) => write =>
          log.append(write).catch(async error => {
            if (error.code !== 'session-not-found') throw error
            await createSession(database, write.key)
            return log.append({ key: write.key, entries: write.entries })
          }),
      ),
    failing: ['refuses an append to a session that does not exist'],
  },
  {
    promise: 'a session that was created again is written to',
    broken: 'the store remembers that it did not exist',
    defect: () => {
      const missing = new Set<string>()
      return replace('append', log => async write => {
        const name = JSON.stringify(write.key)
        if (missing.has(name)) return log.append({ ...write, key: { ...write.key, sessionId: 'gone' } })
        return log.append(write).catch(error => {
          missing.add(name)
          throw error
        })
      })
    },
    failing: ['appends to a session that another process has deleted and created again'],
    error: 'session-not-found',
  },
  {
    promise: 'a write under a lease renews it',
    broken: 'it does not',
    defect: () => rewrite(/lease_until = [^=]*? \+ lease_ms, write_number/, 'write_number'),
    failing: ['renews the lease with every write under it'],
  },
  {
    promise: 'state is stored with the entries',
    broken: 'that of the user is not',
    defect: () =>
      rewrite(/(INSERT INTO lango_user_state[\s\S]*)WHERE s\.pk = \?/, '$1WHERE 1 = 0 AND s.pk = ?'),
    failing: ['sets and removes state of the session, the user and the app with the entries'],
    seen: [{ scenario: 'state that is there at the start is changed and removed', reports: 'state' }],
  },
  {
    promise: 'state is removed with the entries',
    broken: 'it is not',
    defect: () => rewrite(/(DELETE FROM lango_\w+_state WHERE )key/, '$11 = 0 AND key'),
    failing: ['sets and removes state of the session, the user and the app with the entries'],
    seen: [{ scenario: 'state that is there at the start is changed and removed', reports: 'state' }],
  },
  {
    promise: 'a refused write sets no state',
    broken: 'the mark of the write is not compared',
    defect: () => rewrite(/(INSERT INTO lango_\w+_state[\s\S]*)s\.write_id = \?/, `$1${ANY_TEXT}`),
    failing: ['changes nothing that comes with a write that is refused'],
    seen: [
      {
        scenario: 'state that is there at the start is changed and removed',
        mode: 'late',
        call: 'append',
        reports: 'changed',
      },
    ],
  },
  {
    promise: 'a refused write removes no state',
    broken: 'the mark of the write is not compared',
    defect: () => rewrite(/(DELETE FROM lango_\w+_state[\s\S]*)s\.write_id = \?/, `$1${ANY_TEXT}`),
    failing: ['changes nothing that comes with a write that is refused'],
  },
  {
    promise: 'a refused write changes no run',
    broken: 'the mark of the write is not compared',
    defect: () => rewrite(/(UPDATE lango_runs SET state = \?[\s\S]*)s\.write_id = \?/, `$1${ANY_TEXT}`),
    failing: ['changes nothing that comes with a write that is refused'],
    seen: [
      {
        scenario: 'a reply between the question and the pause',
        mode: 'late',
        call: 'pause',
        reports: 'changed',
      },
    ],
  },
  {
    promise: 'a refused write changes no nested session',
    broken: 'the mark of the write is not compared',
    defect: () =>
      rewrite(
        /(UPDATE lango_sessions SET[\s\S]*EXISTS [\s\S]*)s\.write_id = \?(\) RETURNING message_count)/,
        `$1${ANY_TEXT}$2`,
      ),
    failing: ['changes nothing that comes with a write that is refused'],
    seen: [{ scenario: 'messages of nested sessions', mode: 'late', call: 'append', reports: 'changed' }],
  },
  {
    promise: 'a refused write stores no entry',
    broken: 'the mark of the write is not compared',
    defect: () => rewrite(/(INSERT INTO lango_entries[\s\S]*)s\.write_id = \?/, `$1${ANY_TEXT}`),
    failing: ['refuses a write under a lease that another process has taken over'],
    seen: [{ scenario: 'an answer', mode: 'late', call: 'append', reports: 'error' }],
  },
  {
    promise: 'a write is stored as a whole',
    broken: 'each statement is a transaction of its own',
    defect: split,
    failing: [
      'refuses a second entry with a key together with its whole write',
      'takes one transaction and one round trip for every write',
    ],
    seen: [{ scenario: 'a payment between answers', mode: 'inside', call: 'append', reports: 'gap' }],
  },
  {
    promise: 'any text is stored as it is',
    broken: 'NUL is dropped',
    defect: () =>
      reparameter(/INSERT INTO lango_entries/, value =>
        typeof value === 'string' ? value.replaceAll('\\u0000', '') : value,
      ),
    failing: ['returns any text and JSON as it was stored'],
  },
  {
    promise: 'a digest verifies with its salt',
    broken: 'another salt is stored',
    defect: () =>
      reparameter(/INSERT INTO lango_entries/, value =>
        typeof value === 'string' && /^[\w-]{22}$/.test(value) ? value.slice(1) : value,
      ),
    failing: [
      'has a digest over salt and content that verifies after reading and tells any change',
      'has a digest that verifies for a message as another store returned it',
    ],
    seen: [{ scenario: 'an answer', reports: 'unreadable' }],
  },
  {
    promise: 'a digest says nothing about the content without its salt',
    broken: 'it has none',
    defect: () =>
      replace(
        'read',
        log => async (key, query) =>
          (await log.read(key, query)).map(entry => ({
            ...entry,
            salt: '',
            digest: digestOf('', contentOf(entry)),
          })),
      ),
    failing: ['has a digest over salt and content that verifies after reading and tells any change'],
  },
  {
    promise: 'a changed content is seen by its digest',
    broken: 'the text of a message is changed',
    defect: () =>
      replace('append', (log, database) => async write => {
        const appended = await log.append(write)
        await database.run(sql("UPDATE lango_entries SET content = 'Forged' WHERE content = 'Hello'"))
        return appended
      }),
    seen: [{ scenario: 'an answer', reports: 'unreadable' }],
  },
  {
    promise: 'data that is not JSON is refused',
    broken: 'it is left out',
    defect: () =>
      replace(
        'append',
        log => write =>
          log.append(write).catch(error => {
            if (error.code !== 'invalid-argument') throw error
            return log.append({ ...write, entries: write.entries.map(({ data: _, ...entry }) => entry) })
          }),
      ),
    failing: ['refuses data that is not JSON, and stores nothing'],
  },
  {
    promise: 'a run changes under a lease only',
    broken: 'the entries are stored without the change',
    defect: () =>
      replace(
        'append',
        log => write =>
          log.append(write).catch(error => {
            if (error.code !== 'internal') throw error
            return log.append({ key: write.key, entries: write.entries })
          }),
      ),
    failing: ['refuses a change of a run without a lease, and stores nothing'],
  },
  {
    promise: 'entries are found by their keys',
    broken: 'all are found',
    defect: () => rewrite(/AND (e\.entry_key = k\.value)/, 'AND ($1 OR 1 = 1)'),
    failing: ['finds entries by their keys, in order'],
  },
  {
    promise: 'a key is in a session once',
    broken: 'its index is not unique',
    defect: () => recreate(/UNIQUE INDEX lango_entries_key/, 'INDEX lango_entries_key'),
    failing: ['refuses a second entry with a key together with its whole write'],
  },
  {
    promise: 'the id of a message is in a session once',
    broken: 'its index is not unique',
    defect: () => recreate(/UNIQUE INDEX lango_entries_event/, 'INDEX lango_entries_event'),
    failing: [
      'refuses a second entry with a key together with its whole write',
      'begins a run whose message has the id of another one, under the number of that message',
      'stores a message with the id of an earlier one under its number, and keeps the earlier entry',
    ],
  },
  {
    promise: 'run events are returned as they were reported',
    broken: 'the last text of a run is not found in the message before its end',
    defect: () => rewrite(/CASE WHEN e\.kind = 'ended' THEN/, 'CASE WHEN 1 = 0 THEN'),
    failing: ['returns run events as they were reported, and their digests verify'],
  },
  ...(
    [
      ['adds no call to the ledger', /(INSERT INTO lango_tool_calls[\s\S]*)s\.write_id = \?/],
      ['changes no call', /(UPDATE lango_tool_calls SET status = CASE[\s\S]*)s\.write_id = \?/],
      ['leaves open calls as they are', /(SET status = 'unknown'[\s\S]*)s\.write_id = \?/],
      ['stores no parts of requests', /(INSERT INTO lango_request_parts[\s\S]*)s\.write_id = \?/],
      ['counts no tokens', /(INSERT INTO lango_calibration[\s\S]*)s\.write_id = \?/],
      ['costs nothing', /(INSERT INTO lango_usage[\s\S]*)s\.write_id = \?/],
      ['records no post', /(SET pending = NULL[\s\S]*)s\.write_id = \?/],
    ] as const
  ).map(
    ([promise, pattern]): Control => ({
      promise: `a refused write ${promise}`,
      broken: 'the mark of the write is not compared',
      defect: () => rewrite(pattern, `$1${ANY_TEXT}`),
      failing: ['changes nothing that comes with a write that is refused'],
    }),
  ),
  ...(
    [
      ['in order', /ORDER BY e\.seq/, 'ORDER BY e.seq DESC'],
      ['after a number', /AND e\.seq > \?/, 'AND e.seq > 0 * ?'],
      ['of a run', /AND r\.run_id = \?/, `AND ${ANY_TEXT}`],
      ['of some kinds', /AND (e\.kind IN \([\s\S]*?\)) ORDER/, 'AND ($1 OR 1 = 1) ORDER'],
      ['at most so many', /(ORDER BY e\.seq LIMIT) \?/, '$1 1000 + ?'],
    ] as const
  ).map(
    ([promise, pattern, replacement]): Control => ({
      promise: `entries are read ${promise}`,
      broken: 'the statement lacks it',
      defect: () => rewrite(pattern, replacement),
      failing: ['reads entries in order, after a number, of a run, of some kinds, and at most so many'],
    }),
  ),
]

/** Accepting, queueing, beginning and ending of runs. */
const OF_RUNS: readonly Control[] = [
  {
    promise: 'a run begins with its message',
    broken: 'the message has no number',
    defect: () =>
      rewrite(
        /COALESCE\(v\.column4, s\.message_count - v\.column3\)([\s\S]*WHERE s\.app_name)/,
        'CAST(NULL AS BIGINT)$1',
      ),
    failing: ['begins a run in a new session with its message, its entry, its row and the lease'],
    seen: [{ scenario: 'an answer', reports: 'gap' }],
  },
  {
    promise: 'a run begins in a session that was deleted',
    broken: 'the store believes that it exists',
    defect: () => {
      const known = new Set<string>()
      return replace('accept', log => async (run, lease) => {
        const name = JSON.stringify(run.key)
        if (known.has(name) && (await log.read(run.key)).length === 0) return 'busy'
        known.add(name)
        return log.accept(run, lease)
      })
    },
    failing: ['begins a run in a session that was deleted after the store has used it'],
  },
  {
    promise: 'acceptance is no position in the history',
    broken: 'the message of a queued run is stored at once',
    defect: () =>
      replace('accept', (log, database) => async (run, lease) => {
        const accepted = await log.accept(run, lease)
        if (typeof accepted !== 'object' || !('queued' in accepted)) return accepted
        const { key, runId, message, input } = run
        const { fence, holder, lease_until } = (await leaseColumns(database, key)) as Record<string, SqlValue>
        await expire(database, key)
        await log.append({
          key,
          entries: [{ kind: 'begun', runId, message: { ...message, id: runId }, data: { input } }],
        })
        const columns = [fence ?? 0, holder ?? '', lease_until ?? 0]
        await setSession(database, key, 'fence = ?, holder = ?, lease_until = ?', ...columns)
        return accepted
      }),
    failing: ['stores no entry and no message of a run that is accepted while another works'],
    seen: [{ scenario: 'two runs on one session', reports: 'interleaved' }],
  },
  {
    promise: 'a queued run keeps its input',
    broken: 'it is lost',
    defect: () =>
      rewrite(
        /(CAST\(\? AS BIGINT\), CAST\(\? AS TEXT\), )CAST\(\? AS TEXT\)(\s+FROM)/,
        `$1CASE WHEN ${ANY_TEXT} THEN NULL END$2`,
      ),
    failing: ['stores no entry and no message of a run that is accepted while another works'],
    seen: [{ scenario: 'two runs on one session', reports: 'stuck' }],
  },
  {
    promise: 'a run that is due later does not keep its session busy',
    broken: 'it counts as a run of the session',
    defect: () => rewrite(/open_runs = open_runs \+ \?/, 'open_runs = open_runs + 1 + 0 * ?'),
    failing: ['stores a run that is due later, and the session stays free'],
  },
  {
    promise: 'a run is stored once',
    broken: 'its id is not unique',
    defect: () => recreate(/run_id TEXT NOT NULL UNIQUE/, 'run_id TEXT NOT NULL'),
    failing: ['answers a run that is known as such, in any session, and stores nothing'],
  },
  {
    promise: 'a run that is accepted again is known, also in a busy session',
    broken: 'it is looked for in free sessions only',
    defect: () => rewrite(/(AS known FROM lango_runs WHERE) /, '$1 1 = 0 AND '),
    failing: ['answers a run that is known as such, in any session, and stores nothing'],
  },
  {
    promise: 'known is said of runs only',
    broken: 'it is also said of a message that is stored',
    defect: () =>
      replace('accept', log => async (run, lease) => {
        const { id } = run.message
        const stored = id === undefined ? [] : await log.read(run.key)
        return stored.some(({ message }) => message?.id === id) ? 'known' : log.accept(run, lease)
      }),
    failing: ['begins a run whose message has the id of another one, under the number of that message'],
  },
  {
    promise: 'a run that is refused stores nothing',
    broken: 'its session is created',
    defect: () => rewrite(/\(l\.fence IS NULL OR [\s\S]*?\)\)\)\)/, ANY_TEXT),
    failing: ['refuses a run as busy while another process works, and stores nothing'],
  },
  {
    promise: 'a run that is refused has no row',
    broken: 'the mark of the write is not compared',
    defect: () => rewrite(/(INSERT INTO lango_runs[\s\S]*first_seq[\s\S]*)s\.write_id = \?/, `$1${ANY_TEXT}`),
    failing: ['refuses a run as busy while another process works, and stores nothing'],
  },
  {
    promise: 'a run begins in a session that no process writes to',
    broken: 'its lease is not looked at',
    defect: () =>
      rewrite(/open_runs = 0 AND \(lango_sessions[\s\S]*?\)\)\)/, `open_runs = 0 AND ${ANY_TEXT}`),
    failing: ['refuses a run as busy while another process works, and stores nothing'],
  },
  {
    promise: 'a run begins when no other one is open',
    broken: 'open runs are not counted when they begin',
    defect: () => rewrite(/open_runs = 1, fence/, 'open_runs = 0, fence'),
    failing: ['begins no run while another one waits for a person'],
    seen: [{ scenario: 'a run behind one that waits', reports: 'stuck' }],
  },
  {
    promise: 'a run does not begin while another one waits',
    broken: 'open runs do not keep it from beginning',
    defect: () => rewrite(/AND open_runs = 0/, ''),
    failing: ['begins no run while another one waits for a person'],
    seen: [{ scenario: 'a run that is accepted while another one waits', reports: 'interleaved' }],
  },
  {
    promise: 'unfinished runs are named',
    broken: 'expired leases are not seen',
    defect: () => rewrite(/\(s\.lease_until <= /, '(1 = 0 AND s.lease_until <= '),
    failing: [
      'names the runs that no process executes instead of beginning another one',
      'lists the runs of sessions without a valid lease as abandoned',
      'lists a waiting run as abandoned when it has received a post, until it has recorded that',
    ],
    seen: [{ scenario: 'a handover to another process', reports: 'stuck' }],
  },
  {
    promise: 'a queued run begins once',
    broken: 'its state is not compared',
    defect: () => rewrite(/AND r\.state = 'queued' AND NOT EXISTS/, 'AND NOT EXISTS'),
    failing: [
      'begins a queued run once, with its first entry in its row',
      'does not begin a queued run that was ended meanwhile',
    ],
  },
  {
    promise: 'a refused begin does not change the run',
    broken: 'the mark of the write is not compared',
    defect: () => rewrite(/(state = 'running', input = NULL[\s\S]*)s\.write_id = \?/, `$1${ANY_TEXT}`),
    failing: ['does not begin a queued run under a lease that was lost'],
  },
  {
    promise: 'a run that has begun is no longer queued',
    broken: 'its row is not changed',
    defect: () => rewrite(/SET state = 'running', input = NULL/, 'SET input = NULL'),
    failing: ['begins a queued run once, with its first entry in its row'],
    seen: [{ scenario: 'two runs on one session', mode: 'after', call: 'begin', reports: 'stuck' }],
  },
  {
    promise: 'the row of a run has its first entry',
    broken: 'it has the last one of the write',
    defect: () =>
      rewrite(
        /(first_seq = COALESCE\(first_seq, \(SELECT s\.entry_count FROM lango_sessions s WHERE s\.pk = \?\)) - /,
        '$1 - 0 * ',
      ),
    failing: ['begins a queued run once, with its first entry in its row'],
  },
  {
    promise: 'the row of a run that has ended in the queue has its first entry',
    broken: 'it has the last one of the write',
    defect: () =>
      rewrite(
        /(first_seq = COALESCE\(first_seq, \(SELECT s\.entry_count) - (CAST\(\? AS BIGINT\) FROM)/,
        '$1 - 0 * $2',
      ),
    failing: ['ends a run that has not begun once, and frees its session'],
  },
  {
    promise: 'a begin that is sent again is answered as before',
    broken: 'the run is said not to be queued',
    defect: () => {
      const begun = new Set<string>()
      return replace('begin', log => async (runId, write) => {
        if (begun.has(runId)) return undefined
        begun.add(runId)
        return log.begin(runId, write)
      })
    },
    failing: ['answers the begin of a queued run that is sent again as before'],
  },
  {
    promise: 'a run that has begun is not ended as one of the queue',
    broken: 'its state is not compared',
    defect: () => rewrite(/ AND q\.state IN \('queued', 'scheduled'\)/, ''),
    failing: ['ends a run that has not begun once, and frees its session'],
  },
  {
    promise: 'a refused end of a queued run does not change the run',
    broken: 'the mark of the write is not compared',
    defect: () =>
      rewrite(
        /(SET state = 'finished', finish_reason = \?, input = NULL,[\s\S]*)s\.write_id = \?/,
        `$1${ANY_TEXT}`,
      ),
    failing: ['ends a run that has not begun once, and frees its session'],
  },
  {
    promise: 'the end of a queued run frees its session',
    broken: 'it still counts as open',
    defect: () => rewrite(/open_runs = open_runs - \(/, 'open_runs = open_runs - 0 * ('),
    failing: ['ends a run that has not begun once, and frees its session'],
    seen: [{ scenario: 'a queued run that is ended', reports: 'stuck' }],
  },
  {
    promise: 'a message is never stored in the middle of another run',
    broken: 'it is left out of the end of a queued run',
    defect: () =>
      replace(
        'endQueued',
        log => (runId, entries) =>
          log.endQueued(
            runId,
            entries.map(({ message: _, ...entry }) => entry),
          ),
      ),
    failing: ['refuses a message with the end of a run that has not begun, and stores nothing'],
  },
  {
    promise: 'the end of a run frees its session',
    broken: 'the run still counts as open',
    defect: () => rewrite(/, open_runs = open_runs - 1/, ''),
    failing: [
      'begins a run after another one has ended, behind its entries',
      'frees the session with the write that ends its run',
    ],
    seen: [{ scenario: 'an answer', reports: 'stuck' }],
  },
  {
    promise: 'the row of a run says that it has ended',
    broken: 'it does not',
    defect: () =>
      rewrite(
        /SET state = \?, finish_reason/,
        "SET state = COALESCE(NULLIF(CAST(? AS TEXT), 'finished'), state), finish_reason",
      ),
    failing: ['begins a run after another one has ended, behind its entries'],
    seen: [{ scenario: 'an answer', reports: 'stuck' }],
  },
  {
    promise: 'the row of a run has its last entry',
    broken: 'it has the next one',
    defect: () => rewrite(/last_seq = \(SELECT s\.entry_count/, 'last_seq = (SELECT s.entry_count + 1'),
    failing: ['begins a run after another one has ended, behind its entries'],
    seen: [{ scenario: 'an answer', reports: 'disagrees' }],
  },
  {
    promise: 'a write of a run that has ended is refused',
    broken: 'its state is not compared',
    defect: () => rewrite(OPEN_RUN, '$1)'),
    failing: ['refuses a write of a run that has ended, but not one that says that it may have'],
  },
  {
    promise: 'a call is settled also when its run has ended',
    broken: 'the write is refused',
    defect: () =>
      replace(
        'append',
        log =>
          ({ mayHaveEnded: _, ...write }) =>
            log.append(write),
      ),
    failing: ['refuses a write of a run that has ended, but not one that says that it may have'],
    error: 'run-interrupted',
  },
  {
    promise: 'the outcome of a call is unknown that is open when its run ends',
    broken: 'it stays open',
    defect: () => rewrite(/SET status = 'unknown' WHERE/, 'SET status = status WHERE'),
    failing: ['refuses a write of a run that has ended, but not one that says that it may have'],
  },
  {
    promise: 'an acknowledged write is stored',
    broken: 'a crash takes the last one back',
    defect: loseLast,
    seen: [{ scenario: 'an answer', mode: 'before', call: 'pause', reports: 'lost' }],
  },
  {
    promise: 'an effect is not repeated',
    broken: 'a call with an unknown outcome is made again',
    defect: repeatCalls,
    seen: [{ scenario: 'a payment between answers', mode: 'before', call: 'append', reports: 'twice' }],
  },
]

/** Posts and pauses. */
const OF_POSTS: readonly Control[] = [
  {
    promise: 'a post does not touch the lease',
    broken: 'it renews the lease',
    defect: () =>
      rewrite(/post_count = post_count \+ 1/, 'post_count = post_count + 1, lease_until = lease_until + 1'),
    failing: ['changes no column of a lease with a post'],
  },
  {
    promise: 'a post with its key is stored once',
    broken: 'the key is not looked for',
    defect: () =>
      rewrite(/NOT EXISTS \(SELECT 1 FROM lango_entries e WHERE [\s\S]*?entry_key = \?\)/, ANY_TEXT),
    failing: ['stores a post with its key once'],
    error: 'internal',
    seen: [
      {
        scenario: 'a reply between the question and the pause',
        mode: 'again',
        call: 'post',
        reports: 'error',
      },
    ],
  },
  {
    promise: 'a post to a run that has ended is refused',
    broken: 'it is stored',
    defect: () => rewrite(/(r\.run_id = \?) AND r\.state <> 'finished'\)/, '$1)'),
    failing: ['refuses a post to a run that has ended or is unknown, and stores nothing'],
    seen: [{ scenario: 'a stop of a run that has ended', reports: 'late' }],
  },
  {
    promise: 'a refused post is not stored',
    broken: 'the mark of the write is not compared',
    defect: () =>
      rewrite(/(INSERT INTO lango_entries[\s\S]*WHERE r\.run_id = \? AND )s\.write_id = \?/, `$1${ANY_TEXT}`),
    failing: ['refuses a post to a run that has ended or is unknown, and stores nothing'],
  },
  {
    promise: 'a post to an unknown run is refused',
    broken: 'it is ignored',
    defect: () =>
      replace(
        'post',
        log => post =>
          log.post(post).catch(error => {
            if (error.code !== 'run-not-found') throw error
            return { seq: 0 }
          }),
      ),
    failing: ['refuses a post to a run that has ended or is unknown, and stores nothing'],
  },
  {
    promise: 'a pause is refused when a post was not read',
    broken: 'posts are not compared',
    defect: () => rewrite(/AND post_count = \?/, `AND ${ANY_NUMBER}`),
    failing: ['refuses a pause when the session has received a post that its process has not read'],
    // A reply that a pause has overlooked is still pending: the run is continued. The end of a run is final.
    seen: [{ scenario: 'several posts at once, at work and at the end', reports: 'lost' }],
  },
  {
    promise: 'posts are counted',
    broken: 'they are not',
    defect: () => rewrite(/post_count = post_count \+ 1/, 'post_count = post_count'),
    failing: ['refuses a pause when the session has received a post that its process has not read'],
    seen: [
      { scenario: 'a reply between the question and the pause', reports: 'gap' },
      { scenario: 'several posts at once, at work and at the end', reports: 'lost' },
    ],
  },
  {
    promise: 'a waiting run with a post is continued',
    broken: 'pending posts are not looked for',
    defect: () => rewrite(/p\.pending IS NOT NULL/g, 'p.pending IS NOT NULL AND 1 = 0'),
    failing: ['lists a waiting run as abandoned when it has received a post, until it has recorded that'],
    seen: [{ scenario: 'a question that is answered after the pause, twice', reports: 'stuck' }],
  },
  {
    promise: 'a waiting run without a post is not continued',
    broken: 'a post stays pending that was recorded',
    defect: () => rewrite(/SET pending = NULL/, 'SET pending = pending'),
    failing: [
      'lists a waiting run as abandoned when it has received a post, until it has recorded that',
      'keeps a post pending until its run records an event that answers its call, with that write',
    ],
    seen: [{ scenario: 'two questions, in writes that the store numbers', reports: 'pending' }],
  },
  {
    promise: 'a waiting run is continued for a post only',
    broken: 'it is always listed',
    defect: () => rewrite(/AND \(r\.state <> 'waiting' OR EXISTS \([^)]*\)\)/, ''),
    failing: ['lists a waiting run as abandoned when it has received a post, until it has recorded that'],
  },
  {
    promise: 'a post is pending until its own call is answered',
    broken: 'any answer records it',
    defect: () => rewrite(/SET pending = NULL WHERE pending = \?/, `SET pending = NULL WHERE ${ANY_TEXT}`),
    failing: ['keeps a post pending until its run records an event that answers its call, with that write'],
  },
  {
    promise: 'a post is pending until its own run has recorded it',
    broken: 'any run records it that has a call of that name',
    defect: () =>
      rewrite(
        /(kind = 'reply'\s+AND )run_pk = \(SELECT r\.pk FROM lango_runs r WHERE r\.run_id = \?\)/,
        `$1${ANY_TEXT}`,
      ),
    failing: ['keeps a post pending until its run records an event that answers its call, with that write'],
  },
  {
    promise: 'a stop is pending as long as its run',
    broken: 'it is recorded by an answer to a call without a name',
    defect: () => rewrite(/(WHERE pending = \?) AND kind = 'reply'/, '$1'),
    failing: ['keeps a post pending until its run records an event that answers its call, with that write'],
  },
]

/** Writes that the store numbers. */
const OF_COUNTING: readonly Control[] = [
  {
    promise: 'a write that the store numbers is stored once',
    broken: 'it always gets another number',
    defect: () => {
      let calls = 0
      return renumber(
        'next',
        original =>
          function (this: WriteNumbers, fence, digest) {
            calls += 1
            return original.call(this, fence, `${digest} ${calls}`)
          },
      )
    },
    failing: ['stores a write that it numbers once when it is sent again, also by another process'],
  },
  {
    promise: 'a write whose acknowledgement was lost is recognised',
    broken: 'the digest of the last write is not read',
    defect: () => rewrite(/(SELECT pk, fence, write_number, )write_digest/, "$1'' AS write_digest"),
    failing: [
      'answers a write that it numbers and whose acknowledgement was lost from what is stored',
      'answers a pause that it numbers and that is sent again',
      'answers the begin of a queued run that it numbers and that is sent again',
    ],
    seen: [
      {
        scenario: 'a payment between answers, in writes that the store numbers',
        mode: 'again',
        call: 'append',
        reports: 'error',
      },
    ],
  },
  {
    promise: 'a write comes after one whose acknowledgement was lost',
    broken: 'the number of the last write is not read',
    defect: () => rewrite(/(SELECT pk, fence, )write_number/, '$1write_number - 1 AS write_number'),
    failing: ['gives a write the next number when the acknowledgement of the one before it was lost'],
  },
  {
    promise: 'writes of one lease come one after another',
    broken: 'they do not wait for each other',
    defect: () => renumber('inTurn', () => (_, write) => write()),
    failing: ['stores writes that it numbers one after another, in the order of their calls'],
  },
  {
    promise: 'the writes of each lease are numbered by themselves',
    broken: 'all leases have one number',
    defect: () =>
      both(
        renumber('has', () => () => true),
        both(
          renumber(
            'next',
            original =>
              function (this: WriteNumbers, _, digest) {
                return original.call(this, 0, digest)
              },
          ),
          renumber(
            'set',
            original =>
              function (this: WriteNumbers, _, number, digest) {
                return original.call(this, 0, number, digest)
              },
          ),
        ),
      ),
    failing: ['numbers the writes of each lease by itself, and none under a lease that was taken'],
    error: 'internal',
  },
]

const REPLACED =
  'stores a message with the id of an earlier one under its number, and keeps the earlier entry'

/** Messages that replace earlier ones, and parts of requests. */
const OF_REPLACING: readonly Control[] = [
  {
    promise: 'a message that was replaced has no number',
    broken: 'it keeps it',
    defect: () => rewrite(/SET message_seq = NULL/, 'SET message_seq = message_seq'),
    failing: [REPLACED],
    error: 'internal',
  },
  {
    promise: 'a message that was replaced keeps its entry',
    broken: 'its text is removed',
    defect: () => rewrite(/SET message_seq = NULL/, "SET message_seq = NULL, content = ''"),
    failing: [REPLACED],
  },
  {
    promise: 'a message that replaces another has its number',
    broken: 'it has none',
    defect: () => rewrite(/COALESCE\(v\.column4, (\w)/, 'COALESCE(CAST(NULL AS BIGINT), $1'),
    failing: [REPLACED],
  },
  {
    promise: 'a message that replaces another is not one more',
    broken: 'it is counted',
    defect: () =>
      rewriteWith(
        /SET message_seq = NULL/,
        /message_count = message_count \+ \?/,
        'message_count = message_count + ? + 1',
      ),
    failing: [REPLACED, 'replaces a message in its own session only, nested or not'],
  },
  {
    promise: 'a message that was replaced has no tokens',
    broken: 'they are counted still',
    defect: () => rewrite(/e\.message_seq, e\.tokens FROM/, 'e.message_seq, 0 AS tokens FROM'),
    failing: [REPLACED],
  },
  {
    promise: 'a message that was replaced starts no turn',
    broken: 'it does',
    defect: () => rewrite(/SET turn_seq = (COALESCE)/, 'SET turn_seq = turn_seq + 0 * $1'),
    failing: [REPLACED],
  },
  {
    promise: 'a message is replaced in its own session',
    broken: 'a nested one loses its number in all sessions',
    defect: () => rewrite(/(SET message_seq = NULL WHERE )message_pk = \?/, `$1${ANY_NUMBER}`),
    failing: ['replaces a message in its own session only, nested or not'],
  },
  {
    promise: 'memory reads a message again that was replaced',
    broken: 'it does not',
    defect: () => rewrite(/SET indexed_seq = \?/, 'SET indexed_seq = indexed_seq + 0 * ?'),
    failing: ['lets memory read a message that was replaced again'],
  },
  ...(
    [
      ['takes no number from a message', /(SET message_seq = NULL[\s\S]*)s\.write_id = \?/],
      ['changes no turn', /(SET turn_seq = COALESCE[\s\S]*)s\.write_id = \?/],
      ['changes nothing of memory', /(SET indexed_seq = [\s\S]*)s\.write_id = \?/],
    ] as const
  ).map(
    ([promise, pattern]): Control => ({
      promise: `a refused write that would replace a message ${promise}`,
      broken: 'the mark of the write is not compared',
      defect: () => rewrite(pattern, `$1${ANY_TEXT}`),
      failing: [
        'replaces nothing when the lease is lost before the write is sent again with what it replaces',
      ],
    }),
  ),
  {
    promise: 'a write knows how many parts of requests its session has',
    broken: 'their number is not compared',
    defect: () => rewrite(/AND part_count = \?/, `AND ${ANY_NUMBER}`),
    failing: ['stores parts of requests with a write that knows their number'],
  },
  {
    promise: 'parts of requests are counted',
    broken: 'they are not',
    defect: () => rewrite(/part_count = part_count \+ \?/, 'part_count = part_count + 0 * ?'),
    failing: ['stores parts of requests with a write that knows their number'],
    error: 'store-unavailable',
  },
  {
    promise: 'parts of requests are numbered from 1',
    broken: 'from 2',
    defect: () => rewrite(/SELECT s\.pk, s\.part_count -/, 'SELECT s.pk, s.part_count + 1 -'),
    failing: ['stores parts of requests with a write that knows their number'],
  },
  {
    promise: 'a run that begins gets the number of parts',
    broken: 'it gets none',
    defect: () => rewrite(/post_count, part_count,/, 'post_count, 0 AS part_count,'),
    failing: ['stores parts of requests with a write that knows their number'],
  },
  ...(
    [
      [
        'it is told the oldest',
        / (ORDER BY r\.place) DESC LIMIT 1\) AS previous_run/,
        ' $1 LIMIT 1) AS previous_run',
      ],
      ['it is told one that is not due', /AND r\.state <> 'scheduled'( AND r\.deleted_at IS NULL)/, '$1'],
    ] as const
  ).map(
    ([broken, pattern, replacement]): Control => ({
      promise: 'a run that begins is told which run the session had before',
      broken,
      defect: () => rewrite(pattern, replacement),
      failing: ['tells a run that begins which one the session had before, and none that is not due'],
    }),
  ),
]

/** A valid lease of a session is granted again. */
function grantsSession(): Defect {
  return rewrite(
    /AND \(lango_sessions\.lease_until [\s\S]*?\)\)\)(\s+RETURNING pk, fence, post_count)/,
    `AND ${ANY_TEXT}$1`,
  )
}

/** That of a key without a session. */
function grantsKey(): Defect {
  return rewrite(/WHERE \(lango_leases\.lease_until [\s\S]*?\)\)\)/, `WHERE ${ANY_TEXT}`)
}

/** Leases. */
const OF_LEASES: readonly Control[] = [
  {
    promise: 'fences grow',
    broken: 'every lease has the same one',
    defect: () => rewrite(/\(SELECT last FROM lango_fences\)|nextval\('lango_fences'\)/, '7'),
    failing: ['grants growing fences, also when a session is deleted and created again'],
    seen: [{ scenario: 'a payment between answers', mode: 'late', call: 'append', reports: 'changed' }],
  },
  {
    promise: 'the writes of every lease are numbered from 1',
    broken: 'the numbers of the old lease go on',
    defect: () => rewrite(/, write_number = 0, write_digest = ''/, ''),
    failing: ['numbers the writes of every lease from 1'],
    error: 'internal',
    seen: [{ scenario: 'a handover to another process', reports: 'error' }],
  },
  {
    promise: 'a session has one lease',
    broken: 'a valid one is granted again',
    defect: grantsSession,
    failing: ['refuses a lease that another process gets after it was read as free'],
  },
  {
    promise: 'a key without a session has one lease',
    broken: 'a valid one is granted again',
    defect: grantsKey,
    failing: ['refuses a lease that another process gets after it was read as free'],
  },
  {
    promise: 'a lease that is held is not granted',
    broken: 'neither the read nor the write looks at its time',
    defect: () =>
      both(
        rewrite(/SELECT holder, lease_until,/g, 'SELECT holder, 0 AS lease_until,'),
        both(grantsSession(), grantsKey()),
      ),
    failing: [
      'begins a run in a new session with its message, its entry, its row and the lease',
      'grants the lease of a key without a session to one process at a time',
    ],
  },
  {
    promise: 'the expired lease of a key without a session is free',
    broken: 'it is not',
    defect: () => rewrite(/\(lango_leases\.lease_until <= /, '(1 = 0 AND lango_leases.lease_until <= '),
    failing: ['grants the expired lease of a key without a session to another process'],
    error: 'TypeError',
  },
  {
    promise: 'a session takes over the lease of its key',
    broken: 'it is created free',
    defect: () =>
      rewrite(
        /COALESCE\(l\.fence, 0\), COALESCE\(l\.holder, ''\), COALESCE\(l\.lease_until, 0\)/,
        "0, '', 0",
      ),
    failing: ['gives the lease of a key to the session that is created under it'],
    seen: [{ scenario: 'a run that begins under the lease of a key without a session', reports: 'error' }],
  },
  {
    promise: 'the lease of a key ends when the session has taken it over',
    broken: 'it stays',
    defect: () =>
      rewrite(
        /DELETE FROM lango_leases WHERE ([\s\S]*EXISTS)/,
        'DELETE FROM lango_leases WHERE 1 = 0 AND $1',
      ),
    failing: [
      'gives the lease of a key to the session that is created under it',
      'does not give an old lease of a key to a session that is created again',
    ],
    seen: [{ scenario: 'a run that begins under the lease of a key without a session', reports: 'lease' }],
  },
  {
    promise: 'a late process renews its lease',
    broken: 'an expired one is not renewed',
    defect: () =>
      rewrite(/(UPDATE lango_\w+ SET lease_until[\s\S]*)( RETURNING fence)/, '$1 AND lease_until > 1$2'),
    failing: ['renews the expired lease of a late process when no other has taken it'],
  },
  {
    promise: 'a late process writes when no other has taken its lease',
    broken: 'its write is refused',
    defect: () => rewrite(/(fence = \? AND write_number = \?)/, '$1 AND lease_until > 1'),
    failing: ['renews the expired lease of a late process when no other has taken it'],
    error: 'store-unavailable',
  },
  {
    promise: 'a lease that was taken is not renewed',
    broken: 'fences are not compared',
    defect: () => rewrite(/AND (fence IN \([\s\S]*\)) RETURNING fence/, 'AND ($1 OR 1 = 1) RETURNING fence'),
    failing: ['does not renew a lease that another process has taken, or that was released'],
  },
  {
    promise: 'a process releases its own lease only',
    broken: 'fences are not compared',
    defect: () => rewrite(/(fence = 0 WHERE [\s\S]*)AND fence = \?/, `$1AND ${ANY_NUMBER}`),
    failing: ['does not renew a lease that another process has taken, or that was released'],
  },
  {
    promise: 'a process releases its own lease of a key only',
    broken: 'fences are not compared',
    defect: () => rewrite(/(DELETE FROM lango_leases WHERE [\s\S]*)AND fence = \?/, `$1AND ${ANY_NUMBER}`),
    failing: ['grants the lease of a key without a session to one process at a time'],
  },
  {
    promise: 'the write that ends a run frees its session',
    broken: 'the lease stays',
    defect: () => rewrite(/lease_until = 0, holder = '', fence = 0, write_number/, 'write_number'),
    failing: ['frees the session with the write that ends its run'],
    seen: [{ scenario: 'an answer', reports: 'lease' }],
  },
  {
    promise: 'a lease comes with the number of posts',
    broken: 'it says none',
    defect: () => rewrite(/RETURNING pk, fence, post_count/, 'RETURNING pk, fence, 0 AS post_count'),
    failing: ['returns the number of posts with a lease'],
  },
  {
    promise: 'a clock that was set back does not keep a session busy',
    broken: 'the lease lasts as it was stored',
    defect: () => rewrite(/CASE WHEN lease_until > [\s\S]*? THEN 1 ELSE 0 END AS is_ahead/g, '0 AS is_ahead'),
    failing: ['gives a lease its time from now when the clock was set back'],
  },
  {
    promise: 'a clock that was set back does not hide abandoned runs',
    broken: 'the lease is believed',
    defect: () => rewrite(/OR s\.lease_until > [\s\S]*? \+ s\.lease_ms/, ''),
    failing: ['does not believe a lease that lasts for longer than its time when it lists abandoned runs'],
  },
  {
    promise: 'the lease of a process that no longer exists is free',
    broken: 'it lasts until it expires',
    defect: () => rewrite(/OR \((lango_\w+\.holder <> '')/g, 'OR (1 = 0 AND $1'),
    failing: ['grants the lease of a process that no longer exists'],
    error: 'TypeError',
    seen: [{ scenario: 'a payment between answers', mode: 'after', call: 'append', reports: 'stuck' }],
  },
  {
    promise: 'the runs of a process that no longer exists are abandoned',
    broken: 'they are listed when its lease expires',
    defect: () => rewrite(/OR (s\.holder IN \([\s\S]*?\))\)/, 'OR (1 = 0 AND $1))'),
    failing: ['grants the lease of a process that no longer exists'],
    seen: [{ scenario: 'a payment between answers', mode: 'after', call: 'append', reports: 'stuck' }],
  },
  {
    promise: 'a lease without the name of its process lasts until it expires',
    broken: 'it is taken for that of a process that no longer exists',
    defect: () => rewrite(/lango_\w+\.holder <> '' AND /g, ''),
    failing: ['does not take a lease without a holder for that of a process that no longer exists'],
  },
  {
    promise: 'many leases are renewed with one statement',
    broken: 'each has one of its own',
    defect: () =>
      replace('renew', log => async leases => {
        const renewed = await Promise.all(leases.map(lease => log.renew([lease])))
        return new Set(renewed.flatMap(fences => [...fences]))
      }),
    failing: ['renews many leases with one statement'],
  },
]

/** Cost. That of transactions and round trips is among the writes. */
const OF_COST: readonly Control[] = [
  {
    promise: 'unfinished runs are found by an index',
    broken: 'the index is another one',
    defect: () =>
      recreate(
        /lango_runs \(app_name, place\) WHERE state <> 'finished'/,
        'lango_runs (due_at) WHERE due_at > 0',
      ),
    failing: ['finds keys and unfinished runs by an index'],
  },
  {
    promise: 'keys are found by an index',
    broken: 'the index is another one',
    defect: () =>
      recreate(/UNIQUE (INDEX lango_entries_key ON lango_entries) \(session_pk, entry_key\)/, '$1 (at)'),
    failing: ['finds keys and unfinished runs by an index'],
  },
]

const CONTROLS = [
  ...OF_WRITES,
  ...OF_COUNTING,
  ...OF_REPLACING,
  ...OF_RUNS,
  ...OF_POSTS,
  ...OF_LEASES,
  ...OF_COST,
]

/** A place whose stores have the defect; the database of the checks themselves has not. */
function breakPlace(place: OpenLog, { database, log, next, crashed }: Defect): LogPlace & { stores: Stores } {
  const open = (connection: typeof place.database): LogStore => {
    const store = new SqlLog(connection)
    return log?.(store, connection) ?? store
  }
  const connect = () => database?.(place.stores.connect()) ?? place.stores.connect()
  const broken = database?.(place.database) ?? place.database
  return {
    ...place,
    log: open(broken),
    another: () => open(connect()),
    over: members => open(over(broken, members(broken))),
    stores: {
      database: place.database,
      connect,
      open,
      ...(next ? { next } : {}),
      ...(crashed ? { crashed: key => crashed(key, place.database) } : {}),
    },
  }
}

/** The name of an error: of an expectation that failed, or its code. */
function nameOf(error: unknown): string {
  const { name, code, message } = error as { name: string; code?: string; message: string }
  if (name === 'AssertionError' || message.startsWith('expected a failure')) return 'AssertionError'
  return code ?? name
}

/** Plays cuts of a scenario until one shows the problem. */
async function isReported(stores: Stores, calls: readonly string[], seenBy: SeenBy): Promise<boolean> {
  const { scenario, mode, call, reports } = seenBy
  const cuts = mode ? cutsOf(calls.length).filter(cut => cut.mode === mode) : [undefined]
  for (const cut of cuts) {
    if (cut && call !== undefined && calls[cut.call - 1] !== call) continue
    const { problems } = await play(stores, scenario, cut)
    if (problems.some(({ kind }) => kind === reports)) return true
  }
  return false
}

/** The checks of `log.test.ts` fail, and because of the defect. */
async function expectFailing(
  place: LogPlace,
  defect: Defect,
  { failing = [], error }: Control,
): Promise<void> {
  for (const title of failing) {
    const before = defect.changed.count
    const check: Check = CHECKS[title]
    const failure = await check(place).then(() => 'nothing', nameOf)
    if (!defect.schema) expect(defect.changed.count, `${title}: the defect was met`).toBeGreaterThan(before)
    expect(failure, title).toBe(error ?? 'AssertionError')
  }
}

/** The judge of the scenarios reports a problem of the expected kind. */
async function expectReported(place: OpenLog, defect: Defect, { seen = [] }: Control): Promise<void> {
  const { stores } = breakPlace(place, defect)
  for (const seenBy of seen) {
    const { calls } = await play(place.stores, seenBy.scenario)
    const before = defect.changed.count
    expect(await isReported(stores, calls, seenBy), JSON.stringify(seenBy)).toBe(true)
    expect(defect.changed.count, 'the defect was met').toBeGreaterThan(before)
  }
}

test('every promise of the log has a control, and every kind of problem is reported in one', () => {
  const guarded = new Set<string>(CONTROLS.flatMap(({ failing = [] }) => failing))
  expect(Object.keys(CHECKS).filter(title => !guarded.has(title))).toEqual([])
  const reported = new Set(CONTROLS.flatMap(({ seen = [] }) => seen.map(({ reports }) => reports)))
  expect(PROBLEM_KINDS.filter(kind => !reported.has(kind))).toEqual([])
})

describe.each(LOG_DRIVERS)('controls of the log in $name', driver => {
  let place: OpenLog
  beforeAll(async () => {
    place = await openLog(driver)
  })
  afterAll(() => place?.stop())

  for (const control of CONTROLS.filter(({ failing }) => failing))
    test(`${control.promise}: a check fails when ${control.broken}`, async () => {
      const defect = control.defect()
      const own = defect.schema ? await openLog(driver, defect.schema) : undefined
      const repair = defect.plant?.()
      try {
        await expectFailing(breakPlace(own ?? place, defect), defect, control)
        expect(defect.changed.count).toBeGreaterThan(0)
      } finally {
        repair?.()
        await own?.stop()
      }
    })

  // The judge is the same for all stores.
  for (const control of CONTROLS.filter(({ seen }) => seen))
    test(
      `${control.promise}: a scenario fails when ${control.broken}`,
      longUnless(driver.name === 'sqlite'),
      () => expectReported(place, control.defect(), control),
    )

  test('what the controls have left in the database makes no check fail', async () => {
    for (const check of Object.values(CHECKS)) await check(place)
  })
})
