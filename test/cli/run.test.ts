import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'
import { gapsIn } from '../support/event-numbers.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { lango, type Outcome, outcomeOf, startLango } from './lango.js'

async function folderWith(config: object): Promise<string> {
  const cwd = await temporaryFolder()
  await writeFile(join(cwd, 'lango.config.json'), JSON.stringify(config))
  return cwd
}

function eventsOf({ stdout }: Outcome): { type: string; [field: string]: unknown }[] {
  return stdout
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line))
}

const NO_TOOLS = { agent: { name: 'plain', tools: [] } }

test('lango run without a key answers with the demo on stdout, and stderr says how to set one', async () => {
  const cwd = await folderWith(NO_TOOLS)
  const answered = await lango(['run', 'hello', 'there', '--session', 's1'], { cwd })
  expect(answered.code).toBe(0)
  expect(answered.stdout).toMatch(/hello there[\s\S]*\n$/)
  expect(answered.stderr).toContain(
    'No API key found; using the offline demo model. Set one: export OPENAI_API_KEY=',
  )
  const quiet = await lango(['run', '--quiet', '--session', 's1', '--model', 'demo'], {
    cwd,
    input: 'from a pipe\n',
  })
  expect(quiet).toMatchObject({ code: 0, stdout: expect.stringContaining('from a pipe'), stderr: '' })
  const shown = await lango(['sessions', 'show', 's1', '--raw'], { cwd })
  expect(shown.stdout.trimEnd().split('\n')).toHaveLength(4)
})

test('lango run --json prints every event, with the piped text below the prompt and files as parts', async () => {
  const server = await startStrictProvider({ profile: 'openai-chat' })
  onTestFinished(() => server.close())
  const cwd = await folderWith({
    ...NO_TOOLS,
    providers: { openai: { baseUrl: server.baseUrl, apiKey: 'test', api: 'chat' } },
  })
  const picture = Buffer.from('89504e470d0a1a0a', 'hex')
  await Promise.all([writeFile(join(cwd, 'a.txt'), 'Grüße'), writeFile(join(cwd, 'b.PNG'), picture)])
  const args = ['run', '--json', '-m', 'openai/gpt-4.1', '-f', 'a.txt', '--file', 'b.PNG', 'Look', 'at this']
  const answered = await lango(args, { cwd, input: 'piped\n' })
  const events = eventsOf(answered)
  expect(answered).toMatchObject({ code: 0, stderr: '' })
  expect(gapsIn(events)).toEqual([])
  expect(events[0]).toMatchObject({ type: 'run-start', model: 'openai/gpt-4.1' })
  expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop' })
  const sent = JSON.stringify(server.requests)
  expect(sent).toContain('Look at this\\\\n\\\\npiped'.replaceAll('\\\\', '\\'))
  expect(sent).toContain('a.txt:')
  expect(sent).toContain('Grüße')
  expect(sent).toContain(picture.toString('base64'))
})

test('lango run refuses tools that need approval without a terminal, and runs them with --yes', async () => {
  const cwd = await folderWith({ agent: { name: 'writer', tools: ['write_file'] } })
  const refused = await lango(['run', 'write notes.txt'], { cwd })
  expect(refused.code).toBe(0)
  expect(refused.stderr).toContain(
    'write_file needs approval and was refused: there is no terminal for the prompt. --yes allows it, --wait leaves the run waiting.',
  )
  expect(refused.stderr).toMatch(/→ write_file \{.*\n(.*\n)*← write_file failed/)
  expect(refused.stdout).not.toContain('→')
  const events = eventsOf(await lango(['run', '--json', '--yes', 'write notes.txt'], { cwd }))
  const result = events.find(({ type }) => type === 'tool-result')
  expect(events.find(({ type }) => type === 'approval-answer')).toMatchObject({ answer: 'once' })
  expect(result).toMatchObject({ name: 'write_file', isError: false })
})

test('lango run exits with 2 when the run ends at the turn limit', async () => {
  const tools = ['current_time', 'list_files', 'search_files']
  const cwd = await folderWith({ agent: { name: 'busy', tools, maxTurns: 1 } })
  const limited = await lango(['run', '--json', 'current_time, list_files and search_files, please'], { cwd })
  expect(eventsOf(limited).at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'turn-limit' })
  expect(limited.code).toBe(2)
})

test('lango run exits with 1 and one sentence when the run fails, or prints the error as an event', async () => {
  const server = createServer((_request, response) => {
    response
      .writeHead(401, { 'content-type': 'application/json' })
      .end('{"error":{"message":"Incorrect API key provided"}}')
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  const cwd = await folderWith({
    ...NO_TOOLS,
    providers: { openai: { baseUrl, apiKey: 'sk-very-secret-key-123', retry: { maxAttempts: 1 } } },
  })
  const args = ['run', 'hi', '--model', 'openai/gpt-4.1']
  await writeFile(join(cwd, 'empty.png'), '')
  const [plain, json, unknown, empty, before, noFile, folder, nothing, noAgent] = await Promise.all([
    lango(args, { cwd }),
    lango([...args, '--json'], { cwd }),
    lango(['run', 'hi', '--model', 'gpt-5.2'], { cwd }),
    lango(['run'], { cwd }),
    lango(['run', '--json', '--model', 'nobody/x', 'hi'], { cwd }),
    lango(['run', 'hi', '-f', 'nowhere.txt'], { cwd }),
    lango(['run', 'hi', '-f', '.'], { cwd }),
    lango(['run', 'hi', '-f', 'empty.png'], { cwd }),
    lango(['run', 'hi', '--agent', 'nobody.ts'], { cwd }),
  ])
  expect(plain).toMatchObject({ code: 1, stdout: '' })
  expect(plain.stderr).toMatch(/^lango: .*key/m)
  expect(plain.stderr + json.stdout).not.toMatch(/very-secret|\n +at /)
  expect(json.code).toBe(1)
  expect(eventsOf(json).find(({ type }) => type === 'error')).toMatchObject({
    error: { code: 'provider-auth', retryable: false },
  })
  expect(unknown).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('Did you mean "openai/gpt-5.2"?'),
  })
  expect(empty).toMatchObject({ code: 1, stderr: expect.stringMatching(/^lango: No prompt\. /) })
  expect(before.code).toBe(1)
  expect(eventsOf(before)).toMatchObject([{ type: 'error', error: { code: 'invalid-config' } }])
  expect(noFile).toMatchObject({ code: 1, stderr: expect.stringContaining('no such file') })
  expect(folder.stderr).toBe('lango: Cannot attach .: it is a folder; attach its files.\n')
  expect(nothing.stderr).toBe('lango: Cannot attach empty.png: it is empty.\n')
  expect(noAgent.stderr).toBe('lango: Agent file nobody.ts does not exist. Check the path.\n')
})

test('Ctrl-C ends lango run with exit code 130, and the session can be continued', {
  timeout: 120_000,
}, async () => {
  let asked = () => {}
  const isAsked = new Promise<void>(resolve => {
    asked = resolve
  })
  // A model that never answers.
  const server = createServer(() => asked())
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  const cwd = await folderWith({ ...NO_TOOLS, providers: { openai: { baseUrl, apiKey: 'x' } } })
  const child = startLango(['run', '--json', '--session', 's1', '--model', 'openai/gpt-4.1', 'hi'], { cwd })
  const ended = outcomeOf(child)
  await isAsked
  child.kill('SIGINT')
  const stopped = await ended
  expect(stopped.code).toBe(130)
  expect(eventsOf(stopped).at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'aborted' })
  const next = await lango(['run', '--session', 's1', '--model', 'demo', 'still there?'], { cwd })
  expect(next).toMatchObject({ code: 0, stdout: expect.stringContaining('still there?') })
})

test('a reader that closes its pipe ends lango run without a message', async () => {
  const cwd = await folderWith(NO_TOOLS)
  const child = startLango(['run', '--json', 'a long question '.repeat(200)], { cwd })
  child.stdout?.once('data', () => child.stdout?.destroy())
  const { stderr } = await outcomeOf(child)
  expect(stderr).toBe('')
})

test('an ADK agent from a file runs on the model that is named, under the app that is named', async () => {
  const cwd = await temporaryFolder()
  await mkdir(join(cwd, 'agents'))
  const source = `import { LlmAgent } from '@google/adk'
export const rootAgent = new LlmAgent({ name: 'echo', model: 'gemini-2.5-flash', instruction: 'Echo.' })\n`
  await writeFile(join(cwd, 'agents/echo.mjs'), source)
  const args = [
    'run',
    '--agent',
    'agents/echo.mjs',
    '--model',
    'demo/demo',
    '--app',
    'shop',
    '--session',
    's1',
    'hi',
  ]
  const answered = await lango(args, { cwd })
  expect(answered).toMatchObject({ code: 0, stdout: expect.stringContaining('hi') })
  expect(answered.stderr).toContain('Using the offline demo model, as requested.')
  const listed = await lango(['sessions', 'list', '--app', 'shop', '--json'], { cwd })
  expect(JSON.parse(listed.stdout).sessions).toHaveLength(1)
  expect(await readFile(join(cwd, 'lango.db'))).toBeInstanceOf(Buffer)
})

test('a workflow from a file runs as an agent does, its agents on the model that is named', async () => {
  const cwd = await temporaryFolder()
  const source = `import { LlmAgent, Workflow } from '@google/adk'
const echo = new LlmAgent({ name: 'echo', model: 'gemini-2.5-flash', instruction: 'Echo.' })
const frame = (_context, text) => '<' + text + '>'
export const rootAgent = new Workflow({ name: 'framed', edges: [['START', echo, frame]] })\n`
  await writeFile(join(cwd, 'framed.mjs'), source)
  const answered = await lango(['run', '--agent', 'framed.mjs', '--model', 'demo/demo', '--quiet', 'hi'], {
    cwd,
  })
  expect(answered).toMatchObject({ code: 0, stdout: expect.stringMatching(/^<[\s\S]*hi[\s\S]*>\n$/) })
})

test('lango run prints the answer to a pipe without control sequences, and with --raw as it is', async () => {
  const colored = 'a\\u001b[31mred\\u001b[0m\\u001b]0;title\\u0007\\tb\\r\\nc\\u0008'
  const pieces = colored.match(/\\u....|\\.|./g) ?? []
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const piece of pieces) response.write(`data: {"choices":[{"delta":{"content":"${piece}"}}]}\n\n`)
    response.end('data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const baseUrl = `http://127.0.0.1:${port}/v1`
  const cwd = await folderWith({
    ...NO_TOOLS,
    providers: { openai: { baseUrl, apiKey: 'test', api: 'chat' } },
  })
  const ask = async (...more: string[]) =>
    (await lango(['run', '--quiet', '-m', 'openai/gpt-4.1', 'hi', ...more], { cwd })).stdout
  expect(await ask()).toBe('ared\tb\r\nc\n')
  expect(await ask('--stream')).toBe('ared\tb\r\nc\n')
  expect(await ask('--raw')).toBe('a\u001b[31mred\u001b[0m\u001b]0;title\u0007\tb\r\nc\u0008\n')
})

test('lango run --schema prints the answer as data; options reach the provider; wrong values are refused', async () => {
  const server = await startStrictProvider({
    profile: 'openai-chat',
    script: [{ text: 'It is cold.' }, { text: '{"city":"Oslo"}' }],
  })
  onTestFinished(() => server.close())
  const cwd = await folderWith({
    ...NO_TOOLS,
    providers: { openai: { baseUrl: server.baseUrl, apiKey: 'test', api: 'chat' } },
  })
  const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
  await writeFile(join(cwd, 'city.json'), JSON.stringify(schema))
  const model = ['run', '-m', 'openai/gpt-5.2', '--session', 's']
  const args = [
    ...model,
    '--schema',
    'city.json',
    '--thinking',
    'low',
    '--max-output-tokens',
    '300',
    'Where?',
  ]
  const answered = await lango(args, { cwd })
  expect(answered).toMatchObject({ code: 0 })
  expect(JSON.parse(answered.stdout)).toEqual({ city: 'Oslo' })
  expect(server.requests.map(({ body }) => body)).toMatchObject([
    { reasoning_effort: 'low', max_completion_tokens: 300, response_format: { type: 'json_schema' } },
    { reasoning_effort: 'low', max_completion_tokens: 300, response_format: { type: 'json_schema' } },
  ])
  const wrong = await lango([...model, '--thinking', 'max', 'Where?'], { cwd })
  expect(wrong).toMatchObject({ code: 1, stderr: expect.stringContaining('`thinking` must be one of') })
  const none = await lango([...model, '--schema', 'none.json', 'Where?'], { cwd })
  expect(none).toMatchObject({ code: 1, stderr: expect.stringContaining('Cannot read the schema none.json') })
})
