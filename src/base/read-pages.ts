/** One page, and where the next one starts; without `next` it is the last. */
export interface Page<Item, Cursor> {
  items: readonly Item[]
  next?: Cursor | undefined
}

/** Reads page after page until there is no next one. */
export async function* readPages<Item, Cursor>(
  read: (cursor: Cursor | undefined) => Promise<Page<Item, Cursor>>,
): AsyncGenerator<readonly Item[], void, undefined> {
  let cursor: Cursor | undefined
  do {
    const { items, next } = await read(cursor)
    yield items
    cursor = next
  } while (cursor !== undefined)
}
