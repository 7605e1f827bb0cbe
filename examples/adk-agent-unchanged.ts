// An unchanged ADK agent on a model that ADK itself does not support.
//   LANGO_MODEL=anthropic/claude-sonnet-4-6  ANTHROPIC_API_KEY=…
//   LANGO_MODEL=openai/gpt-5.2               OPENAI_API_KEY=…
//   LANGO_MODEL=ollama/qwen3                 a local Ollama, no key
import { FunctionTool, LlmAgent } from '@google/adk'
import { createRuntime } from 'lango'
import { z } from 'zod'

export const rootAgent = new LlmAgent({
  name: 'accountant',
  model: process.env.LANGO_MODEL ?? 'demo/demo',
  instruction: 'Use the tool for every sum.',
  tools: [
    new FunctionTool({
      name: 'add',
      description: 'Adds two numbers.',
      parameters: z.object({ a: z.number(), b: z.number() }),
      execute: ({ a, b }) => ({ sum: a + b }),
    }),
  ],
})

const runtime = await createRuntime({ store: process.env.LANGO_STORE ?? 'memory:', rootAgent })
const { text, repairs } = await runtime.runAndCollect({ text: process.argv[2] ?? 'Please add 19 and 23.' })
console.log(text)
if (repairs.length > 0)
  console.log(`repaired before sending: ${repairs.map(repair => repair.detail).join(' ')}`)
await runtime.close()
