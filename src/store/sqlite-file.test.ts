import { existsSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { describe, expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../../test/support/temporary-folder.js'
import { errcodeOf, FileGuard, type FileView, isBusy, isDuplicate, viewOf } from './sqlite-file.js'

test.each(['all', 'get', 'run'] as const)(
  'a lock of SQLite is recognised in an error of %s()',
  async method => {
    const file = join(await temporaryFolder(), 'locked.db')
    const holder = new DatabaseSync(file, { timeout: 0 })
    const waiter = new DatabaseSync(file, { timeout: 0 })
    onTestFinished(() => {
      holder.close()
      waiter.close()
    })
    const begin = waiter.prepare('BEGIN IMMEDIATE')
    holder.exec('BEGIN EXCLUSIVE')
    let error: unknown
    try {
      begin[method]()
    } catch (thrown) {
      error = thrown
    }
    expect(errcodeOf(error)).toBe(5)
    expect(isBusy(error)).toBe(true)
  },
)

test.each(['all', 'get', 'run'] as const)(
  'a duplicate key of SQLite is recognised in an error of %s()',
  method => {
    const database = new DatabaseSync(':memory:')
    onTestFinished(() => database.close())
    database.exec('CREATE TABLE notes (text TEXT UNIQUE)')
    const insert = database.prepare("INSERT INTO notes VALUES ('once')")
    insert.run()
    let error: unknown
    try {
      insert[method]()
    } catch (thrown) {
      error = thrown
    }
    expect(isDuplicate(error)).toBe(true)
  },
)

/** A connection and another one of the same file, which has a log with a few frames. */
async function openTwice({ journal = 'WAL' } = {}) {
  const file = join(await temporaryFolder(), 'shared.db')
  const [connection, other] = [new DatabaseSync(file, { timeout: 0 }), new DatabaseSync(file, { timeout: 0 })]
  onTestFinished(() => {
    connection.close()
    other.close()
  })
  other.exec(`PRAGMA journal_mode = ${journal}; CREATE TABLE notes (text)`)
  const write = (rows = 1) => {
    for (let row = 0; row < rows; row++) other.exec(`INSERT INTO notes VALUES ('${'x'.repeat(5000)}')`)
  }
  write(3)
  const view = viewOf(connection)
  return { file, log: `${file}-wal`, connection, other, write, view }
}

/** Runs each of the steps where it is placed: 0 is before the guard asks SQLite for the first time, 1 after, and so on. */
function between(view: FileView, steps: Map<number, () => void>): FileView {
  let place = 0
  const step = () => steps.get(place++)?.()
  return {
    ...view,
    state() {
      step()
      const state = view.state()
      step()
      return state
    },
  }
}

describe('files that SQLite itself truncates', () => {
  const places = [0, 1, 2, 3]
  test.each(
    places.flatMap(truncated => places.filter(at => at >= truncated).map(written => [truncated, written])),
  )(
    'a log that SQLite truncates at step %i of a check and writes at step %i passes the check',
    async (truncated, written) => {
      const { file, log, other, write, view } = await openTwice()
      const steps = new Map<number, () => void>()
      const guard = new FileGuard(file, between(view, steps))
      const addStep = (place: number, step: () => void) => {
        const earlier = steps.get(place)
        steps.set(place, () => {
          earlier?.()
          step()
        })
      }
      // The first check asked once, which took two places.
      addStep(2 + Number(truncated), () => other.exec('PRAGMA wal_checkpoint(TRUNCATE)'))
      addStep(2 + Number(written), () => write())
      guard.check()
      guard.check()
      write()
      guard.check()
      truncateSync(log, 0)
      expect(() => guard.check()).toThrow('shared.db-wal was truncated')
    },
  )

  test('a check in a transaction does not examine the log of SQLite, and the next one does', async () => {
    const { file, log, connection, other, write, view } = await openTwice()
    const guard = new FileGuard(file, view)
    other.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    connection.exec('BEGIN IMMEDIATE')
    guard.check()
    connection.exec('ROLLBACK')
    write()
    truncateSync(log, 0)
    expect(() => guard.check()).toThrow('shared.db-wal was truncated')
  })

  test('a log of SQLite refilled to its former number of frames during a check passes it', async () => {
    const { file, other, view } = await openTwice()
    // One page, and so one frame.
    const writeFrame = () => other.exec('PRAGMA user_version = 7')
    other.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    writeFrame()
    const steps = new Map<number, () => void>()
    const guard = new FileGuard(file, between(view, steps))
    steps.set(3, () => other.exec('PRAGMA wal_checkpoint(TRUNCATE)'))
    steps.set(4, writeFrame)
    guard.check()
    expect(view.state()?.frames).toBe(1)
  })

  test('a SQLite file that was vacuumed, and has grown in its log since, passes the check', async () => {
    const { file, other, write, view } = await openTwice()
    write(50)
    other.exec('CREATE TABLE kept AS SELECT * FROM notes LIMIT 3')
    other.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    const guard = new FileGuard(file, view)
    const { size } = statSync(file)
    other.exec('DELETE FROM notes; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)')
    write(10)
    expect(statSync(file).size).toBeLessThan(size)
    expect(view.pages() * view.pageSize).toBeGreaterThan(statSync(file).size)
    guard.check()
    truncateSync(file, view.pageSize)
    expect(() => guard.check()).toThrow('shared.db was truncated')
  })

  test('a log that another SQLite connection creates and deletes is not reported as missing', async () => {
    const { file, log, other, write, view } = await openTwice({ journal: 'DELETE' })
    const toLog = () => other.exec('PRAGMA journal_mode = WAL; PRAGMA user_version = 7')
    const guard = new FileGuard(file, between(view, new Map([[1, toLog]])))
    expect(existsSync(log)).toBe(true)
    other.exec('PRAGMA journal_mode = DELETE')
    expect(existsSync(log)).toBe(false)
    guard.check()
    write()
    guard.check()
  })
})

test.each([
  ['to nothing', () => 0],
  ['by one frame', (size: number, frame: number) => size - frame],
])('a log of SQLite that was truncated %s and then written to is reported', async (_, lengthOf) => {
  const { file, log, write, view } = await openTwice()
  const guard = new FileGuard(file, view)
  const { size } = statSync(log)
  truncateSync(log, lengthOf(size, 24 + view.pageSize))
  write()
  expect(statSync(log).size).toBeGreaterThan(size)
  expect(() => guard.check()).toThrow('shared.db-wal was truncated')
})
