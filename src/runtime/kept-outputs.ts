import { AgentError } from '../errors.js'
import type { SessionKey } from '../session/message.js'
import type { SessionStore } from '../session/session-store.js'

/** Whose output it is. */
export interface OutputOwner {
  userId: string
  sessionId: string
}

/**
 * Tool outputs that were too long for a model, kept whole: one message each in a session that is nested in the
 * one it belongs to, so that it is not listed and goes with it.
 */
export class KeptOutputs {
  constructor(
    private readonly store: SessionStore,
    private readonly appName: string,
  ) {}

  /** Keeps an output and returns the name by which it is found again. */
  async keep(tool: string, json: string, owner: OutputOwner): Promise<string> {
    const key = this.keyOf(owner)
    try {
      await this.store.createSession(key, {}, { nestedIn: this.appName })
    } catch (error) {
      if (!(error instanceof AgentError && error.code === 'session-exists')) throw error
    }
    const message = { role: 'tool', author: tool, content: json, timestamp: Date.now() }
    const { seq } = await this.store.appendMessage(key, message)
    return `output-${seq}`
  }

  /** A part of an output, or `undefined` when there is none of that name in the session. */
  async read(reference: string, offset: number, length: number, owner: OutputOwner) {
    const seq = Number(/^output-(\d{1,9})$/.exec(reference)?.[1] ?? 0)
    if (seq === 0) return undefined
    const [message] = await this.store.readMessages(this.keyOf(owner), { afterSeq: seq - 1, limit: 1 })
    if (!message || message.seq !== seq) return undefined
    const { content } = message
    return { text: content.slice(offset, offset + length), totalCharacters: content.length }
  }

  private keyOf({ userId, sessionId }: OutputOwner): SessionKey {
    return { appName: `${this.appName}:outputs`, userId, sessionId }
  }
}
