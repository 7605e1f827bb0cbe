/**
 * What reaches the model for histories that are not as they should be: by ADK alone, and with the session
 * service of the bridge after a reload. A content is written as its role and what it holds.
 */
import {
  type BaseSessionService,
  createEvent,
  type Event,
  InMemorySessionService,
  LlmAgent,
} from '@google/adk'
import type { Content, Part } from '@google/genai'
import { expect, test } from 'vitest'
import { SessionServiceAdapter } from '../../src/adk/session/session-service-adapter.js'
import { KEY, openTestStore, runTurn } from '../support/adk-run.js'
import { RecordingModel } from '../support/recording-model.js'

const text = (value: string): Part => ({ text: value })
const call = (id: string | undefined, name = 't'): Part => ({
  functionCall: { ...(id ? { id } : {}), name, args: {} },
})
const result = (id: string | undefined, value = 'r', name = 't'): Part => ({
  functionResponse: { ...(id ? { id } : {}), name, response: { v: value } },
})

let count = 0
function by(author: string | undefined, role: string | undefined, ...parts: Part[]): Event {
  count += 1
  const content = { ...(role ? { role } : {}), parts }
  return createEvent({ id: `e${count}`, timestamp: count, content, ...(author ? { author } : {}) })
}
const user = (...parts: Part[]) => by('user', 'user', ...parts)
const agent = (...parts: Part[]) => by('agent', 'model', ...parts)
const tool = (...parts: Part[]) => by('agent', 'user', ...parts)

function describe(contents: readonly Content[]): string {
  return contents
    .map(content => `${content.role ?? '-'}(${(content.parts ?? []).map(describePart).join(' ')})`)
    .join(' ')
}

function describePart(part: Part): string {
  if (part.functionCall) return `call:${part.functionCall.id ?? '-'}`
  if (part.functionResponse) {
    return `result:${part.functionResponse.id ?? '-'}=${String(part.functionResponse.response?.v)}`
  }
  return JSON.stringify(part.text)
}

async function requestAfter(
  sessions: BaseSessionService,
  events: readonly Event[],
  message: string | Part[],
) {
  const session = await sessions.getOrCreateSession({ ...KEY })
  for (const event of events) await sessions.appendEvent({ session, event: structuredCloneEvent(event) })
  const model = new RecordingModel(() => [{ text: 'ok' }])
  try {
    const produced = await runTurn({ agent: new LlmAgent({ name: 'agent', model }), sessions, message })
    const failed = produced.find(event => event.errorMessage)
    return failed ? `error: ${failed.errorMessage}` : describe(model.last)
  } catch (error) {
    return `throws: ${(error as Error).message}`
  }
}

const structuredCloneEvent = (event: Event): Event => createEvent(structuredClone({ ...event }))

interface Row {
  history: string
  events: Event[]
  message?: string | Part[]
  alone: string
  bridge: string
}

const rows: Row[] = [
  {
    history: 'a clean pair',
    events: [user(text('q')), agent(call('a')), tool(result('a')), agent(text('done'))],
    alone: 'user("q") model(call:a) user(result:a=r) model("done") user("next")',
    bridge: 'user("q") model(call:a) user(result:a=r) model("done") user("next")',
  },
  {
    history: 'a result in the role function',
    events: [user(text('q')), agent(call('a')), by('agent', 'function', result('a'))],
    alone: 'user("q") model(call:a) function(result:a=r) user("next")',
    bridge: 'user("q") model(call:a) user(result:a=r) user("next")',
  },
  {
    history: 'a call and a result without ids',
    events: [user(text('q')), agent(call(undefined)), tool(result(undefined))],
    alone: 'user("q") model(call:-) user("next")',
    bridge: 'user("q") model(call:call_t) user(result:call_t=r) user("next")',
  },
  {
    history: 'a result without id',
    events: [user(text('q')), agent(call('a')), tool(result(undefined))],
    alone: 'user("q") model(call:a) user("next")',
    bridge: 'user("q") model(call:a) user(result:a=r) user("next")',
  },
  {
    history: "ADK's own ids",
    events: [user(text('q')), agent(call('adk-1')), tool(result('adk-1'))],
    alone: 'user("q") model(call:-) user(result:-=r) user("next")',
    bridge: 'user("q") model(call:-) user(result:-=r) user("next")',
  },
  {
    history: 'one id in two turns',
    events: [
      ...[user(text('q')), agent(call('a')), tool(result('a', 'one')), agent(text('1'))],
      ...[user(text('p')), agent(call('a')), tool(result('a', 'two')), agent(text('2'))],
    ],
    alone:
      'user("q") model(call:a) user(result:a=two) model("1") user("p") model(call:a) user(result:a=two) model("2") user("next")',
    bridge:
      'user("q") model(call:a) user(result:a=one) model("1") user("p") model(call:a_2) user(result:a_2=two) model("2") user("next")',
  },
  {
    history: 'a call without result',
    events: [user(text('q')), agent(call('a'))],
    alone: 'user("q") model(call:a) user("next")',
    bridge: 'user("q") model(call:a) user("next")',
  },
  {
    history: 'parallel calls, one result missing',
    events: [user(text('q')), agent(call('a'), call('b')), tool(result('a'))],
    alone: 'user("q") model(call:a call:b) user(result:a=r) user("next")',
    bridge: 'user("q") model(call:a call:b) user(result:a=r) user("next")',
  },
  {
    history: 'a result without its call, with a text beside it',
    events: [user(text('q')), user(result('x'), text('and this')), agent(text('ok'))],
    alone: 'user("q") model("ok") user("next")',
    bridge:
      'user("q") user("[Earlier result of tool `t`: {\\"v\\":\\"r\\"}]") user("and this") model("ok") user("next")',
  },
  {
    history: 'an answer to a call that never was, as the new message',
    events: [user(text('q')), agent(text('ok'))],
    message: [result('x')],
    alone: 'throws: No function call event found for function responses ids: x',
    bridge: 'user("q") model("ok") user("[Earlier result of tool `t`: {\\"v\\":\\"r\\"}]")',
  },
  {
    history: 'two contents of one role in a row',
    events: [user(text('q')), user(text('hello?')), agent(text('a')), agent(text('b'))],
    alone: 'user("q") user("hello?") model("a") model("b") user("next")',
    // Merged where a request is made: by the model adapter and by the guard.
    bridge: 'user("q") user("hello?") model("a") model("b") user("next")',
  },
  {
    history: 'a history that begins with the model',
    events: [agent(text('welcome'))],
    alone: 'model("welcome") user("next")',
    bridge: 'model("welcome") user("next")',
  },
  {
    history: 'a result apart from its call',
    events: [user(text('q')), agent(call('a')), user(text('well?')), tool(result('a'))],
    alone: 'user("q") model(call:a) user(result:a=r) user("well?") user("next")',
    bridge: 'user("q") model(call:a) user(result:a=r) user("well?") user("next")',
  },
  {
    history: 'a result by somebody else',
    events: [user(text('q')), agent(call('a')), by('tool', 'user', result('a'))],
    alone:
      'user("q") model(call:a) user("For context:" "[tool] tool `t` returned result: {\\"v\\":\\"r\\"}") user("next")',
    bridge: 'user("q") model(call:a) user(result:a=r) user("next")',
  },
  {
    history: 'an answer signed model',
    events: [user(text('q')), by('model', 'model', text('a'))],
    alone: 'user("q") user("For context:" "[model] said: a") user("next")',
    bridge: 'user("q") model("a") user("next")',
  },
  {
    history: 'a result by the user',
    events: [user(text('q')), agent(call('a')), user(result('a'))],
    alone: 'user("q") model(call:a) user(result:a=r) user("next")',
    bridge: 'user("q") model(call:a) user(result:a=r) user("next")',
  },
  {
    history: 'an empty text before a call',
    events: [user(text('q')), agent(text(''), call('a')), tool(result('a')), agent(text('done'))],
    alone: 'user("q") model("done") user("next")',
    bridge: 'user("q") model(call:a) user(result:a=r) model("done") user("next")',
  },
  {
    history: 'no parts at all',
    events: [user(text('q')), agent()],
    alone: 'user("q") model() user("next")',
    bridge: 'user("q") user("next")',
  },
  {
    history: 'a content without role',
    events: [user(text('q')), by('agent', undefined, text('a'))],
    alone: 'user("q") user("next")',
    bridge: 'user("q") model("a") user("next")',
  },
  {
    history: 'a call and its result in one event',
    events: [user(text('q')), agent(call('a'), result('a'), text('so'))],
    alone: 'user("q") user("next")',
    bridge: 'user("q") model(call:a) user(result:a=r) model("so") user("next")',
  },
]

test.each(rows)(
  'the next request is as recorded, on ADK’s sessions and on those of Lango: $history',
  async ({ events, message = 'next', alone, bridge }) => {
    expect(await requestAfter(new InMemorySessionService(), events, message)).toBe(alone)
    const store = await openTestStore('sqlite')
    const sessions = new SessionServiceAdapter(store, { rootAgentName: 'agent' })
    expect(await requestAfter(sessions, events, message)).toBe(bridge)
    await store.close()
  },
)
