/**
 * Measures the event loop of the process that loads it, and reports to the parent by IPC. Three uses: preloaded into
 * a server (`--import`), as a process that does nothing else (the control), and with a URL as a client that requests
 * it every few milliseconds.
 */
import { readFileSync } from 'node:fs'
import { Agent, get } from 'node:http'
import { pathToFileURL } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** What a watched process reports, in milliseconds. */
export interface LoopReport {
  samples: number
  /** How long the loop was held: its delay without the time in which the process waited for a processor. */
  p999: number
  max: number
  /** The longest delay by the clock. */
  clock: number
  health: { samples: number; p999: number; max: number; failed: number }
}

export interface MemoryReport {
  rss: number
  heap: number
  external: number
}

const TICK_MS = 5
const PAUSE_MS = 5
const MOST_SAMPLES = 1_000_000

if (process.send) {
  let delays: number[] = []
  let clock = 0
  let latencies: number[] = []
  let failed = 0
  let last = performance.now()
  let waited = waitedMs()
  const tick = setInterval(() => {
    const now = performance.now()
    const waitedNow = waitedMs()
    const delay = now - last - TICK_MS
    clock = Math.max(clock, delay)
    if (delays.length < MOST_SAMPLES) delays.push(Math.max(0, delay - (waitedNow - waited)))
    last = performance.now()
    waited = waitedNow
  }, TICK_MS)
  tick.unref()
  process.on('message', (message: { ask: string; id: number }) => {
    if (message.ask === 'reset') {
      delays = []
      latencies = []
      failed = 0
      clock = 0
      waited = waitedMs()
      last = performance.now()
    }
    if (message.ask === 'collect') collectGarbage()
    const report: LoopReport & { memory: MemoryReport } = {
      samples: delays.length,
      ...quantiles(delays),
      clock,
      health: { samples: latencies.length, ...quantiles(latencies), failed },
      memory: memory(),
    }
    process.send?.({ id: message.id, report })
  })
  // The benchmark may have failed: nothing may be left running.
  process.on('disconnect', () => process.exit())
  const isMain = import.meta.url === pathToFileURL(process.argv[1] ?? '').href
  if (isMain) tick.ref()
  else process.channel?.unref()
  const url = isMain ? process.argv[2] : undefined
  if (url !== undefined) {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const request = () => {
      const started = performance.now()
      const again = (isOk: boolean) => {
        if (!isOk) failed += 1
        latencies.push(performance.now() - started)
        setTimeout(request, PAUSE_MS)
      }
      get(url, { agent }, response => {
        response.resume()
        response.once('end', () => again(response.statusCode === 200))
      }).once('error', () => again(false))
    }
    request()
  }
}

/** How long the main thread has waited for a processor: on a busy machine most of a delay. Linux only. */
function waitedMs(): number {
  try {
    return Number(readFileSync('/proc/self/schedstat', 'utf8').split(' ')[1]) / 1e6
  } catch {
    return 0
  }
}

function quantiles(samples: readonly number[]): { p999: number; max: number } {
  const sorted = [...samples].sort((one, other) => one - other)
  return {
    p999: sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * 0.999))] ?? 0,
    max: sorted.at(-1) ?? 0,
  }
}

function memory(): MemoryReport {
  const { rss, heapUsed, external } = process.memoryUsage()
  return { rss, heap: heapUsed, external }
}

function collectGarbage(): void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  collect()
}
