/** `lango mcp`: Lango and the Model Context Protocol. */

import { loadOptional } from '../packages.js'
import type { Flags } from './command.js'
import type { Io } from './io.js'
import { loadSettings, runtimeOptions } from './open-runtime.js'
import { protocolLogger, takeOutput, untilClosed } from './protocol-stdio.js'
import { version } from './version.js'

/** Serves one client on standard input and output until it closes them, or until a signal. */
export async function serveMcp(io: Io, flags: Flags): Promise<number> {
  const output = takeOutput(io)
  const loaded = await loadSettings(io, { ...flags, json: true }, { runs: true })
  const [{ StdioServerTransport }, { McpServer }, { createMcpServer }] = await loadOptional('mcp', () =>
    Promise.all([
      import('@modelcontextprotocol/sdk/server/stdio.js'),
      import('@modelcontextprotocol/sdk/server/mcp.js'),
      import('../server/protocols/mcp-server.js'),
    ]),
  )
  const [{ createRuntime }, { checksOf }] = await Promise.all([
    import('../runtime/runtime.js'),
    import('./doctor/doctor.js'),
  ])
  const logger = await protocolLogger(loaded)
  const runtime = await createRuntime(await runtimeOptions(loaded, logger))
  try {
    const owner = { appName: loaded.config.app, userId: flags.user ?? 'user' }
    const server = createMcpServer(McpServer, {
      runtime,
      owner,
      version: version(),
      start: input => runtime.start(input),
      doctor: async () => ({ checks: await checksOf(io, { ...flags, offline: true }) }),
    })
    await server.connect(new StdioServerTransport(io.stdin, output))
    await untilClosed(io)
    await server.close()
    io.stdin.destroy()
    return 0
  } finally {
    await runtime.close()
    logger.close()
  }
}
