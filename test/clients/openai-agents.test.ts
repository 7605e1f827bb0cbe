// The OpenAI Agents SDK on its default API, with tools and handoffs of its own.
import { Agent, type AgentInputItem, OpenAIProvider, Runner, tool } from '@openai/agents'
import OpenAI from 'openai'
import { expect } from 'vitest'
import { z } from 'zod'
import { can } from './support/client-suite.js'
import {
  type Connect,
  type ConversationParts,
  conversationSuite,
  openScene,
  type Turn,
} from './support/conversation-suite.js'

const Place = z.object({ city: z.string(), degrees: z.number() })

function runnerOf({ baseURL, fetch }: ConversationParts): Runner {
  const openAIClient = new OpenAI({ baseURL, apiKey: 'none', fetch })
  // The SDK brings another major version of the same client.
  const modelProvider = new OpenAIProvider({ openAIClient: openAIClient as never })
  return new Runner({ modelProvider, tracingDisabled: true })
}

function weatherTool({ weather }: ConversationParts) {
  return tool({
    name: 'get_weather',
    description: 'The weather.',
    parameters: z.object({ city: z.string() }),
    execute: async args => weather(args),
  })
}

const agents: Connect = parts => {
  const runner = runnerOf(parts)
  const tools = [weatherTool(parts)]
  const clerk = new Agent({ name: 'Clerk', instructions: 'Be brief.', model: 'lango', tools })
  let history: AgentInputItem[] = []
  const say = async (text: string, { signal, onPiece }: Turn = {}): Promise<string> => {
    const input: AgentInputItem[] = [...history, { role: 'user', content: text }]
    const stop = signal ? { signal } : {}
    if (!onPiece) {
      const result = await runner.run(clerk, input, stop)
      history = result.history
      return String(result.finalOutput)
    }
    const result = await runner.run(clerk, input, { ...stop, stream: true })
    for await (const piece of result.toTextStream({ compatibleWithNodeStreams: false })) onPiece(piece)
    await result.completed
    history = result.history
    return String(result.finalOutput)
  }
  const structured = async (text: string): Promise<unknown> => {
    const typed = new Agent({ name: 'Typed', model: 'lango', outputType: Place })
    return (await runner.run(typed, text)).finalOutput
  }
  return { say, structured }
}

conversationSuite({ client: '@openai/agents' }, agents, store => {
  can('client tools', 'a hand-over from one agent of the client to another', async () => {
    const seen: string[] = []
    const connect: Connect = parts => {
      const runner = runnerOf(parts)
      const meteorologist = new Agent({
        name: 'Meteorologist',
        ...{ instructions: 'You know the weather.', model: 'lango', tools: [weatherTool(parts)] },
      })
      const clerk = Agent.create({
        ...{ name: 'Clerk', instructions: 'You hand over.', model: 'lango', handoffs: [meteorologist] },
      })
      const say = async (text: string) => {
        const result = await runner.run(clerk, text)
        seen.push(result.lastAgent?.name ?? '')
        return String(result.finalOutput)
      }
      return { say, structured: say }
    }
    const handOver = { name: 'transfer_to_Meteorologist', args: {} }
    const { conversation, cities, provider } = await openScene({
      ...{ store, connect },
      script: ({ messages, tools }) => {
        const results = messages.flatMap(({ toolResults }) => toolResults)
        if (tools.some(({ name }) => name === handOver.name)) return { toolCalls: [handOver] }
        return results.some(({ content }) => content.includes('rain'))
          ? { text: 'It is wet.' }
          : { toolCalls: [{ name: 'get_weather', args: { city: 'Rome' } }] }
      },
    })
    expect(await conversation.say('the weather')).toBe('It is wet.')
    expect(seen).toEqual(['Meteorologist'])
    expect(cities).toEqual(['Rome'])
    expect(JSON.stringify(provider.requests.at(-1)?.body)).toContain('You know the weather.')
    expect(provider.violations).toEqual([])
  })
})
