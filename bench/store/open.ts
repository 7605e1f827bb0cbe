import { DatabaseSync } from '@photostructure/sqlite'
import { openStore } from '../../src/entries/store.js'
import { type Report, summarize, timeEach } from '../support/report.js'
import { storedMessage } from './events.js'
import { openPeer } from './peer.js'

const SIZES = [10, 100, 1000, 5000, 100_000] as const
const BYTES = 600

/** Opens sessions of growing length with the default budget, all in one database. */
export async function benchOpen(report: Report, folder: string): Promise<void> {
  report.progress('filling sessions of 10 … 100,000 messages …')
  const store = await openStore(`sqlite:${folder}/open.db?sync=normal`)
  const key = (size: number) => ({ appName: 'bench', userId: 'user', sessionId: `s${size}` })
  for (const size of SIZES) {
    await store.createSession(key(size))
    for (let index = 0; index < size; index++)
      await store.appendMessage(key(size), storedMessage(index, BYTES))
  }
  const peer = await openPeer(
    `sqlite://${folder}/open-adk.db`,
    SIZES.map(size => `s${size}`),
  )
  for (const size of SIZES) await peer.append(`s${size}`, size * 1_000_000, BYTES)
  for (const size of SIZES) multiplyPeerEvents(`${folder}/open-adk.db`, `s${size}`, size)

  const ours = new Map<number, number>()
  for (const size of SIZES) {
    report.progress(`open ${size} …`)
    const mine: number[] = []
    const theirs: number[] = []
    for (let round = 0; round < 5; round++) {
      mine.push(...(await timeEach(20, () => store.loadSession(key(size)))))
      theirs.push(...(await timeEach(size > 5000 ? 1 : 3, () => peer.open(`s${size}`))))
    }
    const [lango, adk] = [summarize(mine), summarize(theirs)]
    ours.set(size, lango.median)
    report.atLeast(
      `open ${size} messages against ADK, median`,
      'µs',
      lango.median,
      adk.median,
      size === 5000 ? 100 : undefined,
    )
    report.atLeast(`open ${size} messages against ADK, p99`, 'µs', lango.p99, adk.p99)
  }
  report.atMost('open 100,000 against open 1,000', 'µs', ours.get(100_000) ?? 0, ours.get(1000) ?? 0, 1.5)
  await store.close()
}

/** Appending 100,000 events through ADK would take half an hour; its table is filled from one real row. */
function multiplyPeerEvents(file: string, sessionId: string, count: number): void {
  const database = new DatabaseSync(file)
  database
    .prepare(
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
       INSERT INTO events (id, app_name, user_id, session_id, invocation_id, timestamp, event_data)
       SELECT 'x' || i, app_name, user_id, session_id, invocation_id, timestamp + i, event_data
       FROM events, n WHERE session_id = ? AND id LIKE 'e%'`,
    )
    .run(count - 1, sessionId)
  database.close()
}
