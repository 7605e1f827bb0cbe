import { StreamingMode } from '@google/adk'
import { expect, test } from 'vitest'
import { createRuntime } from '../../src/runtime/runtime.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'

const runtimeWith = (streamingMode: StreamingMode) =>
  createRuntime({
    store: 'memory:',
    providers: { fake: new ScriptedProvider([{ deltas: ['One ', 'two.'] }]) },
    agent: { name: 'root', model: 'fake/model' },
    adk: { runConfig: { streamingMode } },
  })

test('the streaming modes that ADK can run are accepted, as enum and as its values', async () => {
  for (const mode of [
    StreamingMode.NONE,
    StreamingMode.SSE,
    'none' as StreamingMode,
    'sse' as StreamingMode,
  ]) {
    const runtime = await runtimeWith(mode)
    expect(await runtime.runAndCollect({ text: 'Count.' }), mode).toMatchObject({ text: 'One two.' })
    await runtime.close()
  }
})

test.each([[StreamingMode.BIDI], ['NONE' as StreamingMode]])(
  'the streaming mode %s is refused before a run, with the modes that there are',
  async mode => {
    await expect(runtimeWith(mode)).rejects.toMatchObject({
      code: 'invalid-config',
      message: expect.stringMatching(/streamingMode.*sse.*none/),
    })
  },
)
