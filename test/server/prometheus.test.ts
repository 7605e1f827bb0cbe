import { expect, test } from 'vitest'
import { Registry } from '../../src/server/prometheus.js'

test('a Prometheus histogram has cumulative buckets and the sum', () => {
  const registry = new Registry()
  const seconds = registry.histogram('wait_seconds', 'Waiting \\ with\na break.', [0.5, 1])
  for (const value of [0.5, 0.7, 3]) seconds.observe(value, { model: 'a "b"' })
  expect(registry.toText().split('\n')).toEqual([
    '# HELP wait_seconds Waiting \\\\ with\\na break.',
    '# TYPE wait_seconds histogram',
    'wait_seconds_bucket{le="0.5",model="a \\"b\\""} 1',
    'wait_seconds_bucket{le="1",model="a \\"b\\""} 2',
    'wait_seconds_bucket{le="+Inf",model="a \\"b\\""} 3',
    'wait_seconds_sum{model="a \\"b\\""} 4.2',
    'wait_seconds_count{model="a \\"b\\""} 3',
    '',
  ])
})

test('infinite values and NaN are written in the syntax of Prometheus', () => {
  const registry = new Registry()
  const [one, other, third] = ['a', 'b', 'c'].map(name => registry.gauge(name, name))
  one?.set(Number.NaN)
  other?.set(Number.POSITIVE_INFINITY)
  third?.set(Number.NEGATIVE_INFINITY)
  expect(registry.toText().match(/^\w .*$/gm)).toEqual(['a NaN', 'b +Inf', 'c -Inf'])
})
