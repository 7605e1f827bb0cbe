import type { GenerateRequest, Provider, ProviderMessage, ProviderPart } from '../../src/provider/provider.js'
import { createProvider } from '../../src/provider/provider-registry.js'
import type { ProviderOptions } from '../../src/provider/provider-settings.js'
import type { StreamEvent } from '../../src/provider/stream-event.js'

export const user = (text: string): ProviderMessage => ({ role: 'user', parts: [{ type: 'text', text }] })

/** A provider that never waits and reads no variables of this machine. */
export function testProvider(options: ProviderOptions): Provider {
  return createProvider({
    apiKey: 'test-key-123',
    env: {},
    ...options,
    retry: { sleep: async () => {}, ...options.retry },
  })
}

export async function collect(
  provider: Provider,
  request: Partial<GenerateRequest> & { model: string },
  signal?: AbortSignal,
): Promise<StreamEvent[]> {
  const events: StreamEvent[] = []
  for await (const event of provider.generate({ messages: [user('hello')], ...request }, signal))
    events.push(event)
  return events
}

/** The answer as the message that a session would keep: one part per block. */
export function toMessage(events: readonly StreamEvent[]): ProviderMessage {
  const parts: ProviderPart[] = []
  let block: string | undefined
  for (const event of events) {
    if (event.type === 'text-delta' || event.type === 'reasoning-delta') {
      const type = event.type === 'text-delta' ? 'text' : 'reasoning'
      const key = `${type}:${event.block}`
      const { signature, origin } = event
      const before = block === key ? parts.pop() : undefined
      const text = before && 'text' in before ? before.text + event.text : event.text
      const redacted = event.type === 'reasoning-delta' && event.redacted ? { redacted: true } : {}
      parts.push({
        ...before,
        type,
        text,
        ...(signature ? { signature } : {}),
        ...(origin ? { origin } : {}),
        ...redacted,
      } as ProviderPart)
      block = key
    } else if (event.type === 'tool-call' || event.type === 'media' || event.type === 'vendor') {
      parts.push(event)
      block = undefined
    }
  }
  return { role: 'assistant', parts }
}

/** Short words for an answer's events, for tables. */
export function summarize(events: readonly StreamEvent[]): unknown[] {
  const parts = toMessage(events).parts.map(part => {
    const signed = 'signature' in part && part.signature ? [`sig=${part.signature}`] : []
    if (part.type === 'tool-call') return ['call', part.id, part.name, part.args, ...signed]
    if (part.type === 'media') return ['media', part.mimeType, part.data, ...signed]
    if (part.type === 'vendor') return ['vendor', part.text, ...signed]
    if (part.type === 'reasoning') return [part.redacted ? 'redacted' : 'reasoning', part.text, ...signed]
    return part.type === 'text' ? ['text', part.text, ...signed] : [part.type]
  })
  const ends = events.flatMap(event => {
    if (event.type === 'done') return [['done', event.finishReason]]
    return event.type === 'error' ? [['error', event.error.code]] : []
  })
  return [...parts, ...ends]
}
