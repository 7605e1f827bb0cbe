// A process of the fleet: Lango on PostgreSQL.
import * as adk from '@google/adk'
import { createRuntime } from '../../src/runtime/runtime.js'
import { openStore } from '../../src/store/open-store.js'
import { agentOf } from './agent-of.js'
import { countStatements, serveOrders } from './fleet-process.js'
import { QUESTION } from './one-tool-agent.js'

const [url = '', maxRunning] = process.argv.slice(2)
adk.setLogLevel(adk.LogLevel.ERROR)
countStatements()
let delayMs = 0
const store = await openStore(url)
const runtime = await createRuntime({
  store,
  app: 'bench',
  rootAgent: agentOf(adk, () => delayMs),
  tools: { effects: { look: 'read' } },
  ...(maxRunning ? { runs: { maxRunning: Number(maxRunning) } } : {}),
})
await runtime.ready()
serveOrders({
  run: async (sessionId, delay) => {
    delayMs = delay
    await runtime.runAndCollect({ sessionId, text: QUESTION })
  },
  prune: async () => {
    await store.runs.prune({ appName: 'bench', before: Date.now() + 60_000 })
  },
  close: async () => {
    await runtime.close()
    await store.close()
  },
})
