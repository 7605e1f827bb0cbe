/** The published description, held against what the server really answers: every route, every field. */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { rawRequest } from '../support/raw-request.js'
import { startServer } from '../support/start-server.js'

interface Schema {
  $ref?: string
  type?: string
  enum?: unknown[]
  anyOf?: Schema[]
  allOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: unknown
  items?: Schema
}

interface Operation {
  operationId: string
  summary: string
  parameters?: { name: string; in: string; required?: boolean }[]
  requestBody?: { content: Record<string, { schema: Schema & { example?: unknown } }> }
  responses: Record<string, { description: string; content?: Record<string, { schema: Schema }> }>
}

interface Document {
  openapi: string
  info: { title: string; version: string }
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, Schema>; securitySchemes: Record<string, object> }
  security: Record<string, string[]>[]
}

const TRANSCRIPT = Buffer.from('[{"role":"user","content":"Hi"}]').toString('base64')

const describedBy = (url: string): Promise<Document> =>
  rawRequest(url, '/api/openapi.json').then(answer => answer.json())

test('the OpenAPI document is consistent: references resolve, operation ids are unique, path parameters are declared', async () => {
  const { url } = await startServer()
  const document = await describedBy(url)
  expect(document.openapi).toBe('3.1.0')
  const names = document.components.schemas
  for (const [, reference = ''] of JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)) {
    expect(Object.keys(names).map(name => `#/components/schemas/${name}`)).toContain(reference)
  }
  for (const wanted of document.security.flatMap(Object.keys)) {
    expect(Object.keys(document.components.securitySchemes)).toContain(wanted)
  }
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.values(methods).map(operation => ({ path, ...operation })),
  )
  expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(operations.length)
  for (const { path, summary, parameters = [], requestBody, responses } of operations) {
    const named = [...path.matchAll(/\{(\w+)\}/g)].map(match => match[1])
    const inPath = parameters.filter(parameter => parameter.in === 'path' && parameter.required)
    expect(inPath.map(({ name }) => name)).toEqual(named)
    expect(summary).not.toBe('')
    expect(responses.default?.content?.['application/problem+json']).toBeDefined()
    const body = requestBody?.content['application/json']?.schema
    if (body) expect(mistakes(document, body, body.example, 'example')).toEqual([])
  }
})

test('every route responds as the OpenAPI document says, without a field that it does not name', async () => {
  const { url, client, runtime } = await startServer()
  const document = await describedBy(url)
  const { runId } = await client.start('s1', { text: 'search' })
  for await (const _event of client.follow(runId));
  const note = {
    text: 'A search.',
    kind: 'fact',
    priority: 1,
    time: 1,
    fromSeq: 1,
    toSeq: 1,
    origin: 'digest',
  } as const
  const key = { appName: 'lango', userId: 'user', sessionId: 's1' }
  await runtime.store.memory.observe(key, { observations: [note] })
  const waiting = await client.start('s2', { text: 'danger' })
  for await (const { type } of client.follow(waiting.runId)) if (type === 'approval-request') break
  const broken = await client.openBroken('lost-ids')
  const calls: [string, string, string, object?][] = [
    ['get', '/api/gallery', '/api/gallery'],
    ['post', '/api/gallery/{id}/open', '/api/gallery/lost-ids/open'],
    ['post', '/api/gallery/{id}/send', '/api/gallery/lost-ids/send'],
    ['post', '/api/sessions/{sessionId}/heal', `/api/sessions/${broken.sessionId}/heal`, {}],
    ['post', '/api/lint', '/api/lint', { text: '{"messages":[{"role":"tool","content":"ok"}]}' }],
    ['get', '/api/search', '/api/search?text=search&limit=1'],
    ['get', '/api/sessions/{sessionId}/export', '/api/sessions/s1/export'],
    ['post', '/api/import', '/api/import', { name: 'a.json', data: TRANSCRIPT }],
    ['get', '/api/health', '/api/health'],
    ['get', '/api/ready', '/api/ready'],
    ['get', '/api/info', '/api/info'],
    ['get', '/api/models', '/api/models'],
    ['get', '/api/sessions', '/api/sessions?limit=1'],
    ['post', '/api/sessions', '/api/sessions', { sessionId: 's3', title: 'Three' }],
    ['get', '/api/sessions/{sessionId}', '/api/sessions/s2'],
    ['patch', '/api/sessions/{sessionId}', '/api/sessions/s3', { title: 'III' }],
    ['delete', '/api/sessions/{sessionId}', '/api/sessions/s3'],
    ['get', '/api/sessions/{sessionId}/messages', '/api/sessions/s1/messages'],
    ['get', '/api/sessions/{sessionId}/memory', '/api/sessions/s1/memory'],
    ['patch', '/api/sessions/{sessionId}/memory/{number}', '/api/sessions/s1/memory/1', { text: 'Mine.' }],
    ['patch', '/api/sessions/{sessionId}/memory/{number}', '/api/sessions/s1/memory/9', { text: 'Mine.' }],
    ['delete', '/api/sessions/{sessionId}/memory/{number}', '/api/sessions/s1/memory/1'],
    ['delete', '/api/sessions/{sessionId}/memory', '/api/sessions/s1/memory'],
    ['get', '/api/sessions/{sessionId}/lint', '/api/sessions/s1/lint'],
    ['get', '/api/sessions/{sessionId}/variants', '/api/sessions/s1/variants'],
    ['patch', '/api/sessions/{sessionId}', '/api/sessions/s1', { variantOf: 's2' }],
    ['post', '/api/sessions/{sessionId}/fork', '/api/sessions/s1/fork', { throughSeq: 1 }],
    ['get', '/api/sessions/{sessionId}/runs', '/api/sessions/s1/runs'],
    ['post', '/api/sessions/{sessionId}/runs', '/api/sessions/s4/runs', { text: 'say 1' }],
    ['get', '/api/runs/{runId}', `/api/runs/${runId.toUpperCase()}`],
    ['get', '/api/runs/{runId}/inspect', `/api/runs/${runId}/inspect`],
    ['get', '/api/runs/{runId}/events', `/api/runs/${runId}/events?after=0`],
    ['get', '/api/runs/{runId}/events', `/api/runs/${runId}/events?after=1000`],
    ['get', '/api/usage', '/api/usage?from=2026-01-01'],
    ['get', '/api/schedules', '/api/schedules'],
    ['post', '/api/hooks/{name}', '/api/hooks/nothing', {}],
    ['post', '/api/runs/{runId}/go-on', `/api/runs/${runId}/go-on`, { budget: { perRunUsd: 1 } }],
    ['post', '/api/runs/{runId}/resume', `/api/runs/${waiting.runId}/resume`],
    [
      'post',
      '/api/runs/{runId}/approvals/{callId}',
      `/api/runs/${waiting.runId}/approvals/call-danger`,
      { answer: 'no' },
    ],
    ['post', '/api/runs/{runId}/stop', `/api/runs/${waiting.runId}/stop`],
    ['get', '/api/runs/{runId}', `/api/runs/${randomUUID()}`],
    ['get', '/api/sessions/{sessionId}/messages', '/api/sessions/s1/messages?limit=0'],
    ['delete', '/api/users/{userId}/data', '/api/users/somebody/data'],
    ['delete', '/api/users/{userId}/data', '/api/users/user/data'],
  ]
  for (const [method, path, address, body] of calls) {
    const answer = await rawRequest(url, address, {
      method: method.toUpperCase(),
      ...(body ? { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } } : {}),
    })
    const responses = document.paths[path]?.[method]?.responses ?? {}
    const described = responses[answer.status] ?? responses.default
    const [mediaType = '', media] = Object.entries(described?.content ?? {})[0] ?? []
    const where = `${method} ${address}: ${answer.status}`
    expect([where, String(answer.headers['content-type'] ?? '').split(';')[0]]).toEqual([where, mediaType])
    expect(answer.status < 400 === (described === responses[answer.status])).toBe(true)
    for (const value of valuesIn(answer.text, mediaType)) {
      expect(mistakes(document, media?.schema, value, where)).toEqual([])
    }
  }
  const driven = new Set(calls.map(([method, path]) => `${method} ${path}`))
  const known = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map(method => `${method} ${path}`),
  )
  expect([...driven].sort()).toEqual(known.sort())
})

function valuesIn(text: string, mediaType: string): unknown[] {
  if (mediaType === 'application/x-ndjson') return [text]
  if (mediaType !== 'text/event-stream') return text === '' ? [] : [JSON.parse(text)]
  return [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data))
}

/** What a value has against a schema, as far as the schemas of this API go. */
function mistakes(document: Document, schema: Schema | undefined, value: unknown, where: string): string[] {
  if (!schema) return [`${where}: no schema`]
  const whole = merged(document, schema)
  if (whole.anyOf) {
    const fits = whole.anyOf.some(one => mistakes(document, one, value, where).length === 0)
    return fits ? [] : [`${where}: fits none of several`]
  }
  if (whole.enum && !whole.enum.includes(value)) return [`${where}: ${JSON.stringify(value)} is not listed`]
  if (whole.type && whole.type !== typeOf(value, whole.type)) return [`${where}: is no ${whole.type}`]
  if (Array.isArray(value)) {
    return value.flatMap((entry, index) => mistakes(document, whole.items, entry, `${where}.${index}`))
  }
  if (typeof value !== 'object' || value === null) return []
  const { properties = {}, required = [], additionalProperties } = whole
  const missing = required.filter(name => !(name in value)).map(name => `${where}.${name}: is missing`)
  const found = Object.entries(value).flatMap(([name, entry]) => {
    if (properties[name]) return mistakes(document, properties[name], entry, `${where}.${name}`)
    return additionalProperties === undefined ? [`${where}.${name}: is not described`] : []
  })
  return [...missing, ...found]
}

function merged(document: Document, schema: Schema): Schema {
  const name = schema.$ref?.split('/').at(-1)
  const own = name === undefined ? schema : (document.components.schemas[name] ?? {})
  const parts = (own.allOf ?? []).map(part => merged(document, part))
  return {
    ...own,
    properties: Object.assign({}, ...parts.map(part => part.properties), own.properties),
    required: [...parts.flatMap(part => part.required ?? []), ...(own.required ?? [])],
  }
}

function typeOf(value: unknown, wanted: string): string {
  if (Array.isArray(value)) return 'array'
  return wanted === 'integer' && Number.isInteger(value) ? 'integer' : typeof value
}
