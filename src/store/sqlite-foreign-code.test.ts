import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { expect, onTestFinished, test } from 'vitest'
import { openStore } from './open-store.js'

test.each([
  ['trigger', `CREATE TRIGGER approve AFTER INSERT ON lango_sessions BEGIN DELETE FROM lango_entries; END`],
  ['trigger', `CREATE TRIGGER answer INSTEAD OF INSERT ON lango_messages_readable BEGIN SELECT 1; END`],
  ['view', `CREATE VIEW LANGO_other AS SELECT 1`],
  ['view', `CREATE VIEW lango_messages AS SELECT * FROM lango_entries`],
])('a SQLite file with a foreign %s is refused', async (type, sql) => {
  const folder = await mkdtemp(join(tmpdir(), 'lango-test-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'lango.db')
  const store = await openStore(`sqlite:${file}`)
  await store.close()
  const database = new DatabaseSync(file)
  database.exec('CREATE VIEW my_report AS SELECT count(*) FROM lango_messages_readable')
  await (await openStore(`sqlite:${file}`)).close()
  database.exec(sql)
  database.close()
  await expect(openStore(`sqlite:${file}`)).rejects.toThrow(
    new RegExp(`has the ${type} ".*Lango did not create`),
  )
})
