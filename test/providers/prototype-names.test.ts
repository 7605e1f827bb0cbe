// Names that every plain object inherits, as a provider may answer them and a history may hold them.
import { describe, expect, onTestFinished, test } from 'vitest'
import type { ProviderMessage } from '../../src/provider/provider.js'
import { toProviderError } from '../../src/provider/provider-error.js'
import { lintHistory } from '../../src/provider/repair/lint-history.js'
import { PROFILES } from '../../src/provider/repair/profile.js'
import { repairHistory } from '../../src/provider/repair/repair-history.js'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'
import { PROTOTYPE_NAMES, withKey } from '../support/prototype-names.js'
import { collect, toMessage, user } from './collect.js'
import { ALL_PROFILES, strictTarget } from './strict-profiles.js'

const historyWith = (name: string): ProviderMessage[] => [
  { role: 'user', parts: [{ type: 'text', text: name }] },
  { role: 'assistant', parts: [{ type: 'tool-call', id: name, name, args: withKey(name, 1) }] },
  { role: 'tool', parts: [{ type: 'tool-result', id: name, name, result: withKey(name, 2) }] },
]

describe.each(Object.keys(PROFILES))('repair for %s', profile => {
  test.each(PROTOTYPE_NAMES)('keeps the tool, the id and the argument %s', name => {
    const { messages, mappedIds, mappedNames } = repairHistory(historyWith(name), profile, {
      toolNames: [name],
    })
    const parts = messages.flatMap(message => message.parts)
    const call = parts.find(part => part.type === 'tool-call')
    const result = parts.find(part => part.type === 'tool-result')
    expect(call && Object.keys(call.args as object)).toEqual([name])
    expect(result?.id).toBe(call?.id)
    if (call?.id !== name) expect(Object.entries(mappedIds)).toEqual([[name, call?.id]])
    expect(Object.entries(mappedNames)).toEqual([])
    expect(Array.isArray(lintHistory(historyWith(name), profile))).toBe(true)
  })
})

describe.each(ALL_PROFILES)('the strict server for %s', profile => {
  test('takes these names as tools, ids and arguments, and answers with them', async () => {
    for (const name of PROTOTYPE_NAMES) {
      const script = [{ toolCalls: [{ name, args: withKey(name, 1) }] }]
      const server = await startStrictProvider({ profile, script })
      onTestFinished(() => server.close())
      const { provider, model } = strictTarget(profile, server.baseUrl)
      const tools = [{ name, description: 'x', parameters: { type: 'object', properties: {} } }]
      const events = await collect(provider, { model, messages: [...historyWith(name), user('go')], tools })
      const calls = toMessage(events).parts.flatMap(part =>
        part.type === 'tool-call' ? [[part.name, Object.keys(part.args as object)]] : [],
      )
      expect([name, server.violations, calls]).toEqual([name, [], [[name, [name]]]])
    }
  })
})

test.each(PROTOTYPE_NAMES)('an error code %s is judged by its status', code => {
  const body = { error: { code, type: code, message: 'x' } }
  const thrown = Object.assign(new Error('x'), {
    status: 503,
    error: body.error,
    headers: withKey(code, 'x'),
  })
  expect(toProviderError(thrown, { provider: 'p', model: 'm' })).toMatchObject({
    code: 'provider-overloaded',
  })
})
