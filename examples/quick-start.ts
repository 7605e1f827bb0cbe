// One agent with one tool and a stored session. Without a key, the offline demo model answers.
// node --import tsx examples/quick-start.ts "What time is it in Tokyo?"
import { createRuntime, defineTool } from 'lango'
import { z } from 'zod'

const ZONES: Record<string, string> = { Tokyo: 'Asia/Tokyo', Lisbon: 'Europe/Lisbon', Lima: 'America/Lima' }

const clock = defineTool({
  name: 'current_time',
  description: `Tells the time in a city: ${Object.keys(ZONES).join(', ')}.`,
  parameters: z.object({ city: z.string() }),
  effect: 'read',
  execute({ city }) {
    const timeZone = ZONES[city]
    if (!timeZone)
      return { error: `No clock in "${city}". There are clocks in ${Object.keys(ZONES).join(', ')}.` }
    return { city, time: new Date().toLocaleTimeString('en-GB', { timeZone }) }
  },
})

const model = process.env.OPENAI_API_KEY
  ? 'openai/gpt-5.2'
  : process.env.ANTHROPIC_API_KEY
    ? 'anthropic/claude-sonnet-4-6'
    : process.env.GEMINI_API_KEY
      ? 'gemini/gemini-3-flash'
      : 'demo/demo'

const runtime = await createRuntime({
  store: process.env.LANGO_STORE ?? 'sqlite:./lango.db',
  agent: { model, instruction: 'You are a helpful assistant. Be brief.', tools: [clock] },
})

const text = process.argv[2] ?? 'What time is it in Tokyo?'
console.log(`you    ${text}`)
for await (const event of runtime.run({ sessionId: 'quick-start', text })) {
  if (event.type === 'run-start' && event.demo)
    console.log('       (demo model: set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY)')
  if (event.type === 'tool-call') console.log(`tool   ${event.name}(${JSON.stringify(event.args)})`)
  if (event.type === 'tool-result') console.log(`       ${JSON.stringify(event.result)}`)
  if (event.type === 'error') console.error(`error  ${event.error.message}`)
  if (event.type === 'run-finish') console.log(`agent  ${event.text}`)
}

const session = await runtime.store.loadSession({
  appName: 'lango',
  userId: 'user',
  sessionId: 'quick-start',
})
console.log(`       (${session?.totalMessages} messages in the session; run it again to continue)`)
await runtime.close()
