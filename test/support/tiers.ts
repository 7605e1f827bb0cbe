/**
 * Tiers of the suite. A test without a tag runs in `npm test`; one with the tag `long` runs in `npm run test:long`, which
 * `.ci/run` calls after it. A test belongs to the first tier in which it can fail: mark as long what repeats a rule that
 * a test without the tag guards, on more seeds, cuts, kinds or stores. `docs/testing.md` lists what is where.
 *
 * A file whose tests are all long says `@module-tag long` in its first comment instead.
 */
export const LONG = { tags: ['long'] }

/** Options of a test that takes many minutes: `npm run proof`. */
export const PROOF = { tags: ['proof'] }

/** Options of a test that is one row of a table: the rows for which `isShort` holds stay in `npm test`. */
export function longUnless(isShort: boolean): { tags: string[] } {
  return { tags: isShort ? [] : ['long'] }
}
