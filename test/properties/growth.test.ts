import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { PIECES, READERS } from './text-readers.js'

// Text of users, models, tools and servers is read in linear time, whatever it is. Here each reader gets texts that
// quadratic work would not finish before the time limit of the test; `npm run bench -- growth` measures the growth.

const LENGTH = 200_000
/** Those that measure the width of each character take a hundred times as long for one: less shows as much. */
const BY_CHARACTER = {
  names: ['textWidth', 'fitText', 'padText', 'wrapped', 'wrapped, wide'],
  length: 50_000,
}

test.each(Object.entries(READERS))('%s ends with any text', { timeout: 60_000 }, async (name, read) => {
  const length = BY_CHARACTER.names.includes(name) ? BY_CHARACTER.length : LENGTH
  for (const piece of PIECES) {
    const text = piece.repeat(length / piece.length)
    // A refusal is an answer too.
    await Promise.resolve()
      .then(() => read(text))
      .catch(() => undefined)
  }
})

test('every exported function of base/ with a text as its argument is in the list', () => {
  const folder = new URL('../../src/base/', import.meta.url)
  const found = readdirSync(folder)
    .filter(name => !name.endsWith('.test.ts'))
    .flatMap(name => {
      const code = readFileSync(new URL(name, folder), 'utf8')
      return [...code.matchAll(/^export function (\w+)\(\w+: string\b/gm)].map(([, exported]) => exported)
    })
  expect(found.length).toBeGreaterThan(5)
  expect(Object.keys(READERS)).toEqual(expect.arrayContaining(found))
})
