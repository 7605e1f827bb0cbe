import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { heal } from '../../src/runtime/heal/heal.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import type { Message } from '../../src/session/message.js'
import { openStore } from '../../src/store/open-store.js'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'
import { PROFILE_FACTS } from '../../src/testing/strict/profile.js'
import { MALFORMED_HISTORIES } from '../fixtures/malformed-histories.js'
import { signHistory } from '../properties/repair-judge.js'
import { type EveryProfile, providerFor, startEveryProfile } from '../support/every-profile.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { searchTool } from '../support/tools.js'
import { storedHistory } from './doctor-stored-history.js'
import { BRICKED, writeAdkDatabase } from './import-adk-database.js'
import { lango } from './lango.js'

let everyProfile: EveryProfile
beforeAll(async () => {
  everyProfile = await startEveryProfile()
})
afterAll(() => everyProfile.close())

async function inFolder(cwd: string, ...args: string[]): Promise<{ code: number | null; text: string }> {
  const { code, stdout, stderr } = await lango(args, { cwd })
  return { code, text: stdout + stderr }
}

test('a bricked session from an ADK database imports, lints, heals and runs on every model', async () => {
  const folder = await temporaryFolder()
  writeAdkDatabase(join(folder, 'adk.db'), 'typescript', BRICKED)
  // Taken over into the app of the runtime that goes on with it.
  const session = ['--app', 'lango', '--session']
  expect(await inFolder(folder, 'sessions', 'import', 'adk.db', '--app', 'lango')).toMatchObject({ code: 0 })
  expect(await inFolder(folder, 'lint', ...session, 's1')).toMatchObject({
    code: 3,
    text: expect.stringContaining('Message 2: A call has no result.'),
  })
  expect(await inFolder(folder, 'doctor', ...session, 's1', '--fix')).toMatchObject({
    code: 0,
    text: expect.stringContaining('Continue with: lango chat --session s1-healed --user ann --app lango'),
  })
  expect(await inFolder(folder, 'lint', ...session, 's1-healed')).toMatchObject({ code: 0 })

  const store = await openStore(`sqlite:${join(folder, 'lango.db')}`)
  const key = { appName: 'lango', userId: 'ann', sessionId: 's1-healed' }
  expect((await store.loadSession(key))?.state).toMatchObject({
    'app:currency': 'EUR',
    cart: { itemCount: 2 },
  })
  await everyProfile.expectNextMessageWorks(store, key)
  await store.close()
})

const SAMPLE = new Set([2, 9, 17, 29, 44, 58])
const rows = MALFORMED_HISTORIES.filter(({ row }) => SAMPLE.has(row))

test.each(rows)('row $row, healed, continues with every model: $title', async ({ row, history }) => {
  const store = await openStore('memory:')
  const key = { appName: 'lango', userId: 'ann', sessionId: `row-${row}` }
  await store.createSession(key)
  for (const message of heal(storedHistory(signHistory(history))).messages)
    await store.appendMessage(key, message)
  await everyProfile.expectNextMessageWorks(store, key)
})

test.each(['gemini-3-strict', 'openai-responses', 'anthropic-4.6', 'mistral'] as const)(
  '%s gets a healed session without any repair, and no broken one',
  async profile => {
    const server = await startStrictProvider({ profile, script: () => ({ text: 'Fine.' }) })
    onTestFinished(() => server.close())
    const store = await openStore('memory:')
    const runtime = await createRuntime({
      store,
      providers: { it: providerFor(profile, server.baseUrl) },
      agent: { name: 'root', model: `it/${PROFILE_FACTS[profile].model}`, tools: [searchTool] },
      history: { repair: 'strict' },
    })
    onTestFinished(() => runtime.close())
    const [broken] = rows.filter(({ row }) => row === 2)
    const stored = storedHistory(signHistory(broken?.history ?? []))
    const fill = async (sessionId: string, messages: readonly Message[]) => {
      const key = { appName: 'lango', userId: 'ann', sessionId }
      await store.createSession(key)
      for (const message of messages) await store.appendMessage(key, message)
      return runtime.runAndCollect({ userId: 'ann', sessionId, text: 'And now?' })
    }
    await expect(fill('broken', stored)).rejects.toMatchObject({ code: 'history-illegal' })
    expect(await fill('healed', heal(stored).messages)).toMatchObject({ text: 'Fine.', finishReason: 'stop' })
    expect(server.violations).toEqual([])
  },
)
