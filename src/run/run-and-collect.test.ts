import { expect, test } from 'vitest'
import { continued } from './run-and-collect.js'
import type { RunEvent } from './run-event.js'

type Lists = AsyncGenerator<readonly RunEvent[], void, undefined>

/** Lists with one event for each number; what happens to the generator is noted. */
async function* numbered(numbers: readonly number[], seen: string[] = []): Lists {
  try {
    for (const seq of numbers) yield [{ type: 'text-delta', seq } as RunEvent]
  } finally {
    seen.push('left')
  }
}

async function read(lists: AsyncIterable<readonly RunEvent[]>): Promise<number[]> {
  const found: number[] = []
  for await (const events of lists) found.push(...events.map(({ seq }) => seq))
  return found
}

test('an event stream that nothing follows ends with its list', async () => {
  expect(await read(continued(numbered([1, 2]), () => undefined))).toEqual([1, 2])
})

test('the rest of an event stream is asked for once, with the number of the last event', async () => {
  const asked: number[] = []
  const lists = continued(numbered([1, 2]), lastSeq => {
    asked.push(lastSeq)
    return numbered([3, 4])
  })
  expect(await read(lists)).toEqual([1, 2, 3, 4])
  expect(asked).toEqual([2])
  expect(await lists.next()).toEqual({ done: true, value: undefined })
})

test('the rest of an event stream may be empty', async () => {
  expect(await read(continued(numbered([1]), () => numbered([])))).toEqual([1])
})

test.each([1, 3])('leaving an event stream at event %i ends the generator that gave it', async last => {
  const seen = { first: [] as string[], second: [] as string[] }
  const lists = continued(numbered([1, 2], seen.first), () => numbered([3, 4], seen.second))
  for await (const [event] of lists) if (event?.seq === last) break
  expect(last === 1 ? seen.first : seen.second).toEqual(['left'])
  expect(await lists.next()).toMatchObject({ done: true })
})

test('a failure of an event stream reaches the reader', async () => {
  async function* failing(): Lists {
    yield [{ type: 'text-delta', seq: 1 } as RunEvent]
    throw new TypeError('no more')
  }
  await expect(read(continued(failing(), () => numbered([2])))).rejects.toThrow('no more')
})
