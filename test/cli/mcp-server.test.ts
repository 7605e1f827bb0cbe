// `lango mcp` as the MCP SDK's client sees it.
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { expect, onTestFinished, test, vi } from 'vitest'
import { BUILT_LANGO } from '../support/built-lango.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { TRUST_FILE } from '../support/trust-file.js'
import { lango } from './lango.js'

// Starting processes takes long on a busy machine.
vi.setConfig({ testTimeout: 120_000 })

async function connect(cwd: string, args: readonly string[] = []) {
  const client = new Client({ name: 'test', version: '1' })
  const env = { PATH: process.env.PATH ?? '', HOME: cwd, LANGO_TRUST: '1', LANGO_TRUST_FILE: TRUST_FILE }
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [BUILT_LANGO, 'mcp', ...args],
    cwd,
    env,
  })
  onTestFinished(() => client.close())
  await client.connect(transport)
  const call = async (name: string, given: Record<string, unknown> = {}) => {
    const answer = await client.callTool({ name, arguments: given })
    const [first] = answer.content as { text: string }[]
    return { isError: answer.isError === true, text: first?.text ?? '' }
  }
  return { client, call }
}

test('lists and reads the sessions of the user, and refuses an unknown one', async () => {
  const cwd = await temporaryFolder()
  expect(await lango(['run', '--session', 's1', 'hello there'], { cwd })).toMatchObject({ code: 0 })
  const { call } = await connect(cwd, ['serve'])
  const listed = JSON.parse((await call('list_sessions')).text)
  expect(listed.sessions).toMatchObject([{ sessionId: 's1', title: 'hello there', messages: 2 }])
  const read = JSON.parse((await call('read_session', { sessionId: 's1' })).text)
  expect(read.messages).toMatchObject([
    { role: 'user', parts: [{ type: 'text', text: 'hello there' }] },
    { role: 'assistant' },
  ])
  expect(await call('read_session', { sessionId: 'none' })).toMatchObject({
    isError: true,
    text: expect.stringContaining('There is no session "none"'),
  })
})
