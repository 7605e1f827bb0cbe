import { expect, test } from 'vitest'
import { readPages } from './read-pages.js'

const PAGES = new Map<string | undefined, { items: number[]; next?: string }>([
  [undefined, { items: [1, 2], next: 'b' }],
  ['b', { items: [], next: 'c' }],
  ['c', { items: [3] }],
])

function reader() {
  const cursors: (string | undefined)[] = []
  const read = async (cursor: string | undefined) => {
    cursors.push(cursor)
    return PAGES.get(cursor) ?? { items: [] }
  }
  return { cursors, read }
}

test('readPages reads every page in turn, the empty one included, until there is no next one', async () => {
  const { cursors, read } = reader()
  const pages: (readonly number[])[] = []
  for await (const page of readPages(read)) pages.push(page)
  expect(pages).toEqual([[1, 2], [], [3]])
  expect(cursors).toEqual([undefined, 'b', 'c'])
})

test('readPages reads nothing before it is asked for, and nothing after the reader has stopped', async () => {
  const { cursors, read } = reader()
  const pages = readPages(read)
  expect(cursors).toEqual([])
  for await (const page of pages) {
    expect(page).toEqual([1, 2])
    break
  }
  expect(cursors).toEqual([undefined])
})

test('a page that cannot be read fails the iteration', async () => {
  const pages = readPages<number, string>(async () => {
    throw new TypeError('no page')
  })
  await expect(pages.next()).rejects.toThrow('no page')
})

test('readPages takes 0 as a cursor', async () => {
  const asked: (number | undefined)[] = []
  const pages = readPages<string, number>(async cursor => {
    asked.push(cursor)
    return cursor === undefined ? { items: ['a'], next: 0 } : { items: ['b'] }
  })
  for await (const page of pages) expect(page).toHaveLength(1)
  expect(asked).toEqual([undefined, 0])
})
