import { createPause } from './pause.js'

/** One page, and where the next one starts; without `next` it is the last. */
export interface Page<Item, Cursor> {
  items: readonly Item[]
  next?: Cursor | undefined
}

/** Reads page after page until there is no next one. Between pages other work of the process runs. */
export async function* readPages<Item, Cursor>(
  read: (cursor: Cursor | undefined) => Promise<Page<Item, Cursor>>,
): AsyncGenerator<readonly Item[], void, undefined> {
  const pause = createPause()
  let cursor: Cursor | undefined
  do {
    const { items, next } = await read(cursor)
    yield items
    cursor = next
    // A database inside the process answers without a turn of the event loop.
    await pause()
  } while (cursor !== undefined)
}
