import { expect, onTestFinished, test } from 'vitest'
import { createRuntime, defineTool } from '../../src/index.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'

test('twelve tools that run at the same time cause no warning about listeners', async () => {
  const warnings: string[] = []
  const onWarning = ({ name }: Error) => void warnings.push(name)
  process.on('warning', onWarning)
  onTestFinished(() => void process.off('warning', onWarning))
  const waiting: (() => void)[] = []
  const wait = defineTool({
    name: 'wait',
    description: 'Waits until all twelve calls have begun.',
    effect: 'read',
    parameters: { type: 'object' },
    execute: async () => {
      await new Promise<void>(resolve => {
        waiting.push(resolve)
        if (waiting.length === 12) for (const end of waiting) end()
      })
      return 'done'
    },
  })
  const toolCalls = Array.from({ length: 12 }, (_, index) => ({ id: `c${index}`, name: 'wait', args: {} }))
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { play: new ScriptedProvider([{ toolCalls }, { text: 'all done' }]) },
    agent: { name: 'root', model: 'play/model', tools: [wait] },
  })
  onTestFinished(() => runtime.close())
  const { text } = await runtime.runAndCollect({ text: 'wait' })
  // Warnings are emitted in a later turn of the event loop.
  await new Promise(resolve => setImmediate(resolve))
  expect(text).toBe('all done')
  expect(waiting).toHaveLength(12)
  expect(warnings).toEqual([])
})
