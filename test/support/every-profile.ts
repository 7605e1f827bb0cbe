// All strict servers at once, and a runtime that can speak to each: can a session go on, whatever model is next?
import { expect } from 'vitest'
import type { ProviderOptions } from '../../src/provider/provider-settings.js'
import { heal } from '../../src/runtime/heal/heal.js'
import { lintMessages } from '../../src/runtime/lint.js'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import type { Message, SessionKey } from '../../src/session/message.js'
import { appendAll } from '../../src/session/session-pages.js'
import type { SessionStore } from '../../src/session/session-store.js'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'
import { PROFILE_FACTS, STRICT_PROFILES, type StrictProfile } from '../../src/testing/strict/profile.js'
import { searchTool } from './tools.js'

type Server = Awaited<ReturnType<typeof startStrictProvider>>

export interface EveryProfile {
  /** Sends one more message on a copy of the session for every profile, or for these: none may be refused. */
  expectNextMessageWorks(
    store: SessionStore,
    key: SessionKey,
    profiles?: readonly StrictProfile[],
  ): Promise<void>
  /**
   * Heals a copy of the session, as `lango doctor --fix` does: lint finds nothing in it that a profile refuses, and one more
   * message works on every profile, or on these. Returns what lint finds in the session as it is.
   */
  expectHealsAndGoesOn(
    store: SessionStore,
    key: SessionKey,
    profiles?: readonly StrictProfile[],
  ): Promise<string[]>
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

/** The codes of what a profile refuses. */
function breaksIn(messages: readonly Message[]): string[] {
  const findings = lintMessages(messages, STRICT_PROFILES).flatMap(profile => profile.findings)
  return [...new Set(findings.filter(({ severity }) => severity === 'breaks').map(({ code }) => code))]
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
  const expectNextMessageWorks = async (
    store: SessionStore,
    key: SessionKey,
    profiles: readonly StrictProfile[] = STRICT_PROFILES,
  ) => {
    const runtime = await runtimeOn(store)
    const one = async (profile: StrictProfile) => {
      const server = servers.get(profile) as Server
      const sessionId = `${key.sessionId}-${profile}`
      await store.forkSession(key, sessionId)
      const model = `${profile}/${PROFILE_FACTS[profile].model}`
      const result = await runtime.runAndCollect({ ...key, sessionId, text: 'And now?', model })
      expect(server.violations, profile).toEqual([])
      expect(result).toMatchObject({ text: `I am ${profile}.`, finishReason: 'stop' })
    }
    await Promise.all(profiles.map(one))
  }
  return {
    expectNextMessageWorks,
    async expectHealsAndGoesOn(store, key, profiles) {
      const messages = await store.readMessages(key, { limit: 1000 })
      const healed = { ...key, sessionId: `${key.sessionId}-healed` }
      await store.createSession(healed)
      await appendAll(store, healed, heal(messages).messages)
      expect(breaksIn(await store.readMessages(healed, { limit: 1000 }))).toEqual([])
      await expectNextMessageWorks(store, healed, profiles)
      return breaksIn(messages)
    },
    async close() {
      await Promise.all([...runtimes.values()].map(async runtime => (await runtime).close()))
      await Promise.all([...servers.values()].map(server => server.close()))
    },
  }
}
