// A strict server that bills as a vendor does, and checks at every moment what it may have to bill at most.
import { type StrictProvider, startStrictProvider } from '../../src/testing/start-strict-provider.js'
import type { RequestSummary, ScriptStep } from '../../src/testing/strict/script.js'

/** Dollars per million tokens. */
const PRICE = { input: 10, output: 40 }

export interface BillingProvider {
  server: StrictProvider
  /** Dollars for everything that was answered. */
  bill(): number
  /** The most that was ever answered and being answered, the latter at its output limit. */
  peak(): number
  /** The output limits of the requests, in order. */
  limits: number[]
}

/** `step` gives the answer; its output never exceeds the limit of the request. */
export async function startBilling(
  step: (
    request: RequestSummary,
    index: number,
  ) => (ScriptStep & { outputTokens?: number }) | Promise<ScriptStep & { outputTokens?: number }>,
): Promise<BillingProvider> {
  let billed = 0
  let open = 0
  let peak = 0
  const limits: number[] = []
  const costOf = (input: number, output: number) => (input * PRICE.input + output * PRICE.output) / 1_000_000
  const server = await startStrictProvider({
    profile: 'openai-chat',
    script: async (request, index) => {
      const body = request.body as { max_completion_tokens?: number; max_tokens?: number }
      const limit = body.max_completion_tokens ?? body.max_tokens ?? 1_000_000
      limits.push(limit)
      const input = Math.ceil(JSON.stringify(request.body).length / 4)
      const worst = costOf(input, limit)
      open += worst
      peak = Math.max(peak, billed + open)
      const { outputTokens = 20, ...answer } = await step(request, index)
      const output = Math.min(outputTokens, limit)
      open -= worst
      billed += costOf(input, output)
      peak = Math.max(peak, billed + open)
      const isCut = outputTokens > limit
      return { ...answer, ...(isCut ? { finish: 'length' as const } : {}), usage: { input, output } }
    },
  })
  return { server, bill: () => billed, peak: () => peak, limits }
}

/** The provider of a runtime that talks to it. */
export function billedBy({ baseUrl }: Pick<StrictProvider, 'baseUrl'>, priced = true) {
  return {
    type: 'openai' as const,
    api: 'chat' as const,
    apiKey: 'sk-test',
    baseUrl,
    models: {
      'bill-1': { contextWindow: 200_000, outputLimit: 32_000, ...(priced ? { price: PRICE } : {}) },
    },
  }
}
