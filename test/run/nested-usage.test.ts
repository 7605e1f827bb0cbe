// What agents inside agents use is counted once, also side by side and after a resume.
import { AgentTool, LlmAgent, ParallelAgent } from '@google/adk'
import { expect, onTestFinished, test } from 'vitest'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import type { SessionStore } from '../../src/session/session-store.js'
import { openStore } from '../../src/store/open-store.js'
import { ScriptedProvider, type ScriptStep } from '../../src/testing/scripted-provider.js'
import { crashable } from '../support/crashable-store.js'
import { eventually } from '../support/eventually.js'

const RUN = '00000000-0000-4000-8000-000000000001'

/** Two branches, each of which asks an expert: six model calls in all. */
async function branches(store: SessionStore): Promise<{ runtime: Runtime; provider: ScriptedProvider }> {
  const provider = new ScriptedProvider(
    ({ messages }): ScriptStep => {
      const usage = { inputTokens: 10, outputTokens: 2 }
      const isExpert = JSON.stringify(messages[0]).includes('You know.')
      const hasAsked = messages.some(({ parts }) => parts.some(({ type }) => type === 'tool-result'))
      if (isExpert || hasAsked) return { text: 'Known.', usage }
      return { toolCalls: [{ id: 'c1', name: 'expert', args: { request: 'What?' } }], usage }
    },
    { id: 'play' },
  )
  const asking = (name: string) =>
    new LlmAgent({
      name,
      model: 'play/m',
      instruction: 'Ask.',
      tools: [
        new AgentTool({ agent: new LlmAgent({ name: 'expert', model: 'play/m', instruction: 'You know.' }) }),
      ],
    })
  const rootAgent = new ParallelAgent({ name: 'both', subAgents: [asking('one'), asking('two')] })
  const runtime = await createRuntime({
    store,
    providers: { play: provider },
    rootAgent,
    runs: { maxAttempts: 100 },
  })
  return { runtime, provider }
}

const ALL = { inputTokens: 60, outputTokens: 12 }

test('two branches with an expert each: every model call is counted once', async () => {
  const { runtime, provider } = await branches(await openStore('memory:'))
  onTestFinished(() => runtime.close())
  const { usage } = await runtime.runAndCollect({ sessionId: 's', text: 'Go.' })
  expect(provider.requests).toHaveLength(6)
  expect(usage).toMatchObject(ALL)
})

test('agents side by side with models of their own: each answer is counted with its model and request', async () => {
  // The first one called answers last.
  let answered = () => {}
  const other = new Promise<void>(resolve => {
    answered = resolve
  })
  const slow = new ScriptedProvider(
    async (): Promise<ScriptStep> => {
      await other
      return { text: 'Slow.', usage: { inputTokens: 10, outputTokens: 2 } }
    },
    { id: 'slow' },
  )
  const fast = new ScriptedProvider([{ text: 'Fast.', usage: { inputTokens: 3, outputTokens: 1 } }], {
    id: 'fast',
  })
  const agents = ['slow', 'fast'].map(name => new LlmAgent({ name, model: `${name}/m`, instruction: 'Go.' }))
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { slow, fast },
    rootAgent: new ParallelAgent({ name: 'both', subAgents: agents }),
  })
  onTestFinished(() => runtime.close())
  const found: unknown[] = []
  for await (const event of runtime.run({ sessionId: 's', runId: RUN, text: 'Go.' })) {
    if (event.type !== 'usage') continue
    found.push([event.author, event.model, event.usage.inputTokens])
    if (event.author === 'fast') answered()
  }
  expect(found).toEqual([
    ['fast', 'fast/m', 3],
    ['slow', 'slow/m', 10],
  ])
})

test('cut after each write and resumed, the answers that were kept are counted once', async () => {
  const watched = crashable(await openStore('memory:'))
  const whole = await branches(watched.store)
  await whole.runtime.runAndCollect({ sessionId: 's', runId: RUN, text: 'Go.' })
  await whole.runtime.close()
  for (let endsAfter = 1; endsAfter < watched.writes; endsAfter++) {
    const store = await openStore('memory:')
    const process = crashable(store, { endsAfter })
    const first = await branches(process.store)
    void first.runtime.start({ sessionId: 's', runId: RUN, text: 'Go.' }).catch(() => {})
    const isOver = async () => (await store.runs.findRun(RUN))?.finished === true
    await Promise.race([process.over, eventually(isOver).toBe(true)])
    await process.crash()
    if (await isOver()) continue
    const second = await branches(store)
    await second.runtime.ready()
    const events = []
    for await (const event of second.runtime.follow(RUN)) events.push(event)
    await second.runtime.close()
    // An answer that was lost is asked for again. It is counted if a neighbour's write has stored what it used.
    const asked = first.provider.requests.length + second.provider.requests.length
    const counted = events.filter(({ type }) => type === 'usage').length
    const cut = `cut after write ${endsAfter}`
    expect(counted, cut).toBeGreaterThanOrEqual(6)
    expect(counted, cut).toBeLessThanOrEqual(asked)
    expect(events.at(-1), cut).toMatchObject({
      type: 'run-finish',
      finishReason: 'stop',
      usage: { inputTokens: 10 * counted, outputTokens: 2 * counted },
    })
  }
})
