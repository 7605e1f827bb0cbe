import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../support/temporary-folder.js'
import { lango, startLango } from './lango.js'

test('lango serve prints agent, address and store, keeps sessions over a restart, and exits on a signal', {
  timeout: 120_000,
}, async () => {
  const cwd = await temporaryFolder()
  const start = async (...args: string[]) => {
    const child = startLango(['serve', '--port', '0', ...args], { cwd })
    onTestFinished(() => void child.kill('SIGKILL'))
    const ended = new Promise(resolve => child.on('close', resolve))
    const lines = createInterface({ input: child.stdout ?? process.stdin })[Symbol.asyncIterator]()
    const line: string = (await lines.next()).value ?? ''
    const end = () => {
      child.kill('SIGTERM')
      return ended
    }
    return { line, end }
  }
  const first = await start()
  const [, url = ''] =
    /^Serving lango-agent \(demo\/demo\) at (http:\S+), store sqlite:\.\/lango\.db$/.exec(first.line) ?? []
  const info = await (await fetch(`${url}/api/info`)).json()
  expect(info).toMatchObject({ agent: 'lango-agent', demo: true, user: 'user', store: 'sqlite' })
  const title = 'kept'
  const made = await fetch(`${url}/api/sessions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ sessionId: 's1', title }),
  })
  expect(made.status).toBe(201)
  const taken = await lango(['serve', '--port', new URL(url).port], { cwd })
  expect(taken).toMatchObject({ code: 1, stdout: '' })
  expect(taken.stderr).toContain(`cannot listen on 127.0.0.1:${new URL(url).port}`)
  expect(await first.end()).toBe(0)
  const second = await start('--json')
  const { url: again } = JSON.parse(second.line) as { url: string }
  expect(await (await fetch(`${again}/api/sessions/s1`)).json()).toMatchObject({ sessionId: 's1', title })
  expect(await second.end()).toBe(0)
})

test('lango serve refuses what would be open to everybody, and ports that are none', async () => {
  const cwd = await temporaryFolder()
  const open = await lango(['serve', '--host', '0.0.0.0', '--port', '0', '--store', 'memory:'], { cwd })
  expect(open.code).toBe(1)
  expect(open.stderr).toMatch(
    /^lango: Listening on "0\.0\.0\.0" without tokens lets anyone on the network use this server\. Set server\.tokens/,
  )
  const port = await lango(['serve', '--port', '99999'], { cwd })
  expect(port).toMatchObject({ code: 1, stderr: expect.stringContaining('from 0 to 65535') })
  const tokens = { 'a-token-of-ann': 'ann' }
  await writeFile(join(cwd, 'lango.config.json'), JSON.stringify({ store: 'memory:', server: { tokens } }))
  const child = startLango(['serve', '--host', '0.0.0.0', '--port', '0'], { cwd })
  onTestFinished(() => void child.kill('SIGKILL'))
  const lines = createInterface({ input: child.stdout ?? process.stdin })[Symbol.asyncIterator]()
  const line: string = (await lines.next()).value ?? ''
  expect(line).toMatch(/ at http:\/\/localhost:\d+, store memory:$/)
  const url = (/http:\S+(?=,)/.exec(line)?.[0] ?? '').replace('localhost', '127.0.0.1')
  expect((await fetch(`${url}/api/info`)).status).toBe(401)
  const known = await fetch(`${url}/api/info`, { headers: { authorization: 'Bearer a-token-of-ann' } })
  expect(await known.json()).toMatchObject({ user: 'ann' })
})
