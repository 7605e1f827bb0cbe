// A run that outlives its connections: the client disconnects in the middle, reconnects, and receives exactly
// the events it missed. Start the server first: npm start
import { createClient } from 'lango/client'

const client = createClient({ baseUrl: process.env.LANGO_URL ?? 'http://127.0.0.1:18789' })
const { agent, model, user } = await client.info()
console.log(`       ${agent} with ${model}, as ${user}`)

const sessionId = `example-${Date.now()}`
const { runId } = await client.start(sessionId, { text: 'Tell me the current time in "Asia/Tokyo".' })

let last = 0
for await (const event of client.follow(runId)) {
  last = event.seq
  console.log(`${String(event.seq).padStart(3)}    ${event.type}`)
  // Leaving the loop closes the connection. The run continues.
  if (event.type === 'tool-call') break
}

console.log('       … disconnected; the run continues …')
for await (const event of client.follow(runId, { after: last })) {
  console.log(`${String(event.seq).padStart(3)}    ${event.type}`)
  if (event.type === 'run-finish') console.log(`       ${event.finishReason}: ${event.text}`)
}

const { messages } = await client.messages(sessionId)
console.log(`       ${messages.length} messages are stored; what the model was sent:`)
for (const step of (await client.inspect(runId)).steps)
  console.log(`       request ${step.step}: ${step.sent.messages} messages, ${step.repairs.length} repairs`)
await client.deleteSession(sessionId)
