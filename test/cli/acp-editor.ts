// An editor as the SDK of the Agent Client Protocol makes one, with `lango acp` as its agent.
import type { ChildProcess } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import {
  type ClientCapabilities,
  type ClientContext,
  client,
  ndJsonStream,
  type RequestPermissionRequest,
  type SessionUpdate,
} from '@agentclientprotocol/sdk'
import { onTestFinished } from 'vitest'
import { type PacedRequest, type Piece, startPacedModel } from '../support/paced-model.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { startLango } from './lango.js'

export interface Editor {
  agent: ClientContext
  child: ChildProcess
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
  args?: readonly string[]
  imports?: readonly string[]
  env?: Record<string, string>
  capabilities?: ClientCapabilities
  /** What the person chooses; `undefined`: nothing, the question stays open. */
  answer?: (request: RequestPermissionRequest) => string | undefined
}

export async function openEditor({
  cwd,
  args = [],
  imports = [],
  env = {},
  capabilities = {},
  answer,
}: EditorOptions): Promise<Editor> {
  const child = startLango(['acp', ...args], { cwd, input: null, imports, env })
  const ended = new Promise<number | null>(resolve => child.once('close', resolve))
  let log = ''
  child.stderr?.on('data', chunk => {
    log += chunk
  })
  const updates: SessionUpdate[] = []
  const asked: RequestPermissionRequest[] = []
  const buffers = new Map<string, string>()
  const { stdin, stdout } = child
  if (!stdin || !stdout) throw new Error('lango acp has no pipes')
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
  const kill = async () => {
    child.kill('SIGKILL')
    await ended
  }
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
    child,
    updates,
    asked,
    buffers,
    log: () => log,
    kill,
    leave: () => {
      stdin.end()
      return ended
    },
    texts,
    of: kind => updates.filter(update => update.sessionUpdate === kind) as never,
  }
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
