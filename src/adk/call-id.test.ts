import { describe, expect, test } from 'vitest'
import type { CallItem } from '../session/pair-calls.js'
import { identifyCalls, idsWithin } from './call-id.js'

describe('the ids of one message', () => {
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
  ])('%s', (_, entries, expected) => {
    expect(idsWithin(entries)).toEqual(expected)
  })
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
  ])('%s', (_, items, expected) => {
    expect(ids(items)).toEqual(expected)
  })

  test('a doubled id is numbered, and each call keeps its own answer', () => {
    const items = [call('x', 's', 0), answer('x', 's'), call('x', 's', 2, 1), answer('x', 's', 1)]
    expect(ids(items, true)).toEqual(['x', 'x', 'x_2', 'x_2'])
  })

  test('ten thousand calls with one id stay cheap and distinct', () => {
    const items = Array.from({ length: 10_000 }, (_, index) => call('x', 's', index))
    expect(new Set(ids(items, true)).size).toBe(10_000)
  })
})
