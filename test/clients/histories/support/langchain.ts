/** Conversations as LangChain stores them: messages of a graph of LangGraph, whose checkpoints are in SQLite. */
import { ChatAnthropic } from '@langchain/anthropic'
import {
  AIMessageChunk,
  type BaseMessage,
  HumanMessage,
  mapChatMessagesToStoredMessages,
  SystemMessage,
} from '@langchain/core/messages'
import { tool } from '@langchain/core/tools'
import { MessagesAnnotation, StateGraph } from '@langchain/langgraph'
import { ToolNode, toolsCondition } from '@langchain/langgraph/prebuilt'
import { PostgresSaver } from '@langchain/langgraph-checkpoint-postgres'
import { SqliteSaver } from '@langchain/langgraph-checkpoint-sqlite'
import { ChatOpenAI } from '@langchain/openai'
import Database from 'libsql'
import { z } from 'zod'
import { type StrictProvider, startStrictProvider } from '../../../../src/testing/start-strict-provider.js'
import { PROFILE_FACTS } from '../../../../src/testing/strict/profile.js'
import { behave } from './behave.js'
import type { Scene, SceneTurn } from './scenes.js'

/** A saver on a file. Its own driver is a native module that the suite does not build; this one has the same calls. */
export function openSaver(file: string): { saver: SqliteSaver; close(): void } {
  const database = new Database(file)
  return { saver: new SqliteSaver(database as never), close: () => database.close() }
}

/** The same on PostgreSQL. */
export async function openPostgresSaver(
  url: string,
): Promise<{ saver: PostgresSaver; close(): Promise<void> }> {
  const saver = PostgresSaver.fromConnString(url)
  await saver.setup()
  return { saver, close: () => saver.end() }
}

type Saver = SqliteSaver | PostgresSaver

export interface LangChainFiles {
  /** `JSON.stringify(messages)`. */
  serialized: unknown
  /** `mapChatMessagesToStoredMessages`. */
  stored: unknown
  messages: BaseMessage[]
  bodies: unknown[]
}

export async function playLangChain(scene: Scene, saver: Saver): Promise<LangChainFiles> {
  const steps = scene.turns.flatMap(turn => turn.steps)
  const server = await startStrictProvider({ profile: scene.profile, script: steps })
  try {
    const stop = new AbortController()
    const graph = graphOf(scene, server, saver, stop)
    const config = { configurable: { thread_id: scene.name } }
    let partial: AIMessageChunk | undefined
    for (const turn of scene.turns) {
      const input = { messages: [...systemOf(scene, turn), userMessage(turn, scene)] }
      if (scene.abortAfter !== undefined)
        partial = await abortedAnswer(graph, input, { ...config, stop, scene })
      else await ended(graph.invoke(input, { ...config, signal: stop.signal }), stop)
    }
    const state = await graph.getState(config)
    const kept = (state.values as { messages: BaseMessage[] }).messages
    const messages = partial ? [...kept, partial] : kept
    if (server.violations.length > 0) throw new Error(JSON.stringify(server.violations[0]))
    return {
      serialized: JSON.parse(JSON.stringify(messages)),
      stored: mapChatMessagesToStoredMessages(messages),
      messages,
      bodies: server.requests.map(({ body }) => body),
    }
  } finally {
    await server.close()
  }
}

/** A run that was stopped on purpose has ended too. */
async function ended(run: Promise<unknown>, stop: AbortController): Promise<void> {
  try {
    await run
  } catch (error) {
    if (!stop.signal.aborted) throw error
  }
}

type Graph = ReturnType<typeof graphOf>

async function abortedAnswer(
  graph: Graph,
  input: { messages: BaseMessage[] },
  { stop, scene, ...config }: { configurable: { thread_id: string }; stop: AbortController; scene: Scene },
): Promise<AIMessageChunk | undefined> {
  let partial: AIMessageChunk | undefined
  const streaming = async (): Promise<void> => {
    const stream = await graph.stream(input, { ...config, signal: stop.signal, streamMode: 'messages' })
    for await (const [message] of stream as AsyncIterable<[BaseMessage]>) {
      if (!(message instanceof AIMessageChunk)) continue
      partial = partial ? partial.concat(message) : message
      if (String(partial.content).length > (scene.abortAfter ?? 0)) stop.abort()
    }
  }
  await ended(streaming(), stop)
  return partial
}

function graphOf(scene: Scene, server: StrictProvider, saver: Saver, stop: AbortController) {
  const tools = toolsOf(scene, stop)
  const model = modelOf(scene, server)
  const search = scene.searches ? [{ type: 'web_search' }] : []
  const bound = tools.length + search.length === 0 ? model : model.bindTools([...tools, ...search])
  return new StateGraph(MessagesAnnotation)
    .addNode('model', async ({ messages }, config) => ({ messages: [await bound.invoke(messages, config)] }))
    .addNode('tools', new ToolNode(tools))
    .addEdge('__start__', 'model')
    .addConditionalEdges('model', toolsCondition)
    .addEdge('tools', 'model')
    .compile({ checkpointer: saver })
}

function modelOf(scene: Scene, { baseUrl, profile }: StrictProvider) {
  const { family, model } = PROFILE_FACTS[profile]
  const thinks = scene.turns.some(({ steps }) => steps.some(step => step.thinking !== undefined))
  if (family === 'anthropic') {
    const thinking = thinks ? { thinking: { type: 'enabled' as const, budget_tokens: 1024 } } : {}
    return new ChatAnthropic({
      model,
      apiKey: 'none',
      anthropicApiUrl: baseUrl,
      maxTokens: 4096,
      maxRetries: 0,
      ...thinking,
    })
  }
  const schema = z.object({ city: z.string(), degrees: z.number() })
  const form = {
    type: 'json_schema' as const,
    json_schema: { name: 'place', schema: z.toJSONSchema(schema) as Record<string, unknown> },
  }
  return new ChatOpenAI({
    ...{ model, apiKey: 'none', configuration: { baseURL: baseUrl }, maxRetries: 0 },
    useResponsesApi: family === 'openai-responses',
    ...(thinks ? { reasoning: { effort: 'low' as const, summary: 'auto' as const }, zdrEnabled: true } : {}),
    ...(scene.structured
      ? {
          modelKwargs: {
            text: { format: { type: 'json_schema', name: 'place', schema: form.json_schema.schema } },
          },
        }
      : {}),
  })
}

function toolsOf({ tools = {} }: Scene, stop: AbortController) {
  return Object.entries(tools).map(([name, behaviour]) =>
    tool(
      async () => {
        if ('hangs' in behaviour) {
          stop.abort()
          return new Promise(() => {})
        }
        if (!('picture' in behaviour)) return behave(behaviour)
        const source = { type: 'base64', media_type: 'image/png', data: behaviour.picture }
        return [
          { type: 'text', text: 'the screen' },
          { type: 'image', source },
        ]
      },
      { name, description: `Does ${name}.`, schema: z.looseObject({}) },
    ),
  )
}

function systemOf({ system, turns }: Scene, turn: SceneTurn): BaseMessage[] {
  return system === undefined || turn !== turns[0] ? [] : [new SystemMessage(system)]
}

function userMessage({ user, picture, pdf }: SceneTurn, { profile }: Scene): HumanMessage {
  if (picture === undefined && pdf === undefined) return new HumanMessage(user)
  const isClaude = PROFILE_FACTS[profile].family === 'anthropic'
  return new HumanMessage({
    content: [
      { type: 'text', text: user },
      ...(picture === undefined
        ? []
        : [{ type: 'image_url', image_url: { url: `data:image/png;base64,${picture}` } }]),
      ...(pdf === undefined
        ? []
        : isClaude
          ? [{ type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: pdf } }]
          : [{ type: 'file', data: pdf, mimeType: 'application/pdf', metadata: { filename: 'report.pdf' } }]),
    ],
  })
}
