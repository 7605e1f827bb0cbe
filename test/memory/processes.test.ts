import { expect, onTestFinished, test } from 'vitest'
import type { StoredObservation } from '../../src/session/session-memory.js'
import { openStore } from '../../src/store/open-store.js'
import { newKey, SHARED_DRIVERS } from '../conformance/store/drivers.js'
import { runScript } from '../support/child.js'
import { longUnless } from '../support/tiers.js'

const MESSAGES = 300

/** What was observed, as ranges of messages. */
function ranges(observations: readonly StoredObservation[]): number[][] {
  return observations
    .filter(({ text }) => text.startsWith('range '))
    .map(({ fromSeq, toSeq }) => [fromSeq, toSeq])
    .sort(([one = 0], [other = 0]) => one - other)
}

for (const driver of SHARED_DRIVERS) {
  test(
    `processes that keep one memory in ${driver.name} are killed in observation and in reflection, and two at once: nothing is half done, nothing twice`,
    longUnless(driver.name === 'sqlite'),
    async () => {
      const started = await driver.start()
      const key = newKey()
      const store = await openStore(started.url)
      onTestFinished(async () => {
        await store.close()
        await started.stop()
      })
      await store.createSession(key)
      const said = (_: unknown, index: number) => ({
        ...{ role: 'user', content: `Message ${index} about topic${index} and more`, timestamp: index },
      })
      await store.appendMessages(key, Array.from({ length: MESSAGES }, said))
      const args = [started.url, JSON.stringify(key)]
      for (const lines of [1, 3, 5, 8]) {
        const child = runScript('keep-memory.ts', args)
        await child.untilLines(lines)
        child.process.kill('SIGKILL')
        await child.ended
        check(await observed(), (await store.memory.progress(key))?.observedSeq ?? 0)
      }
      // Two at once, each killed while it reflects.
      const reflecting = [runScript('keep-memory.ts', args), runScript('keep-memory.ts', args)]
      for (const child of reflecting) {
        const isOver = child.ended.then(() => true)
        let isKilled = false
        while (!isKilled && !child.lines.some(line => line.startsWith('reflect'))) {
          isKilled = await Promise.race([isOver, child.untilLines(child.lines.length + 1).then(() => false)])
        }
        child.process.kill('SIGKILL')
        await child.ended
        check(await observed(), (await store.memory.progress(key))?.observedSeq ?? 0)
      }
      const children = [runScript('keep-memory.ts', args), runScript('keep-memory.ts', args)]
      for (const child of children) {
        await child.ended
        expect(child.errors()).toBe('')
        expect(child.lines.at(-1)).toBe('done')
      }
      const progress = await store.memory.progress(key)
      // The last message began the current turn.
      expect(progress).toMatchObject({ observedSeq: MESSAGES - 1, indexedSeq: MESSAGES })
      const all = await observed()
      check(all, MESSAGES - 1)
      expect(all.some(({ text }) => text.startsWith('joined '))).toBe(true)

      function observed(): Promise<StoredObservation[]> {
        return store.memory.readObservations(key)
      }

      /** Every message up to the last observed one in exactly one range, and no successor that does not exist. */
      function check(observations: readonly StoredObservation[], observedSeq: number): void {
        let next = 1
        for (const [from = 0, to = 0] of ranges(observations)) {
          expect(from).toBe(next)
          next = to + 1
        }
        expect(next).toBe(observedSeq + 1)
        const numbers = new Set(observations.map(({ number }) => number))
        expect([...numbers]).toEqual(observations.map((_, index) => index + 1))
        for (const { supersededBy } of observations)
          if (supersededBy !== undefined) expect(numbers).toContain(supersededBy)
      }
    },
  )
}
