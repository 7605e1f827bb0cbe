/**
 * Providers for the gallery that send with `fetch` and need no vendor SDK: the demo must work right after
 * `npm install lango`. Repair, request bodies and stream readers are those of the real providers. Gemini's SDK
 * comes with Lango and is used as it is.
 */
import { createParser } from 'eventsource-parser'
import { AnthropicProvider } from '../provider/anthropic/anthropic-provider.js'
import type { HttpFailure } from '../provider/error-facts.js'
import { OpenAiProvider } from '../provider/openai/openai-provider.js'
import type { Provider } from '../provider/provider.js'
import { providerFetch } from '../provider/provider-fetch.js'
import { createProvider } from '../provider/provider-registry.js'
import { readSettings } from '../provider/provider-settings.js'
import { PROFILE_FACTS, type StrictProfile } from '../testing/strict/profile.js'
import { profileProvider } from './profile-provider.js'

/** A provider named `id` with the wire of a profile, for a strict server. */
export function directProvider(id: string, profile: StrictProfile, baseUrl: string): Provider {
  const options = { ...profileProvider(profile, baseUrl), id }
  switch (PROFILE_FACTS[profile].family) {
    case 'openai-chat':
      return new DirectOpenAi(readSettings(options))
    case 'anthropic':
      return new DirectAnthropic(readSettings(options))
    default:
      return createProvider(options)
  }
}

interface Sent {
  signal: AbortSignal
  body?: unknown
  headers?: Readonly<Record<string, string>>
}

/** `never` below: of the SDK's client, only the one call exists that a streamed request makes. */
class DirectOpenAi extends OpenAiProvider {
  protected override async newClient(): Promise<never> {
    const create = (body: unknown, { signal }: Sent) =>
      openStream(`${this.settings.baseUrl}/chat/completions`, { body, signal })
    return { chat: { completions: { create } } } as never
  }
}

class DirectAnthropic extends AnthropicProvider {
  protected override async newClient(): Promise<never> {
    const post = (path: string, { body, signal, headers }: Sent) =>
      openStream(`${this.settings.baseUrl}${path}`, {
        body: { ...(body as object), stream: true },
        signal,
        headers: { 'anthropic-version': '2023-06-01', ...headers },
      })
    return { post } as never
  }
}

/** Posts JSON and reads the events of the answer. A refusal is thrown as an SDK throws it. */
async function openStream(url: string, { body, signal, headers }: Sent): Promise<AsyncIterable<unknown>> {
  const response = await providerFetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
    signal,
  })
  if (response.ok && response.body) return readEvents(response.body)
  const failure: HttpFailure = { status: response.status, headers: response.headers }
  throw Object.assign(new Error(await response.text()), failure)
}

async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<unknown> {
  const found: string[] = []
  const parser = createParser({ onEvent: ({ data }) => found.push(data) })
  const decoder = new TextDecoder()
  for await (const bytes of body) {
    parser.feed(decoder.decode(bytes, { stream: true }))
    for (const data of found.splice(0)) if (data !== '[DONE]') yield JSON.parse(data)
  }
}
