import { createEvent, createEventActions, LlmAgent } from '@google/adk'
import { describe, expect } from 'vitest'
import { z } from 'zod'
import { historyGuard } from '../../src/adk/history-guard.js'
import { convertMessages } from '../../src/adk/model/convert-messages.js'
import { ModelAdapter } from '../../src/adk/model/model-adapter.js'
import { messagesToEvents } from '../../src/adk/session/messages-to-events.js'
import { SessionServiceAdapter } from '../../src/adk/session/session-service-adapter.js'
import { tokenBudgetTruncate } from '../../src/session/budget.js'
import type { Message } from '../../src/session/message.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { KEY, openTestStore, runTurn, STORES } from '../support/adk-run.js'
import { RecordingModel } from '../support/recording-model.js'
import { requirement, scenario } from '../support/scenario.js'

const message = (fields: Partial<Message> & Pick<Message, 'role'>): Message => ({
  content: '',
  timestamp: 1,
  ...fields,
})

describe.each(STORES)('on %s', kind => {
  async function opened(options: ConstructorParameters<typeof SessionServiceAdapter>[1] = {}) {
    const store = await openTestStore(kind)
    const sessions = new SessionServiceAdapter(store, options)
    const session = await sessions.createSession({ ...KEY })
    return { store, sessions, session }
  }

  requirement('AppendEvent preserves FunctionCall metadata', () => {
    const appended = async (functionCall: { id?: string; name: string }) => {
      const { store, sessions, session } = await opened()
      const content = { role: 'model', parts: [{ functionCall: { ...functionCall, args: {} } }] }
      await sessions.appendEvent({ session, event: createEvent({ author: 'agent', content }) })
      const [stored] = await store.readMessages(KEY)
      await store.close()
      return stored?.toolCalls?.[0]
    }

    scenario('FunctionCall with original ID', async () => {
      expect(await appended({ id: 'adk-uuid-123', name: 'exec' })).toMatchObject({
        id: 'adk-uuid-123',
        name: 'exec',
      })
    })

    scenario('FunctionCall without ID', async () => {
      expect(await appended({ name: 'search' })).toMatchObject({ id: 'call_search', name: 'search' })
    })
  })

  requirement('AppendEvent stores FunctionResponse metadata', () => {
    scenario('FunctionResponse with full metadata', async () => {
      const { store, sessions, session } = await opened()
      const functionResponse = { id: 'adk-uuid-123', name: 'exec', response: { output: 'file.txt' } }
      const content = { role: 'user', parts: [{ functionResponse }] }
      await sessions.appendEvent({ session, event: createEvent({ author: 'agent', content }) })
      const [stored] = await store.readMessages(KEY)
      expect(stored?.toolCalls?.[0]).toMatchObject({
        id: 'adk-uuid-123',
        name: 'exec',
        output: '{"output":"file.txt"}',
      })
      expect(stored?.content).toContain('{"output":"file.txt"}')
      await store.close()
    })
  })

  requirement('Ent State Adapter', () => {
    const answering = () => new RecordingModel((_, index) => [{ text: `answer ${index}` }])

    scenario('Load Session', async () => {
      const { store, sessions } = await opened()
      await store.appendMessage(KEY, message({ role: 'user', author: 'user', content: 'my name is Ann' }))
      await store.appendMessage(KEY, message({ role: 'assistant', author: 'agent', content: 'hello Ann' }))
      const model = answering()
      await runTurn({ agent: new LlmAgent({ name: 'agent', model }), sessions, message: 'who am I?' })
      expect(model.last).toEqual([
        { role: 'user', parts: [{ text: 'my name is Ann' }] },
        { role: 'model', parts: [{ text: 'hello Ann' }] },
        { role: 'user', parts: [{ text: 'who am I?' }] },
      ])
      await store.close()
    })

    scenario('Save Session', async () => {
      const { store, sessions } = await opened()
      const agent = new LlmAgent({ name: 'agent', model: answering(), outputKey: 'last' })
      await runTurn({ agent, sessions, message: 'hi' })
      const saved = await store.loadSession(KEY)
      expect(saved?.messages.map(({ role, content }) => [role, content])).toEqual([
        ['user', 'hi'],
        ['assistant', 'answer 0'],
      ])
      expect(saved?.state).toEqual({ last: 'answer 0' })
      await store.close()
    })
  })

  requirement('AppendEvent In-Memory History Sync', () => {
    const says = (text: string, author = 'user') =>
      createEvent({ author, content: { role: author === 'user' ? 'user' : 'model', parts: [{ text }] } })

    scenario('User message visible after AppendEvent', async () => {
      const { store, sessions, session } = await opened()
      await sessions.appendEvent({ session, event: says('hi') })
      expect(session.events.map(event => event.content?.parts?.[0]?.text)).toEqual(['hi'])
      expect((await store.readMessages(KEY)).map(stored => stored.content)).toEqual(['hi'])
      await store.close()
    })

    scenario('Multiple events accumulate in memory', async () => {
      const { store, sessions, session } = await opened()
      for (const text of ['one', 'two', 'three']) await sessions.appendEvent({ session, event: says(text) })
      expect(session.events.map(event => event.content?.parts?.[0]?.text)).toEqual(['one', 'two', 'three'])
      await store.close()
    })

    scenario('State-delta-only events skip history', async () => {
      const { store, sessions, session } = await opened()
      const actions = createEventActions({ stateDelta: { mood: 'good', 'app:theme': 'dark', 'temp:x': 1 } })
      await sessions.appendEvent({ session, event: createEvent({ author: 'agent', actions }) })
      expect(session.events).toEqual([])
      expect(await store.readMessages(KEY)).toEqual([])
      expect(session.state).toEqual({ mood: 'good', 'app:theme': 'dark', 'temp:x': 1 })
      expect((await store.loadSession(KEY))?.state).toEqual({ mood: 'good', 'app:theme': 'dark' })
      await store.close()
    })
  })

  requirement('History Management', () => {
    /** Each exchange costs about 250 estimated tokens. */
    const longHistory = async (
      options: ConstructorParameters<typeof SessionServiceAdapter>[1],
      exchanges: number,
    ) => {
      const { store, sessions } = await opened(options)
      for (let index = 0; index < exchanges; index += 1) {
        const filler = 'lorem '.repeat(120)
        await store.appendMessage(
          KEY,
          message({ role: 'user', author: 'user', content: `q${index} ${filler}` }),
        )
        await store.appendMessage(
          KEY,
          message({ role: 'assistant', author: 'agent', content: `a${index} ${filler}` }),
        )
      }
      const model = new RecordingModel(() => [{ text: 'ok' }])
      await runTurn({ agent: new LlmAgent({ name: 'agent', model }), sessions, message: 'now' })
      await store.close()
      return model.last.map(content => content.parts?.[0]?.text?.split(' ')[0])
    }

    scenario('History Truncation with explicit budget', async () => {
      const texts = await longHistory({ budgetTokens: 1000 }, 20)
      expect(texts.at(-1)).toBe('now')
      expect(texts.at(-2)).toBe('a19')
      expect(texts.length).toBeLessThan(12)
      expect(texts).not.toContain('q0')
    })

    scenario('Default token budget', async () => {
      const fitting = await longHistory({ budgetTokens: 0 }, 100)
      expect(fitting[0]).toBe('q0')
      const tooLong = await longHistory({ budgetTokens: 0 }, 150)
      expect(tooLong).not.toContain('q0')
      // A message is about 125 tokens: 32,000 hold some 250 of the 300, and a steady cut may leave a quarter free.
      expect(tooLong.length).toBeGreaterThan(180)
    })

    scenario('History Truncation', async () => {
      const texts = await longHistory({ budgetTokens: 8000 }, 60)
      expect(texts).not.toContain('q0')
      expect(texts.at(-2)).toBe('a59')
      expect(texts.length).toBeGreaterThan(45)
      expect(texts.length).toBeLessThan(68)
    })

    scenario('Fallback to message count', async () => {
      const texts = await longHistory({ budgetTokens: 'off' }, 80)
      expect(texts.length).toBeLessThanOrEqual(101)
      expect(texts.length).toBeGreaterThan(70)
    })

    scenario('Event Author Mapping', async () => {
      const { store, sessions } = await opened({ rootAgentName: 'helper' })
      await store.appendMessage(KEY, message({ role: 'user', content: 'q' }))
      await store.appendMessage(KEY, message({ role: 'assistant', content: 'a' }))
      const session = await sessions.getSession({ ...KEY })
      expect(session?.events.map(event => event.author)).toEqual(['user', 'helper'])
      await store.close()
    })

    scenario('Model role mapping', async () => {
      const authors = (rootAgentName?: string) =>
        messagesToEvents([message({ role: 'model', content: 'a' })], { rootAgentName }).map(
          event => event.author,
        )
      expect([...authors('helper'), ...authors()]).toEqual(['helper', 'lango-agent'])
    })

    scenario('Unknown role fallback', async () => {
      const authors = (rootAgentName?: string) =>
        messagesToEvents([message({ role: 'narrator', content: 'a' })], { rootAgentName }).map(
          event => event.author,
        )
      expect([...authors('helper'), ...authors()]).toEqual(['helper', 'lango-agent'])
    })
  })

  requirement('Tool Adapter', () => {
    scenario('Execute Legacy Tool', async () => {
      const { ToolAdapter } = await import('../../src/adk/agent/tool-adapter.js')
      const { defineTool } = await import('../../src/tool.js')
      const seen: unknown[] = []
      const add = defineTool({
        name: 'add',
        description: 'Adds two numbers',
        parameters: z.object({ a: z.number(), b: z.number() }),
        execute: args => {
          seen.push(args)
          return args.a + args.b
        },
      })
      const { store, sessions } = await opened()
      const model = new RecordingModel((_, index) =>
        index === 0 ? [{ functionCall: { name: 'add', args: { a: 2, b: 3 } } }] : [{ text: 'five' }],
      )
      await runTurn({
        agent: new LlmAgent({ name: 'agent', model, tools: [new ToolAdapter(add)] }),
        sessions,
        message: '2+3',
      })
      expect(seen).toEqual([{ a: 2, b: 3 }])
      expect(model.last.at(-1)?.parts?.[0]?.functionResponse).toMatchObject({
        name: 'add',
        response: { result: 5 },
      })
      await store.close()
    })
  })

  requirement('EventsAdapter merges consecutive roles', () => {
    const pair = [
      message({ role: 'user', author: 'user', content: 'are you there?' }),
      message({ role: 'user', author: 'user', content: 'hello?' }),
    ]

    scenario('Consecutive events of one role and author are merged', async () => {
      const { store, sessions } = await opened()
      for (const row of pair) await store.appendMessage(KEY, row)
      await store.appendMessage(KEY, message({ role: 'assistant', author: 'agent', content: 'yes' }))
      // Where a request is made: in the model adapter, and in the guard of ADK's own models.
      const provider = new ScriptedProvider([{ text: 'ok' }])
      const model = new ModelAdapter({ provider, model: 'any' })
      await runTurn({ agent: new LlmAgent({ name: 'agent', model }), sessions, message: 'good' })
      const [sent] = provider.requests
      expect(sent?.messages.filter(({ role }) => role !== 'system').map(({ parts }) => parts.length)).toEqual(
        [2, 1, 1],
      )
      const recording = new RecordingModel(() => [{ text: 'ok' }])
      const agent = new LlmAgent({ name: 'agent', model: recording })
      await runTurn({ agent, sessions, message: 'fine', plugins: [historyGuard()] })
      expect(recording.last[0]).toEqual({
        role: 'user',
        parts: [{ text: 'are you there?' }, { text: 'hello?' }],
      })
      expect(recording.last).toHaveLength(5)
      // What was stored stays what it was.
      expect((await sessions.getSession({ ...KEY }))?.events).toHaveLength(7)
      await store.close()
    })

    scenario('The count of events equals what iteration yields', () => {
      const events = messagesToEvents([...pair, message({ role: 'assistant', author: 'a', content: 'x' })])
      expect(events).toHaveLength([...events].length)
      expect(events).toHaveLength(2)
    })
  })

  requirement('EventsAdapter reconstructs FunctionResponse from new format', () => {
    const rows = [
      message({ role: 'assistant', toolCalls: [{ id: 'adk-uuid-123', name: 'exec', input: '{}' }] }),
      message({ role: 'tool', toolCalls: [{ id: 'adk-uuid-123', name: 'exec', output: '{"result":"ok"}' }] }),
    ]

    scenario('Tool message with FunctionResponse metadata in ToolCalls', async () => {
      const functionResponse = { id: 'adk-uuid-123', name: 'exec', response: { result: 'ok' } }
      expect(messagesToEvents(rows)[1]?.content).toEqual({ role: 'function', parts: [{ functionResponse }] })
      expect(messagesToEvents(rows.slice(1))[0]?.content).toEqual({
        role: 'function',
        parts: [{ functionResponse }],
      })
      // ADK gets the same in a role that every endpoint accepts.
      const { store, sessions } = await opened()
      for (const row of rows) await store.appendMessage(KEY, row)
      const session = await sessions.getSession({ ...KEY })
      expect(session?.events[1]?.content).toEqual({ role: 'user', parts: [{ functionResponse }] })
      await store.close()
    })
  })
})

requirement('EventsAdapter reconstructs FunctionCall with ID', () => {
  scenario('Assistant message with FunctionCall ToolCalls', () => {
    const toolCalls = [{ id: 'adk-uuid-123', name: 'exec', input: '{"cmd":"ls"}' }]
    const [event] = messagesToEvents([message({ role: 'assistant', toolCalls })])
    expect(event?.content?.parts).toEqual([
      { functionCall: { id: 'adk-uuid-123', name: 'exec', args: { cmd: 'ls' } } },
    ])
  })
})

requirement('EventsAdapter legacy FunctionResponse fallback', () => {
  const call = message({ role: 'assistant', toolCalls: [{ id: 'call_exec', name: 'exec', input: '{}' }] })

  scenario('Legacy tool message without ToolCalls', () => {
    const [, answer] = messagesToEvents([call, message({ role: 'tool', content: '{"result":"file.txt"}' })])
    const functionResponse = { id: 'call_exec', name: 'exec', response: { result: 'file.txt' } }
    expect(answer?.content?.parts).toEqual([{ functionResponse }])
    expect(answer?.author).toBe('lango-agent')
  })

  scenario('Tool message with no context for FunctionResponse', () => {
    const [event] = messagesToEvents([message({ role: 'tool', content: 'file.txt' })])
    expect(event?.content?.parts).toEqual([{ text: 'file.txt' }])
  })
})

requirement('Token budget truncation preserves sequence safety', () => {
  const asks = (id: string): Message =>
    message({ role: 'assistant', toolCalls: [{ id, name: 'exec', input: '{}' }] })
  const answers = (id: string): Message =>
    message({
      role: 'tool',
      toolCalls: [{ id, name: 'exec', output: JSON.stringify({ out: 'x'.repeat(400) }) }],
    })

  scenario('Truncation cuts before tool message', () => {
    const history = [
      message({ role: 'user', content: 'first' }),
      asks('a'),
      answers('a'),
      message({ role: 'assistant', content: 'y'.repeat(40) }),
      message({ role: 'user', content: 'second' }),
    ]
    const { messages } = tokenBudgetTruncate(history, 60)
    expect(messages.map(kept => kept.role)).not.toContain('tool')
    expect(messages.at(-1)?.content).toBe('second')
    expect(messages.length).toBeLessThan(history.length)
  })

  scenario('No truncation preserves trailing FunctionCall', () => {
    const history = [message({ role: 'user', content: 'go' }), asks('a')]
    expect(tokenBudgetTruncate(history, 0).messages).toEqual(history)
    expect(messagesToEvents(history).at(-1)?.content?.parts?.[0]?.functionCall?.id).toBe('a')
  })
})

requirement('convertMessages forwards FunctionCall ID', () => {
  scenario('FunctionCall with original ID in convertMessages', () => {
    const functionCall = { id: 'adk-uuid-123', name: 'exec', args: { cmd: 'ls' } }
    expect(convertMessages([{ role: 'model', parts: [{ functionCall }] }])).toEqual([
      {
        role: 'assistant',
        parts: [{ type: 'tool-call', id: 'adk-uuid-123', name: 'exec', args: { cmd: 'ls' } }],
      },
    ])
  })
})
