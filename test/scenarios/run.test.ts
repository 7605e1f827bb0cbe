import { FunctionTool, StreamingMode } from '@google/adk'
import { afterEach, describe, expect } from 'vitest'
import { messagesToProvider } from '../../src/adk/messages-to-provider.js'
import { AgentError } from '../../src/errors.js'
import { lintHistory } from '../../src/provider/repair/lint-history.js'
import { PROFILES } from '../../src/provider/repair/profile.js'
import type { RunEvent } from '../../src/run/run-event.js'
import type { RuntimeOptions } from '../../src/runtime/options.js'
import { defineTool } from '../../src/tool.js'
import { BACKENDS, type Play, type Stage } from '../support/backends.js'
import { requirement, scenario } from '../support/scenario.js'

const search = defineTool({
  name: 'search',
  description: 'Searches.',
  parameters: { type: 'object', properties: { query: { type: 'string' } } },
  effect: 'read',
  execute: args => ({ found: String(args.query ?? '') }),
})

const KEY = { appName: 'lango', userId: 'user', sessionId: 's1' }
let stage: Stage | undefined

afterEach(async () => {
  await stage?.close()
  stage = undefined
})

/** One agent, or a root with the sub-agents `writer` and `reader`. */
function agent(
  model: string,
  options: { tree?: boolean; maxTurns?: number; maxDelegations?: number; multiAgent?: boolean } = {},
): Partial<RuntimeOptions> {
  const { tree, ...limits } = options
  const below = tree
    ? ['writer', 'reader'].map(name => ({ name, description: `The ${name}.`, tools: [search] }))
    : []
  return {
    agent: {
      name: 'root',
      model,
      instruction: 'Help with {braces}.',
      tools: [search],
      subAgents: below,
      ...limits,
    },
  }
}

const call = (name: string, args: Record<string, unknown> = {}) => ({ toolCalls: [{ name, args }] })
const transfer = (agentName: string) => call('transfer_to_agent', { agentName })

async function collectEvents(runtime: Stage['runtime'], text: string): Promise<RunEvent[]> {
  const events: RunEvent[] = []
  for await (const event of runtime.run({ sessionId: 's1', text })) events.push(event)
  return events
}

/** Nothing in the stored history breaks on any provider. */
async function expectSound(runtime: Stage['runtime']): Promise<void> {
  const history = messagesToProvider(await runtime.store.readMessages(KEY))
  for (const profile of Object.keys(PROFILES)) {
    const broken = lintHistory(history, profile).filter(finding => finding.severity === 'breaks')
    expect(broken, profile).toEqual([])
  }
}

describe.each(BACKENDS)('through the $name', backend => {
  const start = async (play: Play, options: Parameters<typeof agent>[1] = {}) => {
    stage = await backend.start(play, model => agent(model, options))
    return stage
  }

  requirement('ADK Agent Abstraction', () => {
    scenario('Agent Initialization', async () => {
      const { runtime, calls, sent } = await start([{ text: 'ready' }])
      await runtime.ready()
      expect(calls()).toBe(0)
      expect((await runtime.runAndCollect({ sessionId: 's1', text: 'hello' })).text).toBe('ready')
      expect(sent()[0]).toContain('Help with {braces}.')
      expect(sent()[0]).toContain('search')
    })
  })

  requirement('Agent hallucination retry in RunAndCollect', () => {
    scenario('Hallucinated agent name triggers retry', async () => {
      const { runtime, calls, sent } = await start([transfer('ghost'), { text: 'fine' }], { tree: true })
      await runtime.runAndCollect({ sessionId: 's1', text: 'hello' })
      expect(calls()).toBe(2)
      const correction =
        '[System: Agent "ghost" does not exist. Valid agents: writer, reader. Please retry using one of the valid agent names listed above.]'
      expect(sent()[1]).toContain(JSON.stringify(correction).slice(1, -1))
      const stored = (await runtime.store.readMessages(KEY)).find(message => message.content === correction)
      expect(stored).toMatchObject({
        role: 'user',
        extra: { customMetadata: { lango: { synthetic: true } } },
      })
    })

    scenario('Retry succeeds', async () => {
      const { runtime } = await start([transfer('ghost'), transfer('writer'), { text: 'written' }], {
        tree: true,
      })
      const result = await runtime.runAndCollect({ sessionId: 's1', text: 'hello' })
      expect(result).toMatchObject({ text: 'written', finishReason: 'stop', delegations: 2 })
      await expectSound(runtime)
    })

    scenario('Retry also fails', async () => {
      const { runtime, calls } = await start(() => transfer('ghost'), { tree: true })
      const failure = await runtime.runAndCollect({ sessionId: 's1', text: 'hello' }).catch(error => error)
      expect(failure).toBeInstanceOf(AgentError)
      expect(failure).toMatchObject({ code: 'agent-not-found', cause: { code: 'agent-not-found' } })
      expect(calls()).toBe(2)
      await expectSound(runtime)
    })

    scenario('Non-hallucination error is not retried', async () => {
      const { runtime, calls } = await start([{ refused: true }, { text: 'too late' }], { tree: true })
      await expect(runtime.runAndCollect({ sessionId: 's1', text: 'hello' })).rejects.toMatchObject({
        code: 'provider-auth',
        retryable: false,
      })
      expect(calls()).toBe(1)
    })

    scenario('No sub-agents means no retry', async () => {
      const handOver = new FunctionTool({
        name: 'hand_over',
        description: 'Hands over to an agent that is not there.',
        execute: (_args, context) => {
          if (context) context.actions.transferToAgent = 'ghost'
          return 'handed over'
        },
      })
      stage = await backend.start([call('hand_over'), { text: 'too late' }], model => ({
        agent: { name: 'root', model, tools: [handOver] },
      }))
      await expect(stage.runtime.runAndCollect({ sessionId: 's1', text: 'hello' })).rejects.toMatchObject({
        code: 'agent-not-found',
        details: { name: 'ghost' },
      })
      expect(stage.calls()).toBe(1)
    })
  })

  requirement('Agent text collection avoids duplication', () => {
    scenario('Streaming mode collects from partial events only', async () => {
      const { runtime } = await start([{ deltas: ['Hello ', 'world'] }])
      const events = await collectEvents(runtime, 'hello')
      expect(events.flatMap(event => (event.type === 'text-delta' ? event.text : [])).join('')).toBe(
        'Hello world',
      )
      expect(events.at(-1)).toMatchObject({ type: 'run-finish', text: 'Hello world' })
    })

    scenario('Non-streaming mode collects from final event', async () => {
      stage = await backend.start([{ deltas: ['Hello ', 'world'] }], model => ({
        ...agent(model),
        adk: { runConfig: { streamingMode: StreamingMode.NONE } },
      }))
      const events = await collectEvents(stage.runtime, 'hello')
      expect(events.flatMap(event => (event.type === 'text-delta' ? event.text : []))).toEqual([
        'Hello world',
      ])
      expect(events.at(-1)).toMatchObject({ type: 'run-finish', text: 'Hello world' })
    })
  })

  requirement('Delegation events are excluded from turn counting', () => {
    scenario('A transfer call does not count as a turn', async () => {
      const { runtime } = await start(
        [transfer('writer'), call('search', { query: 'a' }), transfer('root'), { text: 'done' }],
        { tree: true, maxTurns: 2 },
      )
      const result = await runtime.runAndCollect({ sessionId: 's1', text: 'hello' })
      expect(result).toMatchObject({ turns: 1, delegations: 2, finishReason: 'stop', text: 'done' })
    })

    scenario('Delegations have a cap of their own', async () => {
      const { runtime, calls } = await start(index => transfer(index % 2 === 0 ? 'writer' : 'root'), {
        tree: true,
        maxDelegations: 6,
      })
      const result = await runtime.runAndCollect({ sessionId: 's1', text: 'hello' })
      expect(result).toMatchObject({ delegations: 6, turns: 0, finishReason: 'turn-limit' })
      expect(result.text).toContain('6 transfers')
      expect(calls()).toBe(7)
      await expectSound(runtime)
    })
  })

  requirement('The turn limit ends gracefully', () => {
    const busy = (index: number) => call('search', { query: `q${index}` })

    scenario('A warning comes once at 80 percent', async () => {
      const { runtime } = await start(busy, { maxTurns: 10 })
      const events = await collectEvents(runtime, 'go')
      expect(events.filter(event => event.type === 'turn-warning')).toMatchObject([
        { turns: 8, maxTurns: 10 },
      ])
    })

    scenario('One wrap-up turn is granted', async () => {
      const { runtime, calls, sent } = await start(
        index => (index < 3 ? busy(index) : { text: 'This is what I found.' }),
        { maxTurns: 3 },
      )
      const result = await runtime.runAndCollect({ sessionId: 's1', text: 'go' })
      expect(result).toMatchObject({ text: 'This is what I found.', finishReason: 'turn-limit', turns: 3 })
      expect(calls()).toBe(4)
      expect(sent()[2]).not.toContain('This is your last turn')
      expect(sent()[3]).toContain('This is your last turn')
      expect(sent()[3]).toContain('search')
    })

    scenario('A call in the wrap-up turn is answered by a fixed text', async () => {
      const { runtime, calls } = await start(busy, { maxTurns: 2 })
      const result = await runtime.runAndCollect({ sessionId: 's1', text: 'go' })
      expect(result.finishReason).toBe('turn-limit')
      expect(result.text).toContain('the limit of 2 tool turns is reached')
      expect(result.text).toContain('search (2 times)')
      expect(calls()).toBe(3)
    })

    scenario('The stored history has every call answered', async () => {
      const { runtime } = await start(busy, { maxTurns: 3 })
      await runtime.runAndCollect({ sessionId: 's1', text: 'go' })
      const stored = await runtime.store.readMessages(KEY)
      const kinds = stored.flatMap(message => (message.toolCalls ?? []).map(entry => entry.kind))
      expect(kinds).toEqual(['call', 'response', 'call', 'response', 'call', 'response'])
      expect(stored.at(-1)?.content).toContain('the limit of 3 tool turns')
      await expectSound(runtime)
    })
  })

  requirement('Turn defaults', () => {
    const busy = (index: number) => call('search', { query: `q${index}` })
    scenario('25 turns for one agent', async () => {
      const { runtime } = await start(busy)
      expect(await runtime.runAndCollect({ sessionId: 's1', text: 'go' })).toMatchObject({ turns: 25 })
    })
    scenario('50 turns with several agents', async () => {
      const { runtime } = await start(busy, { tree: true, multiAgent: true })
      expect(await runtime.runAndCollect({ sessionId: 's1', text: 'go' })).toMatchObject({ turns: 50 })
    })
    scenario('An explicit limit wins', async () => {
      const { runtime } = await start(busy, { tree: true, multiAgent: true, maxTurns: 4 })
      expect(await runtime.runAndCollect({ sessionId: 's1', text: 'go' })).toMatchObject({ turns: 4 })
    })
  })
})
