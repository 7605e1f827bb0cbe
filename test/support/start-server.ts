import { onTestFinished } from 'vitest'
import type { LangoClient } from '../../src/client/client.js'
import { createClient } from '../../src/client/create-client.js'
import { type Logger, silentLogger } from '../../src/logger.js'
import type { Provider } from '../../src/provider/provider.js'
import type { ScheduleOptions } from '../../src/runtime/options.js'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import { type RunningServer, type ServeOptions, serve } from '../../src/server/serve.js'
import type { SessionStore } from '../../src/session/session-store.js'
import { type Child, runScript } from './child.js'
import { dangerTool, obedientProvider } from './obedient-provider.js'
import { searchTool } from './tools.js'

export interface TestServer extends RunningServer {
  runtime: Runtime
  client: LangoClient
}

export interface TestServerOptions extends Partial<Omit<ServeOptions, 'runtime'>> {
  store?: string | SessionStore
  /** Instead of the model that follows the commands in its prompt; its id is `play`. */
  provider?: Provider
  schedules?: readonly ScheduleOptions[]
}

export function createTestRuntime(
  store: string | SessionStore,
  logger: Logger = silentLogger,
  provider: Provider = obedientProvider,
  schedules?: readonly ScheduleOptions[],
): Promise<Runtime> {
  return createRuntime({
    ...(schedules ? { schedules } : {}),
    store,
    logger,
    providers: { play: provider },
    agent: { name: 'root', model: 'play/model', tools: [searchTool, dangerTool] },
  })
}

/** A server in this process, with a model that follows the commands in its prompt. Closed when the test ends. */
export async function startServer(options: TestServerOptions = {}): Promise<TestServer> {
  const { store = 'memory:', logger = silentLogger, provider, schedules, ...rest } = options
  const runtime = await createTestRuntime(store, logger, provider, schedules)
  const server = await serve({
    runtime,
    port: 0,
    host: '127.0.0.1',
    version: '0.0.0-test',
    graceMs: 0,
    logger,
    ...rest,
  })
  onTestFinished(async () => {
    await server.close()
    await runtime.close()
  })
  return { ...server, runtime, client: createClient({ baseUrl: server.url }) }
}

export interface ServerProcess {
  child: Child
  url: string
  client: LangoClient
  /** Ends it without a word. */
  kill(): Promise<void>
}

/** The same server in a separate process, on a store that others may share. */
export async function startServerProcess(store: string, port = 0): Promise<ServerProcess> {
  const child = runScript('serve-child.ts', [store, String(port)])
  const kill = async () => {
    child.process.kill('SIGKILL')
    await child.ended
  }
  onTestFinished(kill)
  await child.untilLines(1)
  const url = child.lines[0]
  if (url === undefined) throw new Error(`The server did not start: ${child.errors()}`)
  return { child, url, client: createClient({ baseUrl: url }), kill }
}
