import { expect, test } from 'vitest'
import { isRecord } from './is-record.js'

test.each([[{}], [{ a: 1 }], [Object.create(null)], [new Date(0)], [new Map()], [/x/]])(
  '%o is a record',
  value => {
    expect(isRecord(value)).toBe(true)
  },
)

test.each([[null], [undefined], [[]], [[{}]], ['text'], [0], [true], [1n], [Symbol('s')], [() => ({})]])(
  '%o is not a record',
  value => {
    expect(isRecord(value)).toBe(false)
  },
)
