/** Ways to plant a defect in a store. Each says how often it had something to change. */
import type { LogStore } from '../../../src/session/log-store.js'
import type { SessionKey } from '../../../src/session/message.js'
import { WriteNumbers } from '../../../src/store/log/write-numbers.js'
import { type SqlDatabase, type SqlValue, type Statement, sql } from '../../../src/store/sql-database.js'
import { over, type Stores } from './cut-harness.js'
import { setSession } from './drivers.js'
import { nextAction } from './miniature-agent.js'

/** A defect below the log, or in the log itself. */
export interface Defect {
  /** The database of a broken store. */
  database?(database: SqlDatabase): SqlDatabase
  /** A broken store over its database. */
  log?(log: LogStore, database: SqlDatabase): LogStore
  /** A statement that creates a table. */
  schema?(text: string): string
  /** A broken agent. */
  readonly next?: NonNullable<Stores['next']>
  /** Breaks what all stores of this process share. Returns what repairs it. */
  plant?(): () => void
  /** Is called when a process has crashed. */
  crashed?(key: SessionKey, database: SqlDatabase): Promise<void>
  /** Counts what was changed. */
  readonly changed: { count: number }
}

/** Rewrites the texts of statements. The number of parameters stays the same. */
export function rewrite(pattern: RegExp, replacement: string): Defect {
  const changed = { count: 0 }
  const text = (original: string) => {
    const rewritten = original.replace(pattern, replacement)
    if (rewritten !== original) changed.count += 1
    if (places(rewritten) !== places(original)) throw new TypeError(`other parameters: ${rewritten}`)
    return rewritten
  }
  return {
    changed,
    database: database => withStatements(database, each => ({ ...each, text: text(each.text) })),
  }
}

/** Rewrites the texts of batches that have a statement of some kind. */
export function rewriteWith(has: RegExp, pattern: RegExp, replacement: string): Defect {
  const { changed, database } = rewrite(pattern, replacement)
  return {
    changed,
    database: base => {
      const broken = database?.(base) ?? base
      return over(base, {
        batch: statements =>
          (statements.some(({ text }) => has.test(text)) ? broken : base).batch(statements),
      })
    },
  }
}

/** Replaces a method of the class that numbers writes. */
export function renumber<Name extends 'has' | 'next' | 'set' | 'inTurn'>(
  name: Name,
  member: (original: WriteNumbers[Name]) => WriteNumbers[Name],
): Defect {
  const changed = { count: 0 }
  const plant = () => {
    const original = WriteNumbers.prototype[name]
    const broken = member(original) as (...parameters: unknown[]) => unknown
    const counting = function (this: WriteNumbers, ...parameters: unknown[]) {
      changed.count += 1
      return Reflect.apply(broken, this, parameters)
    }
    Object.assign(WriteNumbers.prototype, { [name]: counting })
    return () => void Object.assign(WriteNumbers.prototype, { [name]: original })
  }
  return { changed, plant }
}

/** Two defects of databases, or two of the numbers of writes. */
export function both(one: Defect, other: Defect): Defect {
  const database = (base: SqlDatabase): SqlDatabase => {
    const broken = one.database?.(base) ?? base
    return other.database?.(broken) ?? broken
  }
  return {
    database,
    plant() {
      const repairs = [one.plant?.(), other.plant?.()]
      return () => {
        for (const repair of repairs) repair?.()
      }
    },
    changed: {
      get count() {
        return one.changed.count + other.changed.count
      },
    },
  }
}

/** Rewrites the statements that create the tables. */
export function recreate(pattern: RegExp, replacement: string): Defect {
  const changed = { count: 0 }
  const schema = (text: string) => {
    if (pattern.test(text)) changed.count += 1
    return text.replace(pattern, replacement)
  }
  return { changed, schema }
}

function places(text: string): number {
  return text.split('?').length
}

/** Changes a parameter of the statements that match. */
export function reparameter(pattern: RegExp, change: (value: SqlValue) => SqlValue): Defect {
  const changed = { count: 0 }
  const parameter = (value: SqlValue) => {
    const other = change(value)
    if (other !== value) changed.count += 1
    return other
  }
  const statement = (each: Statement) =>
    pattern.test(each.text) ? { ...each, parameters: each.parameters.map(parameter) } : each
  return { changed, database: database => withStatements(database, statement) }
}

function withStatements(database: SqlDatabase, change: (statement: Statement) => Statement): SqlDatabase {
  return over(database, {
    batch: statements => database.batch(statements.map(change)),
    run: statement => database.run(change(statement)),
  })
}

/** Sends the statements of a write one by one, each in a transaction of its own. */
export function split(): Defect {
  const changed = { count: 0 }
  const database = (base: SqlDatabase) =>
    over(base, {
      async batch(statements) {
        changed.count += 1
        const rows = []
        for (const { joining: _, ...statement } of statements) rows.push(await base.run(statement))
        return rows
      },
    })
  return { changed, database }
}

/** Replaces a member of the store. */
export function replace<Name extends keyof LogStore>(
  name: Name,
  member: (log: LogStore, database: SqlDatabase) => LogStore[Name],
): Defect {
  const changed = { count: 0 }
  const log = (base: LogStore, database: SqlDatabase): LogStore => {
    const broken = member(base, database)
    return new Proxy(base, {
      get(target, asked) {
        if (asked === name) changed.count += 1
        const found = asked === name ? broken : (Reflect.get(target, asked) as unknown)
        return typeof found === 'function' ? found.bind(target) : found
      },
    })
  }
  return { changed, log }
}

/** Makes calls of a tool again whose outcome is unknown. */
export function repeatCalls(): Defect {
  const changed = { count: 0 }
  return {
    changed,
    next(view) {
      const openCalls = view.openCalls.map(call => ({ ...call, attempt: view.attempts }))
      if (view.openCalls.some(({ attempt }) => attempt !== view.attempts)) changed.count += 1
      return nextAction({ ...view, openCalls })
    },
  }
}

/** Takes the last entry back when a process crashes. */
export function loseLast(): Defect {
  const changed = { count: 0 }
  return {
    changed,
    async crashed(key, database) {
      changed.count += 1
      const last = 'seq = (SELECT s.entry_count FROM lango_sessions s WHERE s.pk = session_pk)'
      const ofApp = 'session_pk IN (SELECT pk FROM lango_sessions WHERE app_name = ?)'
      await database.run(sql(`DELETE FROM lango_entries WHERE ${last} AND ${ofApp}`, key.appName))
      await setSession(database, key, 'entry_count = entry_count - 1, message_count = message_count - 1')
    },
  }
}
