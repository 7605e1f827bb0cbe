import { expect, test } from 'vitest'
import { gif, jpeg, pdf, png } from '../../../test/support/pictures.js'
import type { MediaPart, ProviderMessage, ProviderPart } from '../provider.js'
import { lintHistory } from './lint-history.js'
import { PROFILES, type ProfileName } from './profile.js'
import { repairHistory } from './repair-history.js'

const PROFILE_NAMES = Object.keys(PROFILES) as ProfileName[]
const text = (words: string): ProviderPart => ({ type: 'text', text: words })
const shown = (data: string, mimeType = 'image/png', name?: string): MediaPart => ({
  type: 'media',
  mimeType,
  data,
  ...(name === undefined ? {} : { name }),
})
const user = (...parts: ProviderPart[]): ProviderMessage => ({ role: 'user', parts })
const assistant = (words: string): ProviderMessage => ({ role: 'assistant', parts: [text(words)] })

function mediaOf(messages: readonly ProviderMessage[]): MediaPart[] {
  return messages.flatMap(({ parts }) =>
    parts.flatMap(part =>
      part.type === 'media' ? [part] : part.type === 'tool-result' ? (part.media ?? []) : [],
    ),
  )
}

test.each<[string, MediaPart, Partial<MediaPart>]>([
  ['JPEG bytes called PNG', shown(jpeg()), { mimeType: 'image/jpeg' }],
  ['PNG bytes of an unknown type', shown(png(), 'application/octet-stream'), { mimeType: 'image/png' }],
  ['image/jpg', shown('eA==', 'image/jpg'), { mimeType: 'image/jpeg' }],
  ['a type in capitals with a parameter', shown('eA==', 'IMAGE/PNG; q=1'), { mimeType: 'image/png' }],
  ['a data URL as data', shown(`data:image/png;base64,${png()}`), { data: png() }],
  ['base64 in lines', shown(png().replace(/(.{20})/g, '$1\n')), { data: png() }],
])('%s is sent as what it is, with a receipt', (_, given, sent) => {
  const history = [user(text('see'), given)]
  const { messages, repairs } = repairHistory(history, 'anthropic-4.6')
  expect(mediaOf(messages)).toEqual([{ ...given, ...sent }])
  expect(repairs).toMatchObject([{ step: 'type-media', kind: 'media-retyped', at: 0 }])
  expect(repairHistory(messages, 'anthropic-4.6').messages).toBe(messages)
  expect(history[0]?.parts[1]).toBe(given)
})

test('a data URL in the place of an address is data', () => {
  const given: MediaPart = { type: 'media', mimeType: 'image/gif', url: `data:image/gif;base64,${gif()}` }
  const { messages } = repairHistory([user(text('see'), given)], 'ollama')
  expect(messages[0]?.parts[1]).toEqual(text('[image/gif, which cannot be shown]'))
  expect(mediaOf(repairHistory([user(given)], 'openai-chat').messages)).toEqual([shown(gif(), 'image/gif')])
})

test('a text keeps its type, whatever it begins with', () => {
  const history = [user(shown(pdf(), 'text/plain'))]
  expect(repairHistory(history, 'anthropic-4.6').messages).toBe(history)
})

test.each([
  ['%%%', 'its data are not base64'],
  ['data:image/png;base64,', 'it holds nothing'],
])('what is no file ("%s") is replaced by a note', (data, reason) => {
  const history = [user(text('see'), shown(data))]
  const { messages, repairs } = repairHistory(history, 'openai-chat')
  expect(messages[0]?.parts[1]).toEqual(text(`[image/png, not shown, because ${reason}]`))
  expect(repairs).toMatchObject([{ step: 'type-media', kind: 'media-left-out', at: 0 }])
  expect(lintHistory(history, 'openai-chat').map(({ code }) => code)).toEqual(['unreadable-media'])
})

test('base64 in the place of an address is data', () => {
  const history = [user(text('see'), { type: 'media', mimeType: 'image/png', url: png() })]
  const { messages, repairs } = repairHistory(history, 'openai-chat')
  expect(messages[0]?.parts[1]).toEqual(shown(png()))
  expect(repairs).toMatchObject([{ step: 'type-media', kind: 'media-retyped', at: 0 }])
  const address = [user({ type: 'media', mimeType: 'image/png', url: 'https://host/a.png' })]
  expect(repairHistory(address, 'openai-chat').messages).toBe(address)
})

test('a picture of a type that the page of Gemini does not list is sent, unless it was refused', () => {
  const history = [user(text('see'), shown(gif(), 'image/gif'), shown(png()))]
  expect(repairHistory(history, 'gemini-3').messages).toBe(history)
  const { messages, repairs } = repairHistory(history, 'gemini-3', { mediaLimits: 'strict' })
  expect(messages[0]?.parts[2]).toEqual(shown(png()))
  expect(repairs).toMatchObject([{ kind: 'media-left-out', detail: expect.stringContaining('image/gif') }])
})

test('a picture beyond the limits of one model is replaced by a note there and sent to another', () => {
  const wide = shown(png({ width: 9000 }), 'image/png', 'map.png')
  const history = [user(text('see'), wide)]
  const { messages, repairs } = repairHistory(history, 'anthropic-4.6')
  const reason = 'it has 9000 × 8 pixels, and the model takes at most 8000 on a side'
  expect(messages[0]?.parts[1]).toEqual(text(`[image/png map.png, not shown, because ${reason}]`))
  expect(repairs).toMatchObject([
    { kind: 'media-left-out', detail: expect.stringContaining('platform.claude.com') },
  ])
  expect(repairHistory(history, 'gemini-3').messages).toBe(history)
})

test('a picture of a tool leaves its note in the result, whatever form that has', () => {
  const call: ProviderPart = { type: 'tool-call', id: 'a', name: 'camera', args: {} }
  const wide = shown(png({ width: 9000 }))
  const resultOf = (result: unknown) => {
    const answer: ProviderPart = { type: 'tool-result', id: 'a', name: 'camera', result, media: [wide] }
    const history = [
      user(text('look')),
      { role: 'assistant', parts: [call] },
      { role: 'tool', parts: [answer] },
    ]
    const part = repairHistory(history, 'anthropic-4.6').messages[2]?.parts[0]
    return part?.type === 'tool-result' ? [part.result, part.media] : []
  }
  const note = expect.stringContaining('not shown')
  expect(resultOf('done')).toEqual([expect.stringMatching(/^done\n\[image\/png, not shown/), undefined])
  expect(resultOf({ ok: true })).toEqual([{ ok: true, notShown: note }, undefined])
  expect(resultOf([1])).toEqual([{ result: [1], notShown: note }, undefined])
  expect(resultOf({ notShown: 1 })).toEqual([{ notShown: 1, notShown2: note }, undefined])
  const deep = Array.from({ length: 62 }).reduce<unknown>(inner => [inner], 1)
  expect(resultOf([deep])).toEqual([[deep, note], undefined])
})

test('a refused picture is replaced by a note that says so', () => {
  const refused = {
    ...shown(png()),
    leftOut: { kind: 'refused-by-provider' as const, reason: 'it was refused', source: 'No.' },
  }
  for (const profile of PROFILE_NAMES) {
    const { messages, repairs } = repairHistory([user(text('see'), refused)], profile)
    expect(mediaOf(messages)).toEqual([])
    expect(messages[0]?.parts[1]).toEqual(text('[image/png, not shown, because it was refused]'))
    expect(repairs.map(({ kind }) => kind)).toEqual(['refused-by-provider'])
  }
})

test.each(PROFILE_NAMES)(
  '%s: a screenshot a turn extends the request before, or leaves out the oldest',
  profile => {
    const history: ProviderMessage[] = []
    let before: readonly ProviderMessage[] = []
    let shownBefore = 0
    for (let turn = 0; turn < 40; turn++) {
      const screenshot = shown(png({ width: 1170, height: 2532, bytes: 90, fill: turn }))
      history.push(user(text(`see ${turn}`), screenshot), assistant(`seen ${turn}`))
      const { messages } = repairHistory(history, profile, { next: 'user', mediaLimits: 'strict' })
      const sent = mediaOf(messages)
      // A break leaves something out: nothing comes back.
      const isExtended = before.every((message, index) =>
        Object.is(JSON.stringify(message), JSON.stringify(messages[index])),
      )
      if (!isExtended) expect(sent.length).toBeLessThanOrEqual(shownBefore)
      if (shownBefore > 0 || turn === 0) expect(sent.at(-1)?.data ?? screenshot.data).toBe(screenshot.data)
      before = messages
      shownBefore = sent.length
    }
  },
)
