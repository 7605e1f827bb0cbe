/**
 * What Lango relies on in ADK, each fact by itself, against the installed release. A failing test here after an
 * upgrade shows what moved.
 */
import {
  AgentTool,
  BaseLlm,
  BasePlugin,
  createEvent,
  type Event,
  FunctionTool,
  InMemorySessionService,
  LlmAgent,
  type LlmRequest,
  type LlmResponse,
  type NodeContext,
  node,
  Runner,
  StreamingMode,
  Workflow,
} from '@google/adk'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { KEY, runTurn } from '../support/adk-run.js'
import { RecordingModel } from '../support/recording-model.js'

const echo = () => {
  const runs: unknown[] = []
  const tool = new FunctionTool({
    name: 'echo',
    description: 'Repeats',
    parameters: z.object({ v: z.number() }),
    execute: args => {
      runs.push(args)
      return args.v
    },
  })
  return { tool, runs }
}
const callEcho = (v: number, id?: string) => ({
  functionCall: { ...(id ? { id } : {}), name: 'echo', args: { v } },
})

/** A model that yields what it is told, call by call. */
class StreamingModel extends BaseLlm {
  streamed: (boolean | undefined)[] = []
  private calls = 0
  constructor(private readonly answers: readonly (readonly LlmResponse[])[]) {
    super({ model: 'streaming' })
  }
  override async *generateContentAsync(_: LlmRequest, stream?: boolean): AsyncGenerator<LlmResponse, void> {
    this.streamed.push(stream)
    const answer = this.answers[Math.min(this.calls, this.answers.length - 1)] ?? []
    this.calls += 1
    yield* answer
  }
  override connect(): Promise<never> {
    return Promise.reject(new TypeError('not live'))
  }
}

test('createEvent marks events with the symbol that restored events carry', () => {
  expect(Reflect.get(createEvent(), Symbol.for('google.adk.event'))).toBe(true)
})

test('createEvent fills in empty actions and long-running ids', () => {
  expect(JSON.parse(JSON.stringify(createEvent({ id: 'a', timestamp: 1 })))).toEqual({
    id: 'a',
    invocationId: '',
    actions: {
      stateDelta: {},
      artifactDelta: {},
      requestedAuthConfigs: {},
      requestedToolConfirmations: {},
    },
    longRunningToolIds: [],
    timestamp: 1,
  })
})

test('ADK loads the session of a run once and appends each event before it yields it', async () => {
  const log: string[] = []
  class Watched extends InMemorySessionService {
    override async getSession(request: Parameters<InMemorySessionService['getSession']>[0]) {
      log.push(`get ${JSON.stringify(request.config ?? null)}`)
      return super.getSession(request)
    }
    override async appendEvent(request: Parameters<InMemorySessionService['appendEvent']>[0]) {
      log.push(`append ${request.event.author}`)
      return super.appendEvent(request)
    }
  }
  const sessions = new Watched()
  await sessions.createSession({ ...KEY })
  const { tool } = echo()
  const model = new RecordingModel((_, index) => (index === 0 ? [callEcho(1)] : [{ text: 'ok' }]))
  const agent = new LlmAgent({ name: 'agent', model, tools: [tool] })
  const runner = new Runner({ appName: KEY.appName, agent, sessionService: sessions })
  const newMessage = { role: 'user', parts: [{ text: 'hi' }] }
  for await (const event of runner.runAsync({ userId: KEY.userId, sessionId: KEY.sessionId, newMessage })) {
    log.push(`yield ${event.author}`)
  }
  expect(log).toEqual([
    'get null',
    'append user',
    ...['append agent', 'yield agent', 'append agent', 'yield agent', 'append agent', 'yield agent'],
  ])
})

test('ADK’s base session service strips temp: from the event, keeps it in the state, and replaces by id', async () => {
  const sessions = new InMemorySessionService()
  const session = await sessions.createSession({ ...KEY })
  const event = (text: string) =>
    createEvent({
      id: 'same',
      author: 'agent',
      content: { role: 'model', parts: [{ text }] },
      actions: { stateDelta: { 'temp:a': 1, b: 2 } },
    })
  await sessions.appendEvent({ session, event: event('one') })
  await sessions.appendEvent({ session, event: event('two') })
  expect(
    session.events.map(({ content, actions }) => [content?.parts?.[0]?.text, { ...actions.stateDelta }]),
  ).toEqual([['two', { b: 2 }]])
  expect({ ...session.state }).toEqual({ b: 2 })
})

test('ADK ends a run of an unknown session with an exception', async () => {
  const agent = new LlmAgent({ name: 'agent', model: new RecordingModel(() => []) })
  const runner = new Runner({ appName: 'app', agent, sessionService: new InMemorySessionService() })
  const newMessage = { parts: [{ text: 'hi' }] }
  const run = runner.runAsync({ userId: 'u', sessionId: 'none', newMessage })
  await expect(run.next()).rejects.toThrow('Session not found: none')
})

test('an AgentTool keeps its own session: the same id under the name of its agent', async () => {
  const created: string[] = []
  class Watched extends InMemorySessionService {
    override async getOrCreateSession(request: Parameters<InMemorySessionService['getOrCreateSession']>[0]) {
      created.push(`${request.appName}/${request.userId}/${request.sessionId}`)
      return super.getOrCreateSession(request)
    }
  }
  const inner = new LlmAgent({ name: 'inner', model: new RecordingModel(() => [{ text: 'in' }]) })
  const model = new RecordingModel((_, index) =>
    index === 0 ? [{ functionCall: { name: 'inner', args: { request: 'x' } } }] : [{ text: 'out' }],
  )
  const agent = new LlmAgent({ name: 'agent', model, tools: [new AgentTool({ agent: inner })] })
  await runTurn({ agent, sessions: new Watched(), message: 'hi' })
  expect(created).toEqual(['app/ann/s1', 'inner/ann/s1'])
})

test('a call without id gets one with the prefix adk-, which is taken out of requests', async () => {
  const { tool } = echo()
  const model = new RecordingModel((_, index) => (index === 0 ? [callEcho(1)] : [{ text: 'ok' }]))
  const sessions = new InMemorySessionService()
  const events = await runTurn({
    agent: new LlmAgent({ name: 'agent', model, tools: [tool] }),
    sessions,
    message: 'hi',
  })
  expect(events[0]?.content?.parts?.[0]?.functionCall?.id).toMatch(/^adk-/)
  expect(model.requests[1]).not.toContain('adk-')
})

test('parallel calls run one after another and share one event of results in the role user', async () => {
  const { tool, runs } = echo()
  const model = new RecordingModel((_, index) =>
    index === 0 ? [callEcho(1, 'a'), callEcho(2, 'b')] : [{ text: 'ok' }],
  )
  const agent = new LlmAgent({ name: 'agent', model, tools: [tool] })
  const events = await runTurn({ agent, sessions: new InMemorySessionService(), message: 'hi' })
  expect(runs).toEqual([{ v: 1 }, { v: 2 }])
  expect(events[1]?.author).toBe('agent')
  expect(events[1]?.content).toEqual({
    role: 'user',
    parts: [
      { functionResponse: { id: 'a', name: 'echo', response: { result: 1 } } },
      { functionResponse: { id: 'b', name: 'echo', response: { result: 2 } } },
    ],
  })
})

test('ADK runs a tool even when its call is in a partial answer', async () => {
  const { tool, runs } = echo()
  const partial: LlmResponse = { partial: true, content: { role: 'model', parts: [callEcho(1, 'a')] } }
  const last: LlmResponse = { content: { role: 'model', parts: [{ text: 'ok' }] } }
  const agent = new LlmAgent({ name: 'agent', model: new StreamingModel([[partial, last]]), tools: [tool] })
  await runTurn({ agent, sessions: new InMemorySessionService(), message: 'hi' })
  expect(runs).toEqual([{ v: 1 }])
})

test('ADK turns an unknown tool into an error event with these words, and calls the model again', async () => {
  const model = new RecordingModel((_, index) =>
    index < 2 ? [{ functionCall: { name: 'nope', args: {} } }] : [{ text: 'ok' }],
  )
  const agent = new LlmAgent({ name: 'agent', model })
  const events = await runTurn({ agent, sessions: new InMemorySessionService(), message: 'hi' })
  expect(events.map(event => event.errorMessage)).toContain('Function nope is not found in the toolsDict.')
  expect(model.requests).toHaveLength(3)
})

test('a tool put into toolsDict while the model answers is found', async () => {
  const { tool, runs } = echo()
  class Putting extends StreamingModel {
    override async *generateContentAsync(request: LlmRequest, stream?: boolean) {
      request.toolsDict.echo = tool
      yield* super.generateContentAsync(request, stream)
    }
  }
  const answers = [
    [{ content: { role: 'model', parts: [callEcho(7)] } }],
    [{ content: { role: 'model', parts: [{ text: 'ok' }] } }],
  ]
  const agent = new LlmAgent({ name: 'agent', model: new Putting(answers) })
  await runTurn({ agent, sessions: new InMemorySessionService(), message: 'hi' })
  expect(runs).toEqual([{ v: 7 }])
})

describe('agents', () => {
  const family = (answers: (index: number) => object[]) => {
    const writer = new LlmAgent({
      name: 'writer',
      description: 'writes',
      model: new RecordingModel(() => [{ text: 'written' }]),
    })
    const model = new RecordingModel((_, index) => answers(index))
    return new LlmAgent({ name: 'root', model, subAgents: [writer] })
  }
  const transfer = (agentName: string) => [
    { functionCall: { name: 'transfer_to_agent', args: { agentName } } },
  ]

  test('transferToAgent stands on the event of the result, not of the call', async () => {
    const events = await runTurn({
      agent: family(() => transfer('writer')),
      sessions: new InMemorySessionService(),
      message: 'hi',
    })
    expect(events.map(event => event.actions.transferToAgent)).toEqual([undefined, 'writer', undefined])
    expect(events.map(event => event.author)).toEqual(['root', 'root', 'writer'])
  })

  test('ADK turns an unknown agent into an error event with these words', async () => {
    const agent = family(index => (index === 0 ? transfer('ghost') : [{ text: 'ok' }]))
    const events = await runTurn({ agent, sessions: new InMemorySessionService(), message: 'hi' })
    expect(events.find(event => event.errorMessage)).toMatchObject({
      errorCode: 'UNKNOWN_ERROR',
      errorMessage: 'Agent ghost not found in the agent tree.',
      author: 'root',
    })
  })

  test('ADK sends what another agent said as text of the user', async () => {
    const sessions = new InMemorySessionService()
    const session = await sessions.createSession({ ...KEY })
    const content = { role: 'model', parts: [{ text: 'mine' }] }
    await sessions.appendEvent({ session, event: createEvent({ author: 'other', content }) })
    const model = new RecordingModel(() => [{ text: 'ok' }])
    await runTurn({ agent: new LlmAgent({ name: 'agent', model }), sessions, message: 'hi' })
    expect(model.last[0]).toEqual({
      role: 'user',
      parts: [{ text: 'For context:' }, { text: '[other] said: mine' }],
    })
  })
})

describe('models', () => {
  class Watching extends BasePlugin {
    readonly requests: LlmRequest[] = []
    readonly errors: Error[] = []
    override async beforeModelCallback({ llmRequest }: { llmRequest: LlmRequest }): Promise<undefined> {
      this.requests.push(llmRequest)
    }
    override async onModelErrorCallback({ error }: { error: Error }): Promise<undefined> {
      this.errors.push(error)
    }
  }

  test("the plugin's beforeModelCallback gets the object that the model gets", async () => {
    const seen: LlmRequest[] = []
    class Seeing extends StreamingModel {
      override async *generateContentAsync(request: LlmRequest, stream?: boolean) {
        seen.push(request)
        yield* super.generateContentAsync(request, stream)
      }
    }
    const plugin = new Watching('watching')
    const model = new Seeing([[{ content: { role: 'model', parts: [{ text: 'ok' }] } }]])
    await runTurn({
      agent: new LlmAgent({ name: 'agent', model }),
      sessions: new InMemorySessionService(),
      message: 'hi',
      plugins: [plugin],
    })
    expect(seen[0]).toBe(plugin.requests[0])
  })

  test('an error of the model is handed to the plugin as it was thrown, and becomes an event', async () => {
    const failure = new TypeError('broken')
    class Failing extends StreamingModel {
      override async *generateContentAsync(): AsyncGenerator<LlmResponse, void> {
        yield* []
        throw failure
      }
    }
    const plugin = new Watching('watching')
    const agent = new LlmAgent({ name: 'agent', model: new Failing([]) })
    const events = await runTurn({
      agent,
      sessions: new InMemorySessionService(),
      message: 'hi',
      plugins: [plugin],
    })
    expect(plugin.errors).toEqual([failure])
    expect(events.map(event => [event.errorCode, event.errorMessage])).toEqual([['UNKNOWN_ERROR', 'broken']])
  })

  test('ADK asks for streaming only in the mode SSE, and does not store partial answers', async () => {
    const chunk: LlmResponse = { partial: true, content: { role: 'model', parts: [{ text: 'o' }] } }
    const whole: LlmResponse = { content: { role: 'model', parts: [{ text: 'ok' }] } }
    const model = new StreamingModel([[chunk, whole]])
    const sessions = new InMemorySessionService()
    await sessions.createSession({ ...KEY })
    const runner = new Runner({
      appName: 'app',
      agent: new LlmAgent({ name: 'agent', model }),
      sessionService: sessions,
    })
    const run = (runConfig: object) => {
      const newMessage = { role: 'user', parts: [{ text: 'hi' }] }
      return runner.runAsync({ userId: 'ann', sessionId: 's1', newMessage, runConfig })
    }
    const events: Event[] = []
    for await (const event of run({ streamingMode: StreamingMode.SSE })) events.push(event)
    for await (const event of run({})) events.push(event)
    expect(model.streamed).toEqual([true, false])
    const session = await sessions.getSession({ ...KEY })
    expect(session?.events.filter(event => event.partial)).toEqual([])
    expect(events.filter(event => event.partial)).toHaveLength(2)
  })

  test('ADK makes an event of an answer without content but with usage, and none of an empty one', async () => {
    const turn = (response: LlmResponse) => {
      const agent = new LlmAgent({ name: 'agent', model: new StreamingModel([[response]]) })
      return runTurn({ agent, sessions: new InMemorySessionService(), message: 'hi' })
    }
    expect(await turn({ usageMetadata: { totalTokenCount: 3 } })).toHaveLength(1)
    expect(await turn({ turnComplete: true })).toHaveLength(0)
  })

  test('ADK leaves an event whose first text is empty out of the request', async () => {
    const sessions = new InMemorySessionService()
    const session = await sessions.createSession({ ...KEY })
    const parts = [{ text: '' }, { text: 'gone' }]
    await sessions.appendEvent({
      session,
      event: createEvent({ author: 'agent', content: { role: 'model', parts } }),
    })
    const withoutText = [{ thought: true, thoughtSignature: 'AA==' }, { text: 'kept' }]
    await sessions.appendEvent({
      session,
      event: createEvent({ author: 'agent', content: { role: 'model', parts: withoutText } }),
    })
    const model = new RecordingModel(() => [{ text: 'ok' }])
    await runTurn({ agent: new LlmAgent({ name: 'agent', model }), sessions, message: 'hi' })
    expect(model.last[0]?.parts).toEqual(withoutText)
    expect(model.last).toHaveLength(2)
  })
})

describe('workflows', () => {
  const oneNode = (act: (context: NodeContext) => unknown) =>
    new Workflow({ name: 'flow', edges: [['START', node(act, { name: 'one' })]] })

  test('a waiting reader of a node’s queue is in `resolvers`', async () => {
    const waiting: unknown[] = []
    const agent = oneNode(async ({ channel }) => {
      await new Promise(resolve => setImmediate(resolve))
      waiting.push(Reflect.get(channel, 'resolvers'))
      return 'done'
    })
    await runTurn({ agent, sessions: new InMemorySessionService(), message: 'hi' })
    expect(waiting).toEqual([expect.any(Array)])
  })

  test('ADK does not run a node again that fails as aborted', async () => {
    let runs = 0
    const abort = node(
      () => {
        runs += 1
        throw Object.assign(new TypeError('left'), { name: 'InvocationAbortedError' })
      },
      { name: 'abort', retryConfig: { maxAttempts: 3, initialDelay: 0 } },
    )
    const agent = new Workflow({ name: 'flow', edges: [['START', abort]] })
    const run = runTurn({ agent, sessions: new InMemorySessionService(), message: 'hi' })
    await expect(run).rejects.toThrow('left')
    expect(runs).toBe(1)
  })

  test('a tool that a node calls has no agent, and its call is in no event', async () => {
    const seen: unknown[] = []
    const tool = new FunctionTool({
      name: 'probe',
      description: 'Looks around',
      execute: async (_args, context) => {
        seen.push(context?.invocationContext.agent, context?.functionCallId)
        expect(() => context?.agentName).toThrow('InvocationContext.agent is not set')
        return {}
      },
    })
    const agent = new Workflow({
      name: 'flow',
      edges: [['START', node(() => ({}), { name: 'begin' }), tool]],
    })
    await runTurn({ agent, sessions: new InMemorySessionService(), message: 'hi' })
    expect(seen).toEqual([undefined, 'flow.probe:1'])
  })
})
