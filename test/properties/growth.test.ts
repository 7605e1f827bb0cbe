import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { LONG } from '../support/tiers.js'
import { PIECES, READERS } from './text-readers.js'

// Text of users, models, tools and servers is read in linear time, whatever it is. Here each reader gets texts that
// quadratic work would not finish before the time limit of the test; `npm run bench -- growth` measures the growth.

const LENGTH = 200_000
/** Those that measure the width of each character take a hundred times as long for one: less shows as much. */
const BY_CHARACTER = {
  names: ['textWidth', 'fitText', 'padText', 'wrapped', 'wrapped, wide'],
  length: 50_000,
}

/** The pieces of the syntax of readers that take long for each text; their long test has all pieces. */
const OWN_PIECES: Readonly<Record<string, readonly string[]>> = {
  redact: ['sk-', 'Bearer ', 'Bearer  ', 'eyJaaaaaaaa.', 'a://b:', '?key='],
  isSecretName: ['*a_', '_', 'api-', 'keyKey_'],
  'shortenOutput, JSON': ['"', '\\', '\ud800', '\u0007'],
  plainLine: ['\u001b', '\u001b[', '\u001b]', '\u009b0 ', '\t'],
  htmlToText: ['<', '<a ', '<a href=', '<!--', '<script>', '&#', '&amp'],
  textWidth: ['\u001b[', '\ud800', '👩‍👩‍👧'],
  fitText: ['\u001b[', 'a ', '\ud800'],
  padText: ['\u001b[', '\t', '👩‍👩‍👧'],
  wrapped: ['\u001b[', 'a ', '\n [a'],
  'wrapped, wide': ['\u001b[', 'a ', '|a|\n'],
  withDollars: ['$', '```\n', '\\', '`'],
  withTexAsCode: ['\\', '```\n', '(', '['],
  inlineFiles: ['"', '\\', '\ud800'],
  'AnswerAssembly, pieces': ['"', '{"a":', '['],
  'AnswerAssembly, a name with each piece': ['"', '{"a":', ' '],
  readServerEvents: ['data: a\n', '\r\n'],
}

async function readEach(name: string, pieces: readonly string[]): Promise<void> {
  const read = READERS[name]
  if (!read) throw new TypeError(`There is no reader ${name}.`)
  const length = BY_CHARACTER.names.includes(name) ? BY_CHARACTER.length : LENGTH
  for (const piece of pieces) {
    const text = piece.repeat(length / piece.length)
    // A refusal is an answer too.
    await Promise.resolve()
      .then(() => read(text))
      .catch(() => undefined)
  }
}

test.each(Object.keys(READERS))(
  '%s reads long texts of repeated pieces to their end',
  {
    timeout: 60_000,
  },
  async name => {
    await readEach(name, OWN_PIECES[name] ?? PIECES)
  },
)

test.each(Object.keys(OWN_PIECES))(
  '%s reads long texts of every piece to their end',
  {
    ...LONG,
    timeout: 60_000,
  },
  async name => {
    expect(PIECES).toEqual(expect.arrayContaining([...(OWN_PIECES[name] ?? [])]))
    await readEach(name, PIECES)
  },
)

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
