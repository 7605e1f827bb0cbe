import { openStore } from '../../src/entries/store.js'
import { type Report, summarize, timeEach } from '../support/report.js'
import { storedMessage } from './events.js'
import { openPeer } from './peer.js'
import { openRaw } from './raw.js'

const ROUNDS = 12
const BYTES = 600

/** Appends in turns (ours, raw, ADK, ours, …), so that a noisy moment hits all of them. */
export async function benchAppend(report: Report, folder: string): Promise<void> {
  const peer = await openPeer(`sqlite://${folder}/append-adk.db`, ['s'])
  for (const mode of ['FULL', 'NORMAL'] as const) {
    report.progress(`append, synchronous=${mode} …`)
    const key = { appName: 'bench', userId: 'user', sessionId: 's' }
    const store = await openStore(
      `sqlite:${folder}/append-${mode}.db${mode === 'NORMAL' ? '?sync=normal' : ''}`,
    )
    await store.createSession(key)
    const raw = openRaw(`${folder}/append-raw-${mode}.db`, mode)
    const samples = { ours: [] as number[], raw: [] as number[], adk: [] as number[] }
    for (let round = 0; round < ROUNDS; round++) {
      const at = (index: number) => round * 200 + index + (mode === 'NORMAL' ? 100_000 : 0)
      samples.ours.push(...(await timeEach(200, i => store.appendMessage(key, storedMessage(at(i), BYTES)))))
      samples.raw.push(...(await timeEach(200, i => raw.append(at(i), storedMessage(at(i), BYTES)))))
      if (mode === 'FULL') samples.adk.push(...(await timeEach(15, i => peer.append('s', at(i), BYTES))))
    }
    const [ours, yardstick] = [summarize(samples.ours), summarize(samples.raw)]
    report.atMost(
      `append ${mode} against a raw insert, median`,
      'µs',
      ours.median,
      yardstick.median,
      mode === 'FULL' ? 2 : 5,
    )
    report.atMost(`append ${mode} against a raw insert, p99`, 'µs', ours.p99, yardstick.p99)
    if (mode === 'FULL') {
      const adk = summarize(samples.adk)
      report.atLeast('append FULL against ADK, median', 'µs', ours.median, adk.median, 40)
      report.atLeast('append FULL against ADK, p99', 'µs', ours.p99, adk.p99)
    }
    raw.close()
    await store.close()
  }
}
