import { statSync } from 'node:fs'
import { openStore } from '../../src/entries/store.js'
import type { Report } from '../support/report.js'
import { adkEvent, storedMessage } from './events.js'

const COUNT = 1000

/** Bytes on disk per byte of the events' JSON. */
export async function benchSize(report: Report, folder: string): Promise<void> {
  for (const [bytes, limit] of [
    [200, 2],
    [700, 2],
    [2000, 1.5],
    [3500, 1.5],
    [9000, 1.5],
  ] as const) {
    report.progress(`database size with events of ${bytes} bytes of text …`)
    const file = `${folder}/size-${bytes}.db`
    const store = await openStore(`sqlite:${file}?sync=normal`)
    const key = { appName: 'bench', userId: 'user', sessionId: 's' }
    await store.createSession(key)
    let json = 0
    for (let index = 0; index < COUNT; index++) {
      json += Buffer.byteLength(JSON.stringify(adkEvent(index, bytes)))
      await store.appendMessage(key, storedMessage(index, bytes))
    }
    await store.close()
    report.atMost(
      `database size, ${bytes} bytes of text per event`,
      'kB',
      statSync(file).size / 1000,
      json / 1000,
      limit,
    )
  }
}
