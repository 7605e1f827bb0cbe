// serve-child.ts <store URL> [port]: a server with an obedient model. Prints its URL; SIGTERM shuts it down.
import { silentLogger } from '../../src/logger.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { serve } from '../../src/server/serve.js'
import { dangerTool, obedientProvider } from './obedient-provider.js'
import { searchTool } from './tools.js'

const [store = 'memory:', port = '0'] = process.argv.slice(2)
const runtime = await createRuntime({
  store,
  providers: { play: obedientProvider },
  agent: { name: 'root', model: 'play/model', tools: [searchTool, dangerTool] },
})
const server = await serve({
  runtime,
  port: Number(port),
  host: '127.0.0.1',
  version: '0.0.0-test',
  graceMs: 100,
  logger: silentLogger,
})
process.once('SIGTERM', async () => {
  await server.close()
  await runtime.close()
  console.log('closed')
})
console.log(server.url)
