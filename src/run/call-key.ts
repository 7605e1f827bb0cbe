import { hash } from 'node:crypto'
import { isRecord } from '../base/is-record.js'
import { stableJson } from '../base/stable-json.js'
import type { SessionKey } from '../session/message.js'
import type { ToolCallFacts } from '../session/run-store.js'
import type { ToolEffect } from '../tool.js'

/** The facts of a call that the ledger keeps. Equal calls have equal digests. */
export function callFacts(callId: string, tool: string, args: unknown, effect: ToolEffect): ToolCallFacts {
  const given = isRecord(args) ? args : {}
  return { callId, tool, effect, digest: hashOf([tool, given]), args: given }
}

/** The idempotency key of a call: its ordinal tells it from equal calls of the session. */
export function callKey(
  { appName, userId, sessionId }: SessionKey,
  { tool, args }: Pick<ToolCallFacts, 'tool' | 'args'>,
  ordinal: number | string,
): string {
  return hashOf([appName, userId, sessionId, tool, args, ordinal])
}

function hashOf(value: unknown): string {
  return hash('sha256', stableJson(value), 'hex').slice(0, 32)
}
