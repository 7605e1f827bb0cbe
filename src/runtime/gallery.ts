/**
 * Broken sessions that heal before the reader's eyes: each can be opened as a session, sent as it is to a server that
 * enforces the vendor's rules, and sent through a run. Everything is real but the model: store, repair, requests and HTTP.
 */
import { randomUUID } from 'node:crypto'
import { messagesToProvider } from '../adk/messages-to-provider.js'
import { AgentError } from '../errors.js'
import type { Logger } from '../logger.js'
import { type Provider, withGenerate } from '../provider/provider.js'
import type { RunEvent } from '../run/run-event.js'
import type { Message, SessionKey } from '../session/message.js'
import type { SessionStore } from '../session/session-store.js'
import { BROKEN_SESSIONS, type BrokenSession } from '../testing/broken-sessions.js'
import { type StrictProvider, startStrictProvider } from '../testing/start-strict-provider.js'
import { PROFILE_FACTS } from '../testing/strict/profile.js'
import { defineTool } from '../tool.js'
import { directProvider } from './direct-provider.js'
import { createRuntime, type Runtime } from './runtime.js'

/** What a list of broken sessions shows. */
export interface GalleryEntry {
  id: string
  title: string
  story: string
  profile: string
  model: string
  question: string
}

/** What a provider answers to a history that was sent as it is. */
export interface AsItIs {
  profile: string
  status: number
  /** The provider's error message; empty when it accepted the request. */
  message: string
}

export interface GalleryOptions {
  store: SessionStore
  app: string
  /** Gets the lines of the runs. Default: none. */
  logger?: Logger
}

interface OpenedEntry {
  server: StrictProvider
  provider: Provider
  runtime: Runtime
  model: string
}

/** Sessions of the gallery are known by their ids. */
const PREFIX = 'gallery-'

export class Gallery {
  readonly #options: GalleryOptions
  readonly #opened = new Map<string, Promise<OpenedEntry>>()

  constructor(options: GalleryOptions) {
    this.#options = options
  }

  list(): GalleryEntry[] {
    return BROKEN_SESSIONS.map(({ id, title, story, profile, question }) => {
      return { id, title, story, profile, model: PROFILE_FACTS[profile].model, question }
    })
  }

  /** Stores the broken history as a session of the user. */
  async open(id: string, userId: string): Promise<SessionKey> {
    const { title, messages } = find(id)
    const sessionId = `${PREFIX}${id}-${randomUUID().slice(0, 8)}`
    const key = { appName: this.#options.app, userId, sessionId }
    const { store } = this.#options
    await store.createSession(key, {}, { title })
    for (const message of messages) await store.appendMessage(key, message)
    return key
  }

  /** Sends the history without repair to a server that enforces the vendor's rules. Rejects when no answer came. */
  async sendAsItIs(id: string): Promise<AsItIs> {
    const entry = find(id)
    const { server, provider } = await this.#enter(entry)
    const seen = server.violations.length
    const request = {
      model: PROFILE_FACTS[entry.profile].model,
      messages: messagesToProvider(requestOf(entry)),
      tools: toolsOf(entry).map(({ name, description }) => ({
        name,
        description,
        parameters: NO_PARAMETERS,
      })),
      repairMode: 'explain' as const,
    }
    let failure: AgentError | undefined
    for await (const event of provider.generate(request)) if (event.type === 'error') failure = event.error
    const refusal = server.violations[seen]
    if (refusal) return { profile: entry.profile, status: refusal.status, message: refusal.message }
    if (!failure) return { profile: entry.profile, status: 200, message: '' }
    if (typeof failure.details.status !== 'number') throw failure
    return { profile: entry.profile, status: failure.details.status, message: failure.message }
  }

  /** The next message of the user, as a run. Its events end with the run. */
  async *heal(key: SessionKey, runId: string = randomUUID()): AsyncGenerator<RunEvent, void, undefined> {
    const entry = find(idOf(key.sessionId))
    if (!(await this.#options.store.describeSession(key)))
      throw new AgentError('session-not-found', `There is no session "${key.sessionId}": open it first.`)
    const { runtime, model } = await this.#enter(entry)
    yield* runtime.run({ ...key, runId, model, text: entry.question })
  }

  async close(): Promise<void> {
    const opened = await Promise.allSettled(this.#opened.values())
    this.#opened.clear()
    for (const result of opened) {
      if (result.status !== 'fulfilled') continue
      await result.value.runtime.close()
      await result.value.server.close()
    }
  }

  #enter(entry: BrokenSession): Promise<OpenedEntry> {
    const known = this.#opened.get(entry.id)
    if (known) return known
    const opening = this.#start(entry)
    this.#opened.set(entry.id, opening)
    opening.catch(() => this.#opened.delete(entry.id))
    return opening
  }

  async #start(entry: BrokenSession): Promise<OpenedEntry> {
    const { store, app, logger } = this.#options
    const server = await startStrictProvider({
      profile: entry.profile,
      script: () => ({ text: entry.answer }),
    })
    const provider = directProvider(`strict-${entry.profile}`, entry.profile, server.baseUrl)
    const model = `${provider.id}/${PROFILE_FACTS[entry.profile].model}`
    const runtime = await createRuntime({
      app,
      store,
      logger,
      providers: { [provider.id]: uncounted(provider) },
      agent: { model, instruction: 'Answer in one or two sentences.', tools: toolsOf(entry) },
      // Other runs of this store belong to other models.
      runs: { resume: false },
    })
    return { server, provider, runtime, model }
  }
}

/** The model is a script behind the names of real ones: its usage is left out, because nothing was spent. */
function uncounted(provider: Provider): Provider {
  return withGenerate(provider, async function* (request, signal) {
    for await (const event of provider.generate(request, signal)) if (event.type !== 'usage') yield event
  })
}

/** The entry that a session was opened from; `undefined` when it is no session of the gallery. */
function galleryIdOf(sessionId: string): string | undefined {
  const id = sessionId.startsWith(PREFIX) ? sessionId.slice(PREFIX.length, -9) : undefined
  return BROKEN_SESSIONS.some(entry => entry.id === id) ? id : undefined
}

function idOf(sessionId: string): string {
  const id = galleryIdOf(sessionId)
  if (id !== undefined) return id
  throw new AgentError('invalid-argument', `"${sessionId}" is no session of the gallery: open one first.`)
}

function find(id: string): BrokenSession {
  const entry = BROKEN_SESSIONS.find(session => session.id === id)
  if (entry) return entry
  const known = BROKEN_SESSIONS.map(session => session.id).join(', ')
  throw new AgentError('invalid-argument', `There is no broken session "${id}". Choose one of: ${known}.`)
}

function requestOf({ messages, question, inMidTurn }: BrokenSession): Message[] {
  const next: Message = { role: 'user', content: question, timestamp: Date.now() }
  return inMidTurn ? [...messages] : [...messages, next]
}

const NO_PARAMETERS = { type: 'object', properties: {} }

/** The tools of the history, so that the vendors know their names. The fake model does not call them. */
function toolsOf({ tools }: BrokenSession) {
  return tools.map(name =>
    defineTool({
      name,
      description: `Part of this example: ${name}.`,
      parameters: NO_PARAMETERS,
      effect: 'read',
      execute: () => ({ note: 'This tool exists only in the gallery.' }),
    }),
  )
}
