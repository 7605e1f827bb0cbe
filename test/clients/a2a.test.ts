// The clients of A2A's own SDK, 1.0 by JSON-RPC and REST and 0.3 by JSON-RPC, against the server and a strict provider.
import {
  type Message,
  type Part,
  Role,
  type StreamResponse,
  type Task,
  TaskState,
  taskStateToJSON,
} from '@a2a-js/sdk'
import { ClientFactory, JsonRpcTransportFactory, RestTransportFactory } from '@a2a-js/sdk/client'
import type * as legacy from 'a2a-03'
import { ClientFactory as LegacyFactory } from 'a2a-03/client'
import { expect } from 'vitest'
import {
  heldTool,
  type ProtocolServerOptions,
  searchThenTell,
  startProtocolServer,
} from '../server/protocols/support.js'
import { can, clientSuite } from './support/client-suite.js'
import { startCuttableProxy } from './support/cuttable-proxy.js'
import { countedTool, dangerous, dangerThenTell, lookOnce } from './support/scenes.js'

/** What a client has received, in the words of 0.3. */
interface Seen {
  kind: 'task' | 'status' | 'artifact'
  taskId: string
  contextId: string
  state?: string
  /** The artifacts of a task, or what is added to one. */
  text: string
  /** The message of the status. */
  words: string
}

interface Said {
  text?: string
  data?: Record<string, unknown>
  contextId?: string
  taskId?: string
  messageId?: string
}

interface Peer {
  stream(said: Said, signal?: AbortSignal): AsyncIterable<Seen>
  send(said: Said): Promise<Seen>
  get(id: string): Promise<Seen>
  cancel(id: string): Promise<Seen>
  resubscribe(id: string): AsyncIterable<Seen>
}

const PEERS: { client: string; package: string; connect(url: string): Promise<Peer> }[] = [
  { client: '@a2a-js/sdk, JSON-RPC', package: '@a2a-js/sdk', connect: url => connect(url, 'JSONRPC') },
  { client: '@a2a-js/sdk, REST', package: '@a2a-js/sdk', connect: url => connect(url, 'HTTP+JSON') },
  { client: '@a2a-js/sdk, JSON-RPC', package: 'a2a-03', connect: connectLegacy },
]

const without = {
  'client tools': 'The protocol has no tools of the client: an agent is asked, and answers.',
  'structured output':
    'The protocol has no field for a schema: an answer follows the agent’s own output schema.',
}

for (const { client, package: name, connect } of PEERS) {
  clientSuite({ client, package: name, without }, store => {
    const start = async (options: ProtocolServerOptions = {}) => {
      const server = await startProtocolServer({
        script: searchThenTell,
        store: await store.url(),
        ...options,
      })
      return { ...server, peer: await connect(server.url) }
    }

    can('several turns', 'three messages, three tasks, one context', async () => {
      const { peer, provider, runtime } = await start()
      let contextId: string | undefined
      for (const text of ['apples', 'pears', 'plums']) {
        const task = await peer.send({ text, ...(contextId ? { contextId } : {}) })
        expect(task).toMatchObject({
          kind: 'task',
          state: 'completed',
          text: `Let me look.|I found ${text}.`,
        })
        contextId = task.contextId
      }
      const key = { appName: 'lango', userId: 'user', sessionId: contextId ?? '' }
      expect(await runtime.store.readMessages(key)).toHaveLength(12)
      expect(provider.violations).toEqual([])
    })

    can('streaming', 'the text before a tool arrives while the tool runs', async () => {
      const { tool, called, letGo } = heldTool()
      const { peer } = await start({ tools: [tool] })
      const seen: Seen[] = []
      for await (const update of peer.stream({ text: 'apples' })) {
        seen.push(update)
        if (update.text !== 'Let me look.') continue
        await called
        letGo()
      }
      expect(seen[0]).toMatchObject({ kind: 'task', state: 'submitted' })
      expect(textOf(seen)).toBe('Let me look.I found apples.')
      expect(seen.at(-1)).toMatchObject({ kind: 'status', state: 'completed' })
    })

    can('agent tools', 'the agent searches; the task has the answer', async () => {
      const { peer } = await start()
      const { taskId } = await peer.send({ text: 'apples' })
      expect(await peer.get(taskId)).toMatchObject({
        state: 'completed',
        text: 'Let me look.|I found apples.',
      })
    })

    for (const [words, executed, end] of [
      ['yes', ['danger'], 'Done with it.'],
      ['no', [], 'As you wish.'],
    ] as const) {
      can('approval', `the task requires input; "${words}" answers it`, async () => {
        const calls: string[] = []
        const { peer, provider } = await start({ script: dangerThenTell, tools: [dangerous(calls)] })
        const asked = await all(peer.stream({ text: 'do it' }))
        const { taskId, contextId } = asked.at(-1) ?? fail()
        expect(asked.at(-1)).toMatchObject({
          state: 'input-required',
          words: expect.stringContaining('danger'),
        })
        expect(calls).toEqual([])
        const rest = await all(peer.stream({ text: words, taskId, contextId }))
        expect(rest[0]).toMatchObject({ kind: 'task', taskId, state: 'working' })
        expect(textOf(rest)).toBe(end)
        expect(calls).toEqual(executed)
        expect(await peer.get(taskId)).toMatchObject({ state: 'completed', text: `May I?|${end}` })
        const later = await peer.send({ text: 'rather not', contextId })
        expect(later).toMatchObject({ state: 'completed', text: 'Then not.' })
        expect(provider.violations).toEqual([])
      })
    }

    can('approval', 'answered with data, without a stream; another message ends the wait', async () => {
      const calls: string[] = []
      const { peer } = await start({ script: dangerThenTell, tools: [dangerous(calls)] })
      const { taskId, contextId, state } = await peer.send({ text: 'do it' })
      expect(state).toBe('input-required')
      await expect(peer.send({ text: 'perhaps', taskId, contextId })).rejects.toThrow(/requires answers/)
      const task = await peer.send({ data: { approved: true }, taskId, contextId })
      expect(task).toMatchObject({ taskId, state: 'completed', text: 'May I?|Done with it.' })
      const second = await peer.send({ text: 'do it', contextId })
      await peer.send({ text: 'rather not', contextId })
      expect(await peer.get(second.taskId)).toMatchObject({ state: 'canceled' })
      expect(calls).toEqual(['danger'])
    })

    can('error', 'a refused key is a failed task that says so; the next message works', async () => {
      const { peer } = await start({ script: lookOnce, faults: [{ kind: 'auth', at: 0 }] })
      const failed = await peer.send({ text: 'apples' })
      expect(failed).toMatchObject({ state: 'failed', words: expect.stringMatching(/key|auth/i) })
      const next = await peer.send({ text: 'pears', contextId: failed.contextId })
      expect(next.text).toContain('Fine:')
    })

    can('error', 'unknown tasks and ended ones are errors of the protocol', async () => {
      const { peer } = await start()
      await expect(peer.get(crypto.randomUUID())).rejects.toThrow(/There is no such task|Task not found/)
      const { taskId, contextId } = await peer.send({ text: 'apples' })
      await expect(peer.cancel(taskId)).rejects.toThrow(/cannot be canceled/)
      await expect(peer.send({ text: 'more', taskId, contextId })).rejects.toThrow(
        /The task has ended|not supported/,
      )
    })

    can('abort', 'a task that works is canceled; the next message works', async () => {
      const { tool, called, letGo } = heldTool()
      const { peer } = await start({ tools: [tool], script: lookOnce })
      const stream = peer.stream({ text: 'apples' })[Symbol.asyncIterator]()
      const { value } = (await stream.next()) as { value: Seen }
      await called
      expect(await peer.cancel(value.taskId)).toMatchObject({ state: 'canceled' })
      letGo()
      const next = await peer.send({ text: 'pears', contextId: value.contextId })
      expect(next.text).toContain('Fine: pears')
      await stream.return?.()
    })

    can('reconnect', 'a lost stream is followed again: the task so far, then the rest', async () => {
      const { tool, called, letGo } = heldTool()
      const { url } = await start({ tools: [tool] })
      const proxy = await startCuttableProxy(url)
      const peer = await connect(proxy.url)
      const seen: Seen[] = []
      const lost = (async () => {
        for await (const update of peer.stream({ text: 'apples' })) seen.push(update)
      })().catch(() => 'lost')
      await called
      await expect.poll(() => textOf(seen)).toBe('Let me look.')
      proxy.cut()
      expect(await lost).toBe('lost')
      const rest: Seen[] = []
      for await (const update of peer.resubscribe(seen[0]?.taskId ?? '')) {
        rest.push(update)
        letGo()
      }
      expect(rest[0]).toMatchObject({ kind: 'task', state: 'working', text: 'Let me look.' })
      expect(textOf(rest.slice(1))).toBe('I found apples.')
      expect(rest.at(-1)).toMatchObject({ state: 'completed' })
    })

    can('once', 'a message that is sent again with its id executes the tool once', async () => {
      const held = countedTool()
      const { url } = await start({ tools: [held.tool] })
      const proxy = await startCuttableProxy(url)
      const peer = await connect(proxy.url)
      const messageId = crypto.randomUUID()
      const lost = peer.send({ text: 'apples', messageId }).catch(() => 'lost')
      await held.called
      proxy.cut()
      expect(await lost).toBe('lost')
      const again = peer.send({ text: 'apples', messageId })
      held.letGo()
      expect(await again).toMatchObject({ state: 'completed', text: 'Let me look.|I found apples.' })
      expect(held.count()).toBe(1)
      await expect(peer.send({ text: 'pears', messageId })).rejects.toThrow(/sent before/)
    })
  })
}

function fail(): never {
  throw new TypeError('nothing came')
}

async function all(updates: AsyncIterable<Seen>): Promise<Seen[]> {
  const seen: Seen[] = []
  for await (const update of updates) seen.push(update)
  return seen
}

function textOf(seen: readonly Seen[]): string {
  return seen.flatMap(({ kind, text }) => (kind === 'artifact' ? [text] : [])).join('')
}

async function connect(url: string, binding: 'JSONRPC' | 'HTTP+JSON'): Promise<Peer> {
  const transport = binding === 'JSONRPC' ? new JsonRpcTransportFactory() : new RestTransportFactory()
  const client = await new ClientFactory({ transports: [transport] }).createFromUrl(url)
  const request = (said: Said) => ({
    ...{ tenant: '', message: messageOf(said), configuration: undefined, metadata: undefined },
  })
  return {
    stream: (said, signal) =>
      mapped(client.sendMessageStream(request(said), signal ? { signal } : {}), fromUpdate),
    send: async said => fromTask((await client.sendMessage(request(said))) as Task),
    get: async id => fromTask(await client.getTask({ tenant: '', id })),
    cancel: async id => fromTask(await client.cancelTask({ tenant: '', id, metadata: undefined })),
    resubscribe: id => mapped(client.resubscribeTask({ tenant: '', id }), fromUpdate),
  }
}

async function* mapped<T>(updates: AsyncIterable<T>, map: (update: T) => Seen): AsyncGenerator<Seen> {
  for await (const update of updates) yield map(update)
}

function messageOf({
  text,
  data,
  contextId = '',
  taskId = '',
  messageId = crypto.randomUUID(),
}: Said): Message {
  const content = data
    ? { $case: 'data' as const, value: data }
    : { $case: 'text' as const, value: text ?? '' }
  const part = { content, metadata: undefined, filename: '', mediaType: '' }
  return {
    ...{ messageId, contextId, taskId, role: Role.ROLE_USER, parts: [part] },
    ...{ metadata: undefined, extensions: [], referenceTaskIds: [] },
  }
}

const partText = ({ content }: Part) => (content?.$case === 'text' ? content.value : '')
const stateName = (state: TaskState | undefined) =>
  taskStateToJSON(state ?? TaskState.TASK_STATE_UNSPECIFIED)
    .replace('TASK_STATE_', '')
    .toLowerCase()
    .replace('_', '-')

function fromTask({ id: taskId, contextId, status, artifacts }: Task): Seen {
  const text = artifacts.map(({ parts }) => parts.map(partText).join('')).join('|')
  const words = (status?.message?.parts ?? []).map(partText).join('')
  return { kind: 'task', taskId, contextId, state: stateName(status?.state), text, words }
}

function fromUpdate({ payload }: StreamResponse): Seen {
  if (payload?.$case === 'task') return fromTask(payload.value)
  if (payload?.$case === 'statusUpdate') {
    const { taskId, contextId, status } = payload.value
    const words = (status?.message?.parts ?? []).map(partText).join('')
    return { kind: 'status', taskId, contextId, state: stateName(status?.state), text: '', words }
  }
  if (payload?.$case !== 'artifactUpdate') return fail()
  const { taskId, contextId, artifact } = payload.value
  return {
    kind: 'artifact',
    taskId,
    contextId,
    text: (artifact?.parts ?? []).map(partText).join(''),
    words: '',
  }
}

async function connectLegacy(url: string): Promise<Peer> {
  const client = await new LegacyFactory().createFromUrl(url)
  const params = ({ text, data, contextId, taskId, messageId = crypto.randomUUID() }: Said) => {
    const part = data ? { kind: 'data' as const, data } : { kind: 'text' as const, text: text ?? '' }
    const place = { ...(contextId ? { contextId } : {}), ...(taskId ? { taskId } : {}) }
    return {
      message: { kind: 'message' as const, messageId, role: 'user' as const, parts: [part], ...place },
    }
  }
  return {
    stream: said => mapped(client.sendMessageStream(params(said)), fromLegacy),
    send: async said => fromLegacy(await client.sendMessage(params(said))),
    get: async id => fromLegacy(await client.getTask({ id })),
    cancel: async id => fromLegacy(await client.cancelTask({ id })),
    resubscribe: id => mapped(client.resubscribeTask({ id }), fromLegacy),
  }
}

type LegacyUpdate =
  | legacy.Message
  | legacy.Task
  | legacy.TaskStatusUpdateEvent
  | legacy.TaskArtifactUpdateEvent

const legacyText = (parts: readonly legacy.Part[] = []) =>
  parts.map(part => (part.kind === 'text' ? part.text : '')).join('')

function fromLegacy(update: LegacyUpdate): Seen {
  const { contextId = '' } = update
  if (update.kind === 'task' || update.kind === 'status-update') {
    const words = legacyText(update.status.message?.parts)
    const { state } = update.status
    if (update.kind === 'status-update')
      return { kind: 'status', taskId: update.taskId, contextId, state, text: '', words }
    const text = (update.artifacts ?? []).map(({ parts }) => legacyText(parts)).join('|')
    return { kind: 'task', taskId: update.id, contextId, state, text, words }
  }
  if (update.kind !== 'artifact-update') return fail()
  return {
    kind: 'artifact',
    taskId: update.taskId,
    contextId,
    text: legacyText(update.artifact.parts),
    words: '',
  }
}
