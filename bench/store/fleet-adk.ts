// A process of the fleet: bare ADK, with its database service or in memory.
import { createRequire } from 'node:module'
import * as adk from '@google/adk'
import { agentOf } from '../support/agent-of.js'
import { countStatements, serveOrders } from '../support/fleet-process.js'

const QUESTION = 'Where is the key that I put away last week?'
const url = process.argv[2] ?? ''
adk.setLogLevel(adk.LogLevel.ERROR)
if (url !== 'memory:') {
  const driver = createRequire(createRequire(import.meta.url).resolve('@mikro-orm/postgresql'))('pg')
  countStatements(driver.Client)
}
let delayMs = 0
// The folder has a copy of ADK of its own, the same version: its types are others to the compiler.
const agent = agentOf(adk as never, () => delayMs) as never
const service = url === 'memory:' ? new adk.InMemorySessionService() : new adk.DatabaseSessionService(url)
if (service instanceof adk.DatabaseSessionService) await service.init()
const runner = new adk.Runner({ appName: 'bench', agent, sessionService: service })
serveOrders({
  run: async (sessionId, delay) => {
    delayMs = delay
    await service.getOrCreateSession({ appName: 'bench', userId: 'u', sessionId })
    const newMessage = { role: 'user', parts: [{ text: QUESTION }] }
    let last: adk.Event | undefined
    for await (const event of runner.runAsync({ userId: 'u', sessionId, newMessage })) last = event
    if (!last?.content?.parts?.some(({ text }) => text))
      throw new TypeError(`no answer: ${last?.errorMessage}`)
  },
  close: async () => {},
})
