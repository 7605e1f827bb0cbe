/** Conversations as the OpenAI Agents SDK keeps them: `result.history` and the items of a session. */
import {
  Agent,
  type AgentInputItem,
  MemorySession,
  OpenAIProvider,
  Runner,
  RunState,
  tool,
  webSearchTool,
} from '@openai/agents'
import OpenAI from 'openai'
import { z } from 'zod'
import { type StrictProvider, startStrictProvider } from '../../../../src/testing/start-strict-provider.js'
import { PROFILE_FACTS } from '../../../../src/testing/strict/profile.js'
import { behave } from './behave.js'
import type { Scene, SceneTurn } from './scenes.js'

export interface AgentsFiles {
  history: AgentInputItem[]
  session: AgentInputItem[]
  /** A run that waits for a person, as the SDK writes it, and the items in it. */
  state?: { content: unknown; rows: unknown }
  bodies: unknown[]
  /** With the rules that it was played by. */
  scene: Scene
}

export async function playAgents(given: Scene): Promise<AgentsFiles> {
  // The SDK has OpenAI's two APIs.
  const isOpenai = PROFILE_FACTS[given.profile].family.startsWith('openai')
  // What was interrupted is in no history of the SDK: only the state of the run has it.
  const { findings = [], ...rest } = given
  const legal: Scene = { ...rest, mayFind: [...(given.mayFind ?? []), ...findings] }
  const scene = isOpenai ? legal : { ...legal, profile: 'openai-responses' as const }
  const steps = scene.turns.flatMap(turn => turn.steps)
  const server = await startStrictProvider({ profile: scene.profile, script: steps })
  try {
    const stop = new AbortController()
    const runner = runnerOf(server)
    let onKill = () => {}
    const killed = new Promise<void>(resolve => {
      onKill = resolve
    })
    const agent = agentOf(scene, onKill)
    const session = new MemorySession({ sessionId: scene.name })
    const files: AgentsFiles = { history: [], session: [], bodies: [], scene }
    for (const turn of scene.turns) {
      await playTurn({ runner, agent, session, scene, stop, killed }, turn, files)
    }
    files.session = await session.getItems()
    if (server.violations.length > 0) throw new Error(JSON.stringify(server.violations[0]))
    files.bodies = server.requests.map(({ body }) => body)
    return files
  } finally {
    await server.close()
  }
}

interface Parts {
  runner: Runner
  agent: Agent
  session: MemorySession
  scene: Scene
  stop: AbortController
  /** Resolves when a tool hangs. */
  killed: Promise<void>
}

async function playTurn(
  { runner, agent, session, scene, stop, killed }: Parts,
  turn: SceneTurn,
  files: AgentsFiles,
): Promise<void> {
  const options = { session, signal: stop.signal, sessionInputCallback: join }
  const result = await runner.run(agent, [userItem(turn)], { ...options, stream: true })
  const stream = async (): Promise<void> => {
    let length = 0
    for await (const piece of result.toTextStream()) {
      length += piece.length
      if (scene.abortAfter !== undefined && length > scene.abortAfter) stop.abort()
    }
    await result.completed
  }
  await Promise.race([killed, stream()]).catch(error => {
    if (!stop.signal.aborted) throw error
  })
  if (result.interruptions.length > 0) {
    const content = JSON.parse(result.state.toString())
    files.state = {
      content,
      rows: [
        content.originalInput,
        ...content.generatedItems.map((item: { rawItem: unknown }) => item.rawItem),
      ],
    }
    if (scene.approval !== 'open')
      await decide({ runner, agent, session, scene, stop, killed }, String(result.state), files)
    else files.history = result.history
    return
  }
  files.history = result.history
}

async function decide(
  { runner, agent, session, scene }: Parts,
  written: string,
  files: AgentsFiles,
): Promise<void> {
  const state = await RunState.fromString(agent, written)
  for (const asked of state.getInterruptions()) {
    if (scene.approval === 'approved') state.approve(asked)
    else state.reject(asked)
  }
  const result = await runner.run(agent, state, { session })
  files.history = result.history
}

const join = (before: AgentInputItem[], added: AgentInputItem[]): AgentInputItem[] => [...before, ...added]

function runnerOf({ baseUrl, profile }: StrictProvider): Runner {
  const openAIClient = new OpenAI({ baseURL: baseUrl, apiKey: 'none', maxRetries: 0 })
  const useResponses = PROFILE_FACTS[profile].family === 'openai-responses'
  // The SDK brings another major version of the same client.
  const modelProvider = new OpenAIProvider({ openAIClient: openAIClient as never, useResponses })
  return new Runner({ modelProvider, tracingDisabled: true })
}

function agentOf(scene: Scene, onKill: () => void): Agent {
  const { model } = PROFILE_FACTS[scene.profile]
  const thinks = scene.turns.some(({ steps }) => steps.some(step => step.thinking !== undefined))
  const instructions = scene.system ?? 'Be brief.'
  const settings = thinks
    ? {
        modelSettings: {
          reasoning: { effort: 'low' as const, summary: 'auto' as const },
          store: false,
          providerData: { include: ['reasoning.encrypted_content'] },
        },
      }
    : {}
  const tools = [...toolsOf(scene, onKill), ...(scene.searches ? [webSearchTool()] : [])]
  const outputType = scene.structured
    ? { outputType: z.object({ city: z.string(), degrees: z.number() }) }
    : {}
  const parts = { model, tools, instructions, ...settings }
  const helper = new Agent({ ...parts, name: 'Helper' })
  return new Agent({
    ...parts,
    name: 'Clerk',
    ...outputType,
    ...(scene.handsOver ? { handoffs: [helper] } : {}),
  }) as unknown as Agent
}

function toolsOf({ tools = {}, approval }: Scene, onKill: () => void) {
  return Object.entries(tools).map(([name, behaviour]) =>
    tool({
      name,
      description: `Does ${name}.`,
      parameters: { type: 'object', properties: {}, required: [], additionalProperties: true },
      strict: false,
      needsApproval: approval !== undefined,
      execute: async () => {
        if ('picture' in behaviour)
          return [
            { type: 'text', text: 'the screen' },
            { type: 'image', image: { data: behaviour.picture, mediaType: 'image/png' } },
          ]
        if ('hangs' in behaviour) onKill()
        return behave(behaviour)
      },
    }),
  )
}

function userItem({ user, picture, pdf }: SceneTurn): AgentInputItem {
  if (picture === undefined && pdf === undefined) return { role: 'user', content: user }
  return {
    role: 'user',
    content: [
      { type: 'input_text', text: user },
      ...(picture === undefined
        ? []
        : [{ type: 'input_image' as const, image: `data:image/png;base64,${picture}` }]),
      ...(pdf === undefined
        ? []
        : [
            {
              type: 'input_file' as const,
              file: `data:application/pdf;base64,${pdf}`,
              filename: 'report.pdf',
            },
          ]),
    ],
  }
}
