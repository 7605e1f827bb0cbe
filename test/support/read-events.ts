import { readServerEvents } from '../../src/client/create-client.js'
import type { RunEvent } from '../../src/run/run-event.js'

/** All that one connection gives: no reconnecting, no leaving out. */
export async function readEvents(
  url: string,
  runId: string,
  options: { after?: number; lastEventId?: number; headers?: Record<string, string>; atMost?: number } = {},
): Promise<RunEvent[]> {
  const { after, lastEventId, headers = {}, atMost = Number.POSITIVE_INFINITY } = options
  const query = after === undefined ? '' : `?after=${after}`
  const response = await fetch(`${url}/api/runs/${runId}/events${query}`, {
    headers: { ...headers, ...(lastEventId === undefined ? {} : { 'last-event-id': String(lastEventId) }) },
  })
  if (response.status === 204) return []
  if (!response.ok || !response.body) throw new Error(`status ${response.status}: ${await response.text()}`)
  const events: RunEvent[] = []
  for await (const { event, data } of readServerEvents(response.body)) {
    if (event !== 'message') continue
    events.push(JSON.parse(data) as RunEvent)
    if (events.length >= atMost) break
  }
  return events
}

/** The numbers from one to the other, both included. */
export function numbers(from: number, to: number): number[] {
  return Array.from({ length: Math.max(0, to - from + 1) }, (_, index) => from + index)
}
