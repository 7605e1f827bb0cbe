import { type Provider, withGenerate } from '../../src/provider/provider.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'

/** A model that says half of its answer and nothing more, until `passed`. */
export function halfAnswer(passed: Promise<void> = new Promise(() => {})): Provider {
  return withGenerate(new ScriptedProvider([], { id: 'play' }), async function* (request) {
    yield { type: 'request', model: request.model, profile: 'p', repairs: [], mappedIds: {}, body: {} }
    yield { type: 'text-delta', text: 'The ' }
    yield { type: 'text-delta', text: 'ans' }
    await passed
    yield { type: 'text-delta', text: 'wer.' }
    yield { type: 'done', finishReason: 'stop' }
  })
}
