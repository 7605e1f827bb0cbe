import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ProviderMessage, ProviderPart, ToolDeclaration } from '../../src/provider/provider.js'
import { type StrictProvider, startStrictProvider } from '../../src/testing/start-strict-provider.js'
import type { StrictProfile } from '../../src/testing/strict/profile.js'
import { longUnless } from '../support/tiers.js'
import { collect, toMessage, user } from './collect.js'
import { strictTarget } from './strict-profiles.js'

// One conversation walks from vendor to vendor and back. Nobody may refuse it, and whoever speaks again must
// find its own signatures byte for byte.

const tools: ToolDeclaration[] = [
  {
    name: 'weather',
    description: 'Tells the weather.',
    parameters: { type: 'object', properties: { city: { type: 'string' } } },
  },
]

/** At every stop: think, call two tools at once, think, call another, answer. */
const SCRIPT = [
  {
    thinking: 'Two cities.',
    toolCalls: [
      { name: 'weather', args: { city: 'Oslo' } },
      { name: 'weather', args: { city: 'Rome' } },
    ],
  },
  { thinking: 'One more.', text: 'And Paris.', toolCalls: [{ name: 'weather', args: { city: 'Paris' } }] },
  { thinking: 'Enough.', text: 'It rains everywhere.' },
]

const ROUTES: StrictProfile[][] = [
  ['gemini-3', 'anthropic-4.5', 'openai-responses', 'mistral', 'gemini-3'],
  ['gemini-3-strict', 'anthropic-4.6', 'openai-responses', 'mistral', 'gemini-3-strict'],
  ['anthropic-4.6', 'gemini-3', 'openai-chat', 'anthropic-4.6', 'openai-responses', 'anthropic-4.5'],
  ['openai-responses', 'deepseek-thinking', 'ollama', 'openai-responses', 'deepseek-thinking'],
  ['gemini-2', 'groq', 'vllm', 'gemini-3', 'mistral', 'gemini-2', 'anthropic-4.6'],
]

/** Routes of `npm test`: every vendor that signs, left and visited again. */
const SHORT = [1, 2, 3]

const servers = new Map<StrictProfile, StrictProvider>()
beforeAll(async () => {
  for (const profile of new Set(ROUTES.flat()))
    servers.set(
      profile,
      await startStrictProvider({ profile, script: (_, index) => SCRIPT[index % SCRIPT.length] ?? {} }),
    )
})
afterAll(async () => {
  for (const server of servers.values()) await server.close()
})

for (const [index, route] of ROUTES.entries())
  test(
    `a conversation ${route.join(' → ')} is accepted by each model, with every signature intact`,
    longUnless(SHORT.includes(index)),
    async () => {
      const messages: ProviderMessage[] = [{ role: 'system', parts: [{ type: 'text', text: 'Be kind.' }] }]
      for (const [stop, profile] of route.entries()) {
        messages.push(user(`Stop ${stop}: how is the weather?`))
        await visit(profile, messages)
      }
      for (const profile of new Set(route)) expect(servers.get(profile)?.violations, profile).toEqual([])
      // Three answers and two rounds of results at each stop, and the user's question before them.
      expect(messages).toHaveLength(1 + route.length * 6)
      expect(signaturesMade(messages)).toBeGreaterThan(0)
    },
  )

async function visit(profile: StrictProfile, messages: ProviderMessage[]): Promise<void> {
  const server = servers.get(profile)!
  const { provider, model } = strictTarget(profile, server.baseUrl)
  for (let step = 0; step < SCRIPT.length; step += 1) {
    const before = structuredClone(messages)
    const events = await collect(provider, {
      model,
      messages,
      tools,
      options: { thinking: { effort: 'low', includeThoughts: true } },
    })
    expect(events.at(-1), `${profile}, step ${step}: ${errorText(events.at(-1))}`).toMatchObject({
      type: 'done',
    })
    expect(messages).toEqual(before)
    expectOwnSignatures(server, messages, profile)
    const answer = toMessage(events)
    messages.push(answer)
    const calls = answer.parts.filter(part => part.type === 'tool-call')
    if (calls.length > 0)
      messages.push({
        role: 'tool',
        parts: calls.map(({ id, name }) => ({ type: 'tool-result', id, name, result: { rain: true } })),
      })
  }
}

/** Whatever this vendor once signed is in the body again, unchanged, and what others signed is not. */
function expectOwnSignatures(
  server: StrictProvider,
  messages: readonly ProviderMessage[],
  profile: StrictProfile,
): void {
  const body = JSON.stringify(server.requests.at(-1)?.body)
  for (const part of messages.flatMap(message => message.parts)) {
    const signature = signatureOf(part)
    if (signature === undefined || !('origin' in part)) continue
    const own = vendorOf(profile) === part.origin?.vendor
    if (own && keepsSignatures(profile))
      expect(body, `${profile} gets its own signature back`).toContain(signature)
    if (!own) expect(body, `${profile} gets no foreign signature`).not.toContain(signature)
  }
}

function vendorOf(profile: StrictProfile): string {
  return profile.split('-')[0] ?? profile
}

/** Chat Completions has no place for the encrypted reasoning of Responses. */
function keepsSignatures(profile: StrictProfile): boolean {
  return profile !== 'openai-chat'
}

function signatureOf(part: ProviderPart): string | undefined {
  return 'signature' in part ? part.signature : undefined
}

function signaturesMade(messages: readonly ProviderMessage[]): number {
  return messages.flatMap(message => message.parts).filter(part => signatureOf(part) !== undefined).length
}

function errorText(event: unknown): string {
  const { error } = (event ?? {}) as { error?: Error }
  return error?.message ?? ''
}
