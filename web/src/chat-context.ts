import { createContext, useContext, useSyncExternalStore } from 'react'
import type { LangoClient } from '../../src/client/client.js'
import type { SessionsController } from './sessions-controller.js'
import type { ModelChoice, RunOptions, ServerInfo } from './state/api.js'
import type { Observable } from './state/observable.js'
import type { ThreadController } from './thread-controller.js'
import type { VariantsController } from './variants-controller.js'

/** The panel next to the chat. */
export type Panel =
  | { type: 'inspector'; runId: string }
  | { type: 'lint' }
  | { type: 'memory' }
  | { type: 'usage' }

export interface ChatContextValue {
  client: LangoClient
  /** True if the server answers. */
  link: Observable<'open' | 'lost'>
  thread: ThreadController
  sessions: SessionsController
  variants: VariantsController
  info: ServerInfo
  models: readonly ModelChoice[]
  /** The model of the next message; undefined: the server's own choice. */
  model: string | undefined
  setModel: (reference: string) => void
  setThinking: (level: string) => void
  /** What is sent with the next message. */
  options: RunOptions
  /** Whether words are looked for in the open chat. */
  finding: Observable<boolean>
  openSession: (sessionId: string | undefined) => void
  openPanel: (panel: Panel) => void
  /** Opens the page that checks a history. */
  openCheck: () => void
  /** Opens the inspector for the run that wrote a message. */
  inspectMessage: (seq: number) => void
}

/** The page provides it around everything, so nothing ever sees the value that stands here. */
export const ChatContext = createContext<ChatContextValue>(undefined as never)

/** What every part of the page may need. */
export function useChat(): ChatContextValue {
  return useContext(ChatContext)
}

/** The current value, and again whenever it changes. */
export function useObserved<Value>(observable: Observable<Value>): Value {
  return useSyncExternalStore(observable.subscribe, observable.get)
}
