import { createEvent, createEventActions } from '@google/adk'
import { describe, expect, test } from 'vitest'
import type { Event, Part } from '../sdk.js'
import { eventToMessage } from './event-to-message.js'
import { messagesToEvents } from './messages-to-events.js'

function event(parts: Part[] | undefined, fields: Partial<Event> = {}, role = 'model'): Event {
  return createEvent({
    id: 'e1',
    invocationId: 'i1',
    author: 'agent',
    timestamp: 1_700_000_000_000,
    ...(parts ? { content: { role, parts } } : {}),
    ...fields,
  })
}

const json = (value: unknown) => JSON.parse(JSON.stringify(value)) as unknown

describe('common shapes need nothing but the named fields', () => {
  test.each<[string, Event, object]>([
    [
      'a text by the user',
      event([{ text: 'hi' }], { author: 'user' }, 'user'),
      { role: 'user', author: 'user', content: 'hi' },
    ],
    ['a text by an agent', event([{ text: 'hi' }]), { role: 'assistant', author: 'agent', content: 'hi' }],
    [
      'a text and two calls',
      event([
        { text: 'look' },
        { functionCall: { id: 'a', name: 's', args: { q: 1 } } },
        { functionCall: { id: 'b', name: 's', args: {} }, thoughtSignature: 'c2ln' },
      ]),
      {
        role: 'assistant',
        author: 'agent',
        content: 'look',
        toolCalls: [
          { id: 'a', name: 's', input: '{"q":1}', kind: 'call' },
          { id: 'b', name: 's', input: '{}', kind: 'call', signature: 'c2ln' },
        ],
      },
    ],
  ])('an event of %s is stored in the named fields alone', (_, given, expected) => {
    const message = eventToMessage(given)
    expect(message).toEqual({ ...expected, timestamp: given.timestamp, id: 'e1', invocationId: 'i1' })
  })

  test('results are stored once as output, are readable as content, and have only their role besides', () => {
    const message = eventToMessage(
      event(
        [
          { functionResponse: { id: 'a', name: 's', response: { ok: 1 } } },
          { functionResponse: { id: 'b', name: 's', response: { ok: 2 } } },
        ],
        {},
        'user',
      ),
    )
    expect(message?.role).toBe('tool')
    expect(message?.content).toBe('{"ok":1}\n{"ok":2}')
    expect(message?.toolCalls).toEqual([
      { id: 'a', name: 's', output: '{"ok":1}', kind: 'response' },
      { id: 'b', name: 's', output: '{"ok":2}', kind: 'response' },
    ])
    expect(message?.extra).toEqual({ role: 'user' })
  })
})

describe('one stored event restores as it was', () => {
  const cases: [string, Event][] = [
    ['text', event([{ text: 'hi' }])],
    ['several texts', event([{ text: 'a' }, { text: 'b' }, { text: '' }])],
    [
      'a call before a text',
      event([{ functionCall: { id: 'a', name: 's', args: { x: [1] } } }, { text: 'b' }]),
    ],
    ['a call without arguments', event([{ functionCall: { id: 'a', name: 's' } }])],
    [
      'a call with unknown fields',
      event([{ functionCall: { id: 'a', name: 's', args: {}, willContinue: true } }]),
    ],
    ['an empty first text', event([{ text: '' }, { functionCall: { id: 'a', name: 's', args: {} } }])],
    [
      'thoughts and signatures',
      event([
        { text: 'hm', thought: true, thoughtSignature: 'AA==' },
        { text: 'so', thoughtSignature: 'BB==' },
      ]),
    ],
    [
      'media and code',
      event([
        { text: 'see' },
        { inlineData: { mimeType: 'image/png', data: 'AAAA' } },
        { executableCode: { code: 'print(1)' } },
        { codeExecutionResult: { output: '1' } },
      ]),
    ],
    [
      'results with text beside them',
      event([{ functionResponse: { id: 'a', name: 's', response: { r: 1 } } }, { text: 'and' }], {}, 'user'),
    ],
    [
      'a result in the role function',
      event([{ functionResponse: { id: 'a', name: 's', response: {} } }], {}, 'function'),
    ],
    ['a result without response', event([{ functionResponse: { id: 'a', name: 's' } }], {}, 'user')],
    [
      'a result with parts',
      event(
        [
          {
            functionResponse: {
              id: 'a',
              name: 's',
              response: {},
              parts: [{ inlineData: { mimeType: 'image/png', data: 'AA' } }],
            },
          },
        ],
        {},
        'user',
      ),
    ],
    [
      'a call and a result in one',
      event([
        { functionCall: { id: 'a', name: 's', args: {} } },
        { functionResponse: { id: 'a', name: 's', response: {} } },
      ]),
    ],
    ['no parts', event([])],
    ['content without a list of parts', event(undefined, { content: { role: 'model' } })],
    ['content without role', event(undefined, { content: { parts: [{ text: 'x' }] } })],
    ['an odd role', event([{ text: 'x' }], {}, 'system')],
    ['an error', event(undefined, { errorCode: 'UNKNOWN_ERROR', errorMessage: 'no' })],
    [
      'usage and finish reason',
      event([{ text: 'x' }], { usageMetadata: { promptTokenCount: 3 }, turnComplete: true, partial: false }),
    ],
    [
      'actions',
      event([{ text: 'x' }], {
        actions: createEventActions({ stateDelta: { a: 1 }, transferToAgent: 'b', escalate: true }),
      }),
    ],
    [
      'long-running ids and a branch',
      event([{ functionCall: { id: 'a', name: 's', args: {} } }], {
        longRunningToolIds: ['a'],
        branch: 'root.sub',
      }),
    ],
    ['custom metadata', event([{ text: 'x' }], { customMetadata: { lango: { synthetic: true } } })],
    [
      'a compaction event',
      event(undefined, {
        isCompacted: true,
        startTime: 1,
        endTime: 2,
        compactedContent: 'so far',
      } as Partial<Event>),
    ],
    [
      'workflow fields',
      event(undefined, { output: { a: 1 }, route: 'left', nodeInfo: { path: 'wf.0' }, isolationScope: 's' }),
    ],
    ['a part of an unknown kind', event([{ toolCall: { id: 'z' } } as Part])],
    ['a call whose keys stand otherwise', event([{ functionCall: { name: 's', args: {}, id: 'a' } }])],
    ['NUL and a lone surrogate', event([{ text: 'a\u0000b\ud800' }])],
  ]

  test.each(cases)('an event is restored as it was: %s', (_, given) => {
    const message = eventToMessage(given)
    const [restored, ...others] = messagesToEvents(message ? [message] : [])
    expect(others).toEqual([])
    expect(json(restored)).toEqual(json(given))
    expect(JSON.stringify(restored?.content)).toBe(JSON.stringify(given.content))
    expect(Reflect.get(restored!, Symbol.for('google.adk.event'))).toBe(true)
  })

  test('an event whose content names its parts first keeps that order', () => {
    const given = event(undefined, { content: { parts: [{ text: 'x' }], role: 'user' } })
    const [restored] = messagesToEvents([eventToMessage(given)!])
    expect(JSON.stringify(restored?.content)).toBe('{"parts":[{"text":"x"}],"role":"user"}')
  })

  test('a stored event is at most one and a half times its size', () => {
    for (const [, given] of cases) {
      const size = JSON.stringify(eventToMessage(given)).length
      // Small events have the same keys under other names; a few bytes decide there.
      expect(size).toBeLessThan(JSON.stringify(given).length * 1.5)
    }
  })
})

test('calls without ids are restored with made-up ids, the same for call and answer', () => {
  const asked = event([{ functionCall: { name: 's', args: {} } }, { functionCall: { name: 's', args: {} } }])
  const answered = event(
    [
      { functionResponse: { name: 's', response: { n: 1 } } },
      { functionResponse: { name: 's', response: { n: 2 } } },
    ],
    { id: 'e2' },
    'user',
  )
  const restored = messagesToEvents([eventToMessage(asked)!, eventToMessage(answered)!])
  const calls = restored[0]?.content?.parts?.map(part => part.functionCall?.id)
  const answers = restored[1]?.content?.parts?.map(part => part.functionResponse?.id)
  expect(calls).toEqual(['call_s', 'call_s_2'])
  expect(answers).toEqual(calls)
})

function withoutAuthor({ author: _author, ...rest }: Event): Event {
  return rest
}

describe('what leaves no message', () => {
  test.each<[string, Event]>([
    ['a state delta alone', event(undefined, { actions: createEventActions({ stateDelta: { a: 1 } }) })],
    [
      'temporary state alone',
      event(undefined, { actions: createEventActions({ stateDelta: { 'temp:a': 1 } }) }),
    ],
  ])('an event with %s leaves no message', (_, given) => {
    expect(eventToMessage(given)).toBeUndefined()
  })

  test('an event without content, actions and author is kept', () => {
    const given = withoutAuthor(event(undefined))
    expect(eventToMessage(given)).toMatchObject({ id: given.id, content: '', timestamp: given.timestamp })
  })

  test.each<[string, Partial<Event>]>([
    ['an artifact', { actions: createEventActions({ artifactDelta: { f: 1 } }) }],
    ['an escalation', { actions: createEventActions({ escalate: true }) }],
    ['usage', { usageMetadata: { totalTokenCount: 3 } }],
    ['empty content', { content: { role: 'model', parts: [] } }],
    ['an author and nothing else', {}],
  ])('%s is more than a state delta', (_, fields) => {
    expect(eventToMessage(event(undefined, fields))).toBeDefined()
  })
})

test('temporary state is left out of the stored event', () => {
  const given = event([{ text: 'x' }], { actions: createEventActions({ stateDelta: { 'temp:a': 1, b: 2 } }) })
  expect(eventToMessage(given)?.extra).toEqual({ actions: { stateDelta: { b: 2 } } })
})

test('a result that JSON cannot say is kept as well as it can be', () => {
  const loop: Record<string, unknown> = { big: 10n }
  loop.self = loop
  const message = eventToMessage(
    event([{ functionResponse: { id: 'a', name: 's', response: loop } }], {}, 'user'),
  )
  expect(message?.content).toBe('{"big":"10","self":"[circular]"}')
})
