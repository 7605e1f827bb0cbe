import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../../test/support/temporary-folder.js'
import { SearchableSqlite } from './sqlite-search.js'

async function opened(limits: { longMs?: number; largeBytes?: number } = { longMs: -1 }) {
  const folder = await temporaryFolder()
  const file = join(folder, 'a.db')
  const connection = new DatabaseSync(file, { timeout: 0 })
  connection.exec('PRAGMA journal_mode = WAL; CREATE TABLE words (word TEXT, n INTEGER)')
  return { database: new SearchableSqlite([connection, file], limits), folder }
}

const COUNT = {
  text: 'WITH RECURSIVE up(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up WHERE n < ?) SELECT max(n) AS n FROM up',
  parameters: [500_000],
}

/** Blocked, the loop would turn a few times before the statement and a few times after it. */
const MOST_BLOCKED = 50

/** How often the event loop turned while the statement ran. */
async function searchedBeside(database: SearchableSqlite) {
  let turns = 0
  let isOver = false
  const counted = database.search(COUNT).finally(() => {
    isOver = true
  })
  while (!isOver) {
    await new Promise(resolve => setImmediate(resolve))
    turns += 1
  }
  return { rows: await counted, turns }
}

test('the first search of a large SQLite file leaves the event loop free; that of a small one runs in the process', async () => {
  const large = await opened({ largeBytes: 1 })
  expect((await searchedBeside(large.database)).turns).toBeGreaterThan(MOST_BLOCKED)
  await large.database.close()
  const small = await opened({})
  expect((await searchedBeside(small.database)).turns).toBeLessThan(MOST_BLOCKED)
  await small.database.close()
})

test('after a search of SQLite that took long, the next ones leave the event loop free, and see earlier writes', async () => {
  const { database, folder } = await opened()
  await database.search({ text: 'SELECT 1 AS one', parameters: [] })
  await database.run({ text: 'INSERT INTO words VALUES (?, ?)', parameters: ['roof', 7] })
  const all = { text: 'SELECT word, n FROM words WHERE word = ?', parameters: ['roof'] }
  expect(await database.search(all)).toEqual([{ word: 'roof', n: 7 }])
  const { rows, turns } = await searchedBeside(database)
  expect(rows).toEqual([{ n: 500_000 }])
  expect(turns).toBeGreaterThan(MOST_BLOCKED)
  await database.close()
  expect(readdirSync(folder)).toContain('a.db')
})

test('a statement that the search thread cannot run is run without it, and reports its own error', async () => {
  const { database } = await opened()
  await database.search({ text: 'SELECT 1 AS one', parameters: [] })
  await expect(database.search({ text: 'SELECT nothing FROM nowhere', parameters: [] })).rejects.toThrow(
    /SQLite failed/,
  )
  expect(await database.search({ text: 'SELECT 2 AS two', parameters: [] })).toEqual([{ two: 2 }])
  await database.close()
  await expect(database.search(COUNT)).rejects.toMatchObject({ code: 'store-unavailable' })
})
