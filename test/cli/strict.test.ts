import { createInterface } from 'node:readline'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../support/temporary-folder.js'
import { lango, startLango } from './lango.js'

test('lango strict serves a profile, prints what it rejected, and ends on a signal', async () => {
  const args = ['strict', '--profile', 'openai-chat', '--port', '0', '--json']
  const child = startLango(args, { cwd: await temporaryFolder() })
  onTestFinished(() => void child.kill('SIGKILL'))
  const lines = createInterface({ input: child.stdout ?? process.stdin })[Symbol.asyncIterator]()
  const started = JSON.parse((await lines.next()).value ?? '{}')
  expect(started).toMatchObject({ profile: 'openai-chat', port: expect.any(Number) })
  const second = await lango(['strict', '--profile', 'groq', '--port', String(started.port)], {
    cwd: await temporaryFolder(),
  })
  expect(second.stderr).toBe(
    `lango: Port ${started.port} is in use. Choose another with --port; 0 means any free port.\n`,
  )
  const response = await fetch(`${started.baseUrl}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer test' },
    body: JSON.stringify({ model: 'gpt-4.1', messages: [{ role: 'tool', tool_call_id: 'x', content: 'y' }] }),
  })
  expect(response.status).toBe(400)
  // The signal comes at once: what was refused is told all the same.
  const ended = new Promise(resolve => child.on('close', resolve))
  child.kill('SIGTERM')
  expect(JSON.parse((await lines.next()).value ?? '{}')).toMatchObject({ code: 'C2', status: 400 })
  expect(await ended).toBe(0)
})

test('lango strict serves a profile as a platform does', async () => {
  const args = ['strict', '--profile', 'anthropic-4.6', '--platform', 'bedrock', '--json']
  const child = startLango(args, { cwd: await temporaryFolder() })
  onTestFinished(() => void child.kill('SIGKILL'))
  const lines = createInterface({ input: child.stdout ?? process.stdin })[Symbol.asyncIterator]()
  const started = JSON.parse((await lines.next()).value ?? '{}')
  expect(started).toMatchObject({ profile: 'anthropic-4.6', platform: 'bedrock' })
  const response = await fetch(`${started.baseUrl}/model/anthropic.claude-sonnet-4-6/invoke`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer test' },
    body: JSON.stringify({
      anthropic_version: 'bedrock-2023-05-31',
      max_tokens: 100,
      messages: [{ role: 'user', content: 'hi' }],
    }),
  })
  expect(response.status).toBe(200)
  expect(await response.json()).toMatchObject({ type: 'message', role: 'assistant' })
})

test.each([
  [['strict'], /--profile is missing\. Choose one of: gemini-2, /],
  [['strict', '--profile', 'gpt'], /Unknown profile "gpt"\. Choose one of/],
  [
    ['strict', '--profile', 'mistral', '--port', 'x'],
    /--port is "x", but must be a whole number from 0 to 65535\./,
  ],
  [
    ['strict', '--profile', 'mistral', '--platform', 'aws'],
    /Unknown platform "aws"\. Choose one of: azure, bedrock, vertex\./,
  ],
  [
    ['strict', '--profile', 'gemini-3', '--platform', 'azure'],
    /'azure' does not serve the profile 'gemini-3'/,
  ],
  [['strict', '--wrong'], /Unknown option --wrong of 'lango strict'\. See 'lango strict --help'\./],
])('lango %j is refused in one clear sentence', async (args, message) => {
  const { code, stderr } = await lango(args, { cwd: await temporaryFolder() })
  expect(code).toBe(1)
  expect(stderr).toMatch(message)
  expect(stderr.trim().split('\n')).toHaveLength(1)
})
