// trace-child.ts <store URL> <model URL> <collector> <service> <hang|answer>: a traced server whose tool prints the span
// that it sees, and then hangs or answers. Prints its own URL first.
import { trace } from '@opentelemetry/api'
import { z } from 'zod'
import { silentLogger } from '../../src/logger.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { serve } from '../../src/server/serve.js'
import { defineTool } from '../../src/tool.js'

const [store = '', baseUrl = '', endpoint = '', serviceName = '', behaviour = ''] = process.argv.slice(2)
const look = defineTool({
  name: 'look',
  description: 'Looks.',
  parameters: z.object({}),
  effect: 'idempotent',
  execute: async () => {
    console.log(JSON.stringify(trace.getActiveSpan()?.spanContext()))
    if (behaviour === 'hang') await new Promise(() => {})
    return { seen: true }
  },
})
const runtime = await createRuntime({
  store,
  telemetry: { endpoint, serviceName },
  providers: { play: { type: 'openai-compatible', baseUrl, apiKey: 'test', profile: 'openai-chat' } },
  agent: { name: 'root', model: 'play/gpt-4.1', tools: [look] },
})
const server = await serve({
  runtime,
  port: 0,
  host: '127.0.0.1',
  version: '0.0.0-test',
  logger: silentLogger,
})
process.once('SIGTERM', async () => {
  await server.close()
  await runtime.close()
})
console.log(server.url)
