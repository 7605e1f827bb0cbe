// What is stored goes in, what reached the wire comes out: each difference is reported.
import { expect, test } from 'vitest'
import type { ProfileName } from '../../src/provider/repair/profile.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { openStore } from '../../src/store/open-store.js'
import { PROBES, type Probe } from '../support/stored-probes.js'
import { modelOf, WireProvider } from '../support/wire-provider.js'

const KEY = { appName: 'lango', userId: 'user', sessionId: 's' }
const PROFILES: readonly ProfileName[] = ['openai-chat', 'anthropic-4.6', 'gemini-3']

type Mode = 'repair' | 'strict' | 'explain'

async function send({ messages }: Probe, profile: ProfileName, repair: Mode = 'repair') {
  const store = await openStore('memory:')
  await store.createSession(KEY)
  for (const message of messages) await store.appendMessage(KEY, message)
  const provider = new WireProvider(profile, () => [
    { type: 'text-delta', text: 'ok' },
    { type: 'done', finishReason: 'stop' },
  ])
  const runtime = await createRuntime({
    store,
    providers: { main: provider },
    agent: { name: 'root', model: `main/${modelOf(profile)}` },
    history: { repair },
  })
  try {
    const { repairs } = await runtime.runAndCollect({ sessionId: 's', text: 'next' })
    return { body: JSON.stringify(provider.bodies[0]), kinds: repairs.map(({ kind }) => kind) }
  } finally {
    await runtime.close()
    await store.close()
  }
}

/** What was said in the stored messages, word for word. */
function wordsOf({ messages }: Probe): string[] {
  const texts = messages.flatMap(({ content, toolCalls = [] }) => [
    ...(content === '' ? [] : [content]),
    ...toolCalls.flatMap(({ output }) => (output === undefined ? [] : [JSON.parse(output) as string])),
  ])
  return texts
}

for (const probe of PROBES) {
  test.each(PROFILES)(`${probe.name}: %s gets every word, and the difference is reported`, async profile => {
    const { body, kinds } = await send(probe, profile)
    for (const words of wordsOf(probe)) expect(body).toContain(words)
    expect(kinds).toEqual(expect.arrayContaining([...(probe.reports[profile] ?? probe.reports.every ?? [])]))
  })
}

test.each(PROBES.filter(probe => probe.refused).map(probe => [probe.name, probe] as const))(
  '%s is refused in strict mode and explained in explain mode',
  async (_name, probe) => {
    await expect(send(probe, 'anthropic-4.6', 'strict')).rejects.toMatchObject({ code: 'history-illegal' })
    const { kinds } = await send(probe, 'anthropic-4.6', 'explain')
    expect(kinds).toEqual(
      expect.arrayContaining([...(probe.reports['anthropic-4.6'] ?? probe.reports.every ?? [])]),
    )
  },
)
