import { expect, test } from 'vitest'
import { atOnce, createPause, inSlices, inTurn, noteConnection, Share, type Steps, Turns } from './pause.js'

test('timers fire while a loop of resolved promises pauses', async () => {
  const pause = createPause(1)
  let fired = false
  setTimeout(() => {
    fired = true
  }, 0)
  for (let round = 0; !fired && round < 10_000_000; round += 1) await pause()
  expect(fired).toBe(true)
})

test('a pause within its interval does not wait for the event loop', async () => {
  const pause = createPause(60_000)
  let turned = false
  setImmediate(() => {
    turned = true
  })
  for (let round = 0; round < 1000; round += 1) await pause()
  expect(turned).toBe(false)
})

test('work in steps has the same result at once and in slices, and timers fire between slices', async () => {
  let fired = 0
  let steps = 0
  function* work(until: () => boolean): Steps<string> {
    for (steps = 0; !until() && steps < 10_000_000; steps += 1) yield
    return 'done'
  }
  expect(atOnce(work(() => steps === 3))).toBe('done')
  setTimeout(() => {
    fired = 1
  }, 0)
  expect(await inSlices(work(() => fired === 1))).toBe('done')
  expect(fired).toBe(1)
})

test('work in turn begins at once, and again after its end', async () => {
  const seen: string[] = []
  const work = inTurn(async () => {
    seen.push('begin')
    await new Promise(setImmediate)
    seen.push('end')
  })
  const both = Promise.all([work(), work()])
  expect(seen).toEqual(['begin'])
  await both
  expect(seen).toEqual(['begin', 'end', 'begin', 'end'])
})

test('those who wait for a turn are resumed in order, and the event loop turns after 20 ms of their work', async () => {
  const turns = new Turns()
  const seen: (string | number)[] = []
  const work = async (name: number) => {
    await turns.wait()
    seen.push(name)
    spin(21)
    setImmediate(() => seen.push('turn'))
  }
  await Promise.all([work(1), work(2), work(3)])
  expect(seen.filter(each => each !== 'turn')).toEqual([1, 2, 3])
  expect(seen.indexOf('turn')).toBeLessThan(seen.indexOf(3))
})

test('one that waits during a turn is resumed in a later one', async () => {
  const turns = new Turns(new Share())
  let turned = false
  await turns.wait()
  setImmediate(() => {
    turned = true
  })
  await turns.wait()
  expect(turned).toBe(true)
})

test('those who wait get their turn though each turn of the event loop accepts a connection', async () => {
  const turns = new Turns(new Share())
  let isOver = false
  const accept = () => {
    noteConnection()
    if (!isOver) setImmediate(accept)
  }
  accept()
  for (let round = 0; round < 3; round += 1) await turns.wait()
  isOver = true
})

test('work rests between its turns while each turn accepts a connection', () => {
  const share = new Share()
  share.mayBegin()
  share.ended()
  expect(share.mayBegin()).toBe(true)
  const ended = performance.now()
  share.ended()
  noteConnection()
  expect(share.mayBegin() && performance.now() - ended < 10).toBe(false)
  spin(11)
  noteConnection()
  expect(share.mayBegin()).toBe(true)
})

test('work that waited begins as soon as no further connection is accepted', () => {
  const share = new Share()
  share.ended()
  noteConnection()
  share.mayBegin()
  expect(share.mayBegin()).toBe(true)
})

/** Keeps the thread busy. */
function spin(ms: number): void {
  const until = performance.now() + ms
  while (performance.now() < until);
}
