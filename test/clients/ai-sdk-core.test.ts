// The AI SDK's own loop: generateText, streamText and generateObject, on OpenAI's provider and the compatible one.
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import {
  generateObject,
  generateText,
  type LanguageModel,
  type ModelMessage,
  stepCountIs,
  streamText,
  tool,
} from 'ai'
import { z } from 'zod'
import {
  type Connect,
  type ConversationParts,
  conversationSuite,
  type Turn,
} from './support/conversation-suite.js'

const Place = z.object({ city: z.string(), degrees: z.number() })

function connectWith(modelOf: (parts: ConversationParts) => LanguageModel): Connect {
  return parts => {
    const model = modelOf(parts)
    const messages: ModelMessage[] = []
    const tools = {
      get_weather: tool({
        description: 'The weather.',
        inputSchema: z.object({ city: z.string() }),
        execute: async args => parts.weather(args),
      }),
    }
    const say = async (text: string, { signal, onPiece }: Turn = {}): Promise<string> => {
      const question: ModelMessage = { role: 'user', content: text }
      const stop = signal ? { abortSignal: signal } : {}
      const request = {
        ...{ model, system: 'Be brief.', messages: [...messages, question], tools },
        ...{ stopWhen: stepCountIs(5), ...stop },
      }
      if (!onPiece) {
        const result = await generateText(request)
        messages.push(question, ...result.response.messages)
        return result.text
      }
      let failure: unknown
      const result = streamText({
        ...request,
        onError: ({ error }) => {
          failure = error
        },
      })
      for await (const piece of result.textStream) onPiece(piece)
      if (failure !== undefined) throw failure
      messages.push(question, ...(await result.response).messages)
      return result.text
    }
    const structured = async (text: string): Promise<unknown> => {
      const { object } = await generateObject({ model, schema: Place, prompt: text })
      return object
    }
    return { say, structured }
  }
}

conversationSuite(
  { client: 'AI SDK, @ai-sdk/openai', package: '@ai-sdk/openai' },
  connectWith(({ baseURL, fetch }) => createOpenAI({ baseURL, apiKey: 'none', fetch })('lango')),
)

conversationSuite(
  { client: 'AI SDK, @ai-sdk/openai-compatible', package: '@ai-sdk/openai-compatible' },
  connectWith(({ baseURL, fetch }) =>
    createOpenAICompatible({ name: 'lango', baseURL, fetch, supportsStructuredOutputs: true })('lango'),
  ),
)
