import { describe, expect, test } from 'vitest'
import { CallIds, idsWithin } from './call-id.js'

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

describe('a walk through a history', () => {
  const from = (group: number) => ({ author: 'agent', group })

  test('an answer without id takes the id of the open call of its name', () => {
    const ids = new CallIds()
    ids.call(undefined, 'search', from(0))
    ids.call(undefined, 'read', from(0))
    expect(ids.answer(undefined, 'read')?.id).toBe('call_read')
    expect(ids.answer(undefined, 'search')?.id).toBe('call_search')
  })

  test('parallel calls of one tool are answered in their order', () => {
    const ids = new CallIds()
    const calls = [ids.call('', 's', from(0)), ids.call('', 's', from(0))]
    expect([ids.answer('', 's')?.id, ids.answer('', 's')?.id]).toEqual(calls)
  })

  test('a call of an earlier turn that nobody answered does not take the answer of a newer one', () => {
    const ids = new CallIds()
    ids.call('', 's', from(0))
    ids.newTurn()
    const newer = ids.call('', 's', from(2))
    expect(ids.answer('', 's')?.id).toBe(newer)
  })

  test('a doubled id is numbered, and each call keeps its own answer', () => {
    const ids = new CallIds({ existing: ['x'], unique: true })
    const first = ids.call('x', 's', from(0))
    const firstAnswer = ids.answer('x', 's')?.id
    ids.newTurn()
    const second = ids.call('x', 's', from(2))
    expect([first, firstAnswer]).toEqual(['x', 'x'])
    expect([second, ids.answer('x', 's')?.id]).toEqual(['x_2', 'x_2'])
  })

  test('doubled ids stay doubled unless asked otherwise', () => {
    const ids = new CallIds({ existing: ['x'] })
    expect([ids.call('x', 's', from(0)), ids.call('x', 's', from(1))]).toEqual(['x', 'x'])
  })

  test('a second answer to a call belongs to the same call', () => {
    const ids = new CallIds()
    ids.call('x', 's', from(0))
    expect([ids.answer('x', 's')?.id, ids.answer('x', 's')?.id]).toEqual(['x', 'x'])
  })

  test('an answer with an id finds a call of its name that has none', () => {
    const ids = new CallIds()
    ids.call('', 's', from(0))
    expect(ids.answer('wire-7', 's')?.id).toBe('call_s')
    expect(ids.answer('wire-8', 's')).toBeUndefined()
  })

  test('an answer without id and name takes the next open call of the last message with calls', () => {
    const ids = new CallIds()
    ids.call('a', 's', from(0))
    ids.call('b', 's', from(1))
    ids.call('c', 't', from(1))
    expect(ids.answer('', '')?.id).toBe('b')
    expect(ids.answer('', '')?.id).toBe('c')
    expect(ids.answer('', '')).toBeUndefined()
  })

  test('ten thousand calls with one id stay cheap and distinct', () => {
    const ids = new CallIds({ existing: ['x'], unique: true })
    const given = Array.from({ length: 10_000 }, (_, index) => ids.call('x', 's', from(index)))
    expect(new Set(given).size).toBe(10_000)
  })
})
