/** A write as the rows that it stores: what its statements are made of. */
import { invariant } from '../../errors.js'
import type { AlsoWritten, LogWrite, NewEntry, Under } from '../../session/log-store.js'
import type { SessionKey } from '../../session/message.js'
import { STARTS_TURN } from '../rows.js'
import { type CallRow, callRows } from '../sql-calls.js'
import { type StateChange, splitDelta } from '../state-scopes.js'
import { digestOfWrite, type EntryRow, entryToRow, keyText } from './log-rows.js'

/** A write as rows, and the row of the session that it goes to. */
export interface PreparedWrite {
  readonly pk: number
  /** The mark of the write. A write that is sent again has another one. */
  readonly id: string
  readonly runId: string | undefined
  readonly mayHaveEnded: boolean
  readonly rows: readonly EntryRow[]
  readonly under: { readonly fence: number; readonly number?: number; readonly digest: string } | undefined
  /** Messages by session: first those of the log's own session. */
  readonly sessions: readonly SessionMessages[]
  readonly changes: readonly StateChange[]
  readonly calls: readonly CallRow[]
  readonly also: AlsoWritten
  readonly replaced: readonly Replaced[]
}

/** The messages of a write that belong to one session. */
export interface SessionMessages {
  readonly key: SessionKey | undefined
  readonly count: number
  readonly tokens: number
  /** The last one that starts a turn, counted from 1; 0 when there is none. */
  readonly turn: number
}

/** A stored message that a message of the write replaces, because both have one id. */
export interface Replaced {
  /** The row of its session. */
  readonly pk: number
  /** That session, unless it is the session of the log. */
  readonly nested: SessionKey | undefined
  readonly eventId: string
  readonly seq: number
  readonly tokens: number
}

export function prepareWrite(pk: number, id: string, write: LogWrite): PreparedWrite {
  const { key, under, entries, runId, mayHaveEnded = false, also = {} } = write
  const { sessionId } = key
  const rows = entries.map((entry, index) =>
    entryToRow(entry, { sessionId, previous: entries[index - 1]?.message }),
  )
  invariant(under || !(also.run || also.release), 'a run and a lease change under that lease only')
  return {
    pk,
    id,
    runId,
    mayHaveEnded,
    rows,
    under: under && { ...underOf(under), digest: `${under.fence}:${digestOfWrite(rows, also)}` },
    sessions: [undefined, ...nestedKeys(entries, also)].map(nested => messagesOf(rows, nested)),
    changes: splitDelta('stateDelta', also.state),
    calls: callRows(runId ?? '', also.calls ?? []),
    also,
    replaced: [],
  }
}

/** Without a number while the store has not counted it. */
function underOf({ fence, number }: Under): { fence: number; number?: number } {
  return typeof number === 'number' ? { fence, number } : { fence }
}

function nestedKeys(entries: readonly NewEntry[], { stateOf }: AlsoWritten): SessionKey[] {
  const keys = [...entries.map(({ nested }) => nested), stateOf].flatMap(key => key ?? [])
  return [...new Map(keys.map(key => [keyText(key), key])).values()]
}

export function messagesOf(rows: readonly EntryRow[], key: SessionKey | undefined): SessionMessages {
  const own = rows.filter(({ entry, message }) => message && isOf(entry, key)).map(({ message }) => message)
  const turn = own.findLastIndex(message => ((message?.flags ?? 0) & STARTS_TURN) !== 0) + 1
  const tokens = own.reduce((all, message) => all + (message?.tokens ?? 0), 0)
  return { key, count: own.length, tokens, turn }
}

export function isOf({ nested }: { nested?: SessionKey | undefined }, key: SessionKey | undefined): boolean {
  if (nested === undefined || key === undefined) return nested === key
  return keyText(nested) === keyText(key)
}
