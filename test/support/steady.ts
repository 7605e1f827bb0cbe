/** Law 4 as the tests read it: a request extends the one before it in its lane, or one receipt says why not. */
import { isDeepStrictEqual } from 'node:util'

/** A stored request, as far as the law looks at it. */
export interface SentRecord {
  model: string
  place?: { app: string; agent: string; branch: string }
  repairs: readonly { kind: string; reason?: string; tokens?: number }[]
  body: unknown
}

export interface JudgedPair {
  before: SentRecord
  after: SentRecord
  extends: boolean
  breaks: readonly string[]
}

/** Consecutive requests of one model, agent and branch. */
export function pairsOf(requests: readonly SentRecord[]): JudgedPair[] {
  const lanes = new Map<string, SentRecord>()
  const pairs: JudgedPair[] = []
  for (const after of requests) {
    const lane = JSON.stringify([after.model, after.place])
    const before = lanes.get(lane)
    lanes.set(lane, after)
    if (!before) continue
    const breaks = after.repairs.flatMap(({ kind, reason }) =>
      kind === 'prefix-break' ? [reason ?? ''] : [],
    )
    pairs.push({ before, after, extends: isPrefix(before.body, after.body), breaks })
  }
  return pairs
}

/** The pairs that break the law: no extension and no receipt or several, or a receipt without need. */
export function brokenPairs(requests: readonly SentRecord[]): JudgedPair[] {
  return pairsOf(requests).filter(pair => (pair.extends ? 0 : 1) !== pair.breaks.length)
}

/** Whether everything before the next answer is the same in both bodies, cache marks aside. */
function isPrefix(before: unknown, after: unknown): boolean {
  const [one, other] = [readBody(before), readBody(after)]
  return (
    isDeepStrictEqual(one.head, other.head) &&
    one.messages.length <= other.messages.length &&
    one.messages.every((message, index) => isDeepStrictEqual(message, other.messages[index]))
  )
}

/** The instruction and the tools of a body, and its messages. */
function readBody(body: unknown): { head: unknown; messages: unknown[] } {
  const { system, systemInstruction, instructions, tools, messages, contents, input } = JSON.parse(
    JSON.stringify(body, (key, value: unknown) => (key === 'cache_control' ? undefined : value)),
  ) as Record<string, unknown>
  const list = (messages ?? contents ?? input) as unknown[]
  return { head: { system, systemInstruction, instructions, tools: tools ?? [] }, messages: list }
}
