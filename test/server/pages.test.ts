import { rmSync, writeFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { brotliCompressSync } from 'node:zlib'
import { expect, onTestFinished, test } from 'vitest'
import { checkedStore } from '../../src/store/checked-store.js'
import { parseStoreUrl } from '../../src/store/open-store.js'
import { sql } from '../../src/store/sql-database.js'
import { openSqlStore } from '../../src/store/sql-store.js'
import { openSqlite } from '../../src/store/sqlite.js'
import { createStoreDatabase } from '../support/postgres.js'
import { rawRequest } from '../support/raw-request.js'
import { startServer } from '../support/start-server.js'
import { temporaryFolder } from '../support/temporary-folder.js'

test('the page is revalidated every time, its files are cached forever, and compressed where possible', async () => {
  const folder = await temporaryFolder()
  await mkdir(`${folder}/assets`, { recursive: true })
  await writeFile(`${folder}/index.html`, '<p>the page</p>')
  await writeFile(`${folder}/icon.svg`, '<svg/>')
  await writeFile(`${folder}/assets/app-0a1b2c3d.js`, 'app()')
  await writeFile(`${folder}/assets/app-0a1b2c3d.js.br`, brotliCompressSync('app()'))
  await writeFile(`${folder}/assets/only-0a1b2c3d.js.br`, brotliCompressSync('only()'))
  await writeFile(`${folder}/assets/app-0a1b2c3d.js.map`, '{}')
  await writeFile(`${folder}/assets/diagram-0a1b2c3d.html`, '<p>draws</p>')
  const { url } = await startServer({ webRoot: folder })
  for (const path of ['/', '/s/some-session', '/s/a%2Fb', '/index.html']) {
    const page = await rawRequest(url, path)
    expect([page.status, page.text, page.headers['cache-control']]).toEqual([
      200,
      '<p>the page</p>',
      'no-cache',
    ])
  }
  const plain = await rawRequest(url, '/assets/app-0a1b2c3d.js')
  expect(plain.headers['cache-control']).toBe('public, max-age=31536000, immutable')
  expect(plain.headers['content-type']).toBe('text/javascript; charset=utf-8')
  const small = await fetch(`${url}/assets/app-0a1b2c3d.js`, { headers: { 'accept-encoding': 'br' } })
  expect(small.headers.get('content-encoding')).toBe('br')
  expect(await small.text()).toBe('app()')
  // The published package has large files only compressed; a client that takes them so gets them so.
  const only = await rawRequest(url, '/assets/only-0a1b2c3d.js')
  expect([only.status, only.text, only.headers['content-encoding']]).toEqual([200, 'only()', undefined])
  const packed = await fetch(`${url}/assets/only-0a1b2c3d.js`, { headers: { 'accept-encoding': 'br' } })
  expect([packed.headers.get('content-encoding'), await packed.text()]).toEqual(['br', 'only()'])
  expect((await rawRequest(url, '/assets/only-0a1b2c3d.js.br')).status).toBe(404)
  expect((await rawRequest(url, '/icon.svg')).headers['cache-control']).toBe('no-cache')
  // Only the frame that draws diagrams may use inline styles, and it has no origin.
  const policies = async (path: string) => (await rawRequest(url, path)).headers['content-security-policy']
  expect(await policies('/')).toContain("style-src 'self';")
  expect(await policies('/assets/app-0a1b2c3d.js')).toContain("frame-ancestors 'none'")
  expect(await policies('/assets/diagram-0a1b2c3d.html')).toMatch(
    /^sandbox allow-scripts; default-src 'none';.*frame-ancestors 'self'$/,
  )
  expect((await rawRequest(url, '/assets/app-0a1b2c3d.js.map')).status).toBe(404)
  expect((await rawRequest(url, '/assets/gone-0a1b2c3d.js')).status).toBe(404)
})

test('a server without a built page responds with how to build it', async () => {
  const { url } = await startServer({ webRoot: `${await temporaryFolder()}/nothing` })
  const page = await rawRequest(url, '/')
  expect(page.status).toBe(503)
  expect(page.text).toContain('npm run build')
})

test('the API is described by an OpenAPI 3.1 document and a page that loads nothing from elsewhere', async () => {
  const { url } = await startServer()
  const document = (await rawRequest(url, '/api/openapi.json')).json()
  expect(document.openapi).toBe('3.1.0')
  const operations = Object.entries<object>(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map(method => `${method} ${path}`),
  )
  expect(operations).toHaveLength(38)
  expect(operations).toContain('post /api/runs/{runId}/resume')
  expect(operations).toContain('get /api/runs/{runId}/events')
  const references = JSON.stringify(document).match(/#\/components\/schemas\/\w+/g) ?? []
  expect(references.length).toBeGreaterThan(10)
  for (const reference of references)
    expect(document.components.schemas).toHaveProperty(reference.split('/').at(-1) ?? '')
  const page = await rawRequest(url, '/api/docs')
  expect(page.headers['content-type']).toContain('text/html')
  for (const path of Object.keys(document.paths)) expect(page.text).toContain(path)
  expect(page.text).not.toMatch(/(src|href)="(https?:)?\/\/|<script|style=/)
  const style = await rawRequest(url, '/api/docs.css')
  expect([style.status, style.headers['content-type']]).toEqual([200, 'text/css; charset=utf-8'])
})

test('/api/health, /api/ready and /metrics report the state of the server', async () => {
  const { url, client } = await startServer()
  expect((await rawRequest(url, '/api/health')).json()).toEqual({ status: 'ok' })
  expect((await rawRequest(url, '/api/ready')).json()).toEqual({ status: 'ready' })
  const { runId } = await client.start('s1', { text: 'say 2' })
  let sent = 0
  for await (const _event of client.follow(runId)) sent += 1
  await expect.poll(async () => (await rawRequest(url, '/metrics')).text).toContain('lango_runs_running 0')
  const { text } = await rawRequest(url, '/metrics')
  expect(text).toContain('lango_runs_started_total 1\n')
  expect(text).toContain('lango_runs_finished_total{reason="stop"} 1\n')
  expect(text).toContain(`lango_events_sent_total ${sent}\n`)
  expect(text).toMatch(/^lango_model_call_duration_seconds_count\{model="play\/model",outcome="ok"\} 1$/m)
  expect(text).toMatch(/^lango_model_time_to_first_token_seconds_count\{model="play\/model"\} 1$/m)
  expect(text).toMatch(/^lango_model_tokens_total\{model="play\/model",type="input"\} \d+$/m)
  expect(text).toMatch(/lango_http_requests_total\{route="api",status="202"\} 1/)
  for (const line of text.trim().split('\n'))
    expect(line).toMatch(/^(# (HELP|TYPE) |[a-z_0-9]+(\{[^}]*\})? [\d.e-]+$)/)
})

test('an unknown path gets a problem document', async () => {
  const { url } = await startServer()
  const answer = await rawRequest(url, '/api/nothing')
  expect(answer.status).toBe(404)
  expect(answer.headers['content-type']).toContain('application/problem+json')
  expect(answer.json()).toMatchObject({ code: 'not-found', type: 'urn:lango:problem:not-found', status: 404 })
})

test('a server whose disk is full is not ready after a failed write, until there is space again', async () => {
  const location = parseStoreUrl(`sqlite:${join(await temporaryFolder(), 'lango.db')}`)
  if (location.driver !== 'sqlite') throw new TypeError('not a file')
  const database = await openSqlite(location)
  const pragma = async (name: string, value = '') =>
    Number(Object.values((await database.run(sql(`PRAGMA ${name}${value}`)))[0] ?? {})[0])
  const store = checkedStore(await openSqlStore(database))
  onTestFinished(() => store.close())
  const { url, runtime } = await startServer({ store })
  expect((await rawRequest(url, '/api/ready')).status).toBe(200)
  await pragma('max_page_count', ` = ${await pragma('page_count')}`)
  const long = { sessionId: 's1', text: `say 1 ${'x'.repeat(200_000)}` }
  await expect(runtime.runAndCollect(long)).rejects.toMatchObject({ code: 'store-unavailable' })
  for (const _time of [1, 2]) expect((await rawRequest(url, '/api/ready')).status).toBe(503)
  const atOnce = await Promise.all([1, 2, 3].map(() => rawRequest(url, '/api/ready')))
  expect(atOnce.map(({ status }) => status)).toEqual([503, 503, 503])
  await pragma('max_page_count', ' = 1000000')
  expect((await rawRequest(url, '/api/ready')).status).toBe(200)
  expect(await store.listSessions({ appName: 'lango:probe' })).toMatchObject({ sessions: [] })
  expect(await runtime.runAndCollect(long)).toMatchObject({ finishReason: 'stop' })
})

test('a server whose database server has a full disk is not ready after a failed write, until there is space again', async () => {
  const database = await createStoreDatabase()
  onTestFinished(() => database.drop())
  const { url, runtime } = await startServer({ store: database.url })
  await database.query(`CREATE FUNCTION is_full() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$`)
  await database.query(
    'CREATE TRIGGER full_disk BEFORE INSERT ON lango_sessions FOR EACH ROW EXECUTE FUNCTION is_full()',
  )
  expect((await rawRequest(url, '/api/ready')).status).toBe(200)
  await expect(runtime.runAndCollect({ sessionId: 's1', text: 'say 1' })).rejects.toMatchObject({
    code: 'store-unavailable',
  })
  for (const _time of [1, 2]) expect((await rawRequest(url, '/api/ready')).status).toBe(503)
  await database.query('DROP TRIGGER full_disk ON lango_sessions')
  expect((await rawRequest(url, '/api/ready')).status).toBe(200)
  await runtime.close()
})

test('hidden files of the page, such as the stamp of its build, are not served', async () => {
  const webRoot = await temporaryFolder()
  for (const name of ['index.html', '.digest', '.digest.br']) writeFileSync(join(webRoot, name), name)
  const { url } = await startServer({ webRoot })
  expect((await rawRequest(url, '/index.html')).status).toBe(200)
  expect((await rawRequest(url, '/.digest')).status).toBe(404)
})

test('a server whose database file was deleted is not ready and accepts no run', async () => {
  const file = join(await temporaryFolder(), 'lango.db')
  const { url, runtime } = await startServer({ store: `sqlite:${file}` })
  expect((await rawRequest(url, '/api/ready')).status).toBe(200)
  rmSync(file)
  const answer = await rawRequest(url, '/api/ready')
  expect(answer.status).toBe(503)
  expect(answer.text).not.toContain(file)
  await expect(runtime.runAndCollect({ sessionId: 's1', text: 'say 1' })).rejects.toMatchObject({
    code: 'store-unavailable',
  })
  expect((await rawRequest(url, '/api/health')).status).toBe(200)
})
