import { describe, expect, test } from 'vitest'
import {
  type CallItem,
  type CallReference,
  groupCalls,
  identifyCalls,
  idsWithin,
  newCallId,
  pairCalls,
} from './pair-calls.js'

/** `call a`, `answer a`, `call :search` (no id), `answer -:` (neither); `|` starts a turn, `,` a message. */
function items(history: string): CallItem[] {
  let at = 0
  return history.split('|').flatMap((text, turn) =>
    text.split(',').flatMap(message => {
      at += 1
      const words = message.trim().split(/\s+/)
      return words.flatMap((word, index): CallItem[] => {
        if (word !== 'call' && word !== 'answer') return []
        const [id = '', name = 'tool'] = (words[index + 1] ?? '').split(':')
        return [{ kind: word, id, name, at, turn }]
      })
    }),
  )
}

/** For each answer the number of its call among the calls, `+` for a duplicate, `-` for none. */
function paired(history: string): string {
  const all = items(history)
  const calls = all.flatMap((item, index) => (item.kind === 'call' ? [index] : []))
  return pairCalls(all)
    .flatMap((pair, index) => {
      if (all[index]?.kind === 'call') return []
      return pair ? [`${calls.indexOf(pair.call)}${pair.duplicate ? '+' : ''}`] : ['-']
    })
    .join(' ')
}

test.each([
  ['finds its call', 'call a call b, answer b answer a', '1 0'],
  ['finds it however late', 'call a, answer a, call b | call c, answer c, answer b', '0 2 1'],
  ['is a duplicate when its call is answered', 'call a, answer a, answer a', '0 0+'],
  ['stays within the nearest turn when its id was used before', 'call a, answer a | call a, answer a', '0 1'],
  ['is never the answer of an older call', 'call a | call a, answer a, answer a', '1 1+'],
  ['is never the answer of an earlier step', 'call a call b, answer b, call a, answer a answer a', '1 2 2+'],
  ['is never the answer of an earlier message', 'call a, call a, answer a, answer a', '1 1+'],
  ['pairs by position when its id stands twice in one message', 'call a call a, answer a, answer a', '0 1'],
  ['without a call belongs nowhere', 'call a, answer z', '-'],
  ['before its call belongs nowhere', 'answer a, call a', '-'],
  ['belongs to a call of its name that lost its id', 'call b:x call :x, answer z:x', '1'],
  ['belongs to no call of another name', 'call :y, answer z:x', '-'],
  ['made of the name counts as none', 'call b:x, answer call_x_2:x', '0'],
])('an answer with an id %s', (_, history, expected) => {
  expect(paired(history)).toBe(expected)
})

test.each([
  ['pairs by position', 'call :w call :w, answer :w, answer :w', '0 1'],
  ['pairs by position over several messages', 'call :w, call :w, answer :w, answer :w', '0 1'],
  ['finds its name first', 'call :x call :y, answer :y answer :x', '1 0'],
  ['without a name takes the next open call', 'call :x call :y, answer : answer : answer :', '0 1 -'],
  ['without a name takes a call without a name first', 'call :x call :, answer :, answer :', '1 0'],
  ['stays within its turn', 'call :w | call :w, answer :w, answer :w', '1 1+'],
  ['may come after the user spoke again', 'call :w | answer :w', '0'],
  ['belongs to the newest step', 'call :w call :v, answer :v, call :w, answer :w', '1 2'],
  ['belongs to its own message first', 'call :w, call :w answer :w', '1'],
  ['leaves a call to the answer that names it', 'call a call b, answer :tool, answer a', '1 0'],
  ['takes calls without an id first', 'call a:w call :w, answer :w, answer :w', '1 0'],
])('an answer without an id %s', (_, history, expected) => {
  expect(paired(history)).toBe(expected)
})

test('leaving out a call with its answers changes no other pair', () => {
  const all = items(
    'call :w call :w, answer :w, answer :w | call :w, call :w call a, answer a, answer :w answer :w',
  )
  const pairs = pairCalls(all)
  const calls = all.flatMap((item, index) => (item.kind === 'call' ? [index] : []))
  for (const dropped of calls) {
    const kept = all.map((_, index) => index).filter(index => (pairs[index]?.call ?? index) !== dropped)
    const after = pairCalls(kept.map(index => all[index] as CallItem)).map(pair => pair && kept[pair.call])
    expect(after).toEqual(kept.map(index => pairs[index]?.call))
  }
})

test('thousands of open calls and answers are paired in linear time', () => {
  const count = 50_000
  const side = (kind: 'call' | 'answer'): CallItem[] =>
    Array.from({ length: count }, (_, at) => ({
      kind,
      name: 'x',
      at: kind === 'call' ? at : count + at,
      turn: 0,
    }))
  const pairs = pairCalls([...side('call'), ...side('answer')])
  expect(pairs.slice(count).map(pair => pair?.call)).toEqual(Array.from({ length: count }, (_, at) => at))
})

test('new ids are distinct', () => {
  expect(new Set(Array.from({ length: 1000 }, newCallId)).size).toBe(1000)
  expect(newCallId()).toMatch(/^[a-zA-Z0-9]{9}$/)
})

interface Item {
  calls?: CallReference[]
  answers?: CallReference[]
}

const call = (...ids: string[]): Item => ({ calls: ids.map(id => ({ id, name: 'tool' })) })
const answer = (...ids: string[]): Item => ({ answers: ids.map(id => ({ id, name: 'tool' })) })
const named = (name: string) => ({ call: { calls: [{ name }] }, answer: { answers: [{ name }] } })
const text: Item = {}

function groups(items: readonly Item[]) {
  const { members, unanswered, orphans } = groupCalls(items, {
    calls: item => item.calls ?? [],
    answers: item => item.answers ?? [],
    startsTurn: () => false,
  })
  const joined = members.filter(member => member.length > 1)
  return { joined, unanswered: [...unanswered].map(group => members[group]), orphans: [...orphans] }
}

test.each<[string, Item[], ReturnType<typeof groups>]>([
  [
    'a call and its answer',
    [text, call('a'), answer('a')],
    { joined: [[1, 2]], unanswered: [], orphans: [] },
  ],
  [
    'parallel calls answered apart, with text between',
    [call('a', 'b'), answer('a'), text, answer('b')],
    { joined: [[0, 1, 3]], unanswered: [], orphans: [] },
  ],
  [
    'parallel calls of which one is never answered',
    [call('a', 'b'), answer('b')],
    { joined: [[0, 1]], unanswered: [[0, 1]], orphans: [] },
  ],
  [
    'one answer to two calls',
    [call('a'), call('b'), answer('a', 'b')],
    { joined: [[0, 1, 2]], unanswered: [], orphans: [] },
  ],
  ['an answer without a call', [answer('a'), call('a')], { joined: [], unanswered: [[1]], orphans: [0] }],
  [
    'the same id in two turns',
    [call('a'), answer('a'), call('a'), answer('a')],
    {
      joined: [
        [0, 1],
        [2, 3],
      ],
      unanswered: [],
      orphans: [],
    },
  ],
  [
    'a second answer to the same call',
    [call('a'), answer('a'), answer('a')],
    { joined: [[0, 1, 2]], unanswered: [], orphans: [] },
  ],
  [
    'answers without ids, by name',
    [named('x').call, named('y').call, named('x').answer, named('y').answer],
    {
      joined: [
        [0, 2],
        [1, 3],
      ],
      unanswered: [],
      orphans: [],
    },
  ],
  [
    'an answer without id and name',
    [call('a'), { answers: [{}] }],
    { joined: [[0, 1]], unanswered: [], orphans: [] },
  ],
  [
    'a made-up id for a call without one',
    [named('tool').call, answer('call_tool')],
    { joined: [[0, 1]], unanswered: [], orphans: [] },
  ],
  [
    'an unknown id among calls with ids',
    [call('a'), answer('z')],
    { joined: [], unanswered: [[0]], orphans: [1] },
  ],
  [
    'a row with a call and its answer',
    [{ ...call('a'), ...answer('a') }],
    { joined: [], unanswered: [], orphans: [] },
  ],
])('groupCalls of %s', (_, items, expected) => {
  expect(groups(items)).toEqual(expected)
})

test('groupCalls groups thousands of open calls and answers in linear time', () => {
  const items = [
    ...Array.from({ length: 50_000 }, () => named('x').call),
    ...Array.from({ length: 50_000 }, () => named('x').answer),
  ]
  const { joined, orphans } = groups(items)
  expect(joined).toHaveLength(50_000)
  expect(orphans).toEqual([])
})

test.each([
  ['an id that exists is kept', [{ id: 'a', name: 'search' }], ['a']],
  ['a missing id is made of the name', [{ name: 'search' }], ['call_search']],
  ['an empty id counts as missing', [{ id: '', name: 'search' }], ['call_search']],
  [
    'calls of one tool are numbered',
    [{ name: 's' }, { name: 's' }, { name: 's' }],
    ['call_s', 'call_s_2', 'call_s_3'],
  ],
  [
    'an id that exists is never taken, wherever it stands',
    [{ name: 's' }, { id: 'call_s', name: 's' }],
    ['call_s_2', 'call_s'],
  ],
])('in one message %s', (_, entries, expected) => {
  expect(idsWithin(entries)).toEqual(expected)
})

describe('the ids of a history', () => {
  const call = (id: string, name: string, at: number, turn = 0): CallItem => ({
    kind: 'call',
    id,
    name,
    at,
    turn,
  })
  const answer = (id: string, name: string, turn = 0): CallItem => ({
    kind: 'answer',
    id,
    name,
    at: 99,
    turn,
  })
  const ids = (items: readonly CallItem[], unique = false) =>
    identifyCalls(items, { unique }).map(({ id }) => id)

  test.each<[string, CallItem[], string[]]>([
    [
      'an answer without id takes the id of the open call of its name',
      [call('', 'search', 0), call('', 'read', 0), answer('', 'read'), answer('', 'search')],
      ['call_search', 'call_read', 'call_read', 'call_search'],
    ],
    [
      'parallel calls of one tool are answered in their order',
      [call('', 's', 0), call('', 's', 0), answer('', 's'), answer('', 's')],
      ['call_s', 'call_s_2', 'call_s', 'call_s_2'],
    ],
    [
      'a call of an earlier turn that nobody answered does not take the answer of a newer one',
      [call('', 's', 0, 0), call('', 's', 2, 1), answer('', 's', 1)],
      ['call_s', 'call_s_2', 'call_s_2'],
    ],
    [
      'a second answer to a call has the id of the same call',
      [call('x', 's', 0), answer('x', 's'), answer('x', 's')],
      ['x', 'x', 'x'],
    ],
    [
      'a second answer without an id has an id of its own',
      [call('', 's', 0), answer('', 's'), answer('', 's')],
      ['call_s', 'call_s', 'call_s_2'],
    ],
    [
      'an answer with an id finds a call of its name that has none',
      [call('', 's', 0), answer('wire-7', 's'), answer('wire-8', 's')],
      ['call_s', 'call_s', 'wire-8'],
    ],
    [
      'an answer without id and name takes the next open call of the last step',
      [
        call('a', 's', 0),
        answer('a', 's'),
        call('b', 's', 1),
        call('c', 't', 1),
        answer('', ''),
        answer('', ''),
      ],
      ['a', 'a', 'b', 'c', 'b', 'c'],
    ],
    [
      'doubled ids stay doubled unless asked otherwise',
      [call('x', 's', 0), call('x', 's', 1, 1)],
      ['x', 'x'],
    ],
  ])('in a history %s', (_, items, expected) => {
    expect(ids(items)).toEqual(expected)
  })

  test('a doubled call id is numbered, and each call keeps its own answer', () => {
    const items = [call('x', 's', 0), answer('x', 's'), call('x', 's', 2, 1), answer('x', 's', 1)]
    expect(ids(items, true)).toEqual(['x', 'x', 'x_2', 'x_2'])
  })

  test('ten thousand calls with one id get distinct ids in linear time', () => {
    const items = Array.from({ length: 10_000 }, (_, index) => call('x', 's', index))
    expect(new Set(ids(items, true)).size).toBe(10_000)
  })
})
