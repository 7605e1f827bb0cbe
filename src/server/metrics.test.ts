import { expect, onTestFinished, test } from 'vitest'
import { Metrics } from './metrics.js'

function started(): Metrics {
  const metrics = new Metrics()
  onTestFinished(() => metrics.close())
  return metrics
}

const IDLE = { runsRunning: 0, streamsOpen: 0 }

test('the text of /metrics has these names, types and labels', async () => {
  const metrics = started()
  metrics.runStarted()
  metrics.runFinished('stop')
  metrics.runFinished('stop')
  metrics.runFinished('error')
  metrics.runResumed('play/m')
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
    'lango_runs_resumed_total{model="play/m"} 1',
    '# TYPE lango_runs_waiting gauge',
    'lango_runs_waiting 4',
    '# TYPE lango_runs_running gauge',
    'lango_runs_running 2',
    '# TYPE lango_tool_calls_unknown_total counter',
    'lango_tool_calls_unknown_total 1',
    '# TYPE lango_model_tokens_total counter',
    '# TYPE lango_model_cost_usd_total counter',
    '# TYPE lango_model_call_duration_seconds histogram',
    '# TYPE lango_model_time_to_first_token_seconds histogram',
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

const USAGE = {
  inputTokens: 100,
  outputTokens: 20,
  cachedInputTokens: 60,
  cacheWriteTokens: 10,
  reasoningTokens: 5,
  totalTokens: 120,
  cost: 0.25,
}

test('model calls are counted by model: tokens, cost, duration and the time to the first token', async () => {
  const metrics = started()
  const call = { model: 'openai/gpt-5.2', durationMs: 3000, firstChunkMs: 400, usage: USAGE }
  metrics.modelCalled(call)
  metrics.modelCalled(call)
  metrics.modelCalled({ model: 'openai/gpt-5.2', durationMs: 100, error: 'provider-overloaded' })
  const lines = (await metrics.toText(IDLE)).split('\n')
  const of = (name: string) => lines.filter(line => line.startsWith(name))
  expect(of('lango_model_tokens_total{')).toEqual([
    'lango_model_tokens_total{model="openai/gpt-5.2",type="input"} 200',
    'lango_model_tokens_total{model="openai/gpt-5.2",type="output"} 40',
    'lango_model_tokens_total{model="openai/gpt-5.2",type="cache_read"} 120',
    'lango_model_tokens_total{model="openai/gpt-5.2",type="cache_write"} 20',
    'lango_model_tokens_total{model="openai/gpt-5.2",type="reasoning"} 10',
  ])
  expect(of('lango_model_cost_usd_total{')).toEqual([
    'lango_model_cost_usd_total{model="openai/gpt-5.2"} 0.5',
  ])
  expect(lines).toEqual(
    expect.arrayContaining([
      'lango_model_call_duration_seconds_count{model="openai/gpt-5.2",outcome="ok"} 2',
      'lango_model_call_duration_seconds_sum{model="openai/gpt-5.2",outcome="ok"} 6',
      'lango_model_call_duration_seconds_count{model="openai/gpt-5.2",outcome="provider-overloaded"} 1',
      'lango_model_time_to_first_token_seconds_count{model="openai/gpt-5.2"} 2',
      'lango_model_time_to_first_token_seconds_bucket{le="0.5",model="openai/gpt-5.2"} 2',
      'lango_model_time_to_first_token_seconds_bucket{le="0.25",model="openai/gpt-5.2"} 0',
    ]),
  )
})

test('the number of models in the metrics is bounded, whatever callers request', async () => {
  const metrics = started()
  for (let number = 0; number < 150; number++)
    metrics.modelCalled({ model: `openai/m${number}`, durationMs: 1 })
  const text = await metrics.toText(IDLE)
  expect(text).toContain('lango_model_call_duration_seconds_count{model="other",outcome="ok"} 50\n')
  expect(text).not.toContain('openai/m120')
})

test('metric counters without labels begin at zero', async () => {
  expect(await started().toText(IDLE)).toMatch(/^lango_runs_started_total 0$/m)
})

test('a metric label with quotes and line breaks is escaped', async () => {
  const metrics = started()
  metrics.runFinished('a "b"\nc')
  expect(await metrics.toText(IDLE)).toContain('lango_runs_finished_total{reason="a \\"b\\"\\nc"} 1\n')
})

test('two servers in one process have separate metrics', async () => {
  const [one, other] = [started(), started()]
  one.runStarted()
  expect(await one.toText(IDLE)).toMatch(/^lango_runs_started_total 1$/m)
  expect(await other.toText(IDLE)).toMatch(/^lango_runs_started_total 0$/m)
})
