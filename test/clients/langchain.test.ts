// LangChain's agent and a graph of LangGraph, with tools of their own, on chat completions.
import { AIMessage, AIMessageChunk, type BaseMessage, HumanMessage } from '@langchain/core/messages'
import { tool } from '@langchain/core/tools'
import { MemorySaver, MessagesAnnotation, StateGraph } from '@langchain/langgraph'
import { ToolNode, toolsCondition } from '@langchain/langgraph/prebuilt'
import { ChatOpenAI } from '@langchain/openai'
import { createAgent } from 'langchain'
import { z } from 'zod'
import {
  type Connect,
  type ConversationParts,
  conversationSuite,
  type Turn,
} from './support/conversation-suite.js'

const Place = z.object({ city: z.string(), degrees: z.number() })

function modelOf({ baseURL, fetch }: ConversationParts): ChatOpenAI {
  return new ChatOpenAI({ model: 'lango', apiKey: 'none', configuration: { baseURL, fetch } })
}

function weatherTool({ weather }: ConversationParts) {
  return tool(async (args: { city: string }) => weather(args), {
    name: 'get_weather',
    description: 'The weather.',
    schema: z.object({ city: z.string() }),
  })
}

/** What both have: they keep the messages of a thread, and stream those of their model. */
interface Threaded {
  invoke(input: object, options: object): Promise<{ messages: BaseMessage[] }>
  stream(input: object, options: object): Promise<AsyncIterable<unknown>>
}

async function sayTo(agent: Threaded, text: string, { signal, onPiece }: Turn): Promise<string> {
  const input = { messages: [new HumanMessage(text)] }
  const options = { configurable: { thread_id: 'one' }, ...(signal ? { signal } : {}) }
  if (!onPiece) {
    const { messages } = await agent.invoke(input, options)
    return String(messages.at(-1)?.content)
  }
  let said = ''
  for await (const part of await agent.stream(input, { ...options, streamMode: 'messages' })) {
    const [message] = part as [BaseMessage]
    if (!(message instanceof AIMessageChunk) && !(message instanceof AIMessage)) continue
    onPiece(String(message.content))
    said += String(message.content)
  }
  return said
}

function structuredBy(parts: ConversationParts): (text: string) => Promise<unknown> {
  const model = modelOf(parts).withStructuredOutput(Place, { method: 'jsonSchema' })
  return text => model.invoke(text)
}

const agent: Connect = parts => {
  const built = createAgent({
    ...{ model: modelOf(parts), tools: [weatherTool(parts)], systemPrompt: 'Be brief.' },
    checkpointer: new MemorySaver(),
  })
  // Its own types depend on the tools; what is used of it here does not.
  const threaded = built as unknown as Threaded
  return { say: (text, turn = {}) => sayTo(threaded, text, turn), structured: structuredBy(parts) }
}

const graph: Connect = parts => {
  const tools = [weatherTool(parts)]
  const model = modelOf(parts).bindTools(tools)
  const built = new StateGraph(MessagesAnnotation)
    .addNode('model', async ({ messages }, config) => ({ messages: [await model.invoke(messages, config)] }))
    .addNode('tools', new ToolNode(tools))
    .addEdge('__start__', 'model')
    .addConditionalEdges('model', toolsCondition)
    .addEdge('tools', 'model')
    .compile({ checkpointer: new MemorySaver() })
  // As above.
  const threaded = built as unknown as Threaded
  return { say: (text, turn = {}) => sayTo(threaded, text, turn), structured: structuredBy(parts) }
}

conversationSuite({ client: 'LangChain agent', package: 'langchain' }, agent)
conversationSuite({ client: 'LangGraph', package: '@langchain/langgraph' }, graph)
