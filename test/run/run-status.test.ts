// The control of what the simulations check at every look: rows and entries of runs agree.
import { expect, test } from 'vitest'
import { checkStatuses } from '../../simulate/check.js'
import { createRuntime } from '../../src/index.js'
import { sql } from '../../src/store/sql-database.js'
import { openDatabase, SHARED_DRIVERS } from '../conformance/store/drivers.js'

test.each(SHARED_DRIVERS)('a row of a run in $name that differs from its entries is found', async driver => {
  const { url, stop } = await driver.startEmpty()
  const runtime = await createRuntime({ store: url, agent: { name: 'clerk', model: 'demo/demo' } })
  const { runId } = await runtime.runAndCollect({ userId: 'u', sessionId: 's', text: 'Hello' })
  const database = await openDatabase(url)
  try {
    expect(await checkStatuses(database)).toEqual([])
    await database.run(sql("UPDATE lango_runs SET state = 'running', attempt = 2 WHERE run_id = ?", runId))
    expect(await checkStatuses(database)).toEqual([
      expect.objectContaining({ kind: 'false', runId, detail: expect.stringContaining('"attempt":2') }),
    ])
    await database.run(sql("UPDATE lango_runs SET state = 'finished', finish_reason = 'error'"))
    expect(await checkStatuses(database)).toHaveLength(1)
  } finally {
    await database.close()
    await runtime.close()
    await stop()
  }
})
