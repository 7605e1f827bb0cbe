import { describe, expect, test } from 'vitest'
import { groupCalls } from './call-groups.js'
import type { CallReference } from './pair-calls.js'

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

describe('groupCalls', () => {
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
      'an unknown id beside calls with ids',
      [call('a'), answer('z')],
      { joined: [], unanswered: [[0]], orphans: [1] },
    ],
    [
      'a row that asks and answers',
      [{ ...call('a'), ...answer('a') }],
      { joined: [], unanswered: [], orphans: [] },
    ],
  ])('%s', (_, items, expected) => {
    expect(groups(items)).toEqual(expected)
  })

  test('thousands of open calls and answers are paired in linear time', () => {
    const items = [
      ...Array.from({ length: 50_000 }, () => named('x').call),
      ...Array.from({ length: 50_000 }, () => named('x').answer),
    ]
    const { joined, orphans } = groups(items)
    expect(joined).toHaveLength(50_000)
    expect(orphans).toEqual([])
  })
})
