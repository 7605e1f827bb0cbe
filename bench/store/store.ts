// The store against ADK's DatabaseSessionService and against the raw driver, on one file system, in one run.
// npm run bench -- store [--json]
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startPostgres } from '../../test/support/postgres-server.js'
import { Report } from '../support/report.js'
import { benchAppend } from './append.js'
import { benchOpen } from './open.js'
import { benchPostgres } from './postgres.js'
import { benchSize } from './size.js'
import { benchWriters } from './writers.js'

const folder = mkdtempSync(join(tmpdir(), 'lango-bench-'))
const report = new Report('store')
const postgres = await startPostgres({ durable: true })
try {
  await benchAppend(report, folder)
  await benchOpen(report, folder)
  await benchWriters(report, folder)
  await benchSize(report, folder)
  await benchPostgres(report, postgres.url)
} finally {
  await postgres.stop()
  rmSync(folder, { recursive: true, force: true })
}
report.finish()
// ADK's service has no close(): its pool would keep the process running for minutes.
process.exit()
