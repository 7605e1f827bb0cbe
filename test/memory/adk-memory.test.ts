import { LlmAgent, LOAD_MEMORY, PRELOAD_MEMORY } from '@google/adk'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createRuntime } from '../../src/index.js'
import type { HistoryOptions } from '../../src/runtime/options.js'
import { type Script, ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { DRIVERS, useStore } from '../conformance/store/drivers.js'

let apps = 0

/** Asks ADK's tool when the user asks, and otherwise answers. */
const asking: Script = ({ messages }) => {
  const last = JSON.stringify(messages.at(-1))
  if (last.includes('What is my dog called') && !last.includes('tool-result'))
    return { toolCalls: [{ name: 'load_memory', args: { query: 'dog name' }, id: 'c1' }] }
  return { text: 'I see.' }
}

describe.each(DRIVERS)("ADK's memory tools in $name", driver => {
  const place = useStore(driver)

  async function start(history: HistoryOptions, tool: typeof LOAD_MEMORY | typeof PRELOAD_MEMORY) {
    const main = new ScriptedProvider(asking, { id: 'main' })
    const runtime = await createRuntime({
      app: `memory-${driver.name}-${apps++}`,
      store: place.store,
      providers: { main },
      rootAgent: new LlmAgent({ name: 'root', model: 'main/any', tools: [tool] }),
      history,
    })
    onTestFinished(() => runtime.close())
    const results = () =>
      main.requests
        .flatMap(({ messages }) => messages.flatMap(({ parts }) => parts))
        .filter(part => part.type === 'tool-result')
    return { runtime, main, results }
  }

  test(`an unchanged agent with scope user on the ${driver.name} store finds what its user said in another session, and no other user`, async () => {
    const { runtime, results } = await start({ memory: { scope: 'user' } }, LOAD_MEMORY)
    await runtime.runAndCollect({ sessionId: 'one', userId: 'ann', text: 'My dog is called Bello.' })
    await runtime.runAndCollect({ sessionId: 'two', userId: 'bob', text: 'My dog is called Rex.' })
    const { app: appName } = await runtime.info()
    for (const scope of [
      { appName, userId: 'ann' },
      { appName, userId: 'bob' },
    ])
      await expect
        .poll(async () => (await place.store.memory.countTerms(scope, [])).documents, { timeout: 60_000 })
        .toBe(2)
    await runtime.runAndCollect({ sessionId: 'three', userId: 'ann', text: 'What is my dog called?' })
    const found = JSON.stringify(results().at(-1))
    expect(found).toContain('My dog is called Bello.')
    expect(found).not.toContain('Rex')
  })

  test(`memory tools with the default scope on the ${driver.name} store search only the session itself`, async () => {
    const { runtime, results } = await start({ memory: {} }, LOAD_MEMORY)
    await runtime.runAndCollect({ sessionId: 'one', userId: 'ann', text: 'My dog is called Bello.' })
    await runtime.runAndCollect({ sessionId: 'two', userId: 'ann', text: 'What is my dog called?' })
    expect(JSON.stringify(results().at(-1))).not.toContain('Bello')
    await runtime.runAndCollect({ sessionId: 'one', userId: 'ann', text: 'What is my dog called?' })
    expect(JSON.stringify(results().at(-1))).toContain('Bello')
  })

  test(`memory tools without memory on the ${driver.name} store find nothing and do not fail`, async () => {
    const { runtime, results } = await start({}, LOAD_MEMORY)
    await runtime.runAndCollect({ sessionId: 'one', userId: 'ann', text: 'My dog is called Bello.' })
    await runtime.runAndCollect({ sessionId: 'one', userId: 'ann', text: 'What is my dog called?' })
    expect(JSON.stringify(results().at(-1))).not.toContain('called Bello')
  })

  test(`PRELOAD_MEMORY on the ${driver.name} store puts what was said into the instruction`, async () => {
    const { runtime, main } = await start({ memory: {} }, PRELOAD_MEMORY)
    await runtime.runAndCollect({ sessionId: 'one', userId: 'ann', text: 'My dog is called Bello.' })
    await runtime.runAndCollect({ sessionId: 'one', userId: 'ann', text: 'Tell me about my dog' })
    expect(JSON.stringify(main.requests.at(-1)?.messages)).toContain('PAST_CONVERSATIONS')
  })
})
