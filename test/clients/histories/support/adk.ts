/** Conversations as ADK keeps them: runs of its own runner, with its DatabaseSessionService. */
import {
  type BaseSessionService,
  DatabaseSessionService,
  FunctionTool,
  Gemini,
  GOOGLE_SEARCH,
  LlmAgent,
  Runner,
  type Session,
} from '@google/adk'
import type { Part } from '@google/genai'
import { LibSqlDriver } from '@mikro-orm/libsql'
import { PostgreSqlDriver } from '@mikro-orm/postgresql'
import { startStrictProvider } from '../../../../src/testing/start-strict-provider.js'
import { behave } from './behave.js'
import type { Scene, SceneTurn } from './scenes.js'

export const ADK_APP = 'shop'
export const ADK_USER = 'ann'
const MODEL = 'gemini-3.5-flash'

/** ADK's service on a file or a server. Its default SQLite driver is a native module that the suite does not build. */
export function openAdk(url: string): { service: BaseSessionService; close(): Promise<void> } {
  const place = url.startsWith('postgres')
    ? { driver: PostgreSqlDriver, clientUrl: url }
    : { driver: LibSqlDriver, dbName: url }
  const service = new DatabaseSessionService(place as never)
  // It has no close of its own.
  const { orm } = service as unknown as { orm?: { close(): Promise<void> } }
  return {
    service,
    close: async () => (orm ?? (service as unknown as { orm: { close(): Promise<void> } }).orm).close(),
  }
}

export interface AdkFiles {
  session: Session
  bodies: unknown[]
}

/** Plays a scene as a session of its name. ADK's Gemini takes its address from the environment alone. */
export async function playAdk(given: Scene, service: BaseSessionService): Promise<AdkFiles> {
  const scene = { ...given, profile: 'gemini-3' as const }
  const transfer = { name: 'transfer_to_agent', args: { agentName: 'helper' } }
  const script = scene.turns
    .flatMap(turn => turn.steps)
    .map(step => (step.toolCalls?.[0]?.name === 'transfer_to_Helper' ? { toolCalls: [transfer] } : step))
  const server = await startStrictProvider({ profile: scene.profile, script })
  process.env.GOOGLE_GEMINI_BASE_URL = server.baseUrl
  try {
    const key = { appName: ADK_APP, userId: ADK_USER, sessionId: scene.name }
    await service.createSession({
      ...key,
      state: { scene: scene.name, 'user:city': 'Rome', 'app:open': true },
    })
    const killed = withResolvers()
    const runner = new Runner({
      appName: ADK_APP,
      agent: agentOf(scene, killed.resolve),
      sessionService: service,
    })
    for (const turn of scene.turns) await Promise.race([killed.promise, playTurn(runner, scene, turn)])
    const session = await service.getSession(key)
    if (!session) throw new Error('The session is gone')
    if (server.violations.length > 0) throw new Error(JSON.stringify(server.violations[0]))
    return { session, bodies: server.requests.map(({ body }) => body) }
  } finally {
    delete process.env.GOOGLE_GEMINI_BASE_URL
    await server.close()
  }
}

async function playTurn(runner: Runner, scene: Scene, turn: SceneTurn): Promise<void> {
  const run = runner.runAsync({
    ...{ userId: ADK_USER, sessionId: scene.name, newMessage: { role: 'user', parts: partsOf(turn) } },
    stateDelta: { last: turn.user },
  })
  for await (const event of run) {
    if (event.errorCode !== undefined) throw new Error(`${event.errorCode}: ${event.errorMessage}`)
  }
}

function agentOf(scene: Scene, onKill: () => void): LlmAgent {
  const model = new Gemini({ model: MODEL, apiKey: 'none' })
  const tools = toolsOf(scene, onKill)
  const instruction = scene.system ?? 'Be brief.'
  const helper = new LlmAgent({ name: 'helper', model, instruction: 'Help.', tools })
  return new LlmAgent({
    ...{ name: 'clerk', model, instruction },
    tools: scene.searches ? [GOOGLE_SEARCH] : tools,
    ...(scene.handsOver ? { subAgents: [helper] } : {}),
    ...(scene.structured ? { outputKey: 'place' } : {}),
  })
}

function toolsOf({ tools = {}, approval }: Scene, onKill: () => void): FunctionTool[] {
  return Object.entries(tools).map(
    ([name, behaviour]) =>
      new FunctionTool({
        ...{ name, description: `Does ${name}.`, parameters: { type: 'OBJECT', properties: {} } as never },
        requireConfirmation: approval !== undefined,
        execute: async () => {
          if ('hangs' in behaviour) onKill()
          return behave(behaviour)
        },
      }),
  )
}

function partsOf({ user, picture, pdf }: SceneTurn): Part[] {
  return [
    { text: user },
    ...(picture === undefined ? [] : [{ inlineData: { mimeType: 'image/png', data: picture } }]),
    ...(pdf === undefined
      ? []
      : [{ inlineData: { mimeType: 'application/pdf', data: pdf, displayName: 'report.pdf' } }]),
  ]
}

function withResolvers(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {}
  const promise = new Promise<void>(done => {
    resolve = done
  })
  return { promise, resolve }
}
