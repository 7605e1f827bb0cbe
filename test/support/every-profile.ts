// All strict servers at once, and a runtime that can speak to each: can a session go on, whatever model is next?
import { expect } from 'vitest'
import type { ProviderOptions } from '../../src/provider/provider-settings.js'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import type { SessionKey } from '../../src/session/message.js'
import type { SessionStore } from '../../src/session/session-store.js'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'
import { PROFILE_FACTS, STRICT_PROFILES, type StrictProfile } from '../../src/testing/strict/profile.js'
import { searchTool } from './tools.js'

type Server = Awaited<ReturnType<typeof startStrictProvider>>

export interface EveryProfile {
  /** Sends one more message on a copy of the session for every profile: none may be refused. */
  expectNextMessageWorks(store: SessionStore, key: SessionKey): Promise<void>
  close(): Promise<void>
}

/** How to reach a strict server of a profile. */
export function providerFor(profile: StrictProfile, baseUrl: string): ProviderOptions {
  const common = { apiKey: 'test-key', baseUrl, profile }
  switch (PROFILE_FACTS[profile].family) {
    case 'gemini':
      return { type: 'gemini', ...common }
    case 'anthropic':
      return { type: 'anthropic', ...common }
    case 'converse':
      return { type: 'bedrock', region: 'us-east-1', ...common }
    case 'openai-responses':
      return { type: 'openai', api: 'responses', ...common }
    default:
      return profile === 'openai-chat'
        ? { type: 'openai', api: 'chat', ...common }
        : { type: 'openai-compatible', ...common }
  }
}

export async function startEveryProfile(): Promise<EveryProfile> {
  const servers = new Map<StrictProfile, Server>()
  for (const profile of STRICT_PROFILES) {
    servers.set(profile, await startStrictProvider({ profile, script: () => ({ text: `I am ${profile}.` }) }))
  }
  const providers = Object.fromEntries(
    [...servers].map(([profile, server]) => [profile, providerFor(profile, server.baseUrl)]),
  )
  const runtimes = new Map<SessionStore, Promise<Runtime>>()
  const runtimeOn = (store: SessionStore) => {
    const runtime =
      runtimes.get(store) ??
      createRuntime({
        store,
        providers,
        agent: { name: 'root', model: 'openai-chat/gpt-4.1', tools: [searchTool] },
      })
    runtimes.set(store, runtime)
    return runtime
  }
  return {
    async expectNextMessageWorks(store, key) {
      const runtime = await runtimeOn(store)
      for (const [profile, server] of servers) {
        const sessionId = `${key.sessionId}-${profile}`
        await store.forkSession(key, sessionId)
        const model = `${profile}/${PROFILE_FACTS[profile].model}`
        const result = await runtime.runAndCollect({ ...key, sessionId, text: 'And now?', model })
        expect(server.violations, profile).toEqual([])
        expect(result).toMatchObject({ text: `I am ${profile}.`, finishReason: 'stop' })
      }
    },
    async close() {
      await Promise.all([...runtimes.values()].map(async runtime => (await runtime).close()))
      await Promise.all([...servers.values()].map(server => server.close()))
    },
  }
}
