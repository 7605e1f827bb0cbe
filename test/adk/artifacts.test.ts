// Artifacts and credentials of agents, with no code of the application's own.
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type Context, FunctionTool, InMemoryArtifactService, LlmAgent } from '@google/adk'
import type { Part } from '@google/genai'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { ArtifactServiceAdapter } from '../../src/adk/artifact-service.js'
import { SessionServiceAdapter } from '../../src/adk/session/session-service-adapter.js'
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

  test(`tools save, list and load artifacts in ${place}, in versions, for the session and for the user`, async () => {
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

  test(`artifacts in ${place} are deleted with the session, and those of the user by erasing`, async () => {
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

  test(`artifacts in ${place} are deleted with a session that expires, and no others`, async () => {
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
      const receipt = await runtime.store.expire({ appName: 'lango', sessionsMs: 1, trustClock: true })
      return receipt.sessions
    }
    await expect.poll(expire).toBe(1)
    await run('other')
    expect((await runtime.store.expire({ appName: 'lango', sessionsMs: 1_000_000 })).sessions).toBe(0)
    await run('s')
    await run('other')
    expect(listed).toEqual([[], ['user:f'], ['user:f'], ['f', 'user:f']])
  })

  test(`an artifact in ${place} that is too large is refused with what to do`, async () => {
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

test('an artifact folder has a folder per app, and a service of the program wins', async () => {
  const artifacts = await temporaryFolder()
  const own = new InMemoryArtifactService()
  const save = (context: Context) => context.saveArtifact('f', { text: 'x' })
  const inFolder = await runtimeWith(save, { artifacts, app: 'shop' })
  await inFolder.runAndCollect({ ...IDENTITY, text: 'go' })
  expect(await readdir(artifacts)).toEqual(['shop'])
  const withOwn = await runtimeWith(save, { adk: { artifactService: own } })
  await withOwn.runAndCollect({ ...IDENTITY, text: 'go' })
  expect(await own.listArtifactKeys({ ...KEY })).toEqual(['f'])
  expect(await withOwn.store.artifacts.list(KEY)).toEqual([])
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

test('the artifact service returns metadata, versions and references, and undefined for an unknown artifact', async () => {
  const store = await openStore('memory:')
  onTestFinished(() => store.close())
  await store.createSession(KEY)
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

test('the type of an artifact is that of its content, whatever else the part has', async () => {
  const { service } = await serviceAlone()
  const stray = { fileData: { fileUri: 'gs://bucket/f', mimeType: 'application/pdf' } }
  await service.saveArtifact({ ...KEY, filename: 'f', artifact: { text: 'words', ...stray } })
  await service.saveArtifact({ ...KEY, filename: 'f', artifact: { inlineData: { data: 'AAAA' }, ...stray } })
  await service.saveArtifact({ ...KEY, filename: 'f', artifact: stray })
  expect(await service.listArtifactVersions({ ...KEY, filename: 'f' })).toEqual([
    { version: 0 },
    { version: 1 },
    { version: 2, mimeType: 'application/pdf' },
  ])
  expect(await service.loadArtifact({ ...KEY, filename: 'f', version: 0 })).toEqual({
    text: 'words',
    ...stray,
  })
})

test.each(['memory:', 'sqlite:'])('artifacts of a session that %s does not have are kept', async kind => {
  const { service, store } = await serviceAlone(kind)
  const other = { ...KEY, sessionId: 'other' }
  const file = { ...KEY, filename: 'plan.md' }
  expect(await service.saveArtifact({ ...file, artifact: { text: 'one' } })).toBe(0)
  expect(await service.saveArtifact({ ...file, artifact: { text: 'two' } })).toBe(1)
  await service.saveArtifact({ ...KEY, filename: 'user:photo', artifact: DATA })
  expect(await service.listArtifactKeys(KEY)).toEqual(['plan.md', 'user:photo'])
  expect(await service.listArtifactKeys(other)).toEqual(['user:photo'])
  expect(await service.loadArtifact({ ...other, filename: 'plan.md' })).toBeUndefined()
  // The session comes later: the versions continue.
  await store.createSession(KEY)
  expect(await service.saveArtifact({ ...file, artifact: { text: 'three' } })).toBe(2)
  expect(await service.loadArtifact({ ...file, version: 0 })).toEqual({ text: 'one' })
  expect(await service.listVersions(file)).toEqual([0, 1, 2])
  await service.deleteArtifact(file)
  expect(await service.loadArtifact(file)).toBeUndefined()
  await service.saveArtifact({ ...other, filename: 'f', artifact: DATA })
  expect(await store.erase(KEY)).toMatchObject({ artifacts: 2 })
  expect(await service.loadArtifact({ ...other, filename: 'f' })).toBeUndefined()
})

test('a service that needs sessions refuses an artifact of one that the store does not have', async () => {
  const { store } = await serviceAlone()
  const service = new ArtifactServiceAdapter(store.artifacts, { needsSession: true })
  const saving = service.saveArtifact({ ...KEY, filename: 'f', artifact: DATA })
  await expect(saving).rejects.toMatchObject({ code: 'session-not-found' })
})

test('requests that name their session in `scope`, as releases after ADK 2.0.0 do, are understood', async () => {
  const { service, store } = await serviceAlone()
  type Methods = Record<string, (request: object) => Promise<unknown>>
  const sessions = new SessionServiceAdapter(store) as unknown as Methods
  const files = service as unknown as Methods
  const { appName, userId } = KEY
  expect(await sessions.createSession?.({ scope: KEY, state: { a: 1 } })).toMatchObject({ id: KEY.sessionId })
  expect(await sessions.getSession?.({ scope: KEY })).toMatchObject({ appName, userId, state: { a: 1 } })
  expect(await sessions.getOrCreateSession?.({ scope: KEY })).toMatchObject({ state: { a: 1 } })
  expect(await sessions.listSessions?.({ scope: { appName, userId } })).toMatchObject({ totalItems: 1 })
  const file = { scope: KEY, filename: 'f' }
  expect(await files.saveArtifact?.({ ...file, artifact: { text: 'one' } })).toBe(0)
  expect(await files.loadArtifact?.(file)).toEqual({ text: 'one' })
  expect(await files.listArtifactKeys?.({ scope: KEY })).toEqual(['f'])
  expect(await files.listVersions?.(file)).toEqual([0])
  expect(await files.getArtifactVersion?.({ ...file, version: 0 })).toEqual({ version: 0 })
  await files.deleteArtifact?.(file)
  expect(await service.listArtifactKeys(KEY)).toEqual([])
  await sessions.deleteSession?.({ scope: KEY })
  expect(await store.describeSession(KEY)).toBeUndefined()
})

async function serviceAlone(kind = 'memory:') {
  const store = await openStore(kind === 'memory:' ? kind : `${kind}${await temporaryFolder()}/lango.db`)
  onTestFinished(() => store.close())
  return { store, service: new ArtifactServiceAdapter(store.artifacts) }
}
