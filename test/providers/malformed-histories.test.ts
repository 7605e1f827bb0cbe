import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ProviderMessage, ProviderPart, ToolCallPart } from '../../src/provider/provider.js'
import { toWireName } from '../../src/provider/repair/map-names.js'
import { PROFILES, type ProfileName } from '../../src/provider/repair/profile.js'
import { type StrictProvider, startStrictProvider } from '../../src/testing/start-strict-provider.js'
import { mintSignature } from '../../src/testing/strict/mint-signature.js'
import { MALFORMED_HISTORIES } from '../fixtures/malformed-histories.js'
import { collect } from './collect.js'
import { ALL_PROFILES, strictTarget } from './strict-profiles.js'

// Every reported way in which a history goes bad, sent by our providers to a server that refuses it unrepaired.

const servers = new Map<ProfileName, StrictProvider>()
beforeAll(async () => {
  for (const profile of ALL_PROFILES)
    servers.set(profile, await startStrictProvider({ profile, script: () => ({ text: 'Fine.' }) }))
})
afterAll(async () => {
  for (const server of servers.values()) await server.close()
})

/** The table's stand-ins for signatures, replaced by such as the servers have really made. */
function signed(history: readonly ProviderMessage[]): ProviderMessage[] {
  return history.map(message => ({ ...message, parts: message.parts.map(sign) }))
}

function sign(part: ProviderPart): ProviderPart {
  if (part.type === 'vendor')
    return { ...part, value: { executableCode: { language: 'PYTHON', code: '1+1' } } }
  if (!('signature' in part) || part.signature === undefined) return part
  const vendor = part.origin?.vendor
  if (part.type === 'tool-call' && vendor === 'gemini') return signCall(part)
  if (part.type === 'text' && vendor === 'gemini') return { ...part, signature: mintSignature('gemini') }
  if (part.type !== 'reasoning') return part
  if (vendor === 'openai') return { ...part, signature: mintSignature('openai') }
  return vendor === 'anthropic'
    ? { ...part, signature: mintSignature('anthropic', { thinking: part.text }) }
    : part
}

/** A signature covers the name under which the model knew the tool, and arguments that it can have written. */
function signCall({ signature, origin, ...call }: ToolCallPart): ToolCallPart {
  const written = JSON.stringify(call.args)
  if (!written.startsWith('{') || /\\ud[89a-f]/.test(written)) return call
  const name = toWireName(call.name, PROFILES['gemini-3'])
  const id = call.id === '' ? {} : { id: call.id }
  return {
    ...call,
    signature: mintSignature('gemini', { name, args: call.args, ...id }),
    ...(origin ? { origin } : {}),
  }
}

describe.each(ALL_PROFILES)('%s accepts', profile => {
  const rows = MALFORMED_HISTORIES.map(row => ({ ...row, name: `row ${row.row}: ${row.title}` }))

  test.each(rows)('$name', async ({ history }) => {
    const server = servers.get(profile)!
    const { provider, model } = strictTarget(profile, server.baseUrl)
    const before = server.violations.length
    const events = await collect(provider, { model, messages: signed(history) })
    expect(server.violations.slice(before)).toEqual([])
    expect(events.at(-1)).toMatchObject({ type: 'done' })
  })
})

test('most of them are refused when they are sent unrepaired', async () => {
  const refused = new Set<number>()
  for (const { row, history, rejectedBy } of MALFORMED_HISTORIES) {
    for (const profile of rejectedBy) {
      const { provider, model } = strictTarget(profile, servers.get(profile)!.baseUrl, {
        retry: { maxAttempts: 1 },
      })
      const events = await collect(provider, { model, messages: signed(history), repairMode: 'explain' })
      if (events.at(-1)?.type === 'error') refused.add(row)
    }
  }
  expect(refused.size).toBeGreaterThan(25)
})
