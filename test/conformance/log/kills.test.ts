/** A real process that is killed after calls of the store; this process finishes its runs. */
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../../support/temporary-folder.js'
import type { StayingPlay } from './cut-child.js'
import { World } from './cut-harness.js'
import { LOG_DRIVERS, type OpenLog, openLog } from './drivers.js'
import { judge } from './judge.js'
import { play } from './play.js'
import { scenario } from './scenarios.js'

/** A scenario for each kind of call. */
const KILLS = {
  accept: 'a payment between answers',
  append: 'a payment between answers',
  pause: 'a question that is answered after the pause, twice',
  post: 'a question that is answered after the pause, twice',
  acquire: 'a question that is answered after the pause, twice',
  begin: 'two runs on one session',
  release: 'two runs on one session under one lease',
  endQueued: 'a queued run that is ended',
}

const CHILD = fileURLToPath(new URL('cut-child.ts', import.meta.url))

describe.each(LOG_DRIVERS)('a process that is killed in $name', driver => {
  let place: OpenLog
  beforeAll(async () => {
    place = await openLog(driver)
  })
  afterAll(() => place?.stop())

  test('after every kind of call loses nothing, does nothing twice, and its runs are continued at once', async () => {
    const { stores } = place
    const plays = await Promise.all(
      Object.entries(KILLS).map(async ([call, name]): Promise<StayingPlay> => {
        const { calls } = await play(stores, name)
        // The third append stores the call of a tool with an effect.
        return { name, id: randomUUID().slice(0, 8), call: call === 'append' ? 3 : calls.indexOf(call) + 1 }
      }),
    )
    const bankFile = join(await temporaryFolder(), 'bank')
    await writeFile(bankFile, '')
    expect(await killed(place.url, bankFile, plays)).toEqual(Object.keys(KILLS).sort())
    const payments = (await readFile(bankFile, 'utf8')).split('\n').filter(Boolean)
    for (const { name, id } of plays) {
      const bank = new Map<string, number>()
      for (const payment of payments.filter(each => each.includes(id)))
        bank.set(payment, (bank.get(payment) ?? 0) + 1)
      const world = new World(stores, scenario(name, id), { bank })
      await world.play()
      expect(await judge(world), name).toEqual([])
    }
  })
})

/** Starts a process, kills it when all its scenarios stay, and returns the calls after which they do. */
async function killed(url: string, bankFile: string, plays: readonly StayingPlay[]): Promise<string[]> {
  const args = ['--import', 'tsx', CHILD, url, bankFile, JSON.stringify(plays)]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  const ended = new Promise(resolve => child.on('close', resolve))
  const calls: string[] = []
  for await (const line of createInterface({ input: child.stdout })) {
    calls.push(line)
    if (calls.length === plays.length) child.kill('SIGKILL')
  }
  await ended
  return calls.sort()
}
