import { expect, test } from 'vitest'
import { gif, png } from '../../test/support/pictures.js'
import type { MediaPart, ProviderMessage, ProviderPart } from './provider.js'
import type { Refusal } from './refusal-cause.js'
import { markRefused, mediaDigest } from './refused.js'
import { refusedParts, type SentRequest } from './refused-parts.js'
import { PROFILES, type ProfileName } from './repair/profile.js'

const MB = 1024 * 1024
const text = (words: string): ProviderPart => ({ type: 'text', text: words })
const shown = (fill: number, bytes = 64): MediaPart => ({
  type: 'media',
  mimeType: 'image/png',
  data: png({ fill, bytes }),
})
const [old, first, second] = [shown(1), shown(2), shown(3)]
const image = ({ data }: MediaPart) => ({
  type: 'image',
  source: { type: 'base64', media_type: 'image/png', data },
})

const MESSAGES: ProviderMessage[] = [
  { role: 'user', parts: [text('look'), old] },
  { role: 'assistant', parts: [text('ok')] },
  { role: 'user', parts: [text('and these'), first, second] },
]

function request(
  messages = MESSAGES,
  profile: ProfileName = 'anthropic-4.6',
  content?: unknown,
): SentRequest {
  const body = {
    messages: messages.map(({ role, parts }) => ({
      role,
      content: parts.map(part => (part.type === 'media' ? image(part) : part)),
    })),
  }
  const rules = PROFILES[profile]
  return {
    given: messages,
    answered: 0,
    sent: messages,
    body: content ?? body,
    profile: rules,
    limits: 'documented',
  }
}

const refusal = (more: Partial<Refusal>): Refusal => ({ isSize: false, ...more })
const digestsOf = (refused: ReturnType<typeof refusedParts>) => refused?.parts.map(([digest]) => digest)

test('the picture at the named place is refused, and no other', () => {
  const place = 'messages.0.content.1.image.source.base64.data'.split('.')
  const refused = refusedParts(refusal({ cause: 'media', place }), request(), 'No.')
  expect(refused).toEqual({ parts: [[mediaDigest(old), 'No.']], limits: 'documented' })
})

test('a picture inside a result is found where its vendor says it stands', () => {
  const body = {
    messages: [{ content: [{ type: 'tool_result', content: [{ type: 'text' }, image(first)] }] }],
  }
  const place = 'messages.0.content.0.tool_result.content.1.image.source'.split('.')
  expect(digestsOf(refusedParts(refusal({ place }), request(MESSAGES, 'anthropic-4.6', body), ''))).toEqual([
    mediaDigest(first),
  ])
})

test.each([
  ['a text', 'messages.2.content.0.text'],
  ['a message that is not there', 'messages.9.content.0'],
  ['a result that holds a picture', 'messages.0.content.0'],
])('%s at the named place leaves nothing out', (_, place) => {
  const body = {
    messages: [{ content: [{ type: 'tool_result', content: [image(first)] }] }, {}, { content: [text('x')] }],
  }
  const sent = request(MESSAGES, 'anthropic-4.6', body)
  expect(refusedParts(refusal({ place: place.split('.') }), sent, '')).toBeUndefined()
})

test('where no place is named, the newest media of this turn are refused', () => {
  expect(digestsOf(refusedParts(refusal({ cause: 'media' }), request(), ''))).toEqual(
    [first, second].map(mediaDigest),
  )
})

test('where no place is named, the results of parallel tools are all refused', () => {
  const result = (id: string, media: MediaPart): ProviderMessage => ({
    role: 'tool',
    parts: [{ type: 'tool-result', id, name: 'camera', result: 'ok', media: [media] }],
  })
  const messages: ProviderMessage[] = [
    { role: 'user', parts: [text('look'), old] },
    { role: 'assistant', parts: ['a', 'b'].map(id => ({ type: 'tool-call', id, name: 'camera', args: {} })) },
    result('a', first),
    result('b', second),
  ]
  expect(digestsOf(refusedParts(refusal({ cause: 'media' }), request(messages), ''))).toEqual(
    [first, second].map(mediaDigest),
  )
})

test('where no place is named and this turn has no media, those are refused that the model has not answered', () => {
  const later: ProviderMessage[] = [
    ...MESSAGES,
    { role: 'assistant', parts: [text('ok')] },
    { role: 'user', parts: [text('and now?')] },
  ]
  const refusedAfter = (answered: number) =>
    refusedParts(refusal({ cause: 'media' }), { ...request(later), answered }, '')
  expect(digestsOf(refusedAfter(0))).toEqual([old, first, second].map(mediaDigest))
  expect(digestsOf(refusedAfter(1))).toEqual([first, second].map(mediaDigest))
  expect(refusedAfter(3)).toBeUndefined()
})

test('a refusal that a disputed limit explains makes its stricter reading hold', () => {
  const large = { role: 'user', parts: [shown(4, 4.5 * MB), text('a')] }
  const place = ['messages', '0', 'content', '0', 'image']
  const named = refusedParts(refusal({ cause: 'media', place }), request([large, ...MESSAGES]), '')
  expect(named).toMatchObject({ limits: 'strict', parts: [[expect.any(String), '']] })
  const pictures = Array.from(
    { length: 51 },
    (_, fill): ProviderMessage => ({ role: 'user', parts: [shown(fill)] }),
  )
  const many = refusedParts(refusal({ cause: 'media' }), request(pictures, 'minimax'), '')
  expect(many).toEqual({ parts: [], limits: 'strict' })
})

test('a request that is too large as a whole is refused for its media only where a limit says so', () => {
  expect(refusedParts(refusal({ isSize: true }), request(), '')).toBeUndefined()
  const heavy = Array.from(
    { length: 6 },
    (_, fill): ProviderMessage => ({ role: 'user', parts: [shown(fill, 3.5 * MB)] }),
  )
  expect(refusedParts(refusal({ isSize: true }), request(heavy, 'gemini-3'), '')).toEqual({
    parts: [],
    limits: 'strict',
  })
})

test('refused parts are marked wherever they stand, however their bytes are written', () => {
  const spelled: MediaPart = { ...old, data: `data:image/png;base64,${old.data}` }
  const result: ProviderPart = {
    type: 'tool-result',
    id: 'a',
    name: 'f',
    result: 'ok',
    media: [spelled, first],
  }
  const messages = markRefused([{ role: 'tool', parts: [result] }, ...MESSAGES], {
    parts: [[mediaDigest(old), 'No.']],
    limits: 'documented',
  })
  const leftOut = { kind: 'refused-by-provider', reason: 'the provider refused it', source: '“No.”' }
  expect(messages[0]?.parts[0]).toMatchObject({ media: [{ leftOut }, first] })
  expect(messages[1]?.parts[1]).toMatchObject({ leftOut })
  expect(messages[3]).toBe(MESSAGES[2])
})

test('what a vendor says of many faults is about pictures that its page does not list, and about no others', () => {
  const vague = refusal({ isVague: true })
  const gifs: ProviderMessage[] = [
    { role: 'user', parts: [{ type: 'media', mimeType: 'image/gif', data: gif() }] },
  ]
  expect(refusedParts(vague, request(gifs, 'gemini-3'), '')).toEqual({ parts: [], limits: 'strict' })
  expect(refusedParts(vague, request(MESSAGES, 'gemini-3'), '')).toBeUndefined()
})
