// What a model has sealed belongs to an account: sessions that move between accounts and platforms of one vendor.
import { afterEach, expect, test } from 'vitest'
import { openSignature } from '../../src/provider/provider.js'
import type { ProviderOptions } from '../../src/provider/provider-settings.js'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import type { StoredMessage } from '../../src/session/message.js'
import { openStore } from '../../src/store/open-store.js'
import {
  type StrictProvider,
  type StrictProviderOptions,
  startStrictProvider,
} from '../../src/testing/start-strict-provider.js'
import type { Fault, RequestSummary, ScriptStep } from '../../src/testing/strict/script.js'
import { defineTool } from '../../src/tool.js'
import { jpeg, png } from '../support/pictures.js'
import { temporaryFolder } from '../support/temporary-folder.js'

interface Place {
  server: StrictProviderOptions
  options: Omit<ProviderOptions, 'baseUrl'>
  model: string
}

const openai = (account: string, apiKey: string): Place => ({
  server: { profile: 'openai-responses', account },
  options: { type: 'openai', apiKey },
  model: 'gpt-5.6',
})

const PLACES = {
  openai: openai('org-a', 'key-a'),
  other: openai('org-b', 'key-b'),
  azure: {
    server: { platform: 'azure', profile: 'openai-responses', account: 'resource' },
    options: { type: 'azure', apiKey: 'key' },
    model: 'gpt-5.6',
  },
  gemini: {
    server: { profile: 'gemini-3', account: 'key-g' },
    options: { type: 'gemini', apiKey: 'key-g' },
    model: 'gemini-3.5-flash',
  },
  vertex: {
    server: { platform: 'vertex', profile: 'gemini-3', account: 'project' },
    options: { type: 'vertex', apiKey: 'token', project: 'my-project' },
    model: 'gemini-3.5-flash',
  },
  claude: {
    server: { profile: 'anthropic-4.6', account: 'first-party' },
    options: { type: 'anthropic', apiKey: 'key' },
    model: 'claude-sonnet-4-6',
  },
  bedrock: {
    server: { platform: 'bedrock', profile: 'anthropic-4.6', account: 'aws' },
    options: { type: 'bedrock', apiKey: 'key', region: 'us-east-1' },
    model: 'us.anthropic.claude-opus-4-6-v1',
  },
  vertexClaude: {
    server: { platform: 'vertex', profile: 'anthropic-4.6', account: 'project' },
    options: { type: 'vertex', apiKey: 'token', project: 'my-project' },
    model: 'claude-opus-4-6',
  },
  router: {
    server: { profile: 'openrouter', account: 'router' },
    options: { type: 'openai-compatible', preset: 'openrouter', apiKey: 'key' },
    model: 'anthropic/claude-sonnet-4.6',
  },
  routerGemini: {
    server: { profile: 'openrouter-gemini', account: 'router' },
    options: { type: 'openai-compatible', preset: 'openrouter', apiKey: 'key' },
    model: 'google/gemini-3.5-flash',
  },
  google: {
    server: { profile: 'compatible-gemini', account: 'key-g' },
    options: { type: 'openai-compatible', apiKey: 'key' },
    model: 'gemini-3.5-flash',
  },
} satisfies Record<string, Place>

type Name = keyof typeof PLACES

/** Thinks, calls a tool, thinks again and answers. */
function answer({ messages, lastUserText }: RequestSummary): ScriptStep {
  const last = messages.at(-1)
  if (last?.role !== 'tool' && last?.toolResults.length !== 1)
    return { thinking: `About ${lastUserText}.`, toolCalls: [{ name: 'look', args: { at: lastUserText } }] }
  return { thinking: 'Seen.', text: `Seen at ${lastUserText}.` }
}

const look = (execute: () => unknown = () => ({ seen: true })) =>
  defineTool({
    name: 'look',
    description: 'Looks.',
    parameters: { type: 'object', properties: { at: { type: 'string' } } },
    effect: 'read',
    execute,
  })

interface Stage {
  servers: Readonly<Record<string, StrictProvider>>
  store: string
  runtime: Runtime
  reopen(change?: Partial<Record<Name, Partial<ProviderOptions>>>): Promise<Runtime>
}

const opened: { close(): Promise<unknown> }[] = []
afterEach(async () => {
  for (const each of opened.splice(0).reverse()) await each.close()
})

async function stage(
  names: readonly Name[],
  {
    faults = {},
    agent = {},
    execute,
  }: { faults?: Partial<Record<Name, Fault[]>>; agent?: object; execute?: () => unknown } = {},
): Promise<Stage> {
  const servers: Record<string, StrictProvider> = {}
  for (const name of names) {
    const server = await startStrictProvider({
      ...PLACES[name].server,
      script: answer,
      faults: faults[name] ?? [],
    })
    opened.push(server)
    servers[name] = server
  }
  const store = `sqlite:${await temporaryFolder()}/accounts.db`
  const open = async (change: Partial<Record<Name, Partial<ProviderOptions>>> = {}) => {
    const retry = { maxAttempts: 1 }
    const providers = Object.fromEntries(
      names.map(name => [
        name,
        { ...PLACES[name].options, baseUrl: servers[name]?.baseUrl, retry, env: {}, ...change[name] },
      ]),
    )
    const first = names[0] as Name
    const model = `${first}/${PLACES[first].model}`
    const runtime = await createRuntime({
      store,
      providers,
      agent: { name: 'root', model, thinking: 'low', tools: [look(execute)], ...agent },
    })
    opened.push(runtime)
    return runtime
  }
  const result: Stage = {
    servers,
    store,
    runtime: await open(),
    async reopen(change) {
      await result.runtime.close()
      result.runtime = await open(change)
      return result.runtime
    },
  }
  return result
}

const key = { appName: 'lango', userId: 'u', sessionId: 's' }

async function ask({ runtime }: Stage, name: Name, text: string, ...pictures: string[]) {
  const parts = pictures.map(data => ({ inlineData: { mimeType: 'image/png', data } }))
  return runtime.runAndCollect({ ...key, text, parts, model: `${name}/${PLACES[name].model}` })
}

/** The signatures in a session by the provider that made them. */
async function sealsOf({ runtime }: Stage): Promise<Map<string, string[]>> {
  const messages: StoredMessage[] = await runtime.store.readMessages(key, { limit: 1000 })
  const seals = new Map<string, string[]>()
  for (const { extra } of messages) {
    const provider = String(extra?.modelVersion ?? '').split('/')[0] ?? ''
    for (const sealed of JSON.stringify(extra ?? {}).matchAll(/"thoughtSignature":"([^"]+)"/g)) {
      const { signature } = openSignature(sealed[1] ?? '')
      if (signature !== undefined) seals.set(provider, [...(seals.get(provider) ?? []), ...inner(signature)])
    }
  }
  return seals
}

/** A gateway's seal holds the fields that it sent, and the signatures in them. */
function inner(seal: string): string[] {
  if (!/^(eyJ|W3si)/.test(seal)) return [seal]
  const fields = Buffer.from(seal, 'base64').toString()
  return [...fields.matchAll(/"(?:signature|data|thought_signature)":"([^"]+)"/g)].map(([, value]) =>
    String(value),
  )
}

function lastBody(stage: Stage, name: Name): string {
  return JSON.stringify(stage.servers[name]?.requests.at(-1)?.body)
}

function expectNothingRefused({ servers }: Stage): void {
  for (const [name, { violations }] of Object.entries(servers)) expect(violations, name).toEqual([])
}

const PAIRS: [Name, Name][] = [
  ['openai', 'azure'],
  ['openai', 'other'],
  ['gemini', 'vertex'],
  ['claude', 'bedrock'],
  ['claude', 'vertexClaude'],
  ['claude', 'router'],
  ['gemini', 'routerGemini'],
  ['google', 'routerGemini'],
]

test.each(PAIRS)(
  'a session goes from %s to %s and back, and finds its signatures there',
  async (one, two) => {
    const scene = await stage([one, two])
    for (const [turn, name] of [one, two, one].entries())
      expect(await ask(scene, name, `turn ${turn}`)).toMatchObject({
        text: `Seen at turn ${turn}.`,
        finishReason: 'stop',
      })
    expectNothingRefused(scene)
    const seals = await sealsOf(scene)
    expect(seals.get(one)?.length).toBeGreaterThan(1)
    // The answer that ended the last turn has not been sent back yet.
    for (const seal of seals.get(one)?.slice(0, -1) ?? []) expect(lastBody(scene, one)).toContain(seal)
    for (const seal of seals.get(two) ?? []) expect(lastBody(scene, one)).not.toContain(seal)
    for (const seal of seals.get(one) ?? []) expect(lastBody(scene, two)).not.toContain(seal)
    expect(lastBody(scene, two)).toContain('Seen at turn 0.')
  },
)

test.each(PAIRS)('a run falls back from %s to %s in the middle of its calls', async (one, two) => {
  const faults: Partial<Record<Name, Fault[]>> = { [one]: [{ kind: '503', at: 1 }] }
  const scene = await stage([one, two], { faults, agent: { fallback: [`${two}/${PLACES[two].model}`] } })
  expect(await ask(scene, one, 'turn 0')).toMatchObject({ text: 'Seen at turn 0.', finishReason: 'stop' })
  expect(scene.servers[two]?.requests).toHaveLength(1)
  expectNothingRefused(scene)
})

test('a rotated key of a named account keeps its signatures, and one of an unnamed account loses them', async () => {
  for (const account of ['the company', undefined]) {
    const scene = await stage(['openai'])
    await scene.reopen({ openai: { account } })
    await ask(scene, 'openai', 'turn 0')
    await scene.reopen({ openai: { account, apiKey: 'rotated' } })
    await ask(scene, 'openai', 'turn 1')
    const [first = ''] = (await sealsOf(scene)).get('openai') ?? []
    expect(lastBody(scene, 'openai').includes(first), String(account)).toBe(account !== undefined)
    await scene.runtime.store.deleteSession(key)
  }
})

test('a history that was stored without an account is sent with its signatures', async () => {
  const scene = await stage(['openai'])
  await ask(scene, 'openai', 'turn 0')
  const messages = await scene.runtime.store.readMessages(key)
  const older = { ...key, sessionId: 'older' }
  const store = scene.runtime.store
  await store.createSession(older)
  for (const { seq: _seq, ...message } of messages) {
    const { customMetadata: _account, ...extra } = message.extra ?? {}
    await store.appendMessage(older, { ...message, extra })
  }
  await scene.runtime.runAndCollect({ ...older, text: 'turn 1' })
  const [first = ''] = (await sealsOf(scene)).get('openai') ?? []
  expect(lastBody(scene, 'openai')).toContain(first)
})

/** The session as an older version stored it: without the accounts of its answers. */
async function forgetAccounts({ runtime: { store } }: Stage): Promise<typeof key> {
  const older = { ...key, sessionId: 'older' }
  await store.createSession(older)
  for (const { seq: _seq, ...message } of await store.readMessages(key)) {
    const { customMetadata: _account, ...extra } = message.extra ?? {}
    await store.appendMessage(older, { ...message, extra })
  }
  return older
}

test.each(PAIRS.slice(0, 5))(
  'what %s has sealed for an unknown account is refused once by %s, left out from then on, and sent back to its origin',
  async (one, two) => {
    const scene = await stage([one, two])
    await ask(scene, one, 'turn 0')
    const seals = (await sealsOf(scene)).get(one) ?? []
    const older = await forgetAccounts(scene)
    const say = (name: Name, text: string) =>
      scene.runtime.runAndCollect({ ...older, text, model: `${name}/${PLACES[name].model}` })
    const first = await say(two, 'turn 1')
    expect(first).toMatchObject({ text: 'Seen at turn 1.', finishReason: 'stop' })
    const violation = scene.servers[two]?.violations[0]
    expect(scene.servers[two]?.violations).toHaveLength(1)
    const receipts = first.repairs.filter(({ kind }) => kind === 'refused-by-provider')
    expect(receipts[0]?.detail).toContain(violation?.message.slice(0, 60))
    for (const seal of seals) expect(lastBody(scene, two)).not.toContain(seal)
    expect(lastBody(scene, two)).toContain('Seen at turn 0.')
    await scene.reopen()
    expect(await say(two, 'turn 2')).toMatchObject({ text: 'Seen at turn 2.' })
    expect(scene.servers[two]?.violations).toHaveLength(1)
    expect(await say(one, 'turn 3')).toMatchObject({ text: 'Seen at turn 3.' })
    expect(seals.length).toBeGreaterThan(0)
    for (const seal of seals) expect(lastBody(scene, one)).toContain(seal)
    expect(scene.servers[one]?.violations).toEqual([])
  },
)

test('the tag of an account says nothing about its key, and differs from store to store', async () => {
  const tags = new Set<string>()
  for (let store = 0; store < 2; store += 1) {
    const scene = await stage(['openai'])
    await ask(scene, 'openai', 'turn 0')
    const rows = JSON.stringify(await scene.runtime.store.readMessages(key))
    expect(rows).not.toContain('key-a')
    for (const [, tag] of rows.matchAll(/"account":"([^"]+)"/g)) tags.add(String(tag))
  }
  expect(tags.size).toBe(2)
})

test('forty turns over accounts and platforms, with pictures, tools, aborts and restarts, are all answered', async () => {
  const abort = { next: undefined as AbortController | undefined }
  const names = Object.keys(PLACES) as Name[]
  const scene = await stage(names, {
    execute: () => {
      abort.next?.abort()
      return { seen: true }
    },
  })
  const pictures: string[] = []
  const visited = new Set<Name>()
  for (let turn = 0; turn < 40; turn += 1) {
    const name = names[(turn * 3 + Math.floor(turn / 8)) % names.length] as Name
    if (turn % 9 === 8) await scene.reopen()
    if (turn % 7 === 6) {
      abort.next = new AbortController()
      const model = `${name}/${PLACES[name].model}`
      const run = { ...key, text: `turn ${turn}, aborted`, model, signal: abort.next.signal }
      expect(await scene.runtime.runAndCollect(run)).toMatchObject({ finishReason: 'aborted' })
      abort.next = undefined
    }
    // JPEG bytes that are called PNG, as browsers and servers do.
    const shown = turn % 3 === 0 ? [turn % 2 === 0 ? png({ fill: turn + 1 }) : jpeg({ fill: turn + 1 })] : []
    pictures.push(...shown)
    expect(await ask(scene, name, `turn ${turn}`, ...shown)).toMatchObject({
      text: `Seen at turn ${turn}.`,
      finishReason: 'stop',
    })
    visited.add(name)
    const made = (await sealsOf(scene)).get(name) ?? []
    for (const seal of made.slice(0, -1))
      expect(lastBody(scene, name), `${name}, turn ${turn}`).toContain(seal)
    const body = lastBody(scene, name)
    for (let said = 0; said < turn; said += 1) expect(body).toContain(`Seen at turn ${said}.`)
    for (let said = 6; said < turn; said += 7) expect(body).toContain(`turn ${said}, aborted`)
    for (const picture of pictures) expect(body, `${name}, turn ${turn}`).toContain(picture)
  }
  expect([...visited].toSorted()).toEqual(names.toSorted())
  expectNothingRefused(scene)
  const check = await openStore(scene.store)
  opened.push(check)
  expect(await check.readMessages(key, { limit: 1000 })).toEqual(
    await scene.runtime.store.readMessages(key, { limit: 1000 }),
  )
}, 60_000)
