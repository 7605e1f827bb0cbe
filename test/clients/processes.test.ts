// `@ag-ui/client` and `@a2a-js/sdk` with real server processes on one store: one is killed in the middle of a run, another
// one takes it over and answers for it; and readers that do not read.
import { connect as openSocket } from 'node:net'
import { Role, TaskState } from '@a2a-js/sdk'
import { ClientFactory, JsonRpcTransportFactory } from '@a2a-js/sdk/client'
import { buildResumeArray, HttpAgent } from '@ag-ui/client'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { eventually } from '../support/eventually.js'
import { expireLeases } from '../support/expire-leases.js'
import { createStoreDatabase } from '../support/postgres.js'
import { startServerProcess } from '../support/start-server.js'
import { makeFolder, removeFolder } from '../support/temporary-folder.js'

// Starting processes takes long on a busy machine.
vi.setConfig({ testTimeout: 240_000 })

/** What a protocol's own client does, as far as these tests need it. */
interface Peer {
  /** Sends a message. Resolves with the text so far when the stream ends or is lost. */
  say(words: string): Promise<string>
  /** What was received of the present answer. */
  text(): string
  /** Takes up the run that this peer has begun, at another server. */
  moveTo(url: string): void
  /** Follows the run to its end, or until it asks. */
  rest(): Promise<string>
  isAsking(): boolean
  approve(): Promise<string>
}

function aguiPeer(url: string): Peer {
  let agent = new HttpAgent({ url: `${url}/agui`, fetch: quietly })
  const text = () =>
    agent.messages
      .flatMap(({ role, content }) => (role === 'assistant' ? [String(content ?? '')] : []))
      .join('|')
  const run = async (...args: Parameters<HttpAgent['runAgent']>) => {
    await agent.runAgent(...args).catch(() => {})
    return text()
  }
  return {
    say: words => {
      agent.addMessage({ id: crypto.randomUUID(), role: 'user', content: words })
      return run()
    },
    text,
    moveTo: other => {
      const { threadId, messages, pendingInterrupts } = agent
      agent = new HttpAgent({ url: `${other}/agui`, fetch: quietly, threadId })
      agent.setMessages(messages)
      agent.pendingInterrupts = pendingInterrupts
    },
    rest: () => run(),
    isAsking: () => agent.pendingInterrupts.length > 0,
    approve: () => {
      const yes = { status: 'resolved' as const, payload: { approved: true } }
      const answers = Object.fromEntries(agent.pendingInterrupts.map(({ id }) => [id, yes]))
      return run({ resume: buildResumeArray(agent.pendingInterrupts, answers) })
    },
  }
}

/** The client leaves a rejection unhandled when a body fails: a lost connection is a body that ends early. */
async function quietly(to: string, init: RequestInit): Promise<Response> {
  const response = await fetch(to, init)
  const reader = response.body?.getReader()
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
    const next = await reader?.read().catch(() => undefined)
    if (next?.value) controller.enqueue(next.value)
    else controller.close()
  }
  return new Response(new ReadableStream({ pull }), { status: response.status, headers: response.headers })
}

async function a2aPeer(first: string): Promise<Peer> {
  const factory = new ClientFactory({ transports: [new JsonRpcTransportFactory()] })
  let client = factory.createFromUrl(first)
  let [taskId, contextId, state] = ['', '', TaskState.TASK_STATE_UNSPECIFIED]
  const artifacts = new Map<string, string>()
  type Update =
    Awaited<ReturnType<Awaited<typeof client>['resubscribeTask']>> extends AsyncIterable<infer U> ? U : never
  const take = ({ payload }: Update) => {
    if (payload?.$case === 'task') {
      const { id, status } = payload.value
      ;[taskId, contextId] = [id, payload.value.contextId]
      state = status?.state ?? state
      artifacts.clear()
      for (const { artifactId, parts } of payload.value.artifacts) artifacts.set(artifactId, textOf(parts))
    } else if (payload?.$case === 'statusUpdate') state = payload.value.status?.state ?? state
    else if (payload?.$case === 'artifactUpdate') {
      const { artifact, append } = payload.value
      const id = artifact?.artifactId ?? ''
      const before = append ? (artifacts.get(id) ?? '') : ''
      artifacts.set(id, before + textOf(artifact?.parts ?? []))
    }
  }
  const text = () => [...artifacts.values()].filter(Boolean).join('|')
  const read = async (updates: AsyncIterable<Update>) => {
    try {
      for await (const update of updates) take(update)
    } catch {
      // The connection was lost.
    }
    return text()
  }
  const send = async (value: string) => {
    const content = { $case: 'text' as const, value }
    const message = {
      ...{ messageId: crypto.randomUUID(), contextId, taskId, role: Role.ROLE_USER },
      parts: [{ content, metadata: undefined, filename: '', mediaType: '' }],
      ...{ metadata: undefined, extensions: [], referenceTaskIds: [] },
    }
    const request = { tenant: '', message, configuration: undefined, metadata: undefined }
    return read((await client).sendMessageStream(request))
  }
  return {
    say: send,
    text,
    moveTo: other => {
      client = factory.createFromUrl(other)
    },
    rest: async () => read((await client).resubscribeTask({ tenant: '', id: taskId })),
    isAsking: () => state === TaskState.TASK_STATE_INPUT_REQUIRED,
    approve: () => send('yes'),
  }
}

const textOf = (parts: readonly { content?: { $case: string; value: unknown } | undefined }[]) =>
  parts.map(({ content }) => (content?.$case === 'text' ? String(content.value) : '')).join('')

const words = (count: number) => Array.from({ length: count }, (_, index) => `word${index + 1} `).join('')

describe.each(['sqlite', 'postgres'] as const)('on %s', driver => {
  let store = ''
  let remove = async () => {}
  beforeAll(async () => {
    if (driver === 'sqlite') {
      const folder = await makeFolder()
      store = `sqlite:${folder}/lango.db`
      remove = () => removeFolder(folder)
    } else {
      const database = await createStoreDatabase()
      store = database.url
      remove = () => database.drop()
    }
  })
  afterAll(() => remove())

  describe.each<[string, (url: string) => Peer | Promise<Peer>]>([
    ['@ag-ui/client', aguiPeer],
    ['@a2a-js/sdk', a2aPeer],
  ])('%s', (_name, connect) => {
    test('a process that is killed in mid-run: the client goes on at another one, which answers and approves', async () => {
      const [one, other] = await Promise.all([startServerProcess(store), startServerProcess(store)])
      const peer = await connect(one.url)
      const lost = peer.say('slow 400 20')
      await eventually(() => peer.text()).toContain('word5 ')
      await one.kill()
      const before = await lost
      expect(before.length).toBeLessThan(words(400).length)
      // Those of PostgreSQL end by its clock.
      if (driver === 'sqlite') expireLeases(store)
      peer.moveTo(other.url)
      await eventually(() => peer.rest()).toBe(words(400))
      // The other process asks; a third one, which was not there, takes the answer.
      const asking = await connect(other.url)
      await asking.say('danger')
      expect(asking.isAsking()).toBe(true)
      await other.kill()
      if (driver === 'sqlite') expireLeases(store)
      const third = await startServerProcess(store)
      asking.moveTo(third.url)
      expect(await asking.approve()).toContain(words(3))
      expect(asking.isAsking()).toBe(false)
    })

    test('two processes: asked at one, answered at the other', async () => {
      const [one, other] = await Promise.all([startServerProcess(store), startServerProcess(store)])
      const peer = await connect(one.url)
      await peer.say('danger')
      expect(peer.isAsking()).toBe(true)
      peer.moveTo(other.url)
      expect(await peer.approve()).toContain(words(3))
    })
  })

  test.each([
    ['/agui', { ...agui(), messages: [{ id: 'slow', role: 'user', content: 'say 6000' }] }],
    [
      '/a2a',
      {
        ...{ jsonrpc: '2.0', id: 1, method: 'SendStreamingMessage' },
        params: {
          message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text: 'say 6000' }] },
        },
      },
    ],
  ])(
    '%s: a reader that does not read holds nothing up, and gets everything when it reads',
    async (path, body) => {
      const { url, client } = await startServerProcess(store)
      const { port } = new URL(url)
      const text = JSON.stringify(body)
      const socket = openSocket(Number(port), '127.0.0.1')
      onTestFinished(() => void socket.destroy())
      socket.write(
        `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\nconnection: close\r\n\r\n${text}`,
      )
      const head = await new Promise<string>(resolve => {
        socket.once('data', chunk => {
          socket.pause()
          resolve(String(chunk))
        })
      })
      const runId = /x-lango-run: ([\w-]+)/i.exec(head)?.[1] ?? expect.unreachable(head)
      let finish: unknown
      for await (const event of client.follow(runId))
        if (event.type === 'run-finish') finish = event.finishReason
      expect(finish).toBe('stop')
      let rest = head
      socket.on('data', chunk => {
        rest += chunk
      })
      socket.resume()
      await new Promise(resolve => socket.once('end', resolve))
      expect(rest).toContain('word6000 ')
    },
  )
})

function agui() {
  return {
    threadId: crypto.randomUUID(),
    runId: crypto.randomUUID(),
    ...{ state: {}, tools: [], context: [], forwardedProps: {} },
  }
}
