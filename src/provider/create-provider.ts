import { AnthropicProvider } from './anthropic/anthropic-provider.js'
import { DemoProvider } from './demo/demo-provider.js'
import { GeminiProvider } from './gemini/gemini-provider.js'
import { OpenAiProvider } from './openai/openai-provider.js'
import type { Provider } from './provider.js'
import { type ProviderOptions, readSettings } from './provider-settings.js'

/** Makes a provider. Nothing is loaded or asked until the first request, and a missing key is told then. */
export function createProvider(options: ProviderOptions): Provider {
  const settings = readSettings(options)
  switch (settings.type) {
    case 'gemini':
      return new GeminiProvider(settings)
    case 'anthropic':
      return new AnthropicProvider(settings)
    case 'demo':
      return new DemoProvider(settings)
    default:
      return new OpenAiProvider(settings)
  }
}
