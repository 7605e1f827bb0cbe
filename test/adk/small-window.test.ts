import { expect, test } from 'vitest'
import { ModelAdapter } from '../../src/adk/model/model-adapter.js'
import { createProvider } from '../../src/provider/provider-registry.js'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'

/** A tool's output as shops and trackers write them. */
const rows = (from: number) =>
  Array.from({ length: 20 }, (_, index) => ({
    id: from * 1000 + index * 37,
    sku: `SKU-${(from * 7919 + index * 104_729).toString(16).toUpperCase()}`,
    price: (index * 13.37 + 4.99).toFixed(2),
    updatedAt: `2026-11-1${index % 9}T0${index % 9}:2${index % 6}:5${index % 9}.${100 + index}Z`,
  }))

test.each(['openai-chat', 'vllm'] as const)(
  'a history of JSON fits the window of 8,192 tokens of %s with the first or the second send',
  async profile => {
    const server = await startStrictProvider({ profile, contextWindow: 8192, script: () => ({ text: 'ok' }) })
    try {
      const provider = createProvider({
        type: 'openai-compatible',
        baseUrl: server.baseUrl,
        apiKey: 'k',
        profile,
        models: { small: { contextWindow: 8192, outputLimit: 1024 } },
      })
      const adapter = new ModelAdapter({ provider, model: 'small', budgetTokens: 'off' })
      const contents = Array.from({ length: 40 }, (_, turn) => [
        { role: 'user', parts: [{ text: `Which orders are open in region ${turn}?` }] },
        {
          role: 'model',
          parts: [{ functionCall: { id: `call_${turn}`, name: 'orders', args: { region: turn } } }],
        },
        {
          role: 'user',
          parts: [
            { functionResponse: { id: `call_${turn}`, name: 'orders', response: { rows: rows(turn) } } },
          ],
        },
        { role: 'model', parts: [{ text: `Region ${turn} has twenty.` }] },
      ]).flat()
      const request = {
        contents: [...contents, { role: 'user', parts: [{ text: 'And now?' }] }],
        toolsDict: {},
        liveConnectConfig: {},
      }
      const answers = []
      for await (const answer of adapter.generateContentAsync(request)) answers.push(answer)
      expect(answers.at(-1)?.content?.parts?.[0]?.text).toBe('ok')
      expect(server.requests.length).toBeLessThanOrEqual(2)
    } finally {
      await server.close()
    }
  },
)
