import pg from 'pg'
import { openStore } from '../../src/entries/store.js'
import { type Report, summarize, timeEach } from '../support/report.js'
import { storedMessage } from './events.js'
import { openPeer } from './peer.js'

/** Appends to one and to 32 sessions at once, each against ADK's service on the same server. */
export async function benchPostgres(report: Report, url: string): Promise<void> {
  await createPeerDatabase(url)
  for (const count of [1, 32]) {
    report.progress(`PostgreSQL, ${count} session(s) …`)
    const ids = Array.from({ length: count }, (_, index) => `c${count}-${index}`)
    const store = await openStore(url)
    for (const sessionId of ids) await store.createSession({ appName: 'bench', userId: 'user', sessionId })
    const ours = await storm(ids, count === 1 ? 600 : 60, (sessionId, index) =>
      store.appendMessage({ appName: 'bench', userId: 'user', sessionId }, storedMessage(index, 600)),
    )
    await store.close()
    const peer = await openPeer(peerUrl(url), ids)
    const adk = await storm(ids, count === 1 ? 60 : 8, (sessionId, index) =>
      peer.append(sessionId, index, 600),
    )
    const goal = count === 32 ? 10 : undefined
    report.atLeast(
      `PostgreSQL append, ${count} session(s), per append`,
      'µs',
      ours.perAppend,
      adk.perAppend,
      goal,
    )
    report.atLeast(`PostgreSQL append, ${count} session(s), median latency`, 'µs', ours.median, adk.median)
    report.atLeast(`PostgreSQL append, ${count} session(s), p99 latency`, 'µs', ours.p99, adk.p99)
  }
}

/** ADK's tables get a database of their own on the same server. */
function peerUrl(url: string): string {
  return url.replace(/\/[^/]*$/, '/adk_peer')
}

async function createPeerDatabase(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('CREATE DATABASE adk_peer')
  await client.end()
}

async function storm(
  ids: readonly string[],
  each: number,
  append: (id: string, index: number) => Promise<unknown>,
) {
  const started = performance.now()
  const samples = await Promise.all(ids.map(id => timeEach(each, index => append(id, index))))
  const elapsed = (performance.now() - started) * 1000
  return { perAppend: elapsed / (ids.length * each), ...summarize(samples.flat()) }
}
