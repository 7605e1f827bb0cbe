/** The shapes of the server's API, taken from the typed client. */
import type { LangoClient } from '../../../src/client/client.js'

type Answer<Name extends keyof LangoClient> = LangoClient[Name] extends (
  ...parameters: never[]
) => Promise<infer Value>
  ? Value
  : never

export type ServerInfo = Answer<'info'>
export type ModelChoice = Answer<'models'>['models'][number]
export type SessionItem = Answer<'createSession'>
export type VariantItem = Answer<'variants'>['variants'][number]
export type SessionDetail = Answer<'session'>
export type RunItem = Answer<'run'>
export type ChatMessage = Answer<'messages'>['messages'][number]
export type ChatPart = ChatMessage['parts'][number]
export type MediaPart = Extract<ChatPart, { type: 'media' }>
export type RunRequest = Parameters<LangoClient['start']>[1]
export type RunOptions = Pick<RunRequest, 'model' | 'thinking' | 'temperature' | 'maxOutputTokens'>
export type UsageLine = Answer<'usage'>['lines'][number]
export type AttachedFile = NonNullable<RunRequest['files']>[number]
/** An answer about an unknown outcome, with what the call returned where the person says it. */
export type OutcomeReply = OutcomeAnswer | { happened: true; result: unknown }
export type OutcomeAnswer = Extract<Parameters<LangoClient['approve']>[2], 'happened' | 'run' | 'leave'>
export type ApprovalAnswer = Extract<Parameters<LangoClient['approve']>[2], 'once' | 'always' | 'no'>
export type RunEvent = ReturnType<LangoClient['follow']> extends AsyncGenerator<infer Event> ? Event : never
export type RunUsage = SessionDetail['usage']
export type BrokenHistory = Answer<'brokenHistories'>['histories'][number]
export type FoundMessage = Answer<'search'>['found'][number]
export type ImportedFile = Answer<'importFile'>
export type CheckedText = Answer<'check'>
export type SentAsItIs = Answer<'sendBroken'>

/** A message to send. */
export interface Outgoing {
  text: string
  files?: readonly AttachedFile[]
  options?: RunOptions
  /** Called when the run is stored, before anything else follows from it. */
  onStarted?: () => Promise<void>
}
