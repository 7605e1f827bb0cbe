// run-many.ts <store URL> <name> <runs> <sessions>: starts all runs at once, spread over the sessions s0, s1, …
import { createRuntime } from '../../src/runtime/runtime.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { searchTool } from './tools.js'

const [store = '', name = '', runs = '0', sessions = '1'] = process.argv.slice(2)
// Answers by what the history says, because runs of several sessions share the model.
const provider = new ScriptedProvider(
  request => {
    const last = request.messages.at(-1)
    const isResult = last?.parts.some(part => part.type === 'tool-result')
    // Either process may execute a run, so the model goes by what it is asked.
    const asked = last?.parts.flatMap(part => (part.type === 'text' ? part.text.split(' ')[0] : []))
    return isResult
      ? { deltas: ['Found', '.'] }
      : { toolCalls: [{ name: 'search', args: { query: asked?.[0] } }] }
  },
  { id: 'play' },
)
const runtime = await createRuntime({
  store,
  providers: { play: provider },
  agent: { name: 'root', model: 'play/m', tools: [searchTool] },
})
const results = await Promise.all(
  Array.from({ length: Number(runs) }, (_, index) =>
    runtime.runAndCollect({ sessionId: `s${index % Number(sessions)}`, text: `${name} ${index}` }),
  ),
)
console.log(
  results.every(result => result.text === 'Found.' && result.finishReason === 'stop')
    ? 'all well'
    : 'not well',
)
await runtime.close()
