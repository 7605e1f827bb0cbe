/**
 * What every client of OpenAI's APIs must hold, on both stores: one suite, driven by a small adapter for each client. The
 * client itself keeps the conversation, executes its tool and repeats requests, as it does for its users.
 */
import { expect } from 'vitest'
import type { Fault, RequestSummary, Script, ScriptStep } from '../../../src/testing/strict/script.js'
import { defineTool, type Tool } from '../../../src/tool.js'
import { type ProtocolServer, startProtocolServer } from '../../server/protocols/support.js'
import { type ClientStore, type ClientSuiteOptions, can, clientSuite } from './client-suite.js'

export interface Turn {
  signal?: AbortSignal
  /** Streams, and gives the pieces as they arrive. */
  onPiece?(text: string): void
}

/** A conversation as users of the client hold it: it has the tool `get_weather`, which the client executes. */
export interface Conversation {
  say(text: string, turn?: Turn): Promise<string>
  /** An answer by the schema `{ city: string, degrees: number }`. */
  structured(text: string): Promise<unknown>
}

export interface ConversationParts {
  baseURL: string
  fetch: typeof fetch
  /** The client's tool. */
  weather(args: { city: string }): string
}

export type Connect = (parts: ConversationParts) => Conversation | Promise<Conversation>

export interface Scene extends ProtocolServer {
  conversation: Conversation
  /** The cities that the client's tool was called for. */
  cities: string[]
  /** How often the agent's tool was executed. */
  searches(): number
}

interface SceneOptions {
  store: ClientStore
  connect: Connect
  tool?: Tool
  faults?: readonly Fault[]
  /** Instead of the model that does what it is asked for. */
  script?: Script
  /** Instead of fetch. */
  fetchFor?(server: ProtocolServer): typeof fetch
}

export async function openScene(options: SceneOptions): Promise<Scene> {
  const { store, connect, tool, faults, fetchFor, script = obedient } = options
  let count = 0
  const search = defineTool({
    name: 'search',
    description: 'Searches.',
    parameters: { type: 'object', properties: { query: { type: 'string' } } },
    effect: 'once',
    execute: () => {
      count += 1
      return { found: 'it' }
    },
  })
  const server = await startProtocolServer({
    ...{ store: await store.url(), tools: [tool ?? search], script },
    ...(faults ? { faults } : {}),
  })
  const cities: string[] = []
  const conversation = await connect({
    baseURL: `${server.url}/v1`,
    fetch: fetchFor?.(server) ?? fetch,
    weather: ({ city }) => {
      cities.push(city)
      return `rain in ${city}`
    },
  })
  return { ...server, conversation, cities, searches: () => count }
}

/** A model that does what it is asked for. */
const obedient = ({ lastUserText: words, messages }: RequestSummary): ScriptStep => {
  const isAnswered = messages.at(-1)?.role === 'tool'
  if (words.includes('weather')) {
    const calls = ['Rome', 'Oslo'].map(city => ({ name: 'get_weather', args: { city } }))
    if (!isAnswered) return { toolCalls: [{ name: 'search', args: { query: 'w' } }, ...calls] }
    const results = messages.flatMap(({ toolResults }) => toolResults.map(({ content }) => content))
    return { deltas: ['It is ', results.some(text => text.includes('rain in Oslo')) ? 'wet.' : 'unknown.'] }
  }
  if (words.includes('find'))
    return isAnswered ? { text: 'I found it.' } : { toolCalls: [{ name: 'search', args: { query: 'it' } }] }
  if (words.includes('JSON')) return { deltas: ['{"city":"Rome",', '"degrees":20}'] }
  return { deltas: ['You ', 'said ', `${words}.`] }
}

/** The columns of a client that speaks one of OpenAI's APIs. */
export function conversationSuite(
  options: ClientSuiteOptions,
  connect: Connect,
  more: (store: ClientStore) => void = () => {},
): void {
  const without = {
    approval: 'OpenAI’s APIs have no approvals: a run that waits for a person says so in its answer.',
    ...options.without,
  }
  clientSuite({ ...options, without }, store => {
    plainTurns(store, connect)
    toolsAndForms(store, connect)
    troubles(store, connect)
    more(store)
  })
}

function plainTurns(store: ClientStore, connect: Connect): void {
  can('several turns', 'three messages; the last request has them all', async () => {
    const { conversation, provider } = await openScene({ store, connect })
    for (const words of ['one', 'two', 'three'])
      expect(await conversation.say(words)).toContain(`You said ${words}.`)
    const sent = JSON.stringify(provider.requests.at(-1)?.body)
    for (const words of ['one', 'You said one.', 'two', 'three']) expect(sent).toContain(words)
    expect(provider.violations).toEqual([])
  })
  can('streaming', 'the text before a tool arrives while the tool runs', async () => {
    const held = heldSearch()
    const script: Script = request => ({
      ...obedient(request),
      ...(request.messages.at(-1)?.role === 'tool' ? {} : { deltas: ['Let me ', 'look.'] }),
    })
    const { conversation } = await openScene({ store, connect, tool: held.tool, script })
    let said = ''
    const onPiece = (text: string) => {
      said += text
      if (said.includes('Let me look.')) held.letGo()
    }
    expect(await conversation.say('find it', { onPiece })).toContain('I found it.')
    expect(held.count()).toBe(1)
    expect(said).toMatch(/^Let me look\.\s*I found it\.$/)
  })
}

function toolsAndForms(store: ClientStore, connect: Connect): void {
  can('agent tools', 'the agent searches before it answers, whole and streamed', async () => {
    const { conversation, searches, provider } = await openScene({ store, connect })
    expect(await conversation.say('find it')).toContain('I found it.')
    expect(await conversation.say('find it again', { onPiece: () => {} })).toContain('I found it.')
    expect(searches()).toBe(2)
    expect(provider.violations).toEqual([])
  })
  for (const mode of ['whole', 'streamed']) {
    can('client tools', `two calls beside one of the agent’s, ${mode}; then another message`, async () => {
      const { conversation, cities, searches, provider } = await openScene({ store, connect })
      const turn = mode === 'whole' ? {} : { onPiece: () => {} }
      expect(await conversation.say('the weather', turn)).toContain('It is wet.')
      expect(cities.toSorted()).toEqual(['Oslo', 'Rome'])
      expect(searches()).toBe(1)
      expect(provider.requests).toHaveLength(2)
      expect(await conversation.say('thanks', turn)).toContain('You said thanks.')
      expect(provider.violations).toEqual([])
    })
  }
  can('structured output', 'an object by a schema', async () => {
    const { conversation, provider } = await openScene({ store, connect })
    expect(await conversation.structured('JSON')).toEqual({ city: 'Rome', degrees: 20 })
    const body = provider.requests[0]?.body as { response_format?: { type: string } }
    expect(body.response_format?.type).toMatch(/^json/)
  })
}

function troubles(store: ClientStore, connect: Connect): void {
  can('error', 'a refused key is an error that says so; the next message works', async () => {
    const faults = [{ kind: 'auth' as const, at: 0 }]
    const { conversation, provider } = await openScene({ store, connect, faults })
    await expect(conversation.say('one')).rejects.toThrow(/key|auth/i)
    expect(provider.requests).toHaveLength(1)
    // Some clients keep the message that failed.
    expect(await conversation.say('two')).toMatch(/^You said (one\n)?two\.$/)
  })
  can('abort', 'stopped while the agent works; the next message works', async () => {
    const held = heldSearch()
    const { conversation } = await openScene({ store, connect, tool: held.tool })
    const abort = new AbortController()
    const aborted = conversation
      .say('find it', { signal: abort.signal, onPiece: () => {} })
      .catch((error: unknown) => error)
    await held.called
    abort.abort()
    await aborted
    held.letGo()
    // A client that keeps the aborted message asks for both.
    expect(await conversation.say('two')).toMatch(/You said two\.|I found it\./)
  })
  can('reconnect', 'a connection that is lost during the answer: the client gets all of it', async () => {
    const { conversation } = await lostScene(store, connect)
    expect(await conversation.say('find it')).toContain('I found it.')
  })
  can('once', 'a request that the client repeats executes the agent’s tool once', async () => {
    const { conversation, held } = await lostScene(store, connect)
    expect(await conversation.say('find it')).toContain('I found it.')
    expect(held.count()).toBe(1)
  })
}

/** The first request loses its connection while the agent's tool works; those after it go through. */
async function lostScene(store: ClientStore, connect: Connect) {
  const held = heldSearch()
  let sent = 0
  const fetchFor = ({ url }: ProtocolServer): typeof fetch => {
    return async (input, init) => {
      sent += 1
      if (sent > 1) {
        const answer = fetch(input, init)
        held.letGo()
        return answer
      }
      const lost = new AbortController()
      const answer = fetch(input, { ...init, signal: lost.signal })
      answer.catch(() => {})
      await held.called
      lost.abort()
      await answer.then(({ body }) => body?.cancel()).catch(() => {})
      // The server answers this after it has seen that the connection is gone: both are in one event loop.
      for (let count = 0; count < 3; count++) await fetch(`${url}/api/health`)
      const cause = Object.assign(new Error('reset'), { code: 'ECONNRESET' })
      throw new TypeError('fetch failed', { cause })
    }
  }
  const scene = await openScene({ store, connect, tool: held.tool, fetchFor })
  return { ...scene, held }
}

function heldSearch() {
  let letGo = () => {}
  let begin = () => {}
  let count = 0
  const held = new Promise<void>(resolve => {
    letGo = resolve
  })
  const called = new Promise<void>(resolve => {
    begin = resolve
  })
  const tool = defineTool({
    name: 'search',
    description: 'Searches, slowly.',
    parameters: { type: 'object', properties: { query: { type: 'string' } } },
    effect: 'once',
    execute: async () => {
      count += 1
      begin()
      await held
      return { found: 'it' }
    },
  })
  return { tool, called, letGo: () => letGo(), count: () => count }
}
