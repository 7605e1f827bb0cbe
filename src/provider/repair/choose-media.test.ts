import { expect, test } from 'vitest'
import { type MediaItem, mediaBeyondLimits } from './choose-media.js'
import {
  CLAUDE_LIMITS,
  CLAUDE_PLATFORM_LIMITS,
  CONVERSE_LIMITS,
  GEMINI_LIMITS,
  GROQ_LIMITS,
  type LimitsReading,
  type MediaLimit,
  MINIMAX_LIMITS,
} from './media-limits.js'

const MB = 1024 * 1024

function picture(message: number, facts: Partial<MediaItem> = {}): MediaItem {
  return { kind: 'image', size: 1000, width: 100, height: 100, message, ...facts }
}

const pictures = (count: number, facts: Partial<MediaItem> = {}) =>
  Array.from({ length: count }, (_, message) => picture(message, facts))

function out(
  items: readonly MediaItem[],
  limits: readonly MediaLimit[],
  reading: LimitsReading = 'documented',
) {
  return [...mediaBeyondLimits(items, limits, reading).keys()].toSorted((one, other) => one - other)
}

test.each<[string, MediaItem, readonly MediaLimit[], number[], number[]]>([
  ['4 MB on Claude', picture(0, { size: 4 * MB }), CLAUDE_LIMITS, [], []],
  ['6 MB on Claude', picture(0, { size: 6 * MB }), CLAUDE_LIMITS, [], [0]],
  ['12 MB on Claude', picture(0, { size: 12 * MB }), CLAUDE_LIMITS, [0], [0]],
  ['6 MB on Bedrock', picture(0, { size: 6 * MB }), CLAUDE_PLATFORM_LIMITS, [0], [0]],
  ['8000 pixels on Claude', picture(0, { height: 8000 }), CLAUDE_LIMITS, [], []],
  ['9000 pixels on Claude', picture(0, { height: 9000 }), CLAUDE_LIMITS, [0], [0]],
  ['9000 pixels on Converse', picture(0, { height: 9000 }), CONVERSE_LIMITS, [], [0]],
  ['36 megapixels on Groq', picture(0, { width: 6000, height: 6000 }), GROQ_LIMITS, [0], [0]],
])('%s: left out only above every documented limit', (_, item, limits, documented, strict) => {
  expect(out([item], limits)).toEqual(documented)
  expect(out([item], limits, 'strict')).toEqual(strict)
})

test('a limit that only reports name is no reason to leave something out', () => {
  expect(out(pictures(60), MINIMAX_LIMITS)).toEqual([])
  expect(60 - out(pictures(60), MINIMAX_LIMITS, 'strict').length).toBeLessThanOrEqual(50)
})

test('twenty screenshots stay, and the twenty-first leaves out the oldest five', () => {
  const screenshots = pictures(21, { width: 1170, height: 2532 })
  expect(out(screenshots.slice(0, 20), CLAUDE_LIMITS)).toEqual([])
  expect(out(screenshots, CLAUDE_LIMITS)).toEqual([0, 1, 2, 3, 4])
})

test('small pictures do not count against the limit on many large ones', () => {
  expect(out(pictures(60), CLAUDE_LIMITS)).toEqual([])
})

test('a large picture among many small ones stays when it is the newest, and goes when it is old', () => {
  const large = { width: 3000 }
  expect(out([...pictures(20), picture(20, large)], CLAUDE_LIMITS)).toEqual([0, 1, 2, 3, 4])
  expect(out([picture(0, large), ...pictures(21).slice(1)], CLAUDE_LIMITS)).toEqual([0])
})

test('what is left out of a history stays out, whatever comes later', () => {
  const shapes = [{ width: 2500 }, {}, { size: 3 * MB }, { width: 9000 }, { kind: 'document' as const }]
  const items = Array.from({ length: 120 }, (_, index) => picture(index, shapes[(index * 7) % shapes.length]))
  for (const limits of [CLAUDE_LIMITS, GROQ_LIMITS, CONVERSE_LIMITS, MINIMAX_LIMITS]) {
    let before: number[] = []
    for (let length = 1; length <= items.length; length++) {
      const now = out(items.slice(0, length), limits, 'strict')
      expect(now).toEqual(expect.arrayContaining(before))
      expect(now).not.toContain(length)
      before = now
    }
  }
})

test('what is left of a history needs nothing left out', () => {
  const items = pictures(90, { size: 1.5 * MB, width: 2400 })
  const gone = new Set(out(items, CLAUDE_LIMITS))
  expect(
    out(
      items.filter((_, index) => !gone.has(index)),
      CLAUDE_LIMITS,
    ),
  ).toEqual([])
  expect(gone.size).toBeLessThan(90)
})

test('of more than five documents in one message of Converse the first are left out', () => {
  const documents = Array.from({ length: 7 }, () => picture(3, { kind: 'document' }))
  expect(out(documents, CONVERSE_LIMITS)).toEqual([0, 1])
  expect(
    out(
      documents.map((item, message) => ({ ...item, message })),
      CONVERSE_LIMITS,
    ),
  ).toEqual([])
})

test('the oldest are left out of a request that is too large, and the newest stays', () => {
  const items = pictures(5, { size: 0.9 * MB })
  expect(out(items, GROQ_LIMITS)).toEqual([0, 1])
})

test('a reason names the limit and its source', () => {
  const [broken] = mediaBeyondLimits([picture(0, { height: 9000 })], CLAUDE_LIMITS, 'documented').values()
  expect(broken).toEqual({
    reason: 'it has 100 × 9000 pixels, and the model takes at most 8000 on a side',
    source: 'platform.claude.com: Images and vision, 2026-07',
  })
})

test('thousands of pictures are looked at a few times each', () => {
  let looks = 0
  const items = pictures(5000, { size: 1 }).map(item => ({
    ...item,
    get size() {
      looks += 1
      return 1
    },
  }))
  expect(out(items, GEMINI_LIMITS)).toEqual([])
  expect(looks).toBeLessThan(10 * items.length)
})
