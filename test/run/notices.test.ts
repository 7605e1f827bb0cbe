import { expect, test } from 'vitest'
import type { GenerateRequest } from '../../src/provider/provider.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { isSynthetic } from '../../src/session/turn.js'
import { openStore } from '../../src/store/open-store.js'
import { ScriptedProvider, type ScriptStep } from '../../src/testing/scripted-provider.js'
import { defineTool } from '../../src/tool.js'

const key = { appName: 'lango', userId: 'user', sessionId: 's1' }

const look = defineTool({
  name: 'look',
  description: 'Looks.',
  parameters: { type: 'object', properties: { at: { type: 'number' } } },
  effect: 'read',
  execute: ({ at }) => ({ at }),
})

async function stage(script: (request: GenerateRequest, index: number) => ScriptStep, maxTurns = 25) {
  const store = await openStore('memory:')
  const provider = new ScriptedProvider(script)
  const agent = { model: 'script/any', instruction: 'Be brief.', tools: [look], maxTurns }
  const runtime = await createRuntime({ store, providers: { script: provider }, agent })
  return { store, provider, runtime }
}

function textsOf({ messages }: GenerateRequest): string[] {
  return messages.map(
    ({ role, parts }) => `${role}: ${parts.map(part => ('text' in part ? part.text : part.type)).join()}`,
  )
}

test('the wrap-up notice is stored after the last result, stays there, and is hidden in the chat', async () => {
  const call = (index: number): ScriptStep => ({
    toolCalls: [{ id: `c${index}`, name: 'look', args: { at: index } }],
  })
  const { store, provider, runtime } = await stage(
    (request, index) =>
      request.options?.toolChoice === 'none' || index > 3 ? { text: 'That is all.' } : call(index),
    2,
  )
  const { finishReason } = await runtime.runAndCollect({ sessionId: 's1', text: 'Look.' })
  expect(finishReason).toBe('turn-limit')
  await runtime.runAndCollect({ sessionId: 's1', text: 'And now?' })
  const wrapUp = provider.requests[2] as GenerateRequest
  expect(textsOf(wrapUp)[0]).toMatch(/^system: .*Be brief\.$/s)
  expect(textsOf(wrapUp).at(-1)).toMatch(/^user: \[System: This is your last turn/)
  expect(textsOf(wrapUp).at(-2)).toBe('tool: tool-result')
  const next = provider.requests[3] as GenerateRequest
  expect(next.messages.slice(0, wrapUp.messages.length)).toEqual(wrapUp.messages)
  const stored = await store.readMessages(key)
  expect(stored.filter(isSynthetic)).toMatchObject([{ role: 'user', author: 'lango-agent' }])
  const shown = await runtime.messages(key)
  // Pages and terminals leave out what is marked so.
  expect(shown.filter(({ synthetic }) => synthetic).map(({ seq }) => seq)).toEqual([6])
  await runtime.close()
})

test('the warning of a loop is stored once, and the run continues after it', async () => {
  const { store, provider, runtime } = await stage((_, index) =>
    index < 4 ? { toolCalls: [{ id: `c${index}`, name: 'look', args: { at: 1 } }] } : { text: 'A lamp.' },
  )
  const { text } = await runtime.runAndCollect({ sessionId: 's1', text: 'Look.' })
  expect(text).toBe('A lamp.')
  const warned = provider.requests.map(request =>
    textsOf(request).findIndex(each => each.includes('times in a row')),
  )
  expect(warned).toEqual([-1, -1, -1, 8, 8])
  expect((await store.readMessages(key)).filter(isSynthetic)).toHaveLength(1)
  await runtime.close()
})
