import { expect, test } from 'vitest'
import { formatTraceparent, parseTraceparent, readTraceContext } from './trace-context.js'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const SPAN = 'b7ad6b7169203331'
const VALID = `00-${TRACE}-${SPAN}-01`

test.each([
  ['a valid one', VALID, true],
  ['a later version with more fields', `cc-${TRACE}-${SPAN}-01-what-comes`, true],
  ['version 00 with more fields', `${VALID}-more`, false],
  ['the version that is forbidden', `ff-${TRACE}-${SPAN}-01`, false],
  ['a trace of zeros', `00-${'0'.repeat(32)}-${SPAN}-01`, false],
  ['a span of zeros', `00-${TRACE}-${'0'.repeat(16)}-01`, false],
  ['capital letters', VALID.toUpperCase(), false],
  ['nothing', '', false],
])('parseTraceparent of %s', (_name, text, isValid) => {
  expect(parseTraceparent(text) !== undefined).toBe(isValid)
})

test('trace and span ids are the same after writing and reading', () => {
  expect(formatTraceparent(parseTraceparent(VALID) ?? { traceId: '', spanId: '', traceFlags: 0 })).toBe(VALID)
})

test.each([
  ['both', { traceparent: VALID, tracestate: 'a=1' }, { traceparent: VALID, tracestate: 'a=1' }],
  [
    'two of them: the nearest',
    { traceparent: `00-${TRACE}-${'a'.repeat(16)}-00, ${VALID}` },
    { traceparent: VALID },
  ],
  ['a state that is too long', { traceparent: VALID, tracestate: 'a'.repeat(513) }, { traceparent: VALID }],
  ['a state alone', { tracestate: 'a=1' }, undefined],
  ['nonsense', { traceparent: 'nonsense', tracestate: 'a=1' }, undefined],
])('readTraceContext of headers with %s', (_name, headers: Record<string, string>, expected) => {
  expect(readTraceContext(name => headers[name])).toEqual(expected)
})
