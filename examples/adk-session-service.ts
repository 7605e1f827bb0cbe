// Keep your ADK agent and your ADK runner; replace the session service. The history survives restarts, fits a
// token budget, and is restored in a form that ADK passes on completely.
// Run it twice: the second run continues where the first one stopped.
import { LlmAgent, Runner } from '@google/adk'
import { historyGuard, ModelAdapter, SessionServiceAdapter } from 'lango/adk'
import { createProvider } from 'lango/provider'
import { openStore } from 'lango/store'

const store = await openStore(process.env.LANGO_STORE ?? 'sqlite:./adk-sessions.db')

const agent = new LlmAgent({
  name: 'helper',
  // With a Gemini key this is ADK's own model; without one, the offline demo model through Lango's adapter.
  model: process.env.GEMINI_API_KEY
    ? 'gemini-2.5-flash'
    : new ModelAdapter({ provider: createProvider({ type: 'demo' }), model: 'demo' }),
  instruction: 'You are a helpful assistant.',
})

const sessionService = new SessionServiceAdapter(store, { rootAgentName: agent.name })
const runner = new Runner({ appName: 'adk-example', agent, sessionService, plugins: [historyGuard()] })

const session = await sessionService.getOrCreateSession({
  appName: 'adk-example',
  userId: 'ann',
  sessionId: 'first',
})
console.log(`${session.events.length} events so far`)

const text = process.argv[2] ?? 'Hello! What can you do?'
for await (const event of runner.runAsync({
  userId: 'ann',
  sessionId: session.id,
  newMessage: { role: 'user', parts: [{ text }] },
})) {
  if (event.errorMessage) console.error(event.errorMessage)
  for (const part of event.content?.parts ?? []) if (part.text) console.log(`${event.author}: ${part.text}`)
}
await store.close()
