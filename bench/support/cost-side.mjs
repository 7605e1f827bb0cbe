// One side of bench/cost.ts: the package that is installed in the folder of this file. Rows are measured on request.
import { BaseLlm, FunctionTool, InMemorySessionService, LlmAgent, Runner } from '@google/adk'
import { createRuntime, defineTool } from 'lango'
import { ScriptedProvider } from 'lango/testing'

const QUESTION = 'Where is the key that I put away last week?'
const WORDS = 'It is in the second drawer from the top, behind the envelopes and the stamps. '
const USED = { inputTokens: 200, outputTokens: 20 }
const PIECES = Array.from({ length: 150 }, (_, index) => WORDS.slice(index % 70, (index % 70) + 6))

const ANSWERED = [
  { text: WORDS, usage: USED },
  { deltas: PIECES, usage: USED },
]

/** Calls the tool once for each question, then answers. */
function provider(isStreamed) {
  const script = ({ messages }) =>
    messages.at(-1)?.parts.some(part => part.type === 'tool-result') || isStreamed
      ? ANSWERED[isStreamed ? 1 : 0]
      : { toolCalls: [{ name: 'look', args: { place: 'the second drawer from the top' } }], usage: USED }
  const scripted = new ScriptedProvider(script, { id: 'play', model: { price: { input: 1, output: 4 } } })
  // It keeps every request: a bench has many.
  return {
    id: 'play',
    describeModel: model => scripted.describeModel(model),
    generate(request, signal) {
      scripted.requests.length = 0
      return scripted.generate(request, signal)
    },
  }
}

const tool = effect =>
  defineTool({
    name: 'look',
    description: 'Looks somewhere',
    parameters: { type: 'object', properties: { place: { type: 'string' } }, required: ['place'] },
    effect,
    execute: ({ place }) => ({ place, found: ['stamps', 'envelopes', 'a key'], at: 'the back' }),
  })

const BUDGET = { perRunUsd: 10, perSessionUsd: 1000, perUserUsdPerDay: 1_000_000 }

/** The same answers without a provider. */
class InstantModel extends BaseLlm {
  constructor(isStreamed) {
    super({ model: 'instant' })
    this.isStreamed = isStreamed
  }

  async *generateContentAsync(request) {
    const isAnswered = request.contents.at(-1)?.parts?.some(part => part.functionResponse)
    const call = { functionCall: { name: 'look', args: { place: 'the second drawer from the top' } } }
    if (this.isStreamed) {
      for (const text of PIECES) yield { content: { role: 'model', parts: [{ text }] }, partial: true }
      yield { content: { role: 'model', parts: [{ text: PIECES.join('') }] } }
    } else yield { content: { role: 'model', parts: [isAnswered ? { text: WORDS } : call] } }
  }

  connect() {
    return Promise.reject(new TypeError('not a live model'))
  }
}

const look = new FunctionTool({
  name: 'look',
  description: 'Looks somewhere',
  execute: ({ place }) => ({ place, found: ['stamps', 'envelopes', 'a key'], at: 'the back' }),
})

let runtime
let sessions = 0

const requests = {
  async open({ store, effect, isStreamed, isBounded }) {
    runtime = await createRuntime({
      store,
      providers: { play: provider(isStreamed) },
      agent: { name: 'agent', model: 'play/m', instruction: 'You find things.', tools: [tool(effect)] },
      ...(isBounded ? { budget: BUDGET, tools: { approve: ['dangerous_*'] } } : {}),
    })
    await runtime.ready()
  },
  /** Microseconds of processor time for each run. */
  async measure({ runs, atOnce, turns }) {
    let left = runs
    const before = process.cpuUsage()
    const work = async () => {
      while (left > 0) {
        const sessionId = `s${process.pid}-${sessions++}`
        for (let turn = 0; turn < turns && left > 0; turn += 1) {
          left -= 1
          const { finishReason } = await runtime.runAndCollect({ userId: 'u', sessionId, text: QUESTION })
          if (finishReason !== 'stop') throw new TypeError(`A run ended with ${finishReason}.`)
        }
      }
    }
    await Promise.all(Array.from({ length: atOnce }, work))
    const { user, system } = process.cpuUsage(before)
    return (user + system) / runs
  },
  /** The same for ADK's own runner, in memory. The first runs are not measured. */
  async measureAdk({ runs, turns, isStreamed }) {
    const agent = new LlmAgent({ name: 'agent', model: new InstantModel(isStreamed), tools: [look] })
    const service = new InMemorySessionService()
    const runner = new Runner({ appName: 'bench', agent, sessionService: service })
    let before = process.cpuUsage()
    for (let run = -runs; run < runs; run += 1) {
      if (run === 0) before = process.cpuUsage()
      const sessionId = `s${Math.floor(run / turns)}`
      const key = { appName: 'bench', userId: 'u', sessionId }
      if (!(await service.getSession(key))) await service.createSession(key)
      const newMessage = { role: 'user', parts: [{ text: QUESTION }] }
      for await (const _event of runner.runAsync({ userId: 'u', sessionId, newMessage }));
    }
    const { user, system } = process.cpuUsage(before)
    return (user + system) / runs
  },
  async close() {
    await runtime.close()
  },
}

process.on('message', ({ request, options }) => {
  requests[request](options ?? {}).then(
    result => process.send({ result }),
    error => process.send({ error: String(error?.stack ?? error) }),
  )
})
