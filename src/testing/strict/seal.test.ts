import { expect, test } from 'vitest'
import { mintSeal, openSeal, type SealingVendor, sealCovers } from './seal.js'

const VENDORS: SealingVendor[] = ['gemini', 'anthropic', 'openai']

for (const vendor of VENDORS) {
  const seal = mintSeal(vendor, { use: 'test', index: 3 }, 'content')

  test(`a seal of ${vendor} returns its claims and what it covers`, () => {
    const claims = openSeal(vendor, seal)
    expect(claims).toMatchObject({ use: 'test', index: 3 })
    expect(sealCovers(vendor, claims ?? {}, 'content')).toBe(true)
    expect(sealCovers(vendor, claims ?? {}, 'other content')).toBe(false)
  })

  test(`a seal of ${vendor} is equal for equal claims, so that any process can verify it`, () => {
    expect(mintSeal(vendor, { use: 'test', index: 3 }, 'content')).toBe(seal)
  })

  test.each(['', 'x', 'bm90IGEgc2VhbA==', `${seal} `, seal.slice(0, -4), seal.toLowerCase()])(
    `%j is not a seal of ${vendor}`,
    other => {
      expect(openSeal(vendor, other)).toBeUndefined()
    },
  )

  test(`a seal of ${vendor} is not accepted by another vendor`, () => {
    for (const other of VENDORS) if (other !== vendor) expect(openSeal(other, seal)).toBeUndefined()
  })
}

test.each([
  ['gemini', /^Co0C/],
  ['anthropic', /^ErUB/],
  ['openai', /^gAAAAA/],
] as const)('a seal of %s has the format of the real one', (vendor, pattern) => {
  expect(mintSeal(vendor, {}, '')).toMatch(pattern)
})
