// What ADK's own tests say of a runner, of transfers and of function responses, as questions about any session service.
import {
  BaseAgent,
  type BaseSessionService,
  createEvent,
  createEventActions,
  type Event,
  FunctionTool,
  LlmAgent,
  Runner,
} from '@google/adk'
import type { Content, Part } from '@google/genai'
import { z } from 'zod'
import { RecordingModel } from '../support/recording-model.js'
import { asks, event, type Fact, type Fields, KEY, says, stored, texts } from './session-facts.js'

/** One turn of a runner over these answers of a model; what the model was sent last. */
async function turn(
  sessions: BaseSessionService,
  answers: readonly Part[][],
  message: Part[],
  options: Partial<ConstructorParameters<typeof LlmAgent>[0]> = {},
) {
  const model = new RecordingModel((_, index) => answers[index] ?? [{ text: 'Done.' }])
  const agent = new LlmAgent({ name: 'root', model, ...options })
  await sessions.getOrCreateSession({ ...KEY })
  const runner = new Runner({ appName: KEY.appName, agent, sessionService: sessions })
  const events: Event[] = []
  const newMessage = { role: 'user', parts: message }
  for await (const each of runner.runAsync({ userId: KEY.userId, sessionId: KEY.sessionId, newMessage }))
    events.push(each)
  return { events, contents: model.requests.map(request => withoutIds(JSON.parse(request))) }
}

/** Who says what to the model; the ids of calls differ in every run. */
function withoutIds(contents: Content[]): unknown {
  return JSON.parse(JSON.stringify(contents, (key, value) => (key === 'id' ? undefined : value)))
}

const tool = (name: string, result: unknown) =>
  new FunctionTool({ name, description: name, parameters: z.object({}), execute: () => result })

/** An agent that emits the events that it is given. */
class Emitter extends BaseAgent {
  readonly #events: readonly Fields[]

  constructor(events: readonly Fields[]) {
    super({ name: 'root' })
    this.#events = events
  }

  protected override async *runAsyncImpl({
    invocationId,
  }: {
    invocationId: string
  }): AsyncGenerator<Event, void, void> {
    for (const fields of this.#events) yield createEvent({ author: this.name, invocationId, ...fields })
  }

  protected override async *runLiveImpl(): AsyncGenerator<Event, void, void> {}
}

async function emitted(sessions: BaseSessionService, events: readonly Fields[]) {
  await sessions.createSession({ ...KEY })
  const runner = new Runner({ appName: KEY.appName, agent: new Emitter(events), sessionService: sessions })
  const newMessage = { role: 'user', parts: [{ text: 'go' }] }
  for await (const _ of runner.runAsync({ userId: KEY.userId, sessionId: KEY.sessionId, newMessage })) {
    // To its end.
  }
  return (await sessions.getSession({ ...KEY }))?.events ?? []
}

export const RUN_FACTS: Readonly<Record<string, Fact>> = {
  'runner: the message and the answer are stored': async sessions => {
    await turn(sessions, [[{ text: 'Hi.' }]], [{ text: 'hello' }])
    return texts((await sessions.getSession({ ...KEY }))?.events)
  },
  'runner: a session that does not exist': async sessions => {
    const runner = new Runner({ appName: 'app', agent: new Emitter([]), sessionService: sessions })
    try {
      for await (const _ of runner.runAsync({
        userId: 'ann',
        sessionId: 'ghost',
        newMessage: { role: 'user', parts: [{ text: 'x' }] },
      })) {
        // Never.
      }
      return 'no error'
    } catch (error) {
      return (error as Error).message
    }
  },
  'runner: an ephemeral session leaves nothing': async sessions => {
    const runner = new Runner({
      appName: 'app',
      agent: new Emitter([{ content: { role: 'model', parts: [{ text: 'x' }] } }]),
      sessionService: sessions,
    })
    const seen: Event[] = []
    for await (const each of runner.runEphemeral({
      userId: 'ann',
      newMessage: { role: 'user', parts: [{ text: 'x' }] },
    }))
      seen.push(each)
    return [texts(seen), (await sessions.listSessions({ appName: 'app' })).totalItems]
  },
  'runner: events of an agent in code': async sessions =>
    (
      await emitted(sessions, [
        { content: { role: 'model', parts: [{ text: 'one' }] } },
        { content: { role: 'model', parts: [{ text: 'part' }] }, partial: true },
        { actions: createEventActions({ escalate: true }) },
        { content: { role: 'model', parts: [{ text: 'two' }] }, customMetadata: { n: 2 } },
      ])
    ).map(({ author, content, actions, customMetadata }) => [
      author,
      content?.parts?.[0]?.text,
      actions.escalate,
      customMetadata,
    ]),
  'responses: a result follows its call': async sessions =>
    (
      await turn(
        sessions,
        [[{ functionCall: { name: 'look', args: {} } }], [{ text: 'ok' }]],
        [{ text: 'q' }],
        { tools: [tool('look', { n: 1 })] },
      )
    ).contents,
  'responses: results of parallel calls are one content': async sessions =>
    (
      await turn(
        sessions,
        [
          [{ functionCall: { name: 'a', args: {} } }, { functionCall: { name: 'b', args: {} } }],
          [{ text: 'ok' }],
        ],
        [{ text: 'q' }],
        { tools: [tool('a', 1), tool('b', 2)] },
      )
    ).contents.at(-1),
  'responses: the history of the turn before': async sessions => {
    await turn(
      sessions,
      [[{ functionCall: { name: 'look', args: {} } }], [{ text: 'ok' }]],
      [{ text: 'q' }],
      { tools: [tool('look', { n: 1 })] },
    )
    return (await turn(sessions, [], [{ text: 'and?' }], { tools: [tool('look', { n: 1 })] })).contents.at(-1)
  },
  'responses: a late answer of the client goes to its call': async sessions => {
    const call: Part = { functionCall: { id: 'late', name: 'job', args: {} } }
    await stored(sessions, [
      asks('start'),
      event({ content: { role: 'model', parts: [call] }, longRunningToolIds: ['late'] }),
      event({
        content: {
          role: 'user',
          parts: [{ functionResponse: { id: 'late', name: 'job', response: { status: 'pending' } } }],
        },
      }),
      says('started'),
    ])
    return (
      await turn(
        sessions,
        [],
        [{ functionResponse: { id: 'late', name: 'job', response: { status: 'done' } } }],
      )
    ).contents.at(-1)
  },
  'transfers: the agent that spoke last continues': async sessions => {
    const model = new RecordingModel((_, index) =>
      index === 0
        ? [{ functionCall: { name: 'transfer_to_agent', args: { agentName: 'child' } } }]
        : [{ text: `answer ${index}` }],
    )
    const child = new LlmAgent({ name: 'child', description: 'c', model })
    const agent = new LlmAgent({ name: 'root', model, subAgents: [child] })
    await sessions.createSession({ ...KEY })
    const authors: string[] = []
    for (const text of ['one', 'two']) {
      const runner = new Runner({ appName: 'app', agent, sessionService: sessions })
      for await (const each of runner.runAsync({
        userId: 'ann',
        sessionId: 's1',
        newMessage: { role: 'user', parts: [{ text }] },
      }))
        authors.push(`${each.author} ${each.actions.transferToAgent ?? ''}`)
    }
    return authors
  },
  'transfers: what another agent said is told as context': async sessions => {
    await stored(sessions, [asks('q'), says('from elsewhere', { author: 'other' })])
    return (await turn(sessions, [], [{ text: 'next' }])).contents.at(-1)
  },
  'transfers: branches do not see each other': async sessions => {
    await stored(sessions, [
      asks('q'),
      says('left', { branch: 'fan.left' }),
      says('right', { branch: 'fan.right' }),
    ])
    return (await sessions.getSession({ ...KEY }))?.events.map(({ branch }) => branch ?? null)
  },
}
