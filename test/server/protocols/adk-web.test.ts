// The routes that ADK's own page needs besides those of ADK's API. The page itself, in a browser, is in test/clients/adk-web.
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../../support/temporary-folder.js'
import { AdkClient } from './adk-client.js'
import { searchThenTell, startProtocolServer } from './support.js'

const SESSION = '/apps/lango/users/user/sessions/s1'
const PREFIXES = ['/apps/lango', '/dev/apps/lango']

interface Span {
  name: string
  span_id: string
  parent_span_id: string | null
}

/** A server with one conversation in which the agent has called a tool. */
async function startWithRun() {
  const { url } = await startProtocolServer({ script: searchThenTell })
  const client = new AdkClient(url, 'lango', 'user')
  await client.createSession('s1')
  await client.run({ sessionId: 's1', text: 'apples' })
  const { events } = await client.getSession('s1')
  const read = async (path: string) => {
    const response = await fetch(`${url}${path}`)
    return { status: response.status, body: (await response.json()) as unknown }
  }
  return { url, read, answerId: events.at(-1)?.id ?? '' }
}

test('GET /version returns the version of the server in ADK’s form', async () => {
  const { url } = await startProtocolServer()
  const response = await fetch(`${url}/version`)
  expect(await response.json()).toEqual({
    version: '0.0.0-test',
    language: 'TypeScript',
    language_version: '',
  })
})

test.each(['', '/dev/apps/lango'])(
  'ADK’s trace routes under "%s" return the spans of a session and the request of an answer',
  async prefix => {
    const { read, answerId } = await startWithRun()
    const { body: spans } = await read(`${prefix}/debug/trace/session/s1`)
    const [root, ...rest] = spans as Span[]
    expect(root).toMatchObject({ name: 'invocation', parent_span_id: null })
    expect(rest.map(({ name }) => name)).toEqual(['call_llm', 'execute_tool search', 'call_llm'])
    expect(rest.every(({ parent_span_id }) => parent_span_id === root?.span_id)).toBe(true)
    const { body: trace } = await read(`${prefix}/debug/trace/${answerId}`)
    expect(trace).toMatchObject({
      'gcp.vertex.agent.event_id': answerId,
      'gcp.vertex.agent.llm_request': expect.stringContaining('apples'),
      'gcp.vertex.agent.llm_response': expect.stringContaining('I found apples.'),
    })
    expect(await read(`${prefix}/debug/trace/session/none`)).toEqual({ status: 200, body: [] })
    expect((await read(`${prefix}/debug/trace/none`)).status).toBe(404)
  },
)

test('ADK’s graph routes return the agent with its tools, and mark the agent of an event', async () => {
  const { read, answerId } = await startWithRun()
  expect((await read('/dev/apps/lango/build_graph')).body).toMatchObject({
    name: 'lango',
    root_agent: {
      name: 'root',
      type: 'agent',
      tools: [
        { name: 'search', type: 'tool' },
        { name: 'danger', type: 'tool' },
      ],
    },
  })
  const image = await read('/dev/apps/lango/build_graph_image?dark_mode=true')
  expect(image.body).toEqual({ '': { dotSrc: expect.stringContaining('"root" -> "search"') } })
  expect(JSON.stringify(image.body)).not.toContain('style=filled')
  const { body: marked } = await read(`${SESSION}/events/${answerId}/graph`)
  expect((marked as { dotSrc: string }).dotSrc).toMatch(/"root" \[.*style=filled/)
})

test('lists of ADK’s evaluations, tests and builder are empty', async () => {
  const { url } = await startProtocolServer()
  const read = async (path: string) => (await fetch(`${url}${path}`)).text()
  for (const prefix of PREFIXES) {
    for (const list of ['eval_sets', 'eval_results', 'tests'])
      expect([list, await read(`${prefix}/${list}`)]).toEqual([list, '[]'])
    for (const info of ['eval_metrics', 'metrics-info'])
      expect([info, await read(`${prefix}/${info}`)]).toEqual([info, '{"metricsInfo":[]}'])
    expect(await read(`${prefix}/builder`)).toBe('')
  }
})

test('writing to ADK’s evaluations, tests and builder is a 404 that says what to use', async () => {
  const { url } = await startProtocolServer()
  const lists = ['eval_sets', 'eval-sets', 'tests', 'builder']
  const entries = [...lists, 'eval_results', 'eval_metrics', 'metrics-info']
  const headers = { 'content-type': 'application/json' }
  for (const prefix of PREFIXES) {
    for (const path of [...lists, ...entries.map(name => `${name}/one`)]) {
      const response = await fetch(`${url}${prefix}/${path}`, { method: 'POST', headers, body: '{}' })
      expect([path, response.status]).toEqual([path, 404])
      expect(await response.text()).toContain('ADK’s own tools')
    }
    expect((await fetch(`${url}${prefix}/eval_sets/one`)).status).toBe(404)
  }
})

test('ADK’s page is served under /dev-ui/ with its own content policy', async () => {
  const adkWebRoot = join(await temporaryFolder(), 'browser')
  await mkdir(adkWebRoot)
  await writeFile(join(adkWebRoot, 'index.html'), '<title>ADK</title>')
  const { url } = await startProtocolServer({ serve: { adkWebRoot } })
  const redirected = await fetch(`${url}/dev-ui`, { redirect: 'manual' })
  expect([redirected.status, redirected.headers.get('location')]).toEqual([302, '/dev-ui/'])
  const page = await fetch(`${url}/dev-ui/`)
  expect(await page.text()).toContain('<title>ADK</title>')
  expect(page.headers.get('content-security-policy')).toContain('https://fonts.googleapis.com')
  const missing = await fetch(`${url}/dev-ui/missing.css`)
  expect([missing.status, await missing.text()]).toEqual([200, ''])
  expect((await fetch(`${url}/dev-ui/missing.js`)).status).toBe(404)
})
