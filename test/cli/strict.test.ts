import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')
const children: ChildProcess[] = []

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})

function lango(...args: string[]): ChildProcess & {
  stdout: NonNullable<ChildProcess['stdout']>
  stderr: NonNullable<ChildProcess['stderr']>
} {
  const child = spawn(process.execPath, ['--import', 'tsx', 'src/cli/main.ts', ...args], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  children.push(child)
  return child
}

async function outcome(...args: string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = lango(...args)
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', chunk => {
    stdout += chunk
  })
  child.stderr.on('data', chunk => {
    stderr += chunk
  })
  const code = await new Promise<number | null>(resolve => child.on('close', resolve))
  return { code, stdout, stderr }
}

test('lango strict serves a profile, tells what it refused, and ends on a signal', async () => {
  const child = lango('strict', '--profile', 'openai-chat', '--port', '0', '--json')
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const started = JSON.parse((await lines.next()).value ?? '{}')
  expect(started).toMatchObject({ profile: 'openai-chat', port: expect.any(Number) })
  const response = await fetch(`${started.baseUrl}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer test' },
    body: JSON.stringify({ model: 'gpt-4.1', messages: [{ role: 'tool', tool_call_id: 'x', content: 'y' }] }),
  })
  expect(response.status).toBe(400)
  expect(JSON.parse((await lines.next()).value ?? '{}')).toMatchObject({ code: 'C2', status: 400 })
  const ended = new Promise(resolve => child.on('close', resolve))
  child.kill('SIGTERM')
  expect(await ended).toBe(0)
})

test.each([
  [['strict'], /--profile is missing\. Choose one of: gemini-2, /],
  [['strict', '--profile', 'gpt'], /There is no profile "gpt"\. Choose one of/],
  [
    ['strict', '--profile', 'mistral', '--port', 'x'],
    /--port is "x", but must be a whole number from 0 to 65535\./,
  ],
  [['strict', '--wrong'], /'lango strict' has no option --wrong\. 'lango strict --help' tells more\./],
])('lango %j is refused in one clear sentence', async (args, message) => {
  const { code, stderr } = await outcome(...args)
  expect(code).toBe(1)
  expect(stderr).toMatch(message)
  expect(stderr.trim().split('\n')).toHaveLength(1)
})
