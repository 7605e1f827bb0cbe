import { expect, test } from 'vitest'
import { toWireName } from './map-names.js'
import { PROFILES, type ProfileName } from './profile.js'

const NAMES = [
  'fs.read',
  'ns:tool',
  '9lives',
  'ä',
  '',
  ' ',
  'x'.repeat(65),
  `${'x'.repeat(80)}1`,
  `${'x'.repeat(80)}2`,
]

test.each(Object.keys(PROFILES) as ProfileName[])(
  '%s: every name becomes a legal one of its own',
  profile => {
    const { names } = PROFILES[profile]
    const mapped = NAMES.map(name => toWireName(name, PROFILES[profile]))
    expect(mapped.every(name => names.test(name))).toBe(true)
    expect(new Set(mapped).size).toBe(NAMES.length)
    expect(mapped.map(name => toWireName(name, PROFILES[profile]))).toEqual(mapped)
  },
)

test('a mapped name is valid for every profile', () => {
  const wire = toWireName('read file', PROFILES.mistral)
  for (const { names } of Object.values(PROFILES)) expect(names.test(wire)).toBe(true)
})
