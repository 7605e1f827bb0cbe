// Artifacts and credentials of agents, with no code of the application's own.
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type Context, FunctionTool, InMemoryArtifactService, LlmAgent } from '@google/adk'
import type { Part } from '@google/genai'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { ArtifactServiceAdapter } from '../../src/adk/artifact-service.js'
import type { RuntimeOptions } from '../../src/runtime/options.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { openStore } from '../../src/store/open-store.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { temporaryFolder } from '../support/temporary-folder.js'

const DATA: Part = { inlineData: { mimeType: 'image/png', data: Buffer.from('picture').toString('base64') } }

function agentWith(act: (context: Context) => Promise<unknown>) {
  const tool = new FunctionTool({
    name: 'work',
    description: 'Works.',
    parameters: z.object({}),
    execute: async (_args, context) => (context ? { result: await act(context) } : {}),
  })
  return new LlmAgent({ name: 'root', model: 'play/m', tools: [tool] })
}

async function runtimeWith(act: (context: Context) => Promise<unknown>, more: Partial<RuntimeOptions> = {}) {
  const play = new ScriptedProvider((_request, index) =>
    index % 2 === 0 ? { toolCalls: [{ name: 'work' }] } : { text: 'Done.' },
  )
  const rootAgent = agentWith(act)
  const runtime = await createRuntime({ store: 'memory:', providers: { play }, rootAgent, ...more })
  onTestFinished(() => runtime.close())
  return runtime
}

const IDENTITY = { userId: 'ann', sessionId: 's' }
const KEY = { appName: 'lango', ...IDENTITY }

describe.each(['store', 'memory:', 'a folder'])('artifacts in %s', place => {
  async function options(): Promise<Partial<RuntimeOptions> & { artifacts: string }> {
    return { artifacts: place === 'a folder' ? await temporaryFolder() : place }
  }

  test('tools save, list and load them, in versions, for the session and for the user', async () => {
    const seen: unknown[] = []
    const runtime = await runtimeWith(
      async context => {
        const versions = [
          await context.saveArtifact('picture.png', DATA),
          await context.saveArtifact('picture.png', { text: 'no picture' }),
          await context.saveArtifact('user:note', { text: 'Grüße' }),
        ]
        seen.push(versions, await context.listArtifacts())
        seen.push(await context.loadArtifact('picture.png', 0), await context.loadArtifact('user:note'))
      },
      await options(),
    )
    await runtime.runAndCollect({ ...IDENTITY, text: 'go' })
    expect(seen).toEqual([[0, 1, 0], ['picture.png', 'user:note'], DATA, { text: 'Grüße' }])
  })

  test('they are deleted with the session, and those of the user by erasing', async () => {
    const listed: unknown[] = []
    const given = await options()
    const runtime = await runtimeWith(async context => {
      listed.push(await context.listArtifacts())
      await context.saveArtifact('f', { text: 'x' })
      await context.saveArtifact('user:f', { text: 'x' })
    }, given)
    const run = () => runtime.runAndCollect({ ...IDENTITY, text: 'go' })
    await run()
    await runtime.store.deleteSession(KEY)
    await run()
    await runtime.erase('ann')
    await run()
    expect(listed).toEqual([[], ['user:f'], []])
  })

  test('they are deleted with a session that expires, and no others', async () => {
    const listed: unknown[] = []
    const runtime = await runtimeWith(
      async context => {
        listed.push(await context.listArtifacts())
        await context.saveArtifact('f', { text: 'x' })
        await context.saveArtifact('user:f', { text: 'x' })
      },
      await options(),
    )
    const run = (sessionId: string) => runtime.runAndCollect({ ...IDENTITY, sessionId, text: 'go' })
    await run('s')
    const expire = async () => {
      const receipt = await runtime.store.expire?.({ appName: 'lango', sessionsMs: 1, trustClock: true })
      return receipt?.sessions
    }
    await expect.poll(expire).toBe(1)
    await run('other')
    expect((await runtime.store.expire?.({ appName: 'lango', sessionsMs: 1_000_000 }))?.sessions).toBe(0)
    await run('s')
    await run('other')
    expect(listed).toEqual([[], ['user:f'], ['user:f'], ['f', 'user:f']])
  })

  test('one that is too large is refused with what to do', async () => {
    const runtime = await runtimeWith(
      async context => context.saveArtifact('big', { text: 'x'.repeat(101) }),
      { artifacts: { place: (await options()).artifacts, maxBytes: 100 } },
    )
    const events = []
    for await (const event of runtime.run({ ...IDENTITY, text: 'go' })) events.push(event)
    const result = JSON.stringify(events.find(({ type }) => type === 'tool-result'))
    expect(result).toContain('has 101 bytes; at most 100 are allowed. Raise `artifacts.maxBytes`')
  })
})

test('artifacts in the store survive the process', async () => {
  const store = `sqlite:${join(await temporaryFolder(), 'a.db')}`
  const first = await runtimeWith(context => context.saveArtifact('f', DATA), { store })
  await first.runAndCollect({ ...IDENTITY, text: 'go' })
  await first.close()
  let loaded: unknown
  const second = await runtimeWith(
    async context => {
      loaded = await context.loadArtifact('f')
    },
    { store },
  )
  await second.runAndCollect({ ...IDENTITY, text: 'go' })
  expect(loaded).toEqual(DATA)
})

test('a folder has a folder per app, and a service of one’s own wins', async () => {
  const artifacts = await temporaryFolder()
  const own = new InMemoryArtifactService()
  const save = (context: Context) => context.saveArtifact('f', { text: 'x' })
  const inFolder = await runtimeWith(save, { artifacts, app: 'shop' })
  await inFolder.runAndCollect({ ...IDENTITY, text: 'go' })
  expect(await readdir(artifacts)).toEqual(['shop'])
  const withOwn = await runtimeWith(save, { adk: { artifactService: own } })
  await withOwn.runAndCollect({ ...IDENTITY, text: 'go' })
  expect(await own.listArtifactKeys({ ...KEY })).toEqual(['f'])
  expect(await withOwn.store.artifacts?.list(KEY)).toEqual([])
})

test('credentials are kept for the user in this process, and not in the store', async () => {
  const authConfig = {
    credentialKey: 'bank',
    authScheme: { type: 'apiKey', in: 'header', name: 'x' },
    exchangedAuthCredential: { authType: 'apiKey', apiKey: 'sk-secret' },
  } as never
  const loaded: unknown[] = []
  const runtime = await runtimeWith(async context => {
    const { credentialService } = context.invocationContext
    loaded.push(await credentialService?.loadCredential(authConfig, context))
    await credentialService?.saveCredential(authConfig, context)
  })
  await runtime.runAndCollect({ ...IDENTITY, text: 'go' })
  await runtime.runAndCollect({ ...IDENTITY, text: 'again' })
  expect(loaded[0]).toBeUndefined()
  expect(loaded[1]).toMatchObject({ apiKey: 'sk-secret' })
  const stored = await runtime.store.loadSession(KEY)
  expect(JSON.stringify(stored)).not.toContain('sk-secret')
})

test('the service alone: metadata, versions, references, and nothing at all', async () => {
  const store = await openStore('memory:')
  onTestFinished(() => store.close())
  await store.createSession(KEY)
  if (!store.artifacts) throw new Error('memory has artifacts')
  const service = new ArtifactServiceAdapter(store.artifacts)
  const file = { ...KEY, filename: 'f' }
  const reference: Part = { fileData: { fileUri: 'gs://bucket/f', mimeType: 'text/plain' } }
  await service.saveArtifact({ ...file, artifact: DATA, customMetadata: { from: 'ann' } })
  await service.saveArtifact({ ...file, artifact: reference })
  expect(await service.loadArtifact(file)).toEqual(reference)
  expect(await service.listVersions(file)).toEqual([0, 1])
  expect(await service.getArtifactVersion({ ...file, version: 0 })).toEqual({
    version: 0,
    mimeType: 'image/png',
    customMetadata: { from: 'ann' },
  })
  expect(await service.getArtifactVersion(file)).toEqual({ version: 1, mimeType: 'text/plain' })
  await expect(service.saveArtifact({ ...file, artifact: { text: '' } })).rejects.toThrow('is empty')
  await service.deleteArtifact(file)
  expect(await service.loadArtifact(file)).toBeUndefined()
})
