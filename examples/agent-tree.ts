// Three agents: a host that transfers to a specialist. All of them share a turn limit of 50.
import { createRuntime, defineTool } from 'lango'

const weather = defineTool({
  name: 'weather',
  description: 'The weather in a city.',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  effect: 'read',
  execute: ({ city }) => ({ city, sky: 'clear', celsius: 21 }),
})

const runtime = await createRuntime({
  store: process.env.LANGO_STORE ?? 'memory:',
  agent: {
    name: 'host',
    model: process.env.LANGO_MODEL ?? 'demo/demo',
    instruction: 'Hand questions about the weather to meteorologist, and requests for poems to poet.',
    multiAgent: true,
    subAgents: [
      {
        name: 'meteorologist',
        description: 'Knows the weather.',
        instruction: 'Use the tool.',
        tools: [weather],
      },
      { name: 'poet', description: 'Writes short poems.', instruction: 'Four lines at most.' },
    ],
  },
})

const result = await runtime.runAndCollect({ text: process.argv[2] ?? 'What is the weather in Lisbon?' })
console.log(result.text)
console.log(`${result.turns} turns, ${result.delegations} delegations, finished: ${result.finishReason}`)
await runtime.close()
