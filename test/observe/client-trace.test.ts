// The trace that the client of a server sends with its requests.
import { context, ROOT_CONTEXT, trace } from '@opentelemetry/api'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ClientOptions } from '../../src/client/client.js'
import { createClient } from '../../src/client/create-client.js'
import { useContextManager } from '../support/context-manager.js'

beforeAll(useContextManager)
afterAll(() => context.disable())

const SPAN = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', traceFlags: 1 }
const TRACEPARENT = `00-${SPAN.traceId}-${SPAN.spanId}-01`
const ACTIVE = trace.setSpanContext(ROOT_CONTEXT, SPAN)

/** The headers of a request that the client sends. */
async function sentHeaders(options: ClientOptions = {}): Promise<Headers> {
  let headers = new Headers()
  const fetch = async (_url: unknown, init?: RequestInit) => {
    headers = new Headers(init?.headers)
    return Response.json({})
  }
  await createClient({ baseUrl: 'http://127.0.0.1:1', fetch, ...options }).info()
  return headers
}

test('a client without an active span sends no traceparent', async () => {
  expect((await sentHeaders()).has('traceparent')).toBe(false)
})

test('a client sends the active span as traceparent', async () => {
  const headers = await context.with(ACTIVE, () => sentHeaders())
  expect(headers.get('traceparent')).toBe(TRACEPARENT)
})

test('a traceparent that is given to the client wins over the active span', async () => {
  const other = TRACEPARENT.replace(/01$/, '00')
  const given = { trace: () => ({ traceparent: other, tracestate: 'a=1' }) }
  const headers = await context.with(ACTIVE, () => sentHeaders(given))
  expect([headers.get('traceparent'), headers.get('tracestate')]).toEqual([other, 'a=1'])
  const none = await context.with(ACTIVE, () => sentHeaders({ trace: () => undefined }))
  expect(none.has('traceparent')).toBe(false)
})
