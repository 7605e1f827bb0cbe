import type { Message } from '../../src/entries/store.js'

/** An ordinary model event of about `bytes` bytes of text, as ADK would append it. */
export function adkEvent(index: number, bytes: number) {
  return {
    id: `e${String(index).padStart(9, '0')}`,
    invocationId: 'e-2b7f9c1e-7f54-4a8e-9d0e-1c5c6f0a1b2c',
    author: index % 2 === 0 ? 'user' : 'assistant_agent',
    timestamp: 1_760_000_000_000 + index,
    content: { role: index % 2 === 0 ? 'user' : 'model', parts: [{ text: prose(index, bytes) }] },
    actions: { stateDelta: {}, artifactDelta: {}, requestedAuthConfigs: {}, requestedToolConfirmations: {} },
  }
}

/** The same event as a stored message. */
export function storedMessage(index: number, bytes: number): Message {
  const event = adkEvent(index, bytes)
  return {
    id: event.id,
    invocationId: event.invocationId,
    author: event.author,
    timestamp: event.timestamp,
    role: index % 2 === 0 ? 'user' : 'assistant',
    content: event.content.parts[0]?.text ?? '',
  }
}

function prose(index: number, bytes: number): string {
  const sentence = `Message ${index} speaks of rivers, ledgers and the price of salt in the northern towns. `
  return sentence.repeat(Math.ceil(bytes / sentence.length)).slice(0, bytes)
}
