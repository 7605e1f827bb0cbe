/**
 * A stored message as a person reads it: parts in order, nothing of any vendor's shape. For chat pages and
 * terminals; what is sent to a model is made from the stored message itself.
 */
import type { Source } from './sources.js'
import type { RunUsage } from './usage.js'

export interface ChatMessage {
  seq: number
  role: 'user' | 'assistant' | 'tool' | 'system'
  author: string
  timestamp: number
  tokens: number
  parts: ChatPart[]
  /** Lango wrote it to the model: hidden in a chat, shown when inspecting. */
  synthetic?: boolean
  /** The model that answered, where the message names it. */
  model?: string
  usage?: RunUsage
  /** Where the answer comes from. */
  sources?: Source[]
  /** The model's answer was an error that was stored. */
  error?: { code: string; message: string }
}

export interface ChatMedia {
  type: 'media'
  mimeType: string
  name?: string
  /** Base64. */
  data?: string
  url?: string
}

export type ChatPart =
  | { type: 'text'; text: string }
  | { type: 'reasoning'; text: string; redacted?: boolean }
  | { type: 'tool-call'; id: string; name: string; args: unknown; signed?: boolean }
  | {
      type: 'tool-result'
      id: string
      name: string
      result: unknown
      isError?: boolean
      /** Pictures and files that the tool returned besides. */
      media?: ChatMedia[]
    }
  | ChatMedia
  /** Code that the vendor's servers ran, or what it printed. */
  | { type: 'code'; language?: string; code?: string; output?: string }
  | { type: 'other'; text: string }
