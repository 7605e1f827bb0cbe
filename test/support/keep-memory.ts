/**
 * Keeps the memory of a session until everything is observed: `keep-memory URL KEY`. Prints a line when it observes or
 * reflects, so that the parent can kill it there.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { silentLogger } from '../../src/logger.js'
import { MemoryKeeper } from '../../src/memory/memory-keeper.js'
import type { Observer } from '../../src/memory/observer.js'
import { openStore } from '../../src/store/open-store.js'

const [url = '', json = ''] = process.argv.slice(2)
const store = await openStore(url)

const note = (text: string, fromSeq: number, toSeq: number) => ({
  ...{ text, fromSeq, toSeq, time: fromSeq, kind: 'fact' as const, priority: 1 as const, origin: 'child' },
})

const observer: Observer = {
  async observe(messages) {
    const [from, to] = [messages[0]?.seq ?? 0, messages.at(-1)?.seq ?? 0]
    console.log(`observe ${from}`)
    await sleep(5)
    return { lines: [note(`range ${from} ${to} ${'detail '.repeat(20)}`, from, to)], refused: 0 }
  },
  async reflect(observations) {
    const [from, to] = [observations[0]?.fromSeq ?? 0, observations.at(-1)?.toSeq ?? 0]
    console.log(`reflect ${from}`)
    await sleep(5)
    return { lines: [note(`joined ${from} ${to}`, from, to)], refused: 0 }
  },
}

const keeper = new MemoryKeeper({ store, logger: silentLogger, observer, budgetTokens: 400, canRecall: true })
await keeper.work(JSON.parse(json), { all: true })
console.log('done')
await store.close()
