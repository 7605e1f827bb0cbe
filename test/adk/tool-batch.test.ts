import { LlmAgent, ParallelAgent } from '@google/adk'
import { expect, test } from 'vitest'
import { ToolAdapter } from '../../src/adk/agent/tool-adapter.js'
import { ModelAdapter } from '../../src/adk/model/model-adapter.js'
import { SessionServiceAdapter } from '../../src/adk/session/session-service-adapter.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { defineTool } from '../../src/tool.js'
import { openTestStore, runTurn, STORES } from '../support/adk-run.js'

/** An agent that looks twice, with the same call ids as every other such agent. */
function lookingAgent(name: string, tool: ToolAdapter): LlmAgent {
  const provider = new ScriptedProvider([
    {
      toolCalls: [
        { id: 'c1', name: 'look', args: { who: `${name}1` } },
        { id: 'c2', name: 'look', args: { who: `${name}2` } },
      ],
    },
    { text: `${name} is done` },
  ])
  return new LlmAgent({ name, model: new ModelAdapter({ provider, model: 'm' }), tools: [tool] })
}

test.each(STORES)('parallel agents may use the same call ids (%s)', async kind => {
  const store = await openTestStore(kind)
  const ran: unknown[] = []
  let open = () => {}
  const bothLook = new Promise<void>(resolve => {
    open = resolve
  })
  const look = defineTool({
    name: 'look',
    description: 'Looks',
    effect: 'read',
    parameters: { type: 'object' },
    execute: async ({ who }) => {
      ran.push(who)
      // Neither agent is done before the other one has begun.
      if (ran.includes('a1') && ran.includes('b1')) open()
      await bothLook
      return { who }
    },
  })
  const tool = new ToolAdapter(look)
  const subAgents = ['a', 'b'].map(name => lookingAgent(name, tool))
  const agent = new ParallelAgent({ name: 'both', subAgents })
  const events = await runTurn({ agent, sessions: new SessionServiceAdapter(store), message: 'look' })
  const results = events.flatMap(event =>
    (event.content?.parts ?? []).flatMap(({ functionResponse }) =>
      functionResponse ? [[event.author, functionResponse.id, functionResponse.response?.who]] : [],
    ),
  )
  expect(results.sort()).toEqual([
    ['a', 'c1', 'a1'],
    ['a', 'c2', 'a2'],
    ['b', 'c1', 'b1'],
    ['b', 'c2', 'b2'],
  ])
  expect(ran.sort()).toEqual(['a1', 'a2', 'b1', 'b2'])
  await store.close()
})
