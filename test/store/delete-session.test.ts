import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { deleteSessionOf } from '../../src/session/delete-session.js'
import { checkedStore } from '../../src/store/checked-store.js'
import { sql } from '../../src/store/sql-database.js'
import { openSqlStore } from '../../src/store/sql-store.js'
import { openSqlite } from '../../src/store/sqlite.js'
import { temporaryFolder } from '../support/temporary-folder.js'

test('deletes a session whose last message is damaged', async () => {
  const database = await openSqlite({ path: join(await temporaryFolder(), 'lango.db'), sync: 'normal' })
  const store = checkedStore(await openSqlStore(database))
  onTestFinished(() => store.close())
  const key = { appName: 'app', userId: 'ann', sessionId: 's1' }
  await store.createSession(key, { 'user:name': 'Ann' })
  await store.appendMessage(key, { id: 'm1', role: 'user', author: 'user', content: 'hello', timestamp: 1 })
  await database.run(sql("UPDATE lango_entries SET extra = '{'"))
  await expect(store.loadSession(key)).rejects.toMatchObject({ code: 'store-corrupt' })
  expect(await deleteSessionOf(store, key)).toMatchObject({ isDeleted: true })
  expect(await store.describeSession(key)).toBeUndefined()
})
