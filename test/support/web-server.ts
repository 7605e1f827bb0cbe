/** A server with the web chat, in this process or, to be killed, in a separate one. */
import { silentLogger } from '../../src/logger.js'
import type { RuntimeOptions } from '../../src/runtime/options.js'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import { serve } from '../../src/server/serve.js'
import { defineTool } from '../../src/tool.js'
import { builtInTools } from '../../src/tools/built-in-tools.js'
import { builtWeb } from './browser.js'

export interface WebServerOptions {
  store: string
  /** Where the paced model is. Without one, the demo model answers. */
  modelUrl?: string | undefined
  port?: number | undefined
  /** Gives the agent the built-in tools for this folder besides the three small ones. */
  workspace?: string | undefined
  tokens?: Record<string, string> | undefined
  /** The folder with the built page. Without one, it is built where its sources have changed. */
  webRoot?: string | undefined
  /** Takes the place of the model and the tools. */
  runtime?:
    | Pick<RuntimeOptions, 'agent' | 'rootAgent' | 'providers' | 'runs' | 'history' | 'mcpServers'>
    | undefined
}

export interface WebServer {
  url: string
  port: number
  runtime: Runtime
  close(): Promise<void>
}

/** Serves the built page and an agent with three small tools. */
export async function startWebServer(options: WebServerOptions): Promise<WebServer> {
  const { modelUrl, store, port = 0, tokens, workspace, webRoot = await builtWeb() } = options
  const builtIn = workspace ? builtInTools(BUILT_IN, { workspace, sandbox: 'off' }) : []
  const runtime = await createRuntime({
    store,
    providers: modelUrl
      ? { paced: { type: 'openai-compatible', baseUrl: modelUrl, apiKey: 'test-key-of-the-paced-model' } }
      : {},
    ...(options.runtime?.rootAgent
      ? {}
      : {
          agent: {
            model: modelUrl ? 'paced/steady' : 'demo/demo',
            tools: [weather, failing, careful, ...builtIn],
          },
        }),
    ...options.runtime,
  })
  const server = await serve({
    runtime,
    port,
    host: '127.0.0.1',
    webRoot,
    logger: silentLogger,
    version: '0.0.0-test',
    graceMs: 0,
    ...(tokens ? { tokens } : {}),
  })
  return {
    url: server.url,
    port: server.port,
    runtime,
    close: async () => {
      await server.close()
      await runtime.close()
    },
  }
}

const BUILT_IN = ['current_time', 'list_files', 'run_command']

const weather = defineTool({
  name: 'get_weather',
  description: 'Tells the weather in a city.',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  execute: args => ({ city: (args as { city: string }).city, degrees: 7, sky: 'clear' }),
})

const failing = defineTool({
  name: 'broken_tool',
  description: 'Always fails.',
  parameters: { type: 'object', properties: {} },
  execute: () => {
    throw new TypeError('The printer is on fire.')
  },
})

const careful = defineTool({
  name: 'send_letter',
  description: 'Sends a letter. Asks first.',
  parameters: { type: 'object', properties: { to: { type: 'string' } }, required: ['to'] },
  needsApproval: true,
  execute: args => ({ sent: true, to: (args as { to: string }).to }),
})
