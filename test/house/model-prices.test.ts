// What requests cost: as the vendors bill them, as the package of prices says, and as the catalogue is built.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { catalogueText, ownNames, packagePrices } from '../../scripts/build-catalogue.mjs'
import { describeModel } from '../../src/provider/model-catalog.js'
import { vendorNames, vendorRow } from '../../src/provider/vendors.js'
import { completeUsage, costOf, type Usage } from '../../src/session/usage.js'

const ROOT = join(import.meta.dirname, '../..')

type Billed = Partial<Omit<Usage, 'totalTokens'>>

/** Dollars for one request, worked out from the list prices on the vendors' pages (November 2026). */
const BILLS: [what: string, vendor: string, model: string, used: Billed, dollars: number][] = [
  // ai.google.dev/gemini-api/docs/pricing. 1,500 at $1.25, 10,000 cached at $0.125; thoughts cost as output, $10.
  [
    'a cache and thoughts',
    'gemini',
    'gemini-2.5-pro',
    { inputTokens: 11_500, cachedInputTokens: 10_000, outputTokens: 11_000, reasoningTokens: 10_000 },
    0.113125,
  ],
  // "prompts <= 200k tokens", "prompts > 200k": the whole request costs the higher price, output included.
  [
    'a prompt at the threshold',
    'gemini',
    'gemini-2.5-pro',
    { inputTokens: 200_000, outputTokens: 1000 },
    0.26,
  ],
  [
    'a prompt above the threshold',
    'gemini',
    'gemini-2.5-pro',
    { inputTokens: 200_001, outputTokens: 1000 },
    0.5150025,
  ],
  [
    'a cached prompt above the threshold',
    'gemini',
    'gemini-2.5-pro',
    { inputTokens: 300_000, cachedInputTokens: 100_000, outputTokens: 1000 },
    0.54,
  ],
  [
    'a prompt above the threshold',
    'gemini',
    'gemini-3-pro-preview',
    { inputTokens: 250_000, outputTokens: 2000 },
    1.036,
  ],
  [
    'a long prompt at one price',
    'gemini',
    'gemini-2.5-flash',
    { inputTokens: 500_000, outputTokens: 10_000 },
    0.175,
  ],
  // The usage in OpenAI's guide to prompt caching: 1,920 of 2,006 tokens from the cache, 300 of output.
  [
    'a cache',
    'openai',
    'gpt-4o',
    { inputTokens: 2006, cachedInputTokens: 1920, outputTokens: 300 },
    0.005615,
  ],
  // The guide to reasoning: 75 of input, 1,186 of output, 1,024 of these for reasoning.
  [
    'reasoning',
    'openai',
    'gpt-5',
    { inputTokens: 75, outputTokens: 1186, reasoningTokens: 1024 },
    0.01195375,
  ],
  ['a long prompt', 'openai', 'gpt-5.5', { inputTokens: 300_000, outputTokens: 1000 }, 3.045],
  ['a prompt that is not long', 'openai', 'gpt-5.5', { inputTokens: 270_000, outputTokens: 1000 }, 1.38],
  [
    'a cache write',
    'openai',
    'gpt-5.6-sol',
    { inputTokens: 10_000, cacheWriteTokens: 8000, outputTokens: 100 },
    0.05,
  ],
  // platform.claude.com/docs/en/about-claude/pricing: writes 1.25 times the input, for an hour twice, reads a tenth.
  [
    'a cache write',
    'anthropic',
    'claude-sonnet-4-5',
    { inputTokens: 100_050, cacheWriteTokens: 100_000, outputTokens: 500 },
    0.38265,
  ],
  [
    'a cache write for an hour',
    'anthropic',
    'claude-sonnet-4-5',
    { inputTokens: 100_050, cacheWriteTokens: 100_000, cacheWrite1hTokens: 60_000, outputTokens: 500 },
    0.51765,
  ],
  [
    'a cache read',
    'anthropic',
    'claude-sonnet-4-5',
    { inputTokens: 100_050, cachedInputTokens: 100_000, outputTokens: 500 },
    0.03765,
  ],
  [
    'a cache that is read and written',
    'anthropic',
    'claude-opus-4-5',
    { inputTokens: 11_000, cachedInputTokens: 8000, cacheWriteTokens: 2000, outputTokens: 1000 },
    0.0465,
  ],
  // Input counts with what was read and written: 150,000 and 60,000 are above 200,000.
  [
    'a prompt that is long by its cache',
    'anthropic',
    'claude-sonnet-4-5-20250929',
    { inputTokens: 211_000, cachedInputTokens: 150_000, cacheWriteTokens: 60_000, outputTokens: 1000 },
    0.5685,
  ],
  // No higher price since March 2026.
  [
    'a prompt of a million tokens',
    'anthropic',
    'claude-sonnet-4-6',
    { inputTokens: 900_000, outputTokens: 1000 },
    2.715,
  ],
  ['a long prompt', 'anthropic', 'claude-haiku-5-5', { inputTokens: 100_001, outputTokens: 1000 }, 0.0525005],
  [
    'a cache',
    'deepseek',
    'deepseek-chat',
    { inputTokens: 10_000, cachedInputTokens: 9000, outputTokens: 1000 },
    0.000952,
  ],
  [
    'input and output',
    'mistral',
    'mistral-large-latest',
    { inputTokens: 10_000, outputTokens: 1000 },
    0.0065,
  ],
  [
    'a model of another vendor at its host',
    'groq',
    'openai/gpt-oss-120b',
    { inputTokens: 10_000, outputTokens: 1000 },
    0.0021,
  ],
  [
    'a model of another vendor at its host',
    'cerebras',
    'gpt-oss-120b',
    { inputTokens: 10_000, outputTokens: 1000 },
    0.00425,
  ],
  [
    'a model at a gateway',
    'openrouter',
    'anthropic/claude-opus-4.5',
    { inputTokens: 10_000, outputTokens: 1000 },
    0.075,
  ],
]

test.each(BILLS)('%s, by %s/%s, costs what the vendor bills', (_what, vendor, model, used, dollars) => {
  const { price } = describeModel(vendor, model)
  const usage = completeUsage({ inputTokens: 0, outputTokens: 0, totalTokens: 0, ...used })
  expect(price && costOf(usage, price)).toBeCloseTo(dollars, 9)
})

test.each([
  ['openai', 'gpt-5.2-nano'],
  ['openai', 'gpt-4o-audio-preview'],
  ['openai', 'ft:gpt-4o-2024-08-06:me::1'],
  ['anthropic', 'claude-opus-4-9'],
  ['gemini', 'gemini-2.5-flash-image'],
  ['ollama', 'gpt-oss:20b'],
  ['openrouter', 'deepseek/deepseek-chat'],
  ['together', 'moonshotai/Kimi-K3'],
  ['vllm', 'mistral-large-2411'],
  ['openai-compatible', 'kimi-k3'],
])('%s/%s has no price: it is not in the catalogue, or costs what its server charges', (vendor, model) => {
  expect(describeModel(vendor, model).price).toBeUndefined()
})

test('the catalogue is built from the installed package of prices', () => {
  expect(readFileSync(join(ROOT, 'src/provider/model-catalog-data.ts'), 'utf8')).toBe(catalogueText())
})

test('no price differs from that of the package of prices, but for those that are ours', () => {
  const own = ownNames()
  const differing = packagePrices().flatMap(({ vendor, name, price }) => {
    const found = describeModel(vendor, name).price
    const isOwn = own.some(known => name === known || name.startsWith(`${known}-`))
    if (!found || isOwn || found.input === price[0]) return []
    return [`${vendor}/${name}: ${found.input}, not ${price[0]}`]
  })
  expect(differing).toEqual([])
})

test('every model that the docs name is in the catalogue', () => {
  const pages = ['README.md', ...readdirSync(join(ROOT, 'docs')).map(name => `docs/${name}`)]
  const vendors = vendorNames(row => row.names !== undefined && row.keyVariables !== undefined)
  const pattern = new RegExp(`\\b(${vendors.join('|')})/([a-z][a-z0-9.-]*[a-z0-9])`, 'g')
  const named = pages.flatMap(page =>
    page.endsWith('.md')
      ? [...readFileSync(join(ROOT, page), 'utf8').matchAll(pattern)].flatMap(
          ([, vendor = '', model = '']) =>
            // A path of this project is no model.
            vendorRow(vendor)?.names?.test(model) ? [{ vendor, model }] : [],
        )
      : [],
  )
  expect(named.length).toBeGreaterThan(5)
  const unknown = named.filter(({ vendor, model }) => !describeModel(vendor, model).price)
  expect(unknown).toEqual([])
})
