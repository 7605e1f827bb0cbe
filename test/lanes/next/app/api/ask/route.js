import { createRuntime, defineTool } from 'lango'
import { z } from 'zod'

// A route handler with SQLite or memory needs Node: the edge runtime has neither files nor native modules.
export const runtime = 'nodejs'
export const dynamic = 'force-dynamic'

const KEY = { userId: 'ann', sessionId: 'one' }
const calls = { look: 0 }

const look = defineTool({
  name: 'look',
  description: 'Looks at one place in the house.',
  parameters: z.object({ place: z.string() }),
  effect: 'read',
  execute: ({ place }) => {
    calls.look += 1
    return { place, found: 'a key' }
  },
})

/** One runtime per store for the life of the process, as a database pool has. */
const runtimes = new Map()

function runtimeFor(store) {
  const opened =
    runtimes.get(store) ??
    createRuntime({
      app: 'lanes',
      store,
      providers: { strict: { type: 'gemini', baseUrl: process.env.MODEL_SERVER, apiKey: 'none' } },
      agent: {
        name: 'agent',
        model: 'strict/gemini-3-pro',
        instruction: 'You know the house.',
        tools: [look],
      },
    })
  runtimes.set(store, opened)
  return opened
}

/** Runs the session; the events of the run are the stream. */
export async function POST(request) {
  const { store } = await request.json()
  const agent = await runtimeFor(store)
  const encoder = new TextEncoder()
  const events = agent.run({ ...KEY, text: 'Where is the key?' })
  const stream = new ReadableStream({
    async start(controller) {
      for await (const event of events)
        controller.enqueue(encoder.encode(`data: ${JSON.stringify(event)}\n\n`))
      controller.close()
    },
  })
  return new Response(stream, { headers: { 'content-type': 'text/event-stream' } })
}

/** The stored session. */
export async function GET(request) {
  const store = new URL(request.url).searchParams.get('store')
  const agent = await runtimeFor(store)
  const messages = await agent.messages({ appName: 'lanes', ...KEY })
  return Response.json({ calls: calls.look, messages })
}
