// An editor as the SDK of the Agent Client Protocol makes one, with `lango acp` as its agent.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PassThrough, Readable, Writable } from 'node:stream'
import {
  type ClientCapabilities,
  type ClientContext,
  client,
  ndJsonStream,
  type RequestPermissionRequest,
  type SessionUpdate,
} from '@agentclientprotocol/sdk'
import { onTestFinished } from 'vitest'
import { runCommandLine } from '../../src/cli/run-command-line.js'
import { type PacedRequest, type Piece, startPacedModel } from '../support/paced-model.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { commandEnvironment, startLango } from './lango.js'
import { memoryIo } from './memory-io.js'

export interface Editor {
  agent: ClientContext
  updates: SessionUpdate[]
  asked: RequestPermissionRequest[]
  /** Texts of the unsaved buffers, by path; writes go there, too. */
  buffers: Map<string, string>
  log(): string
  kill(): Promise<void>
  /** Closes standard input, as an editor does that is closed; resolves to the exit code. */
  leave(): Promise<number | null>
  texts(kind?: string): string
  of<Kind extends SessionUpdate['sessionUpdate']>(
    kind: Kind,
  ): Extract<SessionUpdate, { sessionUpdate: Kind }>[]
}

export interface EditorOptions {
  cwd: string
  env?: Record<string, string>
  /** `lango acp` is a process of its own, which can be killed. */
  isProcess?: boolean
  capabilities?: ClientCapabilities
  /** What the person chooses; `undefined`: nothing, the question stays open. */
  answer?: (request: RequestPermissionRequest) => string | undefined
}

export async function openEditor({
  cwd,
  env = {},
  isProcess = false,
  capabilities = {},
  answer,
}: EditorOptions): Promise<Editor> {
  const { stdin, stdout, log, kill, ended } = isProcess ? acpProcess(cwd, env) : acpHere(cwd, env)
  const updates: SessionUpdate[] = []
  const asked: RequestPermissionRequest[] = []
  const buffers = new Map<string, string>()
  const stream = ndJsonStream(Writable.toWeb(stdin), Readable.toWeb(stdout) as ReadableStream<Uint8Array>)
  const { agent } = client({ name: 'test' })
    .onNotification('session/update', ({ params }) => void updates.push(params.update))
    .onRequest('session/request_permission', async ({ params, signal }) => {
      asked.push(params)
      const optionId = answer?.(params)
      if (optionId !== undefined) return { outcome: { outcome: 'selected', optionId } }
      await new Promise<void>(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))
      return { outcome: { outcome: 'cancelled' } }
    })
    .onRequest('fs/read_text_file', ({ params }) => {
      const content = buffers.get(params.path)
      if (content === undefined) throw new Error('not open')
      return { content }
    })
    .onRequest('fs/write_text_file', ({ params }) => {
      buffers.set(params.path, params.content)
      return {}
    })
    .connect(stream)
  onTestFinished(kill)
  await agent.request('initialize', { protocolVersion: 1, clientCapabilities: capabilities })
  const texts = (kind = 'agent_message_chunk') =>
    updates
      .flatMap(update =>
        update.sessionUpdate === kind &&
        'content' in update &&
        !Array.isArray(update.content) &&
        update.content?.type === 'text'
          ? [update.content.text]
          : [],
      )
      .join('')
  return {
    agent,
    updates,
    asked,
    buffers,
    log,
    kill,
    leave: () => {
      stdin.end()
      return ended
    },
    texts,
    of: kind => updates.filter(update => update.sessionUpdate === kind) as never,
  }
}

/** `lango acp` as an editor sees it. */
interface Acp {
  stdin: Writable
  stdout: Readable
  log(): string
  ended: Promise<number | null>
  kill(): Promise<void>
}

function acpProcess(cwd: string, env: Record<string, string>): Acp {
  const child = startLango(['acp'], { cwd, input: null, env })
  const ended = new Promise<number | null>(resolve => child.once('close', resolve))
  let log = ''
  child.stderr?.on('data', chunk => {
    log += chunk
  })
  const { stdin, stdout } = child
  if (!stdin || !stdout) throw new Error('lango acp has no pipes')
  const kill = async () => {
    child.kill('SIGKILL')
    await ended
  }
  return { stdin, stdout, log: () => log, ended, kill }
}

/** In this process, where it is ended by closing its input. */
function acpHere(cwd: string, env: Record<string, string>): Acp {
  const [stdin, stdout] = [new PassThrough(), new PassThrough()]
  const memory = memoryIo({ cwd, env: commandEnvironment(cwd, env) })
  const ended = runCommandLine({ ...memory, stdin, stdout }, ['acp'])
  const kill = async () => {
    stdin.end()
    await ended
  }
  return { stdin, stdout, log: () => memory.written.stderr, ended, kill }
}

/** A folder whose agent asks this model. */
export async function folderWith(
  answer: (request: PacedRequest) => AsyncIterable<Piece> | Iterable<Piece>,
  { store = 'sqlite:./lango.db', ...config }: Record<string, unknown> & { store?: string } = {},
) {
  const model = await startPacedModel(answer)
  onTestFinished(() => model.close())
  const cwd = await temporaryFolder()
  const play = { type: 'openai-compatible', baseUrl: model.baseUrl, apiKey: 'test' }
  const settings = { store, providers: { play }, agent: { name: 'coder', model: 'play/gpt-4.1' }, ...config }
  await writeFile(join(cwd, 'lango.config.json'), JSON.stringify(settings))
  return { cwd, model }
}

/** Opens a session and returns how to talk in it. */
export async function openSession({ agent }: Editor, cwd: string) {
  const { sessionId, ...offered } = await agent.request('session/new', { cwd, mcpServers: [] })
  const prompt = (text: string) =>
    agent.request('session/prompt', { sessionId, prompt: [{ type: 'text', text }] })
  return { sessionId, offered, prompt }
}
