import { expect } from 'vitest'
import { sanitize } from '../../src/provider/gemini/sanitize.js'
import type { ProviderMessage, ProviderPart } from '../../src/provider/provider.js'
import { requirement, scenario } from '../support/scenario.js'

const text = (words: string): ProviderPart => ({ type: 'text', text: words })
const user = (words: string): ProviderMessage => ({ role: 'user', parts: [text(words)] })
const model = (...parts: ProviderPart[]): ProviderMessage => ({ role: 'assistant', parts })
const call = (id: string): ProviderPart => ({ type: 'tool-call', id, name: 'search', args: { id } })
const answers = (...ids: string[]): ProviderMessage => ({
  role: 'tool',
  parts: ids.map(id => ({ type: 'tool-result', id, name: 'search', result: { found: id } })),
})

/** Who speaks, in short: `u`, `m`, `m:call`, `u:result`. */
function shape(messages: readonly ProviderMessage[]): string[] {
  return messages.map(message => {
    const who = message.role === 'assistant' ? 'm' : 'u'
    if (message.parts.some(part => part.type === 'tool-call')) return `${who}:call`
    return message.parts.some(part => part.type === 'tool-result') ? `${who}:result` : who
  })
}

requirement('Gemini turn order is sanitized', () => {
  scenario('Orphaned responses are dropped', () => {
    const { messages, repairs } = sanitize([answers('lost'), user('hello'), model(text('hi')), user('go')])
    expect(JSON.stringify(messages)).not.toContain('"tool-result"')
    // Dropped as a response; what the tool said is kept as text.
    expect(JSON.stringify(messages)).toContain('lost')
    expect(repairs.map(repair => repair.step)).toContain('drop-orphans')
  })

  scenario('Consecutive roles are merged', () => {
    const { messages } = sanitize([
      user('one'),
      user('two'),
      model(text('a')),
      model(text('b')),
      user('three'),
    ])
    expect(shape(messages)).toEqual(['u', 'm', 'u'])
    expect(messages[0]?.parts.map(part => part.type === 'text' && part.text).join(' ')).toMatch(/one\s+two/)
  })

  scenario('A history that starts with the model gets a user turn', () => {
    const { messages } = sanitize([model(text('hi')), user('go')])
    expect(messages[0]).toEqual(user('[continue]'))
    expect(shape(messages)).toEqual(['u', 'm', 'u'])
  })

  scenario('Every call is paired with a response', () => {
    const { messages } = sanitize([user('go'), model(call('a'), call('b')), answers('a'), user('and?')])
    const results = messages.flatMap(message => message.parts.filter(part => part.type === 'tool-result'))
    expect(results.map(part => part.id)).toEqual(['a', 'b'])
    expect(JSON.stringify(results[0]?.result)).toContain('found')
    expect(JSON.stringify(results[1]?.result)).toContain('[no response available]')
  })

  scenario('Synthetic turns are merged again', () => {
    // The answer to the open call stands beside two user turns; nothing of one role may follow itself.
    const { messages } = sanitize([model(call('a')), user('one'), user('two')])
    expect(shape(messages)).toEqual(['u', 'm:call', 'u:result', 'u'])
    expect(sanitize(messages).messages).toEqual(messages)
  })
})
