/** A provider whose requests are written as the real ones write them, and whose answers come from a script: no HTTP. */
import { toAnthropicRequest } from '../../src/provider/anthropic/to-anthropic-request.js'
import { toConverseRequest } from '../../src/provider/converse/to-converse-request.js'
import { toGeminiRequest } from '../../src/provider/gemini/to-gemini-request.js'
import { chatQuirks, toChatRequest } from '../../src/provider/openai/to-chat-request.js'
import { toResponsesRequest } from '../../src/provider/openai/to-responses-request.js'
import type { GenerateRequest, ModelInfo, Provider } from '../../src/provider/provider.js'
import { PROFILES, type ProfileName } from '../../src/provider/repair/profile.js'
import { DEFAULT_RETRY } from '../../src/provider/retry.js'
import { type PreparedRequest, streamAnswer, type Wire } from '../../src/provider/stream-answer.js'
import type { StreamEvent } from '../../src/provider/stream-event.js'

const MODELS: Readonly<Partial<Record<ProfileName, string>>> = {
  'gemini-2': 'gemini-2.5-flash',
  'gemini-3': 'gemini-3-pro',
  'gemini-3-strict': 'gemini-3.6-flash',
  'openai-responses': 'gpt-5.2',
  'anthropic-4.5': 'claude-sonnet-4-5',
  'anthropic-4.6': 'claude-opus-4-6',
}

/** The name of a model that the profile is for. */
export function modelOf(profile: ProfileName): string {
  return MODELS[profile] ?? 'some-model'
}

export type AnswerScript = (request: GenerateRequest, info: ModelInfo) => StreamEvent[]

export class WireProvider implements Provider {
  readonly id: string
  /** Every body that was sent. */
  readonly bodies: unknown[] = []
  readonly #profile: ProfileName
  readonly #script: AnswerScript

  constructor(profile: ProfileName, script: AnswerScript) {
    this.id = profile
    this.#profile = profile
    this.#script = script
  }

  describeModel(model: string): ModelInfo {
    const { system, reasoning } = PROFILES[this.#profile]
    return {
      id: model,
      contextWindow: 1_000_000,
      outputLimit: 8192,
      profile: this.#profile,
      known: true,
      ...(system === 'anywhere' || system === 'after-user' ? { takesLaterSystem: true } : {}),
      ...(reasoning.bound ? { bindsReasoning: true } : {}),
    }
  }

  generate(request: GenerateRequest, signal?: AbortSignal): AsyncIterable<StreamEvent> {
    const settings = {
      providerId: this.id,
      retry: { ...DEFAULT_RETRY, maxAttempts: 1 },
      idleTimeoutMs: 60_000,
      secrets: [],
    }
    return streamAnswer(settings, request, signal, () => this.#wire(request))
  }

  #wire(request: GenerateRequest): Wire<unknown, StreamEvent> {
    const info = this.describeModel(request.model)
    const profile = PROFILES[this.#profile]
    return {
      vendor: profile.vendor,
      profile,
      info,
      abilities: () => ({ option: () => 'sent', hasServerTool: () => true }),
      toBody: prepared => this.#toBody(prepared),
      open: async body => {
        this.bodies.push(body)
        return iterate(this.#script(request, info))
      },
      read: chunks => chunks,
    }
  }

  #toBody(prepared: PreparedRequest): unknown {
    if (this.#profile.startsWith('gemini')) return toGeminiRequest(prepared)
    if (this.#profile.startsWith('anthropic')) return toAnthropicRequest(prepared)
    if (this.#profile.endsWith('-responses')) return toResponsesRequest(prepared)
    if (this.#profile === 'converse') return toConverseRequest(prepared)
    return toChatRequest(prepared, chatQuirks(this.#profile))
  }
}

async function* iterate(events: readonly StreamEvent[]): AsyncGenerator<StreamEvent> {
  yield* events
}
