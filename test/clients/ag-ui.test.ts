// `HttpAgent` of AG-UI's own client, against the server and a strict provider. The client verifies the order of events.
import { buildResumeArray, HttpAgent, type Message, type RunAgentParameters } from '@ag-ui/client'
import type { Tool } from '@ag-ui/core'
import { expect, onTestFinished, vi } from 'vitest'
import type { Script } from '../../src/testing/strict/script.js'
import {
  heldTool,
  type ProtocolServerOptions,
  searchThenTell,
  startProtocolServer,
} from '../server/protocols/support.js'
import { can, clientSuite } from './support/client-suite.js'
import { startCuttableProxy } from './support/cuttable-proxy.js'
import {
  askingAgent,
  askThenTell,
  countedTool,
  dangerous,
  dangerThenTell,
  lookOnce,
} from './support/scenes.js'

const WEATHER: Tool = {
  name: 'get_weather',
  description: 'The weather.',
  parameters: { type: 'object', properties: { city: { type: 'string' } } },
}

const weatherScript: Script = ({ messages, lastUserText }) => {
  const last = messages.at(-1)
  if (last?.role !== 'tool' && lastUserText.includes('weather')) {
    const calls = ['Rome', 'Oslo'].map(city => ({ name: 'get_weather', args: { city } }))
    return { toolCalls: [{ name: 'search', args: { query: 'w' } }, ...calls] }
  }
  const isWet = JSON.stringify(messages).includes('rain in Oslo')
  return { deltas: ['It is ', isWet ? 'wet.' : `${lastUserText}.`] }
}

const without = {
  'structured output':
    'The protocol has no field for a schema: an answer follows the agent’s own output schema.',
}

clientSuite({ client: '@ag-ui/client', without }, store => {
  const start = async (options: ProtocolServerOptions = {}) =>
    startProtocolServer({ script: searchThenTell, store: await store.url(), ...options })

  can('several turns', 'three messages, three answers, one session', async () => {
    const { url, provider, runtime } = await start()
    const agent = agentOf(url)
    for (const words of ['apples', 'pears', 'plums']) await say(agent, words)
    expect(said(agent)).toEqual(
      ['apples', 'pears', 'plums'].flatMap(words => [words, 'Let me look.', `I found ${words}.`]),
    )
    const key = { appName: 'lango', userId: 'user', sessionId: agent.threadId }
    expect(await runtime.store.readMessages(key)).toHaveLength(12)
    expect(provider.violations).toEqual([])
  })

  can('several turns', 'context reaches the model once, state is the session’s', async () => {
    const { url, provider } = await start()
    const agent = agentOf(url)
    agent.setState({ mood: 'good' })
    const context = [{ description: 'The page', value: 'orchard' }]
    await say(agent, 'apples', { context })
    await say(agent, 'pears', { context })
    expect(agent.state).toEqual({ mood: 'good' })
    const sent = JSON.stringify(provider.requests.at(-1)?.body)
    expect(sent.split('The page: orchard')).toHaveLength(2)
    const other = agentOf(url, agent.threadId)
    await other.runAgent()
    expect(other.state).toEqual({ mood: 'good' })
    expect(provider.violations).toEqual([])
  })

  can('streaming', 'the text before a tool is there while the tool runs', async () => {
    const { tool, called, letGo } = heldTool()
    const { url } = await start({ tools: [tool] })
    const agent = agentOf(url)
    const ended = say(agent, 'apples')
    await called
    await vi.waitFor(() => expect(said(agent)).toEqual(['apples', 'Let me look.']), WAIT)
    letGo()
    await ended
    expect(said(agent)).toEqual(['apples', 'Let me look.', 'I found apples.'])
  })

  can('agent tools', 'calls and results are messages, tokens are in the end', async () => {
    const { url } = await start()
    const agent = agentOf(url)
    let usage: unknown
    await say(
      agent,
      'apples',
      {},
      {
        onRunFinishedEvent: ({ event }) => {
          usage = event.usage
        },
      },
    )
    expect(agent.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant'])
    const [call] = callsOf(agent)
    expect(call?.function).toEqual({ name: 'search', arguments: '{"query":"apples"}' })
    expect(agent.messages[2]).toMatchObject({ toolCallId: call?.id, content: '{"found":"apples"}' })
    expect(usage).toMatchObject([{ model: 'strict/gpt-4.1', inputTokens: 30, outputTokens: 8 }])
  })

  can('client tools', 'two calls beside one of the agent’s; then another message', async () => {
    const { url, provider } = await start({ script: weatherScript })
    const agent = agentOf(url)
    let pending: readonly string[] = []
    await say(
      agent,
      'the weather',
      { tools: [WEATHER] },
      {
        onRunFinishedEvent: params => {
          if (params.outcome === 'success') pending = params.pendingToolCallIds
        },
      },
    )
    expect(pending).toHaveLength(2)
    await answerCalls(agent, pending)
    expect(said(agent).at(-1)).toBe('It is wet.')
    expect(provider.requests).toHaveLength(2)
    await say(agent, 'thanks', { tools: [WEATHER] })
    expect(provider.violations).toEqual([])
  })

  can('client tools', 'a message instead of the results ends the run that waits for them', async () => {
    const { url, provider } = await start({ script: weatherScript })
    const agent = agentOf(url)
    await say(agent, 'the weather', { tools: [WEATHER] })
    await say(agent, 'never mind', { tools: [WEATHER] })
    expect(said(agent).at(-1)).toBe('It is never mind.')
    expect(provider.violations).toEqual([])
  })

  can(
    'client tools',
    'a long-running tool of the agent is an interrupt, answered with an object',
    async () => {
      const { url } = await start({ script: askThenTell, rootAgent: askingAgent })
      const agent = agentOf(url)
      await say(agent, 'who am I')
      await resume(agent, { status: 'resolved', payload: { name: 'Ada' } })
      expect(said(agent).at(-1)).toBe('You are Ada.')
    },
  )

  for (const approved of [true, false]) {
    can('approval', approved ? 'allowed' : 'refused', async () => {
      const executed: string[] = []
      const { url, provider } = await start({ script: dangerThenTell, tools: [dangerous(executed)] })
      const agent = agentOf(url)
      await say(agent, 'do it')
      const [interrupt] = agent.pendingInterrupts
      expect(interrupt).toMatchObject({ reason: 'tool_approval', toolCallId: callsOf(agent)[0]?.id })
      expect(executed).toEqual([])
      await resume(agent, { status: 'resolved', payload: { approved } })
      expect(executed).toEqual(approved ? ['danger'] : [])
      expect(said(agent)).toEqual(['do it', 'May I?', approved ? 'Done with it.' : 'As you wish.'])
      expect(agent.pendingInterrupts).toEqual([])
      await say(agent, 'rather not')
      expect(said(agent).at(-1)).toBe('Then not.')
      expect(provider.violations).toEqual([])
    })
  }

  can('approval', 'abandoned: the tool is not run', async () => {
    const executed: string[] = []
    const { url } = await start({ script: dangerThenTell, tools: [dangerous(executed)] })
    const agent = agentOf(url)
    await say(agent, 'do it')
    await resume(agent, { status: 'cancelled' })
    expect(executed).toEqual([])
    expect(said(agent).at(-1)).toBe('As you wish.')
  })

  can('approval', 'asked on one page, answered on another that was opened later', async () => {
    const executed: string[] = []
    const { url } = await start({ script: dangerThenTell, tools: [dangerous(executed)] })
    const first = agentOf(url)
    await say(first, 'do it')
    const second = agentOf(url, first.threadId)
    await second.runAgent()
    expect(said(second)).toEqual(['do it', 'May I?'])
    await resume(second, { status: 'resolved', payload: { approved: true } })
    expect(executed).toEqual(['danger'])
    expect(said(second)).toEqual(['do it', 'May I?', 'Done with it.'])
  })

  can('error', 'a refused key is an error that says so; the next message works', async () => {
    const { url } = await start({ script: lookOnce, faults: [{ kind: 'auth', at: 0 }] })
    const agent = agentOf(url)
    const errors: string[] = []
    await say(agent, 'apples', {}, { onRunErrorEvent: ({ event }) => void errors.push(event.message) })
    expect(errors).toEqual([expect.stringMatching(/key|auth/i)])
    await say(agent, 'pears')
    expect(said(agent).at(-1)).toBe('Fine: pears.')
  })

  can('error', 'an invalid request is an error status with a sentence', async () => {
    const { url } = await start()
    const agent = agentOf(url)
    vi.spyOn(console, 'error').mockImplementation(() => {})
    await expect(agent.runAgent()).rejects.toThrow(/HTTP 400: .*There is nothing to answer/)
  })

  can('abort', 'stopped while the agent works; the next message works', async () => {
    const { tool, called, letGo } = heldTool()
    const { url, runtime } = await start({ tools: [tool], script: lookOnce })
    const agent = agentOf(url)
    const aborted = say(agent, 'apples')
    await called
    agent.abortRun()
    await aborted
    await say(agent, 'pears')
    expect(said(agent).at(-1)).toBe('Fine: pears.')
    letGo()
    const key = { appName: 'lango', userId: 'user', sessionId: agent.threadId }
    const runs = await runtime.listRuns(key, { limit: 10 })
    expect(runs.map(({ finishReason }) => finishReason)).toEqual(['stop', 'aborted'])
  })

  can('reconnect', 'a lost connection: the next run without a message brings the rest', async () => {
    const { tool, called, letGo } = heldTool()
    const { url } = await start({ tools: [tool] })
    const proxy = await startCuttableProxy(url)
    const agent = agentOf(proxy.url)
    const lost = say(agent, 'apples')
    await called
    await vi.waitFor(() => expect(said(agent)).toContain('Let me look.'), WAIT)
    await cut(proxy, lost)
    const ended = agent.runAgent()
    letGo()
    await ended
    expect(said(agent)).toEqual(['apples', 'Let me look.', 'I found apples.'])
    expect(agent.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant'])
  })

  can('reconnect', 'a page that is opened anew has the thread, and follows the run', async () => {
    const { tool, called, letGo } = heldTool()
    const { url } = await start({ tools: [tool], script: request => searchThenTell(request) })
    const first = agentOf(url)
    const ended = say(first, 'apples')
    await called
    const second = agentOf(url, first.threadId)
    const followed = second.runAgent()
    await vi.waitFor(() => expect(said(second)).toEqual(['apples', 'Let me look.']), WAIT)
    letGo()
    await Promise.all([ended, followed])
    expect(said(second)).toEqual(['apples', 'Let me look.', 'I found apples.'])
    await say(second, 'pears')
    expect(said(second).at(-1)).toBe('I found pears.')
  })

  can('reconnect', 'a connection lost after an approval: the same answer again brings the rest', async () => {
    const held = countedTool()
    const { url } = await start({ tools: [{ ...held.tool, needsApproval: true }] })
    const proxy = await startCuttableProxy(url)
    const agent = agentOf(proxy.url)
    await say(agent, 'apples')
    const interrupts = agent.pendingInterrupts
    const lost = resume(agent, { status: 'resolved', payload: { approved: true } })
    await held.called
    await cut(proxy, lost)
    agent.pendingInterrupts = interrupts
    const again = resume(agent, { status: 'resolved', payload: { approved: true } })
    held.letGo()
    await again
    expect(said(agent)).toEqual(['apples', 'Let me look.', 'I found apples.'])
    expect(held.count()).toBe(1)
  })

  can('once', 'a message that is sent again after a lost connection executes the tool once', async () => {
    const held = countedTool()
    const { url, runtime } = await start({ tools: [held.tool] })
    const proxy = await startCuttableProxy(url)
    const agent = agentOf(proxy.url)
    const message = { id: 'm1', role: 'user' as const, content: 'apples' }
    agent.addMessage(message)
    const lost = agent.runAgent()
    await held.called
    await cut(proxy, lost)
    // A client that has nothing of the answer sends its message with another run id.
    agent.setMessages([message])
    const again = agent.runAgent()
    held.letGo()
    await again
    expect(said(agent)).toEqual(['apples', 'Let me look.', 'I found apples.'])
    expect(held.count()).toBe(1)
    const key = { appName: 'lango', userId: 'user', sessionId: agent.threadId }
    expect(await runtime.listRuns(key, { limit: 10 })).toHaveLength(1)
  })

  can('once', 'two requests with one run id are one run', async () => {
    const held = countedTool()
    const { url } = await start({ tools: [held.tool] })
    const runId = crypto.randomUUID()
    const agents = [agentOf(url, 't'), agentOf(url, 't')]
    const ended = agents.map(agent => {
      agent.addMessage({ id: 'm1', role: 'user', content: 'apples' })
      return agent.runAgent({ runId })
    })
    await held.called
    held.letGo()
    await Promise.all(ended)
    for (const agent of agents) expect(said(agent).at(-1)).toBe('I found apples.')
    expect(held.count()).toBe(1)
  })
})

const WAIT = { timeout: 60_000 }

function agentOf(url: string, threadId?: string): HttpAgent {
  const fetch = async (to: string, init: RequestInit) => endingQuietly(await globalThis.fetch(to, init))
  return new HttpAgent({ url: `${url}/agui`, fetch, ...(threadId === undefined ? {} : { threadId }) })
}

/** The client leaves a rejection unhandled when a body fails: a lost connection is a body that ends early. */
function endingQuietly(response: Response): Response {
  const reader = response.body?.getReader()
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
    const next = await reader?.read().catch(error => {
      if (error instanceof Error && error.name === 'AbortError') controller.error(error)
      return undefined
    })
    if (next?.value) controller.enqueue(next.value)
    else if (controller.desiredSize !== null) controller.close()
  }
  const { status, headers } = response
  return new Response(new ReadableStream({ pull, cancel: () => reader?.cancel() }), { status, headers })
}

type Subscriber = Parameters<HttpAgent['runAgent']>[1]

async function say(
  agent: HttpAgent,
  content: string,
  parameters: RunAgentParameters = {},
  subscriber: Subscriber = {},
): Promise<void> {
  agent.addMessage({ id: crypto.randomUUID(), role: 'user', content })
  await agent.runAgent(parameters, subscriber)
}

/** Answers everything that the last run has asked. */
async function resume(
  agent: HttpAgent,
  answer: { status: 'resolved'; payload: unknown } | { status: 'cancelled' },
) {
  const answers = Object.fromEntries(agent.pendingInterrupts.map(({ id }) => [id, answer]))
  await agent.runAgent({ resume: buildResumeArray(agent.pendingInterrupts, answers) })
}

async function answerCalls(agent: HttpAgent, ids: readonly string[]): Promise<void> {
  for (const { id, function: called } of callsOf(agent)) {
    if (!ids.includes(id)) continue
    const { city } = JSON.parse(called.arguments) as { city: string }
    agent.addMessage({ id: crypto.randomUUID(), role: 'tool', toolCallId: id, content: `rain in ${city}` })
  }
  await agent.runAgent({ tools: [WEATHER] })
}

function said({ messages }: HttpAgent): string[] {
  return messages.flatMap(({ role, content }) =>
    (role === 'user' || role === 'assistant') && typeof content === 'string' && content !== ''
      ? [content]
      : [],
  )
}

function callsOf({ messages }: HttpAgent) {
  return messages.flatMap((message: Message) =>
    message.role === 'assistant' ? (message.toolCalls ?? []) : [],
  )
}

/** Cuts the connection; the client reports that its run has failed. */
async function cut(proxy: { cut(): void }, run: Promise<unknown>): Promise<void> {
  const log = vi.spyOn(console, 'error').mockImplementation(() => {})
  onTestFinished(() => log.mockRestore())
  const failed = run.then(
    () => 'ended',
    () => 'failed',
  )
  proxy.cut()
  await failed
}
