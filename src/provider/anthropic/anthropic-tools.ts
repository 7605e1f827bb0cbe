/** Anthropic's own server tools and options, by the names that Gemini has for them. */
import type { GenerationOptions, ServerTool } from '../provider.js'
import { type Abilities, abilitiesOf } from '../request-options.js'

type WireTool = { type: string; name: string; [field: string]: unknown }

/** Gemini's names of the tool that searches the web. */
export const WEB_SEARCH: readonly string[] = ['googleSearch', 'googleSearchRetrieval']

/** Anthropic's counterparts of Gemini's tools. Web search and fetch answer with citations, code runs in a sandbox. */
const SERVER_TOOLS: Readonly<Record<string, (config: ServerTool['config']) => WireTool>> = {
  googleSearch: webSearch,
  googleSearchRetrieval: webSearch,
  urlContext: () => ({ type: 'web_fetch_20250910', name: 'web_fetch', citations: { enabled: true } }),
  codeExecution: () => ({ type: 'code_execution_20250825', name: 'code_execution' }),
}

function webSearch({ excludeDomains }: ServerTool['config']): WireTool {
  const blocked = Array.isArray(excludeDomains) && excludeDomains.length > 0
  return {
    type: 'web_search_20250305',
    name: 'web_search',
    ...(blocked ? { blocked_domains: excludeDomains } : {}),
  }
}

export function toServerTools(tools: readonly ServerTool[] = []): WireTool[] {
  return tools.flatMap(({ name, config }) => SERVER_TOOLS[name]?.(config) ?? [])
}

/** `samples`: sampling settings are sent. `isForcible`: models that always think cannot be forced to call a tool. */
export function anthropicAbilities(
  options: GenerationOptions,
  { samples, isForcible }: { samples: boolean; isForcible: boolean },
): Abilities {
  return abilitiesOf(
    options,
    {
      maxOutputTokens: true,
      stopSequences: true,
      responseSchema: true,
      thinkingConfig: true,
      toolConfig: isForcible || options.toolChoice === 'none',
      temperature: samples,
      topP: samples && options.temperature === undefined,
      topK: samples,
      serviceTier: serviceTier(options) !== undefined,
    },
    SERVER_TOOLS,
    { googleSearch: ['excludeDomains'], googleSearchRetrieval: ['excludeDomains'] },
  )
}

/** Anthropic knows two tiers: the standard one, and the best that the account has. */
export function serviceTier({ gemini }: GenerationOptions): string | undefined {
  const tier = String(gemini?.serviceTier).toLowerCase()
  return tier === 'standard' ? 'standard_only' : tier === 'priority' ? 'auto' : undefined
}
