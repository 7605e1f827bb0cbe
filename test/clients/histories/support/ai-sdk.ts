/** Conversations as the AI SDK stores them: UI messages by its stream, model messages by its loop, of three versions. */
import { createAnthropic } from '@ai-sdk/anthropic'
import { createGoogleGenerativeAI } from '@ai-sdk/google'
import { createOpenAI } from '@ai-sdk/openai'
import type * as Sdk from 'ai'
import type { LanguageModel, ModelMessage, ToolSet, UIMessage } from 'ai'
import { z } from 'zod'
import { type StrictProvider, startStrictProvider } from '../../../../src/testing/start-strict-provider.js'
import { PROFILE_FACTS } from '../../../../src/testing/strict/profile.js'
import { behave } from './behave.js'
import type { Scene, SceneTurn } from './scenes.js'

export interface AiSdk {
  version: number
  sdk: typeof Sdk
  makers: Makers
}

/** Versions 5, 6 and 7. What is used of them has one form in all. */
export async function loadAiSdks(): Promise<AiSdk[]> {
  const { createAnthropic: anthropic2 } = await import('ai-anthropic-2')
  const { createOpenAI: openai2 } = await import('ai-openai-2')
  const old = { createAnthropic: anthropic2, createOpenAI: openai2 } as unknown as Makers
  const current = { createAnthropic, createOpenAI }
  const loaded = [await import('ai-5'), await import('ai'), await import('ai-7')] as unknown as (typeof Sdk)[]
  return loaded.map((sdk, index) => ({
    version: 5 + index,
    sdk,
    makers: index === 0 ? old : current,
  }))
}

interface Makers {
  createAnthropic: typeof createAnthropic
  createOpenAI: typeof createOpenAI
}

function modelBy(makers: Makers, { baseUrl, profile }: StrictProvider): LanguageModel {
  const { family, model } = PROFILE_FACTS[profile]
  const wire = { apiKey: 'none', baseURL: baseUrl }
  switch (family) {
    case 'anthropic':
      return makers.createAnthropic({ apiKey: 'none', baseURL: `${baseUrl}/v1` })(model)
    case 'openai-responses':
      return makers.createOpenAI(wire).responses(model)
    case 'openai-chat':
      return makers.createOpenAI(wire).chat(model)
    case 'gemini':
      return createGoogleGenerativeAI({ apiKey: 'none', baseURL: `${baseUrl}/v1beta` })(model)
    default:
      throw new Error(`No scene is played by the rules of ${profile}`)
  }
}

export interface Written {
  ui: UIMessage[]
  model: ModelMessage[]
  /** What the provider got. */
  bodies: unknown[]
}

export async function playAiSdk(ai: AiSdk, scene: Scene): Promise<Written> {
  const steps = scene.turns.flatMap(turn => turn.steps)
  const server = await startStrictProvider({ profile: scene.profile, script: steps })
  try {
    const parts = { ai, scene, model: modelBy(ai.makers, server) }
    const written: Written = { ui: [], model: [], bodies: [] }
    for (const turn of scene.turns) {
      await playTurn(parts, turn, written)
      if (scene.approval === 'approved' || scene.approval === 'denied') await decide(parts, written)
    }
    written.bodies = server.requests.map(({ body }) => body)
    if (server.violations.length > 0) throw new Error(JSON.stringify(server.violations[0]))
    return written
  } finally {
    await server.close()
  }
}

interface Parts {
  ai: AiSdk
  scene: Scene
  model: LanguageModel
}

/** What `addToolApprovalResponse` of a chat does, and the turn that follows. */
async function decide(parts: Parts, written: Written): Promise<void> {
  const approved = parts.scene.approval === 'approved'
  const decided = written.ui.map(message => ({
    ...message,
    parts: message.parts.map(part =>
      'approval' in part && part.approval
        ? {
            ...part,
            state: 'approval-responded',
            approval: { id: part.approval.id, approved, ...(approved ? {} : { reason: 'too much' }) },
          }
        : part,
    ),
  })) as UIMessage[]
  written.ui = decided
  written.model = await parts.ai.sdk.convertToModelMessages(decided)
  await playTurn(parts, undefined, written)
}

async function playTurn(
  { ai, scene, model }: Parts,
  turn: SceneTurn | undefined,
  written: Written,
): Promise<void> {
  const stop = new AbortController()
  const { sdk } = ai
  const tools = toolsOf(ai, scene)
  const number = written.ui.length
  const asked = turn ? [{ id: `user-${number}`, role: 'user', parts: userParts(turn) } as UIMessage] : []
  const ui = [...written.ui, ...asked]
  let failure: unknown
  const result = sdk.streamText({
    model,
    ...(scene.system === undefined ? {} : { system: scene.system }),
    messages: await sdk.convertToModelMessages(ui, { tools }),
    tools,
    stopWhen: sdk.stepCountIs(6),
    abortSignal: stop.signal,
    ...optionsOf(scene),
    onError: ({ error }) => {
      failure = error
    },
  })
  let length = 0
  const isKilled = Object.values(scene.tools ?? {}).some(tool => 'hangs' in tool)
  const stream = result.toUIMessageStream({
    originalMessages: ui,
    sendSources: true,
    generateMessageId: () => `answer-${number}`,
    onFinish: ({ messages }) => {
      written.ui = messages
    },
  })
  if (isKilled) {
    // What a program has stored when it is killed: the message so far.
    for await (const message of sdk.readUIMessageStream({ stream })) {
      written.ui = [...ui, structuredClone(message)]
      if (message.parts.some(part => 'state' in part && part.state === 'input-available')) break
    }
  } else {
    for await (const chunk of stream) {
      if (chunk.type === 'text-delta') length += chunk.delta.length
      if (scene.abortAfter !== undefined && length > scene.abortAfter) stop.abort()
    }
  }
  if (failure !== undefined && !stop.signal.aborted) throw failure
  const question = await sdk.convertToModelMessages(asked)
  const answered =
    stop.signal.aborted || isKilled
      ? await sdk.convertToModelMessages(written.ui.slice(ui.length), { tools })
      : await answersOf(result)
  written.model.push(...question, ...answered)
}

/** Since version 7 `response` is that of the last step alone. */
async function answersOf(result: {
  response: PromiseLike<{ messages: ModelMessage[] }>
  responseMessages?: PromiseLike<ModelMessage[]>
}): Promise<ModelMessage[]> {
  return (await result.responseMessages) ?? (await result.response).messages
}

function userParts({ user, picture, pdf }: SceneTurn): UIMessage['parts'] {
  const file = (mediaType: string, data: string, filename: string) => ({
    ...{ type: 'file' as const, mediaType, url: `data:${mediaType};base64,${data}`, filename },
  })
  return [
    { type: 'text', text: user },
    ...(picture === undefined ? [] : [file('image/png', picture, 'pixel.png')]),
    ...(pdf === undefined ? [] : [file('application/pdf', pdf, 'report.pdf')]),
  ]
}

function toolsOf({ sdk, version, makers }: AiSdk, scene: Scene): ToolSet {
  const { tools = {}, searches, approval } = scene
  const own = Object.entries(tools).map(([name, behaviour]) => [
    name,
    sdk.tool({
      description: `Does ${name}.`,
      inputSchema: z.looseObject({}),
      ...(approval === undefined ? {} : { needsApproval: true }),
      execute: (): Promise<unknown> => behave(behaviour),
      ...('picture' in behaviour
        ? {
            toModelOutput: () => ({
              type: 'content' as const,
              value: [{ type: 'text' as const, text: 'the screen' }, pictureFor(version, behaviour.picture)],
            }),
          }
        : {}),
    }),
  ])
  const search = searches ? { web_search: makers.createOpenAI({ apiKey: 'none' }).tools.webSearch({}) } : {}
  return { ...Object.fromEntries(own), ...search } as ToolSet
}

/** Each version has a form of its own for files in results. */
function pictureFor(version: number, data: string): never {
  const forms = {
    5: { type: 'media', data, mediaType: 'image/png' },
    6: { type: 'image-data', data, mediaType: 'image/png' },
    7: { type: 'file', data: { type: 'data', data }, mediaType: 'image/png' },
  }
  return forms[version as keyof typeof forms] as never
}

const THINKING: Readonly<Record<string, object>> = {
  anthropic: { thinking: { type: 'enabled', budgetTokens: 1024 } },
  openai: { reasoningSummary: 'auto', include: ['reasoning.encrypted_content'] },
}

function optionsOf(scene: Scene): object {
  const thinks = scene.turns.some(({ steps }) => steps.some(step => step.thinking !== undefined))
  const schema = z.object({ city: z.string(), degrees: z.number() })
  return {
    ...(thinks ? { providerOptions: THINKING } : { providerOptions: { openai: { store: false } } }),
    ...(scene.structured ? { responseFormat: schema } : {}),
  }
}
