/** Models, agents and tools that the suites of several pages share. */
import { FunctionTool, LlmAgent, LongRunningFunctionTool } from '@google/adk'
import { z } from 'zod'
import { defineTool, type Tool } from '../../../src/tool.js'
import { heldTool, type ProtocolServerOptions, searchThenTell } from '../../server/protocols/support.js'

export type Script = Extract<NonNullable<ProtocolServerOptions['script']>, (...request: never[]) => unknown>

/** Looks for what the first message names, and does as it is told by those after it. */
export const lookOnce: Script = (request, index) =>
  index === 0 ? searchThenTell(request) : { text: `Fine: ${request.lastUserText}.` }

/** Asks the page for a name. */
export const askThenTell: Script = ({ messages }) =>
  messages.at(-1)?.role === 'tool'
    ? { text: JSON.stringify(messages.at(-1)).includes('Ada') ? 'You are Ada.' : 'Who are you?' }
    : { text: 'Tell me.', toolCalls: [{ name: 'ask_page', args: { question: 'name' } }] }

/** Its only tool is one that the page answers. */
export function askingAgent(model: string): LlmAgent {
  const ask = new LongRunningFunctionTool({
    name: 'ask_page',
    description: 'Asks the page.',
    // The compiler finds ADK's types and Zod's together too deep.
    parameters: z.object({ question: z.string() }) as never,
    execute: () => undefined,
  })
  return new LlmAgent({ name: 'root', model, instruction: 'Ask.', tools: [ask] })
}

/** Its tool `search` saves what it finds as the artifact `found.txt`. */
export function savingAgent(model: string): LlmAgent {
  const search = new FunctionTool({
    name: 'search',
    description: 'Searches.',
    // As above.
    parameters: z.object({ query: z.string() }) as never,
    execute: async (args: unknown, context) => {
      const { query } = args as { query: string }
      await context?.saveArtifact('found.txt', { text: query })
      return { found: query }
    },
  })
  return new LlmAgent({ name: 'root', model, instruction: 'Search.', tools: [search] })
}

/** Calls `danger`, unless it is told not to. */
export const dangerThenTell: Script = ({ messages, lastUserText }) => {
  const last = messages.at(-1)
  if (last?.role === 'tool')
    return { text: JSON.stringify(last).includes('done') ? 'Done with it.' : 'As you wish.' }
  if (lastUserText.includes('not')) return { text: 'Then not.' }
  return { text: 'May I?', toolCalls: [{ name: 'danger' }] }
}

/** A tool that needs approval, and the calls that were executed. */
export function dangerous(executed: string[]): Tool {
  return defineTool({
    name: 'danger',
    description: 'Does something that somebody must allow.',
    parameters: { type: 'object', properties: {} },
    needsApproval: true,
    execute: () => {
      executed.push('danger')
      return { done: true }
    },
  })
}

/** A tool that must run once and does not end before it is let go, and how often it was executed. */
export function countedTool() {
  const { tool, called, letGo } = heldTool()
  let count = 0
  const execute: Tool['execute'] = (...call) => {
    count += 1
    return tool.execute(...call)
  }
  const once: Tool = { ...tool, effect: 'once', execute }
  return { tool: once, called, letGo, count: () => count }
}
