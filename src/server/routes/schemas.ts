/** The schemas of the native API, for validation and for the OpenAPI document. */

import { z } from '@hono/zod-openapi'
import { isBase64 } from '../../base/base64.js'
import { DUE_TIME_RULE, readDueTime } from '../../base/due-time.js'
import { MIME_TYPE } from '../../base/mcp-result.js'
import { THINKING_LEVELS } from '../../base/names.js'
import { MAX_TITLE } from '../../base/title.js'
import { JsonObject } from '../client-json.js'

export const count = z.number().int().min(0)
export const base64 = z
  .string()
  .refine(isBase64, 'must be base64')
  .openapi({ pattern: '^[A-Za-z0-9+/]*={0,2}$' })
const sessionId = z.string().min(1).max(256)

export const SessionParameter = z.object({ sessionId })
export const NoteParameter = z.object({ sessionId, number: z.coerce.number().int().min(1) })
export const UserParameter = z.object({ userId: z.string().min(1).max(256) })
/** Run ids are stored in lower case. */
const runId = z.uuid().toLowerCase()
export const RunParameter = z.object({ runId })
export const CallParameter = z.object({ runId, callId: z.string().min(1).max(512) })

export const SessionQuery = z.object({
  search: z.string().max(200).optional(),
  cursor: z.string().max(2000).optional(),
  limit: z.coerce.number().int().min(1).max(200).optional(),
})

export const MessageQuery = z.object({
  beforeSeq: z.coerce.number().int().min(1).optional(),
  afterSeq: z.coerce.number().int().min(0).optional(),
  limit: z.coerce.number().int().min(1).max(500).optional(),
})

export const RunQuery = z.object({ limit: z.coerce.number().int().min(1).max(500).optional() })
export const EventQuery = z.object({ after: z.coerce.number().int().min(0).optional() })
/** Validated by its route, because browsers send it by themselves. */
export const RunHeaders = z.object({ 'idempotency-key': z.string().min(1).max(255).optional() })
export const EventHeaders = z.object({ 'last-event-id': z.string().optional() })
export const LintQuery = z.object({ profile: z.string().max(200).optional() })

/** Counted in code points. */
const title = z.string().max(MAX_TITLE)

export const NewSession = z
  .object({ sessionId: sessionId.optional(), title: title.optional() })
  .openapi({ example: { sessionId: 'trip', title: 'A trip to the sea' } })
export const SessionChange = z
  .object({ title: title.optional(), variantOf: sessionId.optional() })
  .refine(({ title, variantOf }) => title !== undefined || variantOf !== undefined, {
    error: 'title or variantOf is missing',
  })
  .openapi({ example: { title: 'A trip to the hills' } })

export const ForkRequest = z
  .object({
    throughSeq: count.optional(),
    sessionId: sessionId.optional(),
    title: title.optional(),
  })
  .openapi({ example: { throughSeq: 1 } })

const File = z.object({
  mimeType: z.string().regex(MIME_TYPE),
  data: base64,
  name: z.string().max(255).optional(),
})

/** Limits of sessions and users are the server's alone. */
const RunBudget = z.strictObject({ perRunUsd: z.number().gt(0).max(1_000_000) })

export const GoOnRequest = z.object({ budget: RunBudget }).openapi({ example: { budget: { perRunUsd: 2 } } })

export const RunRequest = z
  .object({
    text: z.string().optional(),
    files: z.array(File).max(32).optional(),
    model: z.string().min(1).max(256).optional(),
    thinking: z.enum(THINKING_LEVELS).optional(),
    temperature: z.number().min(0).max(2).optional(),
    maxOutputTokens: z.number().int().min(1).optional(),
    outputSchema: JsonObject.optional().openapi({ type: 'object', additionalProperties: {} }),
    fallback: z.array(z.string().min(1).max(256)).max(16).optional(),
    budget: RunBudget.optional(),
    stateDelta: JsonObject.optional().openapi({ type: 'object', additionalProperties: {} }),
    whenBusy: z.enum(['queue', 'reject']).optional(),
    at: z
      .union([z.string(), z.number()])
      .refine(value => readDueTime(value) !== undefined, { error: `must be ${DUE_TIME_RULE}` })
      .optional()
      .openapi({ anyOf: [{ type: 'string', format: 'date-time' }, { type: 'integer' }] }),
    runId: z.uuid().optional(),
  })
  .openapi({ example: { text: 'What can you do?', whenBusy: 'queue' } })

export const ApprovalReply = z
  .object({
    answer: z.union([
      z.enum(['once', 'always', 'no', 'happened', 'run', 'leave']),
      JsonObject.openapi({ type: 'object', additionalProperties: {} }),
    ]),
  })
  .openapi({ example: { answer: 'once' } })

const usage = z
  .object({
    inputTokens: count,
    outputTokens: count,
    cachedInputTokens: count,
    cacheWriteTokens: count,
    cacheWrite1hTokens: count.optional(),
    reasoningTokens: count,
    totalTokens: count,
    cost: z.number().optional(),
  })
  .openapi('RunUsage')

export const MemoryQuery = z.object({
  afterNumber: z.coerce.number().int().min(0).optional(),
  limit: z.coerce.number().int().min(1).max(1000).optional(),
})

export const Note = z
  .object({
    sessionId: z.string(),
    number: count,
    text: z.string(),
    kind: z.string(),
    priority: count,
    time: z.number(),
    fromSeq: count,
    toSeq: count,
    origin: z.string(),
    supersededBy: count.optional(),
    createdAt: z.number(),
  })
  .openapi('MemoryNote')

export const MemoryPage = z
  .object({
    totalMessages: count,
    indexedSeq: count,
    observedSeq: count,
    usage: z.array(z.object({ model: z.string(), calls: count, inputTokens: count, outputTokens: count })),
    notes: z.array(Note),
  })
  .openapi('MemoryPage')

export const BrokenHistories = z
  .object({
    histories: z.array(
      z.object({
        id: z.string(),
        title: z.string(),
        story: z.string(),
        profile: z.string(),
        model: z.string(),
        question: z.string(),
      }),
    ),
  })
  .openapi('BrokenHistories')
export const BrokenParameter = z.object({ id: z.string().min(1).max(100) })
export const OpenedSession = z.object({ sessionId: z.string() })
export const SentAsItIs = z.object({ profile: z.string(), status: count, message: z.string() })
/** A history as text, in any format that `lango lint` reads. */
export const CheckRequest = z
  .strictObject({ text: z.string().min(1), format: z.string().max(50).optional() })
  .openapi({ example: { text: '{"messages":[{"role":"user","content":"Hi"}]}' } })
const FormatName = z.object({ format: z.string(), name: z.string() })
const CheckedProblem = z.object({
  where: z.string(),
  code: z.string(),
  problem: z.string(),
  refusals: z.array(z.object({ words: z.string().optional(), profiles: z.array(z.string()) })),
  repairs: z.array(z.string()),
})
export const CheckedText = z
  .object({
    format: FormatName.optional(),
    candidates: z.array(FormatName),
    histories: z.array(
      z.object({
        name: z.string(),
        messages: count,
        notes: z.array(z.string()),
        profiles: z.array(
          z.object({ profile: z.string(), refused: z.boolean(), breaks: count, mapped: count }),
        ),
        problems: z.array(CheckedProblem),
        moreProblems: count,
        healed: z
          .object({
            fileName: z.string(),
            text: z.string(),
            profile: z.string().optional(),
            note: z.string(),
            left: z.array(CheckedProblem),
          })
          .optional(),
      }),
    ),
    more: count,
  })
  .openapi('CheckedText')
export const HealRequest = z
  .object({ runId: runId.optional() })
  .openapi({ example: { runId: '6f0c6ae2-5d0a-4d0f-9a47-3f1b0a0e8f11' } })

/** A note as a person writes it. */
export const NoteRequest = z
  .strictObject({ text: z.string().trim().min(1).max(2000) })
  .openapi({ example: { text: 'The hotel is in Porto.' } })

export const Forgotten = z.object({ forgotten: count })

export const EraseReceipt = z
  .object({
    sessions: count,
    messages: count,
    runs: count,
    events: count,
    requests: count,
    requestParts: count,
    signals: count,
    entries: count,
    toolCalls: count,
    observations: count,
    indexed: count,
    artifacts: count,
    artifactPieces: count,
    usage: count,
    leases: count,
    stateKeys: count,
    at: count,
    residue: z.enum(['none', 'free-space', 'log']),
  })
  .openapi('EraseReceipt')

export const SessionItem = z
  .object({
    sessionId: z.string(),
    title: z.string().optional(),
    preview: z.string().optional(),
    totalMessages: count,
    totalTokens: count,
    createdAt: count,
    updatedAt: count,
    running: z.literal(true).optional(),
    waiting: z.literal(true).optional(),
  })
  .openapi('SessionItem')

export const SessionList = z
  .object({ sessions: z.array(SessionItem), nextCursor: z.string().optional() })
  .openapi('SessionList')

export const VariantList = z
  .object({
    variants: z.array(
      z.object({
        sessionId: z.string(),
        totalMessages: count,
        createdAt: count,
        listed: z.boolean(),
        sharedMessages: count,
      }),
    ),
  })
  .openapi('VariantList')

const RunQuestion = z
  .object({
    callId: z.string(),
    tool: z.string(),
    args: z.record(z.string(), z.unknown()),
    asks: z.enum(['approval', 'outcome', 'result']),
    reason: z.string().optional(),
    needsResult: z.boolean().optional(),
    resultSchema: z.record(z.string(), z.unknown()).optional(),
  })
  .openapi('RunQuestion')

export const RunItem = z
  .object({
    runId: z.uuid(),
    sessionId: z.string(),
    startedAt: count,
    afterSeq: count.optional(),
    lastSeq: count,
    status: z.enum(['scheduled', 'queued', 'running', 'waiting', 'finished']),
    dueAt: count.optional(),
    place: count.optional(),
    waitsFor: z.array(RunQuestion).optional(),
    finishReason: z.string().optional(),
  })
  .openapi('RunItem')

export const RunList = z.object({ runs: z.array(RunItem) }).openapi('RunList')
export const StartedRun = z.object({ runId: z.uuid(), sessionId: z.string() }).openapi('StartedRun')

export const SessionDetail = SessionItem.extend({
  usage,
  activeRun: RunItem.optional(),
  lastRun: RunItem.optional(),
  nextRun: RunItem.optional(),
}).openapi('SessionDetail')

const ChatMessage = z
  .object({
    seq: count,
    role: z.enum(['user', 'assistant', 'tool', 'system']),
    author: z.string(),
    timestamp: count,
    tokens: count,
    parts: z.array(z.looseObject({ type: z.string() })),
    synthetic: z.boolean().optional(),
    model: z.string().optional(),
    usage: usage.optional(),
    sources: z.array(z.object({ url: z.string(), title: z.string().optional() })).optional(),
    error: z.object({ code: z.string(), message: z.string() }).optional(),
  })
  .openapi('ChatMessage')

export const MessagePage = z
  .object({ messages: z.array(ChatMessage), totalMessages: count })
  .openapi('MessagePage')

export const RunEvent = z
  .looseObject({ type: z.string(), sessionId: z.string(), runId: z.uuid(), seq: count })
  .openapi('RunEvent')

export const RunInspection = z
  .looseObject({ runId: z.string(), steps: z.array(z.looseObject({ step: count })) })
  .openapi('RunInspection')

export const SessionLint = z
  .looseObject({ messages: count, profiles: z.array(z.looseObject({ profile: z.string() })) })
  .openapi('SessionLint')

export const ServerInfo = z
  .object({
    app: z.string(),
    agent: z.string(),
    model: z.string(),
    demo: z.boolean(),
    store: z.enum(['sqlite', 'postgres', 'memory', 'custom']),
    budgetTokens: z.union([count, z.literal('off')]),
    repair: z.string(),
    memory: z.boolean(),
    version: z.string(),
    user: z.string(),
    keyHint: z.string().optional(),
    maxBodyBytes: count,
  })
  .openapi('ServerInfo')

export const ModelList = z
  .object({ default: z.string(), models: z.array(z.looseObject({ reference: z.string() })) })
  .openapi('ModelList')

export const Health = z.object({ status: z.string() }).openapi('Health')

export const Problem = z
  .object({
    type: z.string(),
    title: z.string(),
    status: count,
    detail: z.string(),
    code: z.string(),
    retryable: z.boolean(),
    details: z.record(z.string(), z.unknown()).optional(),
  })
  .openapi('Problem')

const day = z.string().regex(/^\d{4}-\d{2}-\d{2}$/)

export const UsageQuery = z.object({
  model: z.string().min(1).max(256).optional(),
  from: day.optional(),
  to: day.optional(),
})

export const UsageList = z
  .object({
    lines: z.array(
      z.object({
        day,
        userId: z.string(),
        model: z.string(),
        kind: z.enum(['run', 'memory']),
        calls: count,
        usage,
        unpricedCalls: count,
      }),
    ),
  })
  .openapi('UsageList')
