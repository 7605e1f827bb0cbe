import { register } from 'prom-client'
import { expect, onTestFinished, test } from 'vitest'
import { Metrics } from './metrics.js'

function started(): Metrics {
  const metrics = new Metrics()
  onTestFinished(() => metrics.close())
  return metrics
}

const IDLE = { runsRunning: 0, streamsOpen: 0 }

test('the text has these names, types and labels', async () => {
  const metrics = started()
  metrics.runStarted()
  metrics.runFinished('stop')
  metrics.runFinished('stop')
  metrics.runFinished('error')
  metrics.runResumed()
  metrics.callUnknown()
  metrics.eventsSent(5)
  metrics.streamDropped()
  metrics.request('api', 202)
  const text = await metrics.toText({ runsRunning: 2, streamsOpen: 3, runsWaiting: 4 })
  const measured = text.replaceAll(/^(lango_event_loop\w+|process_\w+|nodejs_\w+) [\d.e+-]+$/gm, '$1 _')
  expect(measured.split('\n').filter(line => !line.startsWith('# HELP'))).toEqual([
    '# TYPE lango_runs_started_total counter',
    'lango_runs_started_total 1',
    '# TYPE lango_runs_finished_total counter',
    'lango_runs_finished_total{reason="stop"} 2',
    'lango_runs_finished_total{reason="error"} 1',
    '# TYPE lango_runs_resumed_total counter',
    'lango_runs_resumed_total 1',
    '# TYPE lango_runs_waiting gauge',
    'lango_runs_waiting 4',
    '# TYPE lango_runs_running gauge',
    'lango_runs_running 2',
    '# TYPE lango_tool_calls_unknown_total counter',
    'lango_tool_calls_unknown_total 1',
    '# TYPE lango_streams_open gauge',
    'lango_streams_open 3',
    '# TYPE lango_streams_dropped_total counter',
    'lango_streams_dropped_total 1',
    '# TYPE lango_events_sent_total counter',
    'lango_events_sent_total 5',
    '# TYPE lango_http_requests_total counter',
    'lango_http_requests_total{route="api",status="202"} 1',
    '# TYPE lango_event_loop_lag_seconds gauge',
    'lango_event_loop_lag_seconds _',
    '# TYPE lango_event_loop_lag_p99_seconds gauge',
    'lango_event_loop_lag_p99_seconds _',
    '# TYPE process_resident_memory_bytes gauge',
    'process_resident_memory_bytes _',
    '# TYPE nodejs_heap_size_used_bytes gauge',
    'nodejs_heap_size_used_bytes _',
    '# TYPE process_uptime_seconds gauge',
    'process_uptime_seconds _',
    '',
  ])
})

test('counters without labels begin at zero', async () => {
  expect(await started().toText(IDLE)).toMatch(/^lango_runs_started_total 0$/m)
})

test('a label with quotes and line breaks is escaped', async () => {
  const metrics = started()
  metrics.runFinished('a "b"\nc')
  expect(await metrics.toText(IDLE)).toContain('lango_runs_finished_total{reason="a \\"b\\"\\nc"} 1\n')
})

test('two servers in a process count apart, and nothing is put into the registry that applications share', async () => {
  const [one, other] = [started(), started()]
  one.runStarted()
  expect(await one.toText(IDLE)).toMatch(/^lango_runs_started_total 1$/m)
  expect(await other.toText(IDLE)).toMatch(/^lango_runs_started_total 0$/m)
  expect(register.getMetricsAsArray()).toEqual([])
})
