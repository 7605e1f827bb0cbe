/**
 * A server over stdio without the SDK, which starts in a tenth of the time: for tests of its process, not of the protocol.
 * `mcp-fixture.mjs` has the same tools.
 */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

const TOOLS = {
  echo: ({ word }) => word,
  die: () => process.kill(process.pid, 'SIGKILL') && undefined,
  hang: () => void console.error('hanging'),
  environment: () => Object.keys(process.env).join(','),
  start_child: () => spawn('sleep', ['600'], { stdio: 'ignore', detached: true }).pid,
  pid: () => process.pid,
}

const METHODS = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'small', version: '1.0.0' },
  }),
  ping: () => ({}),
  'tools/list': () => ({
    tools: Object.keys(TOOLS).map(name => ({ name, inputSchema: { type: 'object' } })),
  }),
  'tools/call': ({ name, arguments: args = {} }) => {
    const value = TOOLS[name](args)
    return value === undefined ? undefined : { content: [{ type: 'text', text: String(value) }] }
  },
  'notifications/cancelled': () => void console.error('cancelled'),
}

console.error('fixture starts')
createInterface({ input: process.stdin }).on('line', line => {
  const { id, method, params = {} } = JSON.parse(line)
  const result = METHODS[method]?.(params)
  if (id !== undefined && result !== undefined)
    process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`)
})
