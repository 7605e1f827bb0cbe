import { expect, test } from 'vitest'
import type { ProviderMessage } from '../../src/provider/provider.js'
import { createProvider } from '../../src/provider/provider-registry.js'
import { profileForModel } from '../../src/provider/repair/profile-for-model.js'
import { COMPATIBLE_SERVERS } from '../../src/provider/vendors.js'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'
import { PROFILE_FACTS, type StrictProfile } from '../../src/testing/strict/profile.js'
import { collect, toMessage } from './collect.js'

const tools = [
  { name: 'clock', description: 'Tells the time.', parameters: { type: 'object', properties: {} } },
]

test.each(Object.keys(COMPATIBLE_SERVERS))(
  'the strict server of preset %s accepts two turns with tool calls',
  async preset => {
    const row = COMPATIBLE_SERVERS[preset]
    const model = PROFILE_FACTS[row?.profile as StrictProfile].model
    const profile = profileForModel(preset, model) as StrictProfile
    let step = 0
    const server = await startStrictProvider({
      profile,
      script: () => {
        step += 1
        return step % 3 === 0
          ? { thinking: 'done', text: 'It is noon.' }
          : { thinking: 'look', toolCalls: [{ name: 'clock', args: { step } }] }
      },
    })
    try {
      const provider = createProvider({
        type: 'openai-compatible',
        preset,
        baseUrl: server.baseUrl,
        apiKey: 'k',
      })
      const messages: ProviderMessage[] = []
      for (let turn = 0; turn < 2; turn += 1) {
        messages.push({ role: 'user', parts: [{ type: 'text', text: `What time is it? (${turn})` }] })
        for (let call = 0; call < 3; call += 1) {
          const answer = toMessage(await collect(provider, { model, messages, tools }))
          messages.push(answer)
          const results = answer.parts.flatMap(part =>
            part.type === 'tool-call'
              ? [{ type: 'tool-result' as const, id: part.id, name: part.name, result: 'noon' }]
              : [],
          )
          if (results.length === 0) break
          messages.push({ role: 'tool', parts: results })
        }
      }
      expect(server.violations).toEqual([])
      expect(server.requests.length).toBe(6)
    } finally {
      await server.close()
    }
  },
)
