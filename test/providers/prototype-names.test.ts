// Names that every plain object inherits, as a provider may answer them and a history may hold them.
import { expect, onTestFinished, test } from 'vitest'
import type { ProviderMessage } from '../../src/provider/provider.js'
import { toProviderError } from '../../src/provider/provider-error.js'
import { lintHistory } from '../../src/provider/repair/lint-history.js'
import { PROFILES } from '../../src/provider/repair/profile.js'
import { repairHistory } from '../../src/provider/repair/repair-history.js'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'
import { PROTOTYPE_NAMES, withKey } from '../support/prototype-names.js'
import { longUnless } from '../support/tiers.js'
import { collect, toMessage, user } from './collect.js'
import { ALL_PROFILES, ONE_PER_FAMILY, strictTarget } from './strict-profiles.js'

const historyWith = (name: string): ProviderMessage[] => [
  { role: 'user', parts: [{ type: 'text', text: name }] },
  { role: 'assistant', parts: [{ type: 'tool-call', id: name, name, args: withKey(name, 1) }] },
  { role: 'tool', parts: [{ type: 'tool-result', id: name, name, result: withKey(name, 2) }] },
]

test('repair for every profile keeps tools, ids and arguments with names that every object inherits', () => {
  for (const profile of Object.keys(PROFILES))
    for (const name of PROTOTYPE_NAMES) {
      const { messages, mappedIds, mappedNames } = repairHistory(historyWith(name), profile, {
        toolNames: [name],
      })
      const parts = messages.flatMap(message => message.parts)
      const call = parts.find(part => part.type === 'tool-call')
      const result = parts.find(part => part.type === 'tool-result')
      const where = `${profile}, ${name}`
      expect.soft(call && Object.keys(call.args as object), where).toEqual([name])
      expect.soft(result?.id, where).toBe(call?.id)
      if (call?.id !== name) expect.soft(Object.entries(mappedIds), where).toEqual([[name, call?.id]])
      expect.soft(Object.entries(mappedNames), where).toEqual([])
      expect.soft(Array.isArray(lintHistory(historyWith(name), profile)), where).toBe(true)
    }
})

for (const profile of ALL_PROFILES)
  test(
    `the strict server for ${profile} accepts and answers tools, ids and arguments with names that every object inherits`,
    longUnless(ONE_PER_FAMILY.includes(profile)),
    async () => {
      const server = await startStrictProvider({
        profile,
        script: (_, index) => {
          const name = PROTOTYPE_NAMES[index] ?? ''
          return { toolCalls: [{ name, args: withKey(name, 1) }] }
        },
      })
      onTestFinished(() => server.close())
      const { provider, model } = strictTarget(profile, server.baseUrl)
      const answered: unknown[] = []
      for (const name of PROTOTYPE_NAMES) {
        const tools = [{ name, description: 'x', parameters: { type: 'object', properties: {} } }]
        const events = await collect(provider, { model, messages: [...historyWith(name), user('go')], tools })
        for (const part of toMessage(events).parts)
          if (part.type === 'tool-call') answered.push([part.name, Object.keys(part.args as object)])
      }
      expect(server.violations).toEqual([])
      expect(answered).toEqual(PROTOTYPE_NAMES.map(name => [name, [name]]))
    },
  )

test('an error whose code is a name that every object inherits is classified by its status', () => {
  for (const code of PROTOTYPE_NAMES) {
    const body = { error: { code, type: code, message: 'x' } }
    const thrown = Object.assign(new Error('x'), {
      status: 503,
      error: body.error,
      headers: withKey(code, 'x'),
    })
    expect.soft(toProviderError(thrown, { provider: 'p', model: 'm' }), code).toMatchObject({
      code: 'provider-overloaded',
    })
  }
})
